"""Scans along long rows run in chunks on the device, in an order that depends on the row's length alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from required_tools import require_module

import dualflow as df

require_module("pyopencl")

from dualflow.backends.opencl.executable import OpenCLExecutable  # noqa: E402  # they import pyopencl
from dualflow.backends.opencl.steps import Launch, walk_steps  # noqa: E402
from dualflow.schedule.chunked_scans import SCAN_CHUNK  # noqa: E402

RNG = np.random.default_rng(0)
LONG = 2 * SCAN_CHUNK + 5
ROWS = df.function(lambda x: df.cumsum(x, 1), input_signature=[df.TensorSpec([None, None])], backend="opencl")
"""The sums along rows of any number and length."""


def launches(function: Any) -> list[Launch]:
    """The launches of the one trace of a function."""
    (concrete,) = function.concrete_functions
    executable = concrete.compiled.executable
    assert isinstance(executable, OpenCLExecutable)
    return [step for step in walk_steps(executable.program.steps) if isinstance(step, Launch)]


def test_a_long_scan_is_three_launches_of_a_work_item_for_each_chunk() -> None:
    f = df.function(lambda x: df.cumsum(x, 1), backend="opencl")
    x = RNG.integers(-9, 9, (2, LONG)).astype(np.int32)
    np.testing.assert_array_equal(f(x), np.cumsum(x, 1))
    assert [launch.items for launch in launches(f)] == [2 * 3, 2, 2 * 3]


def test_a_row_of_one_chunk_is_one_launch_with_the_bits_of_the_default_backend() -> None:
    f = df.function(lambda x: df.cumsum(x), backend="opencl")
    x = RNG.normal(size=SCAN_CHUNK).astype(np.float32)
    np.testing.assert_array_equal(f(x), df.function(lambda x: df.cumsum(x))(x))
    assert len(launches(f)) == 1


def test_scans_of_other_axes_backwards_and_without_the_element_itself() -> None:
    def f(x: Any) -> Any:
        return df.cumsum(x, 1, exclusive=True, reverse=True), df.math.cumprod(x[:, ::-1, 0], 1)

    x = RNG.integers(-9, 9, (2, LONG, 3)).astype(np.int32)
    on_device = df.function(f, backend="opencl", autograph=False)(x)
    for a, b in zip(on_device, df.function(f, autograph=False)(x), strict=True):
        np.testing.assert_array_equal(a, b)


def test_sums_of_floats_depend_on_their_row_alone() -> None:
    x = RNG.normal(size=(3, LONG)).astype(np.float32)
    sums = df.function(lambda x: df.cumsum(x, 1), backend="opencl")(x)
    np.testing.assert_allclose(sums, np.cumsum(x, 1, dtype=np.float64), rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(ROWS(x), sums)
    np.testing.assert_array_equal(ROWS(x[1:2]), sums[1:2])
    np.testing.assert_array_equal(ROWS(x[:, : SCAN_CHUNK + 1]), sums[:, : SCAN_CHUNK + 1])


def test_one_program_scans_rows_of_any_length() -> None:
    for shape in ((0, 5), (3, 0), (3, 1), (1, SCAN_CHUNK), (2, SCAN_CHUNK + 1)):
        x = RNG.integers(-9, 9, shape).astype(np.float32)
        np.testing.assert_array_equal(ROWS(x), np.cumsum(x, 1))
    assert len(ROWS.concrete_functions) == 1


def test_the_gradient_of_a_long_scan_is_on_the_device() -> None:
    @df.function(backend="opencl")
    def slope(x: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch(x)
            y = df.reduce_sum(df.cumsum(x) * x)
        return tape.gradient(y, x)

    x = RNG.integers(-9, 9, LONG).astype(np.float32)
    np.testing.assert_array_equal(slope(x), np.cumsum(x) + np.cumsum(x[::-1])[::-1])
    assert "numpy" not in str(slope.status()).splitlines()[1]


@pytest.mark.parametrize("size", [5, LONG])
@pytest.mark.parametrize("exclusive", [False, True])
def test_logarithms_of_running_sums(size: int, exclusive: bool) -> None:
    x = RNG.normal(0, 5, (2, size)).astype(np.float32)
    f = df.function(lambda x: df.math.cumulative_logsumexp(x, 1, exclusive), backend="opencl")
    expected = df.math.cumulative_logsumexp(x.astype(np.float64), 1, exclusive)
    np.testing.assert_allclose(f(x).numpy(), expected.numpy(), rtol=2e-5, atol=1e-5)
    assert "numpy" not in str(f.status()).partition("in this process")[0]
