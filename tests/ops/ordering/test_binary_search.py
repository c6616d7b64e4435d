"""Searches in sorted rows are compiled, and find what NumPy finds."""

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


SIZES = (1, 2, 3, 4, 7, 8, 15, 16, 17, 63, 64, 100, 255, 256, 257, 1023, 1024, 5000, 0)


@pytest.mark.parametrize("side", ["left", "right"])
def test_positions_in_rows_of_a_dynamic_size_are_those_of_numpy(side: str) -> None:
    specs = [df.TensorSpec([None]), df.TensorSpec([None])]
    search = df.function(lambda row, values: df.searchsorted(row, values, side), input_signature=specs)
    for size in SIZES:
        row = np.sort(numbers(size, "float32"))
        values = np.concatenate([numbers(20, "float32"), row[:50]])
        np.testing.assert_array_equal(search(row, values), row.searchsorted(values, side))


@pytest.mark.llvm
def test_rows_of_some_dynamic_sizes_share_a_kernel() -> None:
    search = df.function(df.searchsorted, input_signature=[df.TensorSpec([None]), df.TensorSpec([None])])
    for size in (1030, 4000):
        search(np.arange(size, dtype=np.float32), np.ones(2, np.float32))
    (concrete,) = search.concrete_functions
    assert "NumPy" not in search.status()
    levels = [node for node in lines(concrete.optimised_graph) if "search_level(" in node]
    assert len(levels) == 12


def lines(graph: Any) -> list[str]:
    return str(graph).splitlines()


@pytest.mark.parametrize("shape", [(None, 5), (None, None), (2, None, 7), (None, 3, None)], ids=str)
def test_rows_of_a_dynamic_batch_are_searched_each(shape: tuple[int | None, ...]) -> None:
    specs = [df.TensorSpec(shape, df.float64), df.TensorSpec([*shape[:-1], 4], df.float64)]
    search = df.function(lambda rows, values: df.searchsorted(rows, values, "right"), input_signature=specs)
    for n in (2, 3, 40, 1):
        sizes = [n if size is None else size for size in shape]
        rows, values = np.sort(RNG.normal(size=sizes)), RNG.normal(size=(*sizes[:-1], 4))
        positions = search(rows, values)
        for at in np.ndindex(*sizes[:-1]):
            np.testing.assert_array_equal(positions[at], rows[at].searchsorted(values[at], "right"))


def test_a_row_whose_size_depends_on_data_is_searched() -> None:
    search = df.function(lambda x, values: df.searchsorted(df.sort(x[x > 0.0]), values))
    for size in (1, 9, 300):
        x, values = numbers(size, "float32")[size // 2 :], numbers(9, "float32")
        np.testing.assert_array_equal(search(x, values), np.sort(x[x > 0]).searchsorted(values))
