"""Kernels that read tensors across their rows, tile by tile: right for all sizes, dtypes and layouts."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.backends.llvm.runtime import threads

DTYPES = [np.float32, np.float64, np.int8, np.uint16, np.int64, np.bool_]


def numbers(shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    return (np.random.default_rng(len(shape)).normal(size=shape) * 50).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_permuted_copy_has_the_elements_of_numpys(dtype: Any) -> None:
    x = numbers((3, 81, 70), dtype)
    for perm in itertools.permutations(range(3)):
        f = df.function(lambda x, perm=perm: df.transpose(x, perm))
        np.testing.assert_array_equal(f(x), x.transpose(perm))


@pytest.mark.parametrize("shape", [(16, 16), (16, 129), (129, 17), (64, 64), (65, 63), (1, 200), (0, 40)])
def test_tiles_that_are_cut_short(shape: tuple[int, ...]) -> None:
    x = numbers(shape)
    np.testing.assert_array_equal(df.function(df.transpose)(x), x.T)


READERS: dict[str, Callable[..., Any]] = {
    "with rows": lambda iteration, x, y, row: iteration(x) * 2.0 + y - row,
    "two across": lambda iteration, x, y, row: iteration(x) * iteration(x[::-1]) + y,
    "backwards": lambda iteration, x, y, row: iteration(x)[::-1, ::-1] + y,
    "of a part": lambda iteration, x, y, row: iteration(x[2:, 3:]) + y[3:, 2:],
    "with a number": lambda iteration, x, y, row: iteration(x) * row[0] + iteration(x),
    "two results": lambda iteration, x, y, row: (iteration(x) + y, iteration(x) - y),
}


ON_NUMBA = [("two across", "numba"), ("backwards", "numba")]


@pytest.mark.parametrize(("name", "backend"), [*((name, "llvm") for name in READERS), *ON_NUMBA])
def test_nodes_fused_with_transposed_reads(name: str, backend: str) -> None:
    reader = READERS[name]
    x, y, row = numbers((90, 70)), numbers((70, 90)), numbers((90,))
    f = df.function(lambda x, y, row: reader(df.transpose, x, y, row), backend=backend)
    np.testing.assert_array_equal(f(x, y, row), reader(np.transpose, x, y, row))


def test_values_of_rows_are_computed_once_a_row() -> None:
    x, row = numbers((90, 70)), numbers((70, 1))
    f = df.function(lambda x, row: df.transpose(x) * df.exp(row / 50.0))
    np.testing.assert_allclose(f(x, row), x.T * np.exp(row / np.float32(50)), rtol=1e-6)


def test_a_variable_is_updated_from_its_own_transpose() -> None:
    v = df.Variable(numbers((70, 70)))
    expected = v.numpy() + v.numpy().T
    df.function(lambda: v.assign_add(df.transpose(v)))()
    np.testing.assert_array_equal(v, expected)


def test_any_number_of_threads_gives_the_same() -> None:
    x, before = numbers((700, 900)), threads.num_threads()
    f = df.function(df.transpose)
    try:
        for count in range(1, threads.max_threads() + 1):
            threads.set_num_threads(count)
            np.testing.assert_array_equal(f(x), x.T)
    finally:
        threads.set_num_threads(before)
