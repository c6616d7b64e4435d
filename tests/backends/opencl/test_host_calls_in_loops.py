"""Loops and conditionals on the device with host calls: transfers are around these alone."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from required_tools import require_module

import dualflow as df

require_module("pyopencl")

from dualflow.backends.opencl.devices import current_device  # noqa: E402  # it imports pyopencl

X = df.constant(
    np.random.default_rng(0).normal(size=(4, 4)).astype(np.float32) + 4 * np.eye(4, dtype=np.float32)
)


def inverses(x):
    y = x
    for _ in df.range(5):
        y = df.linalg.svd(y, compute_uv=False) * 0.1 + df.tanh(x)
    return y


def blocks(x):
    """A trip count that depends on data: the gradient reads rows of growing stacks, on both sides."""
    y = x
    while df.reduce_sum(df.abs(y)) < 50.0:
        with df.device("/CPU:0"):
            z = df.exp(-df.abs(y))
        y = df.sort(z * x) + y
    return y


def nested(x):
    total = df.zeros([4])
    for i in df.range(3):
        for j in df.range(i):
            x = df.sort(x * 0.9, axis=0) + df.cast(j, df.float32)
        if df.reduce_sum(x) > 20.0:
            total += df.sort(x[0])
        else:
            total -= x[1]
    return x * total


def rows(x):
    """Rows of stacks that the host reads and writes."""
    return df.scan(lambda a, row: df.sort(a) * row, x) + df.map_fn(df.sort, x)


@pytest.mark.parametrize("f", [inverses, blocks, nested, rows])
def test_values_and_gradients_are_those_of_the_host(f: Callable[[Any], Any]) -> None:
    @df.function
    def run(x):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return y, tape.gradient(y, x)

    for expected, actual in zip(run(X), run(X.gpu()), strict=True):
        np.testing.assert_allclose(actual.numpy(), expected.numpy(), rtol=2e-4, atol=1e-4)
    native, *host_calls = str(run.status()).partition("in this process")[0].split("numpy: ")
    assert "OpenCL" in native
    assert host_calls
    assert not any(call.startswith(("loop", "cond")) for call in host_calls)


@pytest.mark.parametrize("dtype", [df.bool_, df.int8, df.float16, df.bfloat16, df.complex64], ids=str)
def test_elements_of_any_dtype_and_shape_keep_their_bits(dtype: Any) -> None:
    """Operands of host calls: empty ones, one element, rows of stacks, and views with strides."""

    def on_host(x):
        def reverse(array):
            return (array[::-1] if array.ndim else array).copy()

        return df.ensure_shape(df.numpy_function(reverse, [x], x.dtype), x.shape)

    @df.function
    def f(x, n):
        y = x
        for _ in df.range(n):
            y = on_host(df.where(df.equal(y, x), y, x))
        strided = on_host(df.transpose(y)[::-1])[1:] if y.shape.rank == 2 else y
        return y, strided, df.map_fn(on_host, x) if x.shape.rank else x

    for shape in ((), (0,), (2, 0), (3, 4)):
        size = int(np.prod(shape))
        x, n = df.cast(df.reshape(df.range(size) % 3, shape), dtype), df.constant(3)
        for actual, expected in zip(f(x.gpu(), n), f(x, n), strict=True):
            assert actual.shape == expected.shape
            assert actual.numpy().tobytes() == expected.numpy().tobytes()


@pytest.mark.parametrize("shape", [(1, 4), (2, 0)])
def test_a_row_that_fills_the_memory_of_a_result_of_the_host_leaves_it_its_shape(
    shape: tuple[int, int],
) -> None:
    x = df.ones(shape, df.bfloat16)  # for which there are no kernels
    assert df.function(lambda x: df.stack([df.sort(x[0])] * shape[0]), backend="opencl")(x).shape == shape


@pytest.mark.parametrize("n", [0, 3])
def test_a_tape_keeps_what_the_host_computes_in_each_of_any_number_of_iterations(n: int) -> None:
    """Random numbers, which the gradient can't compute again: a result with a row for each iteration."""

    @df.function
    def f(x, n):
        return df.while_loop(
            lambda i, y: i < n, lambda i, y: (i + 1, y * df.random.uniform([2])), (df.constant(0), x)
        )[1]

    x = df.constant([1.0, 2.0]).gpu()
    with df.GradientTape() as tape:
        tape.watch(x)
        y = f(x, df.constant(n))
    np.testing.assert_allclose(tape.gradient(y, x).numpy(), (y / x).numpy(), rtol=1e-6)


def test_an_iteration_transfers_what_its_host_call_reads_and_writes() -> None:
    """``weights``, which only kernels read, is transferred once."""
    weights = df.random.normal([50, 64], seed=1)

    @df.function(backend="opencl")
    def f(x, weights, n):
        for _ in df.range(n):
            x = df.tanh(df.sort(x) + df.reduce_sum(weights, 0))
        return x

    def transferred(n: int) -> int:
        before = current_device().transferred
        f(df.zeros([64]), weights, df.constant(n))
        return current_device().transferred - before

    transferred(1)  # constants, too
    condition, row = 1, 64 * 4
    assert transferred(9) - transferred(4) == 5 * (condition + 2 * row)
    each = (
        "in each iteration of a loop 1 transfer to the device (256 bytes), 1 transfer to the host (256 bytes)"
    )
    assert f"; {each}\n" in str(f.status())


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_of_python_in_a_loop_leaves_what_eager_code_leaves(
    error: type[BaseException], capsys: pytest.CaptureFixture[str]
) -> None:
    before, inside = df.Variable(0), df.Variable(df.zeros([4, 4]))

    def fail_late(i, x):
        if i == 2:
            raise error("late")
        return x * 2.0

    def f(x):
        before.assign_add(1)
        for i in df.range(5):
            df.print("iteration", i, output_stream=sys.stdout)
            inside.assign_add(df.tanh(x))
            x = df.ensure_shape(df.py_function(fail_late, [i, x], df.float32), [4, 4])
        before.assign_add(10)
        return x

    left = []
    for call, x in ((df.function(f), X.gpu()), (f, X)):
        before.assign(0)
        inside.assign(df.zeros([4, 4]))
        with pytest.raises(error):
            call(x)
        left.append((before.numpy().tolist(), inside.numpy(), capsys.readouterr().out))
    assert left[0][0] == left[1][0] == 1
    np.testing.assert_allclose(left[0][1], left[1][1], rtol=1e-5)
    assert left[0][2] == left[1][2] == "iteration 0\niteration 1\niteration 2\n"
