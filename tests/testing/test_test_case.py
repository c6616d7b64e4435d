"""``df.test.TestCase``: each assertion holds for some values, and fails for others."""

from __future__ import annotations

import os
import subprocess
import sys
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.compat import v1

NAN = float("nan")


@pytest.fixture
def case() -> Any:
    test = df.test.TestCase("test_session")
    test.setUp()
    yield test
    test.tearDown()
    test.doCleanups()


class Library(df.test.TestCase):
    """The base of a library's tests, which replaces the conversion of values."""

    def _GetNdArray(self, value: Any) -> Any:
        return abs(super()._GetNdArray(value))


def test_a_subclass_may_replace_the_conversion_of_values() -> None:
    Library("test_session").assertAllGreater([-3.0, 4.0], 2.5)


HOLD: dict[str, Callable[[Any], Any]] = {
    "equal": lambda t: t.assertAllEqual(df.constant([1, 2]), [1, 2]),
    "equal nan": lambda t: t.assertAllEqual(df.constant([1.0, NAN]), np.array([1.0, NAN], np.float32)),
    "equal strings": lambda t: t.assertAllEqual(df.constant(["a"]), ["a"]),
    "equal lists of different lengths": lambda t: t.assertAllEqual([[1], [2, 3]], [[1], [2, 3]]),
    "unequal": lambda t: t.assertNotAllEqual([1, 2], [1, 3]),
    "unequal shapes": lambda t: t.assertNotAllEqual([1, 2], [[1, 2]]),
    "close": lambda t: t.assertAllClose(df.constant([1.0, 2.0]), [1.0, 2.0 + 1e-6]),
    "close structures": lambda t: t.assertAllClose({"a": [1.0, (2.0, [3.0])]}, {"a": [1.0, (2.0, [3.0])]}),
    "not close": lambda t: t.assertNotAllClose([1.0], [1.1]),
    "close by float16": lambda t: t.assertAllCloseAccordingToType(np.float16(1.0), np.float32(1.0005)),
    "close by bfloat16": lambda t: t.assertAllCloseAccordingToType(df.constant(1.0, df.bfloat16), 1.005),
    "near": lambda t: t.assertNear(1.0, 1.5, 0.5),
    "arrays near": lambda t: t.assertArrayNear([1.0, 2.0], [1.1, 2.1], 0.2),
    "norms near": lambda t: t.assertNDArrayNear(np.ones(2), np.ones(2) + 0.1, 0.2),
    "greater": lambda t: t.assertAllGreater(df.constant([2, 3]), 1),
    "less": lambda t: t.assertAllLess([2, 3], 4),
    "greater or equal": lambda t: t.assertAllGreaterEqual([2, 3], 2),
    "less or equal": lambda t: t.assertAllLessEqual([2, 3], 3),
    "in a range": lambda t: t.assertAllInRange([1.0, 2.0], 1.0, 2.0),
    "in a set": lambda t: t.assertAllInSet([1, 2], {1, 2, 3}),
    "shapes": lambda t: t.assertShapeEqual(np.ones((2, 3)), df.ones([2, 3])),
    "dtypes": lambda t: t.assertDTypeEqual(df.ones([1]), np.float32),
    "devices": lambda t: t.assertDeviceEqual("/device:CPU:0", df.ones([1]).device),
    "length": lambda t: t.assertLen([1], 1),
    "nothing": lambda t: t.assertEmpty([]),
    "something": lambda t: t.assertNotEmpty([1]),
    "between": lambda t: t.assertBetween(1, 1, 2),
    "start": lambda t: t.assertStartsWith("text", "te"),
    "end": lambda t: t.assertEndsWith("text", "xt"),
    "elements": lambda t: t.assertSameElements([1, 2, 2], [2, 1]),
    "subset": lambda t: t.assertContainsSubset([1], [1, 2]),
    "disjoint": lambda t: t.assertNoCommonElements([1], [2]),
    "order": lambda t: t.assertContainsInOrder(["a", "b"], "xaybz"),
    "almost": lambda t: t.assertSequenceAlmostEqual([1.0], [1.0 + 1e-9]),
}
FAIL: dict[str, Callable[[Any], Any]] = {
    "equal": lambda t: t.assertAllEqual(df.constant([1, 2]), [1, 3]),
    "equal shapes": lambda t: t.assertAllEqual([1, 2], [[1, 2]]),
    "equal to nan": lambda t: t.assertAllEqual([1.0], [NAN]),
    "equal lists of different lengths": lambda t: t.assertAllEqual([[1], [2, 3]], [[1], [2, 4]]),
    "unequal": lambda t: t.assertNotAllEqual([1, 2], [1, 2]),
    "close": lambda t: t.assertAllClose([1.0, 2.0], [1.0, 2.1]),
    "close keys": lambda t: t.assertAllClose({"a": 1.0}, {"b": 1.0}),
    "close structures": lambda t: t.assertAllClose({"a": [1.0, [3.0, 4.0]]}, {"a": [1.0, [3.0, 5.0]]}),
    "not close": lambda t: t.assertNotAllClose([1.0], [1.0]),
    "close by float32": lambda t: t.assertAllCloseAccordingToType(np.float32(1.0), np.float32(1.0005)),
    "near": lambda t: t.assertNear(1.0, 1.6, 0.5),
    "arrays near": lambda t: t.assertArrayNear([1.0], [2.0], 0.5),
    "norms near": lambda t: t.assertNDArrayNear(np.ones(2), np.zeros(2), 1.0),
    "greater": lambda t: t.assertAllGreater([1, 2], 1),
    "less": lambda t: t.assertAllLess([1, 2], 2),
    "greater or equal": lambda t: t.assertAllGreaterEqual([1, 2], 2),
    "less or equal": lambda t: t.assertAllLessEqual([1, 2], 1),
    "in an open range": lambda t: t.assertAllInRange([1.0], 1.0, 2.0, open_lower_bound=True),
    "in a set": lambda t: t.assertAllInSet([1, 4], {1}),
    "shapes": lambda t: t.assertShapeEqual(np.ones(2), np.ones(3)),
    "dtypes": lambda t: t.assertDTypeEqual(df.ones([1]), df.float64),
    "devices": lambda t: t.assertDeviceEqual("cpu:0", "gpu:0"),
    "length": lambda t: t.assertLen([1], 2),
    "nothing": lambda t: t.assertEmpty([1]),
    "something": lambda t: t.assertNotEmpty([]),
    "between": lambda t: t.assertBetween(3, 1, 2),
    "start": lambda t: t.assertStartsWith("text", "x"),
    "end": lambda t: t.assertEndsWith("text", "e"),
    "elements": lambda t: t.assertSameElements([1], [2]),
    "subset": lambda t: t.assertContainsSubset([3], [1]),
    "disjoint": lambda t: t.assertNoCommonElements([1], [1]),
    "order": lambda t: t.assertContainsInOrder(["b", "a"], "ab"),
    "almost": lambda t: t.assertSequenceAlmostEqual([1.0], [2.0]),
}


@pytest.mark.parametrize("name", HOLD)
def test_an_assertion_holds(case: Any, name: str) -> None:
    HOLD[name](case)


@pytest.mark.parametrize("name", FAIL)
def test_an_assertion_fails(case: Any, name: str) -> None:
    with pytest.raises(AssertionError):
        FAIL[name](case)


def test_an_error_lists_the_elements_that_differ(case: Any) -> None:
    with pytest.raises(AssertionError, match=r"1 of 3 elements differ.*\n.*\(1,\)"):
        case.assertAllEqual([1, 2, 3], [1, 5, 3])


def test_errors_are_matched_by_class_and_message(case: Any) -> None:
    def fail() -> Any:
        return df.ones([2]) + df.ones([3])

    with case.assertRaisesOpError("broadcast"):
        fail()
    with case.assertRaisesWithPredicateMatch(ValueError, lambda e: "shape" in str(e)):
        fail()
    with case.assertRaisesIncompatibleShapesError():
        fail()
    with pytest.raises(AssertionError), case.assertRaisesOpError("of another kind"):
        fail()
    with pytest.raises(AssertionError), case.assertRaisesOpError("x"):
        pass


def test_a_graph_s_tensors_are_evaluated_in_a_cached_session(case: Any) -> None:
    with v1.Graph().as_default():
        v = v1.Variable(2.0)
        case.evaluate(v1.global_variables_initializer())
        case.assertAllClose(v * [1.0, 2.0], [2.0, 4.0])
        with case.cached_session() as session:
            assert session.run(v1.assign(v, 5.0)) == 5.0
        assert case.evaluate({"v": v}) == {"v": 5.0}
    with v1.Graph().as_default() as other, pytest.raises(RuntimeError, match="different from"):
        case.evaluate(other.as_default() and v1.constant(1.0))


def test_a_session_of_its_own_has_its_graph_as_the_default(case: Any) -> None:
    graph = v1.Graph()
    with graph.as_default(), case.session(graph=graph) as session:
        assert v1.get_default_graph() is graph
        assert session.run(v1.constant(3.0)) == 3.0


def test_an_eager_test_needs_no_session(case: Any) -> None:
    with case.session() as session, pytest.raises(RuntimeError, match=r"self.evaluate\(x\)"):
        session.run(1)
    with case.test_session() as session:
        assert case.evaluate([df.constant(1), 2]) == [1, 2]


def test_random_numbers_begin_anew_in_each_test() -> None:
    def draw() -> list[float]:
        test = df.test.TestCase("test_session")
        test.setUp()
        return [float(df.random.uniform([])), float(np.random.rand())]

    assert draw() == draw()


def test_files_are_gone_after_the_test() -> None:
    test = df.test.TestCase("test_session")
    folder = Path(test.get_temp_dir())
    file = test.create_tempfile("a/b.txt", "text")
    assert Path(file).read_text() == file.read_text() == "text"
    file.write_bytes(b"\x00")
    file.write_text("x", "a")
    assert file.read_bytes() == b"\x00x"
    with file.open_bytes() as opened:
        assert opened.read() == b"\x00x"
    inner = test.create_tempdir("inner").create_file(content=b"1")
    with inner.open_text() as opened:
        assert opened.read() == "1"
    assert Path(test.create_tempdir()).parent == folder
    test.doCleanups()
    assert not folder.exists()


def test_the_error_of_a_thread_is_the_test_s(case: Any) -> None:
    thread = case.checkedThread(divmod, (1, 0))
    thread.start()
    with pytest.raises(AssertionError, match="division"):
        thread.join()
    assert not thread.is_alive()


def test_main_runs_the_tests_of_a_program(tmp_path: Path) -> None:
    program = tmp_path / "square_test.py"
    program.write_text(
        "import dualflow as df\n"
        "class SquareTest(df.test.TestCase):\n"
        "    def test_right(self): self.assertAllEqual(df.square([2]), [4])\n"
        "    def test_wrong(self): self.assertAllEqual(df.square([2]), [5])\n"
        "df.test.main()\n"
    )
    done = subprocess.run(
        [sys.executable, program],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": str(Path(df.__file__).parents[1])},
    )
    assert done.returncode == 1
    assert "Ran 3 tests" in done.stderr
    assert "FAILED (failures=1, skipped=1)" in done.stderr


def test_it_is_a_unit_test() -> None:
    assert issubclass(df.test.TestCase, unittest.TestCase)
    assert not df.test.is_built_with_rocm()
    assert not df.test.is_built_with_xla()
