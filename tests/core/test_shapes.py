"""Shapes of which sizes, or even the number of axes, are unknown."""

from __future__ import annotations

import copy
import math
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualflow as df

UNKNOWN = df.TensorShape(None)


def test_there_is_one_unknown_shape() -> None:
    assert df.TensorSpec(None).shape is UNKNOWN
    copies = copy.copy(UNKNOWN), copy.deepcopy([UNKNOWN])[0], pickle.loads(pickle.dumps(UNKNOWN))
    for again in (*copies, df.TensorShape(UNKNOWN)):
        assert again is UNKNOWN


@pytest.mark.parametrize("dims", [[], [2], [None, 3]])
def test_known_shapes_are_copied_and_pickled(dims: list[int | None]) -> None:
    shape = df.TensorShape(dims)
    for again in (copy.deepcopy(shape), pickle.loads(pickle.dumps(shape))):
        assert again == shape == dims
        assert type(again) is type(shape)


def test_the_unknown_shape_has_no_rank_and_no_sizes() -> None:
    assert (UNKNOWN.rank, UNKNOWN.ndims, UNKNOWN.dims, UNKNOWN.num_elements()) == (None, None, None, None)
    assert not UNKNOWN.is_fully_defined()
    assert not UNKNOWN.is_static
    assert not UNKNOWN
    assert (repr(UNKNOWN), str(df.TensorSpec(None, df.int32))) == ("<unknown>", "int32[...]")


@pytest.mark.parametrize(
    "use",
    [len, list, tuple, lambda s: 1 in s, lambda s: s.as_list()],
    ids=["len", "list", "tuple", "in", "as_list"],
)
def test_reading_sizes_of_the_unknown_shape_raises(use: Callable[[Any], Any]) -> None:
    with pytest.raises(ValueError, match="rank of a tensor is unknown where it is needed"):
        use(UNKNOWN)


def test_sizes_and_parts_of_the_unknown_shape_are_unknown_to_programs() -> None:
    assert (UNKNOWN[0], UNKNOWN[-1], UNKNOWN[1:], UNKNOWN.concatenate([3])) == (None, None, UNKNOWN, UNKNOWN)
    assert (UNKNOWN + [3], [3] + UNKNOWN) == (UNKNOWN, UNKNOWN)  # noqa: RUF005  # its own operators


@pytest.mark.parametrize("other", [df.TensorShape([]), (), [], (None,), [2], None, "<unknown>"], ids=repr)
def test_the_unknown_shape_equals_no_other(other: Any) -> None:
    for x, y in [(other, UNKNOWN), (UNKNOWN, other)]:
        assert (x == y, x != y) == (False, True)


def test_a_spec_of_unknown_rank_takes_every_shape_of_its_dtype() -> None:
    spec = df.TensorSpec(None)
    assert [spec.is_compatible_with(df.ones(s)) for s in ([], [2], [2, 3])] == [True] * 3
    assert spec.is_compatible_with(df.TensorSpec(None))
    assert not spec.is_compatible_with(df.constant([1]))
    assert not df.TensorSpec([2]).is_compatible_with(spec)


S = df.TensorShape


@pytest.mark.parametrize(
    ("x", "y", "together", "alike"),
    [
        ([2, 3], [2, 3], [2, 3], [2, 3]),
        ([2, None], [None, 3], [2, 3], [None, None]),
        ([2, None], [2, 3], [2, 3], [2, None]),
        ([], [], [], []),
        ([None], None, [None], None),
        (None, None, None, None),
    ],
)
def test_compatible_shapes_merge(x: Any, y: Any, together: Any, alike: Any) -> None:
    for a, b in ((S(x), y), (S(y), x)):
        assert a.is_compatible_with(b)
        assert a.merge_with(b) == S(together)
        assert a.most_specific_compatible_shape(b) == S(alike)


@pytest.mark.parametrize(
    ("x", "y", "alike"), [([2], [3], [None]), ([2], [2, 3], None), ([2, 1], [2, 3], [2, None])]
)
def test_incompatible_shapes_do_not(x: Any, y: Any, alike: Any) -> None:
    for a, b in ((S(x), y), (S(y), x)):
        assert not a.is_compatible_with(b)
        assert a.most_specific_compatible_shape(b) == S(alike)
        with pytest.raises(ValueError, match="incompatible"):
            a.merge_with(b)


def test_shapes_join() -> None:
    two, rows, sizes = S([2]), S([None, 3]), [2]
    assert two.concatenate([None, 3]) == two + rows == sizes + rows == [2, None, 3]
    assert S([2]).concatenate(None) is UNKNOWN.concatenate([2]) is UNKNOWN


def test_sizes_are_python_s_integers() -> None:
    """Whose products don't overflow."""
    shape = S(np.array([10, 10]))
    assert {type(n) for n in (*shape, *S([np.int32(2)] * 2), *S((np.int64(3), None))[:1])} == {int}
    assert math.prod(S([np.int64(10)] * 20).as_list()) == 10**20


def test_rank_checks() -> None:
    assert UNKNOWN.with_rank(2) == [None, None]
    for shape in (S([2, 3]), UNKNOWN):
        shape.assert_has_rank(2)
        shape.assert_same_rank([None, 4])
        assert shape.with_rank_at_least(2) is shape.with_rank_at_most(2) is shape
    for refused in (
        lambda: S([2]).with_rank(2),
        lambda: S([2]).assert_same_rank([1, 2]),
        lambda: S([2]).with_rank_at_least(2),
        lambda: S([2]).with_rank_at_most(0),
        lambda: S([None]).assert_is_fully_defined(),
        lambda: UNKNOWN.assert_is_fully_defined(),
    ):
        with pytest.raises(ValueError, match=r"must have rank|not fully defined"):
            refused()


@pytest.mark.parametrize("shape", [[2, 3], [None, 3], None])
def test_set_shape_states_what_is_known(shape: Any) -> None:
    df.ones([2, 3]).set_shape(shape)
    df.function(lambda x: x.set_shape(shape))(df.ones([2, 3]))


def test_set_shape_refuses_another_shape() -> None:
    with pytest.raises(ValueError, match=r"Shapes \(2, 3\) and \(3,\) are incompatible"):
        df.ones([2, 3]).set_shape([3])


def test_set_shape_keeps_dynamic_sizes_while_tracing() -> None:
    shapes = []

    @df.function(input_signature=[df.TensorSpec([None, None, 3])])
    def f(x: Any) -> Any:
        x.set_shape([None, 4, None])
        shapes.append(x.shape)
        return 2.0 * x

    assert f(df.ones([2, 4, 3])).shape == (2, 4, 3)
    assert shapes == [(None, 4, 3)]
    with pytest.raises(ValueError, match=r"\(2, 5, 3\) and \(None, 4, 3\) are incompatible"):
        f(df.ones([2, 5, 3]))


def test_ensure_shape_reports_sizes_that_data_decide() -> None:
    @df.function
    def f(x: Any) -> Any:
        result = df.ensure_shape(df.boolean_mask(x, x > 0.0), [2])
        assert result.shape == (2,)
        return result + df.constant([1.0, 2.0])

    assert f(df.constant([3.0, -1.0, 4.0])).numpy().tolist() == [4.0, 6.0]
    with pytest.raises(ValueError, match=r"\(2,\) are incompatible"):
        f(df.constant([3.0, -1.0, -1.0]))


def test_gradients_flow_through_ensured_shapes() -> None:
    @df.function(input_signature=[df.TensorSpec([None])])
    def f(x: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch(x)
            y = df.ensure_shape(x * x, [3])
        return tape.gradient(y, x)

    assert f(df.constant([1.0, 2.0, 3.0])).numpy().tolist() == [2.0, 4.0, 6.0]


def test_a_size_is_a_shape_of_one_axis() -> None:
    assert df.TensorShape(5) == df.TensorShape(np.int64(5)) == [5]
    with pytest.raises(TypeError):
        df.TensorShape(1.5)  # type: ignore[arg-type]


def test_a_spec_from_another_process_is_the_same_key() -> None:
    spec = df.TensorSpec([None, 3], df.float64, "x")
    table = {spec: 1}  # which computes the hash
    program = "import dualflow, pickle, sys; sys.stdout.buffer.write(pickle.dumps({SPEC: 0}))"
    program = program.replace("SPEC", 'dualflow.TensorSpec([None, 3], "float64", "x")')
    environment = {**os.environ, "PYTHONHASHSEED": "123"}
    pickled = subprocess.run(
        [sys.executable, "-c", program], env=environment, check=True, capture_output=True
    ).stdout
    (other,) = pickle.loads(pickled)
    assert table[other] == 1
    assert other.name == "x"
