"""Compiled graphs called from a user's own Numba code."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba.core.errors import TypingError

import dualflow as df
from dualflow.backends.llvm.backend import build
from dualflow.backends.llvm.executable import Executable
from dualflow.backends.llvm.numba_bridge import as_njit
from dualflow.core.errors import InvalidArgumentError, OutOfRangeError
from dualflow.core.spec import TensorSpec
from dualflow.graph.ir import GraphBuilder, Update, Value
from dualflow.graph.options import CompileOptions
from dualflow.graph.passes.fusion import fuse
from dualflow.ops.record import REGISTRY


def compiled(program: Callable[..., Any], *specs: tuple[Sequence[int], str]) -> Executable:
    """``program(op, *inputs)`` as machine code, where ``op(name, *values, **attrs)`` adds a node."""
    builder = GraphBuilder("graph")
    inputs = [builder.argument(TensorSpec(*spec, name="xyz"[i])) for i, spec in enumerate(specs)]

    def op(name: str, *values: Value, **attrs: Any) -> Value:
        return builder.add(REGISTRY[name], values, attrs).output

    results = program(op, *inputs)
    return build(fuse(builder.finish(results if isinstance(results, list) else [results])), CompileOptions())


@pytest.fixture(scope="module")
def half() -> Any:
    """``x / (1 + x * x)`` of 8 float64 elements."""

    def program(op: Any, x: Value) -> Value:
        one = op("constant", value=np.ones((), np.float64))
        return op("divide", x, op("add", one, op("multiply", x, x)))

    return as_njit(compiled(program, ([8], "float64")))


def reference(x: np.ndarray) -> np.ndarray:
    return x / (1 + x * x)


def test_a_nopython_loop_feeds_results_back(half: Any) -> None:
    @numba.njit
    def repeat(x: Any, count: int) -> Any:
        for _ in range(count):
            x = half(x)
        return x

    x = np.linspace(-2, 2, 8)
    expected = x
    for _ in range(20):
        expected = reference(expected)
    np.testing.assert_allclose(repeat(x, 20), expected, rtol=1e-12)


def test_each_call_returns_an_array_of_its_own(half: Any) -> None:
    x, y = np.linspace(-2, 2, 8), np.ones(8)
    first = half(x)
    second = half(y)
    np.testing.assert_allclose(first, reference(x), rtol=1e-12)
    np.testing.assert_allclose(second, reference(y), rtol=1e-12)
    assert first.flags.owndata or first.base is not None
    assert not np.shares_memory(first, second)


def test_arguments_are_not_written_to(half: Any) -> None:
    x = np.linspace(-2, 2, 8)
    x.flags.writeable = False
    np.testing.assert_allclose(half(x), reference(x), rtol=1e-12)


@pytest.mark.exhaustive
def test_parallel_loops_may_call_it(half: Any) -> None:
    @numba.njit(parallel=True)
    def rows(x: Any) -> Any:
        out = np.empty_like(x)
        for i in numba.prange(len(x)):
            out[i] = half(x[i])
        return out

    x = np.random.default_rng(0).standard_normal((500, 8))
    np.testing.assert_allclose(rows(x), reference(x), rtol=1e-12)


def test_python_numbers_are_accepted_as_scalars() -> None:
    def program(op: Any, x: Value, y: Value) -> list[Value]:
        return [op("multiply", x, y), op("reduce_sum", x, axis=(0,), keepdims=False)]

    graph = as_njit(compiled(program, ([5], "float32"), ([], "float32")))

    @numba.njit
    def scaled_total(x: Any) -> float:
        scaled, total = graph(x, 3)
        return scaled[0] + total

    x = np.arange(5, dtype=np.float32) + 1
    assert scaled_total(x) == 18.0
    np.testing.assert_array_equal(graph(x, 0.5)[0], x / 2)
    np.testing.assert_array_equal(graph(x, np.float32(0.5).reshape(()))[0], x / 2)


def test_bools_and_integers_cross_in_both_directions() -> None:
    def program(op: Any, x: Value, y: Value) -> list[Value]:
        return [op("equal", x, y), op("reduce_all", op("equal", x, y), axis=(0,), keepdims=False)]

    graph = as_njit(compiled(program, ([4], "int32"), ([], "int32")))
    each, every = graph(np.array([7, 7, 7, 7], np.int32), 7)
    assert each.dtype == np.bool_
    assert every is True
    each, every = graph(np.array([7, 8, 7, 7], np.int32), 7)
    assert each.tolist() == [True, False, True, True]
    assert every is False


def test_complex_numbers_cross_in_both_directions() -> None:
    square = df.function(lambda x: x * x).get_concrete_function(TensorSpec([], "complex64")).njit()

    @numba.njit
    def call() -> Any:
        return square(1 + 2j), square(3.0), square(2), square(True)

    assert call() == (-3 + 4j, 9, 4, 1)


@pytest.mark.parametrize(
    ("dtype", "number"),
    [("int32", 2**32), ("int32", -(2**31) - 1), ("int64", np.uint64(2**63)), ("uint64", -1), ("uint8", 256)],
)
def test_an_integer_outside_the_range_of_its_dtype_is_an_error_of_the_call(dtype: str, number: int) -> None:
    same = as_njit(compiled(lambda op, x: op("multiply", x, x), ([], dtype)))
    assert same(type(number)(1)) == 1
    with pytest.raises(InvalidArgumentError, match=f"'graph' takes x: {dtype}.*outside its range"):
        same(number)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64"])
def test_the_limits_of_a_dtype_are_in_its_range(dtype: str) -> None:
    negated = as_njit(compiled(lambda op, x: op("negative", x), ([], dtype)))
    for limit in (np.iinfo(dtype).min, np.iinfo(dtype).max):
        assert int(negated(limit)) == int(-np.array(limit, dtype))


def test_constants_and_captured_tensors_are_read_where_they_are() -> None:
    builder = GraphBuilder("graph")
    x = builder.argument(TensorSpec([6], "float32"))
    offset = builder.capture(TensorSpec([6], "float32"), None, variable=False)
    table = builder.add(REGISTRY["constant"], (), {"value": np.arange(6, dtype=np.float32)}).output
    total = builder.add(
        REGISTRY["add"], (builder.add(REGISTRY["multiply"], (x, table), {}).output, offset), {}
    )
    graph = as_njit(
        build(fuse(builder.finish([total.output])), CompileOptions()), [np.full(6, 10, np.float32)]
    )
    np.testing.assert_array_equal(graph(np.full(6, 2, np.float32)), 10 + 2 * np.arange(6))


def test_matrix_products_are_called_too() -> None:
    graph = as_njit(compiled(lambda op, x, y: op("matmul", x, y), ([3, 4], "float64"), ([4, 2], "float64")))
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((3, 4)), rng.standard_normal((4, 2))
    np.testing.assert_allclose(graph(x, y), x @ y, rtol=1e-12)


@pytest.fixture(scope="module")
def pick() -> Any:
    """``x[y]`` of 5 float32 rows by 3 int64 positions."""
    return as_njit(compiled(lambda op, x, y: op("gather", x, y, axis=0), ([5, 2], "float32"), ([3], "int64")))


def test_a_check_inside_the_graph_raises_in_the_caller(pick: Any) -> None:
    @numba.njit
    def call(x: Any, y: Any) -> Any:
        return pick(x, y)

    x = np.arange(10, dtype=np.float32).reshape(5, 2)
    np.testing.assert_array_equal(call(x, np.array([4, 0, 4])), x[[4, 0, 4]])
    with pytest.raises(OutOfRangeError, match="an index is out of range"):
        call(x, np.array([0, 5, 1]))


def test_failing_calls_leak_nothing() -> None:
    resource = pytest.importorskip("resource")
    rows = 1 << 19
    pick = as_njit(
        compiled(lambda op, x, y: op("gather", x, y, axis=0), ([5, 2], "float32"), ([rows], "int64"))
    )
    x, bad = np.zeros((5, 2), np.float32), np.full(rows, 5)

    def fail(times: int) -> None:
        for _ in range(times):
            with pytest.raises(OutOfRangeError):
                pick(x, bad)

    fail(5)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    fail(100)
    leaked_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert leaked_kib < 100 * rows * 2 * 4 / 1024 / 4


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs interval timers")
def test_the_exception_of_a_signal_handler_reaches_the_caller(tmp_path: Path) -> None:
    program = tmp_path / "endless.py"
    program.write_text("""
import signal, numba, dualflow as df

@df.function
def count(limit):
    return df.while_loop(lambda i: i < limit, lambda i: (i + 1,), (df.constant(0, df.int64),))

counted = count.get_concrete_function(df.TensorSpec([], df.int64)).njit()

@numba.njit
def call(limit):
    return counted(limit)

def stop(number, frame):
    raise TimeoutError("enough")

print(call(3))  # compiled
signal.signal(signal.SIGVTALRM, stop)
try:
    signal.setitimer(signal.ITIMER_VIRTUAL, 0.05)
    call(2**62)
except TimeoutError as error:
    print(error)
""")
    output = subprocess.run(
        [sys.executable, program], check=True, capture_output=True, text=True, timeout=120
    )
    assert output.stdout.split() == ["3", "enough"]


def test_another_shape_is_an_error_of_the_call(half: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=r"compiled for x: float64\[8\]"):
        half(np.zeros(9))


@pytest.mark.parametrize(
    "arguments",
    [
        (np.zeros(8, np.float32),),
        (np.zeros((8, 1)),),
        (np.zeros(16)[::2],),
        (1.0,),
        (),
        (np.zeros(8), np.zeros(8)),
    ],
    ids=["dtype", "rank", "strides", "number", "too few", "too many"],
)
def test_other_types_are_an_error_of_typing(half: Any, arguments: tuple[Any, ...]) -> None:
    with pytest.raises(TypingError, match="'graph' takes"):
        half(*arguments)


def test_floats_do_not_become_integers() -> None:
    graph = as_njit(compiled(lambda op, x: op("negative", x), ([], "int64")))
    assert graph(3) == -3
    with pytest.raises(TypingError, match="int64"):
        graph(3.5)


def test_graphs_that_need_numpy_are_reported() -> None:
    program = compiled(lambda op, x: op("argsort", x, axis=0, descending=False), ([5], "float32"))
    with pytest.raises(InvalidArgumentError, match=r"argsort \(NumPy sorts\)"):
        as_njit(program)


def test_graphs_whose_sizes_depend_on_data_are_reported() -> None:
    concrete = df.function(lambda x: x[x > 0]).get_concrete_function(df.TensorSpec([3]))
    with pytest.raises(InvalidArgumentError, match=r"depends? on data"):
        concrete.njit()


def test_graphs_with_variables_are_reported() -> None:
    builder = GraphBuilder("graph")
    weight = builder.capture(TensorSpec([2], "float32"), None, variable=True)
    new = builder.add(REGISTRY["negative"], (weight,), {}).output
    with pytest.raises(InvalidArgumentError, match="variables"):
        as_njit(build(fuse(builder.finish([], [Update(weight, new)])), CompileOptions()))


def test_the_same_executable_is_the_same_function() -> None:
    executable = compiled(lambda op, x: op("exp", x), ([3], "float32"))
    assert as_njit(executable) is as_njit(executable)


@pytest.mark.exhaustive
def test_a_callers_disk_cache_keeps_no_addresses(tmp_path: Any) -> None:
    """Numba declines to cache a caller on disk, for the graph will be elsewhere in the next process."""
    script = tmp_path / "cached.py"
    script.write_text(
        textwrap.dedent(
            """
            import warnings
            import numba, numpy as np
            import dualflow as df
            from dualflow.core.spec import TensorSpec
            from dualflow.graph.ir import GraphBuilder
            from dualflow.graph.options import CompileOptions
            from dualflow.graph.passes.fusion import fuse
            from dualflow.backends.llvm.backend import build
            from dualflow.backends.llvm.numba_bridge import as_njit
            from dualflow.ops.record import REGISTRY

            builder = GraphBuilder("graph")
            x = builder.argument(TensorSpec([3], "float64"))
            graph = fuse(builder.finish([builder.add(REGISTRY["exp"], (x,), {}).output]))
            graph = as_njit(build(graph, CompileOptions()))

            @numba.njit(cache=True)
            def total(x):
                return graph(x).sum()

            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                assert total(np.zeros(3)) == 3.0
            print([str(w.message) for w in caught])
            """
        )
    )
    folder = os.path.dirname(os.path.dirname(df.__file__))
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "numba"), "PYTHONPATH": folder}
    for _ in range(2):
        run = subprocess.run(
            [sys.executable, str(script)], capture_output=True, text=True, env=environment, check=True
        )
        assert "Cannot cache compiled function" in run.stdout
