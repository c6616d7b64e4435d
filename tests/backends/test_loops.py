"""Conditionals, loops and scatters as machine code: memory of values, interruption, and costs."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from forked_programs import run_forked

import dualflow as df
from dualflow.backends.llvm.executable import Executable
from dualflow.schedule.planned import PlannedCall

SPEC = df.TensorSpec((6, 6))
COUNT = df.TensorSpec((), df.int32)
BACKEND = df.config.get_backend()
IN_A_KERNEL = pytest.mark.skipif(BACKEND == "opencl", reason="OpenCL can't interrupt a loop inside a kernel")


def executable(function: Callable[..., Any], *specs: df.TensorSpec) -> Executable:
    compiled: Executable = df.function(function).get_concrete_function(*specs).compiled.executable
    return compiled


def calls_of(compiled: Executable) -> Iterator[PlannedCall]:
    return compiled.plan.walk()


def repeated(body: Callable[..., Any]) -> Callable[..., Any]:
    """``body(i, x)`` for i below n."""

    def function(x: Any, n: Any) -> Any:
        return df.while_loop(lambda i, h: i < n, lambda i, h: (i + 1, body(i, h)), (df.constant(0), x))[1]

    return function


# Where values live


def test_a_loop_over_tensors_is_one_native_part() -> None:
    result = executable(repeated(lambda i, h: df.tanh(h @ h) + 1.0), SPEC, COUNT)
    assert [part.kind for part in result.parts] == ["native"]


def test_elementwise_loop_variables_are_updated_in_place() -> None:
    result = executable(repeated(lambda i, h: df.tanh(h) + 1.0), SPEC, COUNT)
    (loop,) = [c for c in calls_of(result) if c.iterations]
    (step,) = [c for c in loop.blocks[-1].calls if c.node.output.spec.rank == 2]
    assert step.inputs[0] == step.outputs[0] == loop.outputs[1]


def test_values_that_change_places_are_copied() -> None:
    @df.function
    def f(a: Any, b: Any) -> Any:
        return df.while_loop(lambda i, a, b: i < 3, lambda i, a, b: (i + 1, b, a), (df.constant(0), a, b))[1:]

    a, b = f(df.constant([1.0, 2.0]), df.constant([3.0, 4.0]))
    assert (a.numpy().tolist(), b.numpy().tolist()) == ([3.0, 4.0], [1.0, 2.0])


def test_the_branches_of_a_cond_share_arena_memory() -> None:
    def both(x: Any, n: Any) -> Any:
        return df.cond(n > 0, lambda: (x @ x) @ x, lambda: (x + x @ x) @ x)

    def one(x: Any, n: Any) -> Any:
        return df.cond(n > 0, lambda: (x @ x) @ x, lambda: x)

    spec = df.TensorSpec((64, 64))
    plans = [executable(f, spec, COUNT).plan.arena_bytes for f in (both, one)]
    assert plans[0] == plans[1]


@pytest.mark.parametrize("n", [0, 1, 7])
def test_any_number_of_iterations(n: int) -> None:
    f = repeated(lambda i, h: 0.5 * h @ h + df.cast(i, df.float32))
    x = df.constant(np.eye(6, dtype=np.float32))
    np.testing.assert_allclose(df.function(f)(x, df.constant(n)), f(x, df.constant(n)), rtol=1e-6)


def test_a_host_call_in_a_loop_is_reported() -> None:
    """As the op alone, if loops of the backend's programs contain host calls; else as the whole loop."""
    result = executable(repeated(lambda i, h: df.sort(h)), SPEC, COUNT)
    (part,) = [part for part in result.parts if part.kind != "native"]
    if BACKEND == "opencl":
        assert (part.what, part.reason) == ("sort", "NumPy sorts")
    else:
        assert (part.what, part.reason) == ("loop", "it runs sort: NumPy sorts")


def test_the_listing_shows_loops_and_conds() -> None:
    def f(x: Any, n: Any) -> Any:
        x = repeated(lambda i, h: df.tanh(h @ h))(x, n)
        return df.cond(df.reduce_sum(x) > 0.0, lambda: x * 2.0, lambda: x @ x)

    text = df.function(f).get_concrete_function(SPEC, COUNT).kernels
    lines = [line.strip() for line in text.splitlines()]
    assert any(line.startswith("while True:") for line in lines)
    assert any(line.startswith("if ") and "== 0:" in line for line in lines)
    assert "else:" in lines


# Checks, and Ctrl-C


def test_a_failed_check_ends_the_loop() -> None:
    @df.function
    def f(x: Any) -> Any:
        start = (df.constant(0), df.constant(0.0))
        return df.while_loop(lambda i, s: i < 10**9, lambda i, s: (i + 1, s + df.reduce_sum(x[i])), start)

    with pytest.raises(df.errors.OutOfRangeError, match=r"gather(.|\n)*test_loops\.py"):
        f(df.ones([5, 2]))


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs interval timers")
@pytest.mark.parametrize(
    "body",
    [
        pytest.param("x + 1.0 if x < 1e6 else x - 1.0", id="scalar", marks=IN_A_KERNEL),
        pytest.param("df.tanh(x @ x)", id="tensor"),
    ],
)
def test_a_signal_handler_ends_an_endless_loop(body: str, tmp_path: Any) -> None:
    start = "1.0" if "@" not in body else "df.ones([16, 16])"
    program = f"""
import signal
import dualflow as df

class Enough(Exception):
    pass

def stop(*_):
    raise Enough

@df.function
def endless(x, least):
    while df.reduce_sum(x) > least:
        x = {body}
    return x

endless(df.constant({start}), df.constant(1e30))

signal.signal(signal.SIGVTALRM, stop)
for repetition in range(3):
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.05)  # of the processor's time, which the loop then has had
        endless(df.constant({start}), df.constant(-1e30))
    except Enough:
        print("stopped", flush=True)
"""
    file = tmp_path / "endless.py"
    file.write_text(program)
    done = run_forked([str(file)], timeout=120)
    assert done.stdout == "stopped\n" * 3, done.stderr


# Scatters


def test_rows_are_put_where_integers_report() -> None:
    @df.function
    def f(x: Any, at: Any, rows: Any) -> Any:
        return df.tensor_scatter_nd_update(x, at, rows), df.tensor_scatter_nd_add(x, at, rows)

    x, rows = np.arange(12, dtype=np.float32).reshape(4, 3), np.ones((3, 3), np.float32)
    at = np.array([[2], [0], [2]])
    put, added = f(df.constant(x), df.constant(at), df.constant(rows))
    expected = x.copy()
    np.add.at(expected, at[:, 0], rows)
    np.testing.assert_array_equal(added, expected)
    expected = x.copy()
    expected[at[:, 0]] = rows
    np.testing.assert_array_equal(put, expected)
    assert [
        part.kind
        for part in f.get_concrete_function(df.constant(x), df.constant(at), df.constant(rows)).parts
    ] == ["native"]


def test_an_array_in_a_loop_is_written_in_place() -> None:
    def f(n: Any) -> Any:
        array = df.TensorArray(df.float32, 50, element_shape=[8])
        start = (df.constant(0), array)
        body = lambda i, array: (i + 1, array.write(i, df.fill([8], df.cast(i, df.float32))))  # noqa: E731
        return df.while_loop(lambda i, array: i < n, body, start)[1].stack()

    result = executable(f, COUNT)
    (loop,) = [c for c in calls_of(result) if c.iterations]
    (put,) = [c for c in loop.blocks[-1].calls if c.kind == "scatter"]
    assert put.inputs[0] == put.outputs[0] == loop.outputs[1]
    expected = np.repeat(np.arange(50.0), 8).reshape(50, 8)
    np.testing.assert_array_equal(df.function(f)(df.constant(50)), expected)


def test_a_position_outside_is_an_error() -> None:
    f = df.function(lambda at: df.scatter_nd(at, df.ones([1, 2]), [3, 2]))
    np.testing.assert_array_equal(f(df.constant([[2]])), [[0, 0], [0, 0], [1, 1]])
    for bad in (3, -1):
        with pytest.raises(df.errors.OutOfRangeError, match="scatter_nd"):
            f(df.constant([[bad]]))


def test_elements_picked_from_one_number_repeated_are_checked_too() -> None:
    f = df.function(lambda i: df.gather(df.zeros([3]), i))
    assert float(f(df.constant(2))) == 0.0
    with pytest.raises(df.errors.OutOfRangeError):
        f(df.constant(3))
