"""Gathers and scatters of rows of large tables, which kernels prefetch: values, and wrong indices."""

from __future__ import annotations

import numpy as np
import pytest

import dualflow as df
from dualflow.backends.llvm.compile_graph import planned
from dualflow.backends.llvm.program import write
from dualflow.backends.llvm.row_prefetch import DISTANCE, SMALLEST_TABLE
from dualflow.graph.options import CompileOptions

WIDTH = 45
TABLE = np.arange(SMALLEST_TABLE // 4 + 2 * WIDTH, dtype=np.float32)
ROWS = TABLE[: TABLE.size // WIDTH * WIDTH].reshape(-1, WIDTH)


@df.function
def rows_of(table: df.Tensor, indices: df.Tensor) -> df.Tensor:
    return df.gather(table, indices)


@pytest.mark.parametrize("count", [1, DISTANCE, DISTANCE + 1, 1000])
def test_each_row_of_a_large_table_is_the_one_at_its_index(count: int) -> None:
    indices = np.random.default_rng(count).integers(0, len(ROWS), count)
    assert np.array_equal(rows_of(ROWS, indices), ROWS[indices])


@pytest.mark.parametrize("place", [0, DISTANCE, -1])
@pytest.mark.parametrize("wrong", [-1, len(ROWS), np.iinfo(np.int64).max, np.iinfo(np.int64).min])
def test_a_wrong_index_into_a_large_table_raises(place: int, wrong: int) -> None:
    indices = np.zeros(2 * DISTANCE, np.int64)
    indices[place] = wrong
    with pytest.raises(IndexError, match="out of range"):
        rows_of(ROWS, indices)


def test_a_middle_axis_of_a_large_table_is_gathered_in_each_batch_element() -> None:
    table, indices = ROWS[: len(ROWS) // 2 * 2].reshape(2, -1, WIDTH), np.arange(100, 0, -2)
    gathered = df.function(lambda t, i: df.gather(t, i, axis=1))(table, indices)
    assert np.array_equal(gathered, table[:, indices])


def test_indices_of_each_batch_element_select_rows_of_its_own_table() -> None:
    table = ROWS[: len(ROWS) // 2 * 2].reshape(2, -1, WIDTH)
    indices = np.random.default_rng(0).integers(0, table.shape[1], (2, 70))
    gathered = df.function(lambda t, i: df.gather(t, i, batch_dims=1))(table, indices)
    assert np.array_equal(gathered, np.take_along_axis(table, indices[..., None], 1))


@pytest.mark.parametrize("count", [0, 1, DISTANCE + 1, 1000])
@pytest.mark.parametrize("depth", [1, 2])
def test_rows_are_added_to_a_large_table_in_order(count: int, depth: int) -> None:
    rng = np.random.default_rng(count)
    table = ROWS if depth == 1 else ROWS[: len(ROWS) // 2 * 2].reshape(2, -1, WIDTH)
    indices = np.stack([rng.integers(0, min(n, 300), count) for n in table.shape[:depth]], -1)
    updates = rng.standard_normal((count, WIDTH)).astype(np.float32)
    expected = table.copy()
    np.add.at(expected, tuple(indices.T), updates)
    added = df.function(lambda t, i, u: df.tensor_scatter_nd_add(t, i, u))(table, indices, updates)
    assert np.array_equal(added, expected)


@pytest.mark.parametrize("wrong", [-1, len(ROWS), np.iinfo(np.int64).max])
def test_a_wrong_index_leaves_a_large_variable_unchanged(wrong: int) -> None:
    variable = df.Variable(ROWS)

    @df.function
    def add(indices: df.Tensor) -> None:
        variable.scatter_nd_add(indices, df.ones([2 * DISTANCE, WIDTH]))

    indices = np.zeros((2 * DISTANCE, 1), np.int64)
    indices[DISTANCE] = wrong
    with pytest.raises(IndexError, match="out of range"):
        add(indices)
    assert np.array_equal(variable, ROWS)


@pytest.mark.parametrize("shape", [[WIDTH], []])
def test_kernels_prefetch_rows_and_not_single_elements(shape: list[int]) -> None:
    specs = df.TensorSpec([1000, *shape]), df.TensorSpec([200], df.int64)
    graph = rows_of.get_concrete_function(*specs).optimised_graph
    options = CompileOptions("llvm")
    (kernel,) = [s.text for s in write(planned(graph, options), options).sources if "@kernel" in s.text]
    assert ("call void @llvm.prefetch" in kernel) == bool(shape)
