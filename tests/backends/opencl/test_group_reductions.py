"""Reductions that a group of work-items computes have the bits of the default backend, whatever the size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from required_tools import require_module

import dualflow as df

require_module("pyopencl")

import pyopencl as cl  # noqa: E402

from dualflow.backends.opencl.devices import current_device  # noqa: E402  # they import pyopencl
from dualflow.backends.opencl.executable import OpenCLExecutable  # noqa: E402
from dualflow.backends.opencl.steps import Launch, walk_steps  # noqa: E402

RNG = np.random.default_rng(0)


def normal(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return RNG.normal(size=shape).astype(dtype)


def launches(function: Any) -> list[Launch]:
    """The launches of the one trace of a function."""
    (concrete,) = function.concrete_functions
    executable = concrete.compiled.executable
    assert isinstance(executable, OpenCLExecutable)
    return [step for step in walk_steps(executable.program.steps) if isinstance(step, Launch)]


def check_same_bits(f: Callable[..., Any], *inputs: Any) -> Any:
    """On the device ``f`` has the bits of the default backend; returns the compiled function."""
    on_device = df.function(f, backend="opencl", autograph=False)
    expected = df.function(f, backend="llvm", autograph=False, sizes="exact")(*inputs)
    for a, b in zip(df.nest.flatten(on_device(*inputs)), df.nest.flatten(expected), strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
    return on_device


def layernorm(x: Any) -> Any:
    centred = x - df.reduce_mean(x, -1, keepdims=True)
    return centred / df.sqrt(df.reduce_mean(centred**2, -1, keepdims=True) + 1e-5)


def of_rows(x: Any) -> tuple[Any, ...]:
    return (
        df.reduce_sum(x, -1),
        df.reduce_mean(x, -1),
        df.reduce_max(x, -1),
        df.argmax(x, -1),
        df.reduce_any(x > 2.0, -1),
        df.reduce_sum(x, -1) + df.reduce_min(x, -1),
    )


@pytest.mark.parametrize("shape", [(7, 33), (3, 9001)])
def test_rows_are_reduced_in_the_order_of_the_default_backend(shape: tuple[int, int]) -> None:
    compiled = check_same_bits(of_rows, normal(*shape))
    assert all(launch.by_groups for launch in launches(compiled))


@pytest.mark.parametrize("f", [df.nn.softmax, df.nn.log_softmax, layernorm])
@pytest.mark.parametrize("shape", [(9, 40), (3, 9001)])
def test_rows_are_normalised_in_one_kernel(f: Callable[..., Any], shape: tuple[int, int]) -> None:
    (launch,) = launches(check_same_bits(f, normal(*shape)))
    assert launch.by_groups


@pytest.mark.parametrize("count", [31, 32, 2_100_000])
def test_all_elements_are_reduced_in_chunks_by_groups(count: int) -> None:
    x = normal(count)
    compiled = check_same_bits(lambda x: (df.reduce_sum(x * x), df.reduce_max(x), df.argmin(x, 0)), x)
    assert {launch.by_groups for launch in launches(compiled) if launch.nodes} == {count >= 32}


@pytest.mark.parametrize(
    ("shape", "axis"),
    [((40_000, 3), 0), ((60, 50, 700), (0, 1)), ((5, 40, 30), (0, 2))],
)
def test_other_axes_are_reduced_with_the_same_bits(shape: tuple[int, ...], axis: Any) -> None:
    check_same_bits(lambda x: (df.reduce_sum(x, axis), df.reduce_max(x, axis)), normal(*shape))


def test_a_softmax_over_columns_has_a_work_item_for_each() -> None:
    x = normal(6, 50, 300)
    (launch,) = launches(check_same_bits(lambda x: df.nn.softmax(x, 1), x))
    assert (launch.by_groups, launch.items) == (False, 6 * 300)


def test_columns_of_a_chunk_have_a_work_item_each() -> None:
    first, last = launches(check_same_bits(lambda x: df.reduce_sum(x, 0), normal(4096, 600)))
    assert first.items % 600 == 0
    assert first.items > 600
    assert last.items == 600


@pytest.mark.parametrize("dtype", [np.float64, np.int8, np.int64])
def test_reductions_of_other_dtypes(dtype: Any) -> None:
    x = (100 * normal(3, 5000)).astype(dtype)
    check_same_bits(lambda x: (df.reduce_sum(x, 1), df.reduce_prod(x, 1), df.argmax(x, 1)), x)


def test_nans_and_equal_extremes_are_found_by_every_member() -> None:
    x = np.zeros((5, 3000), np.float32)
    x[0, 2999], x[1, [17, 2000]], x[2, [40, 41]] = np.nan, np.nan, 7.0
    check_same_bits(lambda x: (df.argmax(x, 1), df.argmin(x, 1), df.reduce_max(x, 1)), x)


def test_one_program_reduces_rows_of_any_length() -> None:
    signature = [df.TensorSpec([None, None])]
    both = [df.function(of_rows, input_signature=signature, backend=b) for b in ("opencl", "llvm")]
    for shape in ((3, 1), (4, 31), (2, 20_000), (0, 5)):
        x = normal(*shape)
        for a, b in zip(*(f(x) for f in both), strict=True):
            np.testing.assert_array_equal(a, b)


def test_rows_without_elements_have_the_neutral_value() -> None:
    check_same_bits(lambda x: (df.reduce_sum(x, 1), df.reduce_max(x, 1), df.reduce_sum(x)), normal(4, 0))


def test_results_of_a_row_are_stored_before_another_stage_begins() -> None:
    def f(x: Any) -> Any:
        return df.reduce_sum(x, 1), df.argmax(x, 1), df.nn.softmax(x * 2.0), df.cast(x, df.complex64)

    memory, x = current_device().memory, normal(37, 50)
    buffers = [memory.allocate(37 * 8, "what no kernel has written") for _ in range(4)]
    for buffer in buffers:
        cl.enqueue_fill_buffer(current_device().queue, buffer, np.int64(-7), 0, buffer.size)
        memory.release(buffer)
    check_same_bits(f, x)


def test_a_variable_is_normalised_in_place() -> None:
    x = normal(4, 9001)
    values = []
    for backend in ("llvm", "opencl"):
        v = df.Variable(x)
        df.function(lambda v=v: v.assign(df.nn.softmax(v) - v[:, :1]), backend=backend, autograph=False)()
        values.append(v.numpy())
    np.testing.assert_array_equal(*values)


def test_a_check_after_a_reduction_fails_for_the_row_that_fails() -> None:
    @df.function(backend="opencl")
    def f(x, table):
        return df.gather(table, df.argmax(x, 1))

    table, x = df.range(100.0), np.zeros((3, 200), np.float32)
    x[:, 99] = 1.0
    assert f(x, table).numpy().tolist() == [99.0] * 3
    x[1, 150] = 2.0
    with pytest.raises(df.errors.OutOfRangeError, match="gather"):
        f(x, table)
