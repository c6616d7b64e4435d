"""Steps along gradients of picked rows: the bits of the dense computation, and only these rows change."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dualflow as df

Array = np.ndarray[Any, Any]
Shape = tuple[int | None, ...]
SIZE, WIDTH = 64, 8
RATE = 1e-3


def table_of_numbers(dtype: str = "float32") -> Array:
    """Numbers, and what sums of zeros might change."""
    table = np.random.default_rng(0).standard_normal((SIZE, WIDTH)).astype(dtype)
    table[:, 0] = -0.0
    table[1::4, 1], table[2::4, 1], table[3::4, 1] = np.inf, np.nan, 0.0
    return table


def dense(table: Array, ids: Array, rows: Array, rate: float | None) -> Array:
    """The step as NumPy computes it, row by row."""
    summed = np.zeros_like(table)
    for i, row in zip(ids.reshape(-1), rows.reshape(-1, table.shape[1]), strict=True):
        summed[i] += row
    with np.errstate(all="ignore"):
        return table - (summed if rate is None else summed * table.dtype.type(rate))


def stepping(table: Any, rate: Any) -> Any:
    """A function that makes a step of ``table`` along the sum of picked rows times others."""

    @df.function
    def step(ids: Any, rows: Any) -> None:
        with df.GradientTape() as tape:
            loss = df.reduce_sum(df.gather(table, ids) * rows)
        slope = df.convert_to_tensor(tape.gradient(loss, table))
        table.assign_sub(slope if rate is None else rate * slope)

    return step


def is_sparse(function: Any, *args: Any) -> bool:
    """Whether the optimised graph makes no sum of as many rows as the table has."""
    return changes_rows(function.get_concrete_function(*args).optimised_graph)


def changes_rows(graph: Any) -> bool:
    """Whether a graph makes no sum of as many rows as the table has."""
    return not any(n.op.name == "scatter_add" and n.attrs["size"] == SIZE for n in graph.nodes)


def exactly_equal(result: Array, expected: Array) -> bool:
    """Equal to the bit, but for which nan a nan is."""
    same = (result == expected) & (np.signbit(result) == np.signbit(expected))
    return bool((same | (np.isnan(result) & np.isnan(expected))).all())


@given(ids=st.lists(st.integers(0, SIZE - 1), min_size=8, max_size=8), seed=st.integers(0, 99))
@settings(deadline=None, max_examples=40)
def test_the_bits_are_those_of_the_dense_step(ids: list[int], seed: int) -> None:
    start = table_of_numbers()
    _table.assign(start)
    places = np.array(ids, np.int32)
    rows = np.random.default_rng(seed).standard_normal((8, WIDTH)).astype(np.float32)
    rows[0, 0] = -0.0
    _step(df.constant(places), df.constant(rows))
    assert exactly_equal(_table.numpy(), dense(start, places, rows, RATE))


_table = df.Variable(table_of_numbers())
_step = stepping(_table, RATE)


@pytest.mark.parametrize("rate", [None, RATE, 7.0])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(16,), (2, 3), (2, 2, 2)], ids=str)
def test_places_of_any_shape_and_any_rate(rate: float | None, dtype: str, shape: tuple[int, ...]) -> None:
    start = table_of_numbers(dtype)
    table = df.Variable(start)
    ids = np.random.default_rng(1).integers(0, 9, shape).astype(np.int32)
    rows = np.random.default_rng(2).standard_normal((*shape, WIDTH)).astype(dtype)
    step = stepping(table, rate)
    assert is_sparse(step, df.constant(ids), df.constant(rows))
    for _ in range(2):
        step(df.constant(ids), df.constant(rows))
        start = dense(start, ids, rows, rate)
        assert exactly_equal(table.numpy(), start)


@pytest.mark.parametrize("rate", [-1e-3, 0.0, np.inf, np.nan])
def test_rates_that_change_other_rows_are_dense(rate: float) -> None:
    start = table_of_numbers()
    table, ids = df.Variable(start), np.array([3, 3, 5, 8], np.int32)
    rows = np.ones((4, WIDTH), np.float32)
    step = stepping(table, rate)
    assert not is_sparse(step, df.constant(ids), df.constant(rows))
    step(df.constant(ids), df.constant(rows))
    assert exactly_equal(table.numpy(), dense(start, ids, rows, rate))


def test_a_rate_known_only_at_run_time_is_dense() -> None:
    table, rate = df.Variable(table_of_numbers()), df.Variable(RATE)
    step = stepping(table, rate)
    assert not is_sparse(step, df.constant([1, 2]), df.ones([2, WIDTH]))


def test_many_rows_are_dense() -> None:
    step = stepping(df.Variable(table_of_numbers()), RATE)
    assert not is_sparse(step, df.range(SIZE // 2), df.ones([SIZE // 2, WIDTH]))


def stepping_on_any_number(table: Any, picked: Shape) -> Any:
    """:func:`stepping` for indices of shape ``picked``, whose first size is dynamic."""
    specs = [df.TensorSpec(picked, df.int32), df.TensorSpec([*picked, WIDTH])]
    return df.function(stepping(table, RATE).python_function, input_signature=specs)


@pytest.mark.parametrize("picked", [(None,), (None, 2)], ids=str)
def test_the_number_of_rows_of_a_call_decides(picked: Shape) -> None:
    start = table_of_numbers()
    table = df.Variable(start)
    step = stepping_on_any_number(table, picked)
    most = SIZE // 4 // math.prod(n or 1 for n in picked)
    for count in (most, most + 1, 1, 40, 0):
        shape = [count if n is None else n for n in picked]
        ids = np.random.default_rng(count).integers(0, 9, shape).astype(np.int32)
        rows = np.random.default_rng(2).standard_normal((*shape, WIDTH)).astype(np.float32)
        step(df.constant(ids), df.constant(rows))
        start = dense(start, ids, rows, RATE)
        assert exactly_equal(table.numpy(), start)
        if count in (most, most + 1):  # the first of their programs
            assert changes_rows(step.concrete_functions[0].optimised_graph) == (count == most)


def test_a_place_outside_of_a_dynamic_number_raises_and_changes_nothing() -> None:
    start = table_of_numbers()
    table = df.Variable(start)
    step = stepping_on_any_number(table, (None,))
    for count in (2, SIZE):
        with pytest.raises(IndexError, match="out of range"):
            step(df.fill([count], SIZE), df.ones([count, WIDTH]))
    assert exactly_equal(table.numpy(), start)


def test_a_gradient_that_others_read_stays_whole() -> None:
    start = np.ones((SIZE, WIDTH), np.float32)
    table = df.Variable(start)

    @df.function
    def step(ids: Any) -> Any:
        with df.GradientTape() as tape:
            loss = df.reduce_sum(df.gather(table, ids))
        slope = df.convert_to_tensor(tape.gradient(loss, table))
        table.assign_sub(RATE * slope)
        return slope

    ids = df.constant([1, 1, 4])
    assert not is_sparse(step, ids)
    slope = step(ids).numpy()
    assert slope.sum(1).tolist() == [{1: 2.0 * WIDTH, 4: 1.0 * WIDTH}.get(i, 0.0) for i in range(SIZE)]
    assert exactly_equal(table.numpy(), start - slope * np.float32(RATE))


def test_a_place_outside_raises_and_changes_nothing() -> None:
    start = table_of_numbers()
    table = df.Variable(start)
    step = stepping(table, RATE)
    step(df.constant([1, 2]), df.zeros([2, WIDTH]))
    with pytest.raises(IndexError, match="out of range"):
        step(df.constant([1, SIZE]), df.ones([2, WIDTH]))
    assert exactly_equal(table.numpy(), start)


def test_a_step_in_each_iteration_of_a_loop() -> None:
    start = table_of_numbers()
    table = df.Variable(start)

    @df.function
    def steps(ids: Any) -> None:
        for i in df.range(3):
            with df.GradientTape() as tape:
                loss = df.reduce_sum(df.gather(table, ids[i]) ** 2)
            table.assign_sub(RATE * df.convert_to_tensor(tape.gradient(loss, table)))

    ids = np.array([[1, 5, 5], [5, 9, 13], [0, 0, 0]], np.int32)
    steps(df.constant(ids))
    for places in ids:
        start = dense(start, places, 2 * start[places], RATE)
    assert exactly_equal(table.numpy(), start)


def test_two_steps_of_one_table_follow_one_another() -> None:
    start = table_of_numbers()
    table = df.Variable(start)
    ids = np.array([3, 3, 60], np.int32)

    @df.function
    def twice(ids: Any) -> None:
        for rate in (RATE, 0.5):
            with df.GradientTape() as tape:
                loss = df.reduce_sum(df.gather(table, ids))
            table.assign_sub(rate * df.convert_to_tensor(tape.gradient(loss, table)))

    twice(df.constant(ids))
    rows = np.ones((3, WIDTH), np.float32)
    assert exactly_equal(table.numpy(), dense(dense(start, ids, rows, RATE), ids, rows, 0.5))
