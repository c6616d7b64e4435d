"""The number of iterations that a vectorised loop runs at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.backends.llvm.launches import rows_side_by_side
from dualflow.graph.cost_model import CPU
from dualflow.schedule.lanes import FEWEST_LANES, lanes_of


def lanes(f: Callable[..., Any], *shape: int, dtype: str = "float32", vector_bits: int = 512) -> int:
    """The lanes of the one kernel of ``f`` with registers of ``vector_bits``."""
    executable = df.function(f).get_concrete_function(df.TensorSpec(shape, dtype)).compiled.executable
    (kernel,) = executable.program.kernels
    return lanes_of(kernel.lowered_nest(), vector_bits)


def row_sum(x: Any) -> Any:
    return df.reduce_sum(x, 1)


def heavy(x: Any) -> Any:
    return df.reduce_sum(df.exp(df.sin(x) + df.tanh(x)), 1)


def long_chain(x: Any) -> Any:
    for _ in range(CPU.long_kernel):
        x = df.exp(-x)
    return x


@pytest.mark.parametrize(
    ("f", "columns", "expected"),
    [
        (row_sum, 100, 32),
        (heavy, 100, 16),
        (long_chain, 100, 32),
        (row_sum, 17, 32),
        (row_sum, 16, 16),
        (heavy, 9, 16),
        (heavy, 8, 8),
        (row_sum, 8, 8),
        (row_sum, 3, FEWEST_LANES),
    ],
)
def test_light_and_long_kernels_have_two_registers_and_short_loops_fewer_lanes(
    f: Callable[..., Any], columns: int, expected: int
) -> None:
    rows = 1 if f is long_chain else 64
    assert lanes(f, rows, columns) == expected


def gelu(x: Any) -> Any:
    return 0.5 * x * (1.0 + df.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


@pytest.mark.parametrize(
    ("vector_bits", "dtype", "expected"),
    [
        (512, "float32", 16),
        (256, "float32", 16),
        (128, "float32", 8),
        (256, "float16", 16),
        (512, "float64", 16),
        (256, "float64", 8),
    ],
)
def test_kernels_have_two_registers_where_these_are_narrow(
    vector_bits: int, dtype: str, expected: int
) -> None:
    assert lanes(gelu, 1000, dtype=dtype, vector_bits=vector_bits) == expected


def follow(x: Any, links: int) -> Any:
    at = df.cast(x, df.int32)
    for _ in range(links):
        at = df.gather(df.range(1000), at)
    return at


@pytest.mark.parametrize("vector_bits", [256, 512])
def test_a_chain_of_gathers_has_four_registers(vector_bits: int) -> None:
    chain = CPU.gather_chain
    assert lanes(lambda x: follow(x, chain), 1000, vector_bits=vector_bits) == 4 * vector_bits // 32
    assert lanes(lambda x: follow(x, chain - 1), 1000, vector_bits=vector_bits) == 2 * vector_bits // 32


@pytest.mark.parametrize("vector_bits", [128, 256, 512])
def test_the_lanes_of_a_reduction_are_those_of_wide_registers(vector_bits: int) -> None:
    assert lanes(heavy, 64, 100, vector_bits=vector_bits) == 16


@pytest.mark.parametrize(
    ("f", "shape", "dtype", "expected"),
    [
        (row_sum, (64, 16), "float32", 4),
        (row_sum, (64, 8), "float32", 8),
        (heavy, (64, 8), "float32", 4),
        (row_sum, (64, 8), "float64", 4),
        (row_sum, (3, 8), "float32", 8),
        (row_sum, (64, 17), "float32", 0),
        (lambda x: x + 1.0, (64, 8), "float32", 0),
    ],
)
def test_rows_that_fit_into_a_register_run_side_by_side_in_several(
    f: Callable[..., Any], shape: tuple[int, int], dtype: str, expected: int
) -> None:
    """However many rows a batch has; longer rows have one kernel for all lengths."""
    spec = df.TensorSpec(shape, dtype)
    executable = df.function(f).get_concrete_function(spec).compiled.executable
    (kernel,) = executable.program.kernels
    nest = kernel.lowered_nest()
    assert rows_side_by_side(nest, lanes_of(nest, 512), 512) == expected


def test_one_short_row_runs_the_code_of_a_longer_one() -> None:
    assert lanes(lambda x: x + 1.0, 8) == lanes(lambda x: x + 1.0, 100) == 32


@pytest.mark.parametrize("columns", [1, 3, 7, 8, 9, 15, 16, 17, 31, 33])
@pytest.mark.parametrize("axis", [0, 1])
def test_sums_of_short_loops_are_right(columns: int, axis: int) -> None:
    x = np.random.default_rng(columns).standard_normal((5, columns)).astype(np.float32)
    result = df.function(lambda x: df.reduce_sum(df.exp(x), axis) + 1.0)(x)
    np.testing.assert_allclose(result, np.exp(x.astype(np.float64)).sum(axis) + 1.0, rtol=1e-6)
