"""Searches in sorted rows of static sizes are compiled, and find what NumPy finds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dualflow as df

RNG = np.random.default_rng(7)
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan]


def numbers(size: int, dtype: str) -> Any:
    x = (RNG.normal(size=size) * 3).astype(dtype)
    if x.dtype.kind == "f":
        x[: size // 2] = np.resize(np.array(SPECIAL, dtype), size // 2)
    return x


def searched(side: str, out_type: Any = df.int32) -> Any:
    """A compiled search of the same values in each of several rows."""
    return df.function(lambda rows, values: [df.searchsorted(row, values, side, out_type) for row in rows])


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "uint8"])
def test_positions_in_rows_of_any_size_are_those_of_numpy(dtype: str, side: str) -> None:
    rows = [np.sort(numbers(size, dtype)) for size in (1, 2, 3, 4, 7, 8, 9, 100)]
    values = np.concatenate([numbers(20, dtype), rows[-1]])
    compiled = searched(side)
    for row, positions in zip(rows, compiled(rows, values), strict=True):
        np.testing.assert_array_equal(positions, row.searchsorted(values, side))


@pytest.mark.llvm
def test_a_search_is_one_kernel() -> None:
    compiled = searched("left")
    compiled([np.arange(5.0)], np.arange(3.0))
    assert "NumPy" not in compiled.status()


def test_each_row_of_a_batch_is_searched_for_its_own_values() -> None:
    rows, values = np.sort(RNG.normal(size=(2, 3, 11))), RNG.normal(size=(2, 3, 7))
    (positions,) = searched("right", df.int64)([rows], values)
    assert positions.dtype is df.int64
    for at in np.ndindex(2, 3):
        np.testing.assert_array_equal(positions[at], rows[at].searchsorted(values[at], "right"))


def test_no_elements_and_no_values() -> None:
    for row, values in ((np.zeros(0), np.ones(2)), (np.ones(2), np.zeros(0))):
        (positions,) = searched("left")([row], values)
        np.testing.assert_array_equal(positions, row.searchsorted(values))


def test_rows_of_unsorted_numbers_have_positions_inside() -> None:
    row, values = RNG.permutation(np.arange(100.0)), RNG.normal(size=50) * 100
    (positions,) = searched("left")([row], values)
    assert set(positions.numpy().tolist()) <= set(range(101))
