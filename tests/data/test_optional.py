"""Optionals: what is after an iterator's last element, eagerly and in traced functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dualflow as df

DATASETS = {
    "numbers": lambda n: df.data.Dataset.range(n),
    "pairs": lambda n: df.data.Dataset.range(n).map(lambda x: {"a": x, "b": (x, 2.0)}),
    "strings": lambda n: df.data.Dataset.range(n).map(df.strings.as_string),
    "batches of unequal sizes": lambda n: df.data.Dataset.range(n).batch(2),
}


def read_all(iterator: Any) -> tuple[list[Any], Any]:
    """The elements that are left, and the first optional without one."""
    elements: list[Any] = []
    while (optional := iterator.get_next_as_optional()).has_value():
        elements.append(optional.get_value())
    return elements, optional


@pytest.mark.parametrize("name", DATASETS)
def test_the_values_are_the_elements_and_nothing_follows(name: str) -> None:
    dataset = DATASETS[name](5)
    elements, last = read_all(iter(dataset))
    expected = [df.nest.flatten(x) for x in dataset]
    for element, leaves in zip(elements, expected, strict=True):
        df.nest.assert_same_structure(element, dataset.element_spec)
        for a, b in zip(df.nest.flatten(element), leaves, strict=True):
            assert np.array_equal(a.numpy(), b.numpy())
    df.nest.assert_same_structure(last.element_spec, dataset.element_spec)


@given(st.integers(0, 9), st.integers(1, 4), st.integers(0, 7))
def test_a_traced_loop_ends_with_the_elements(count: int, size: int, limit: int) -> None:
    iterator = iter(df.data.Dataset.range(count).batch(size))
    total, batches = _total(iterator, df.constant(limit))
    expected = [min(size, count - i) for i in range(0, count, size)][:limit]
    assert batches.numpy() == len(expected)
    assert total.numpy() == sum(range(sum(expected)))
    assert len(list(iterator)) == -(-count // size) - len(expected)


@df.function
def _total(iterator: Any, limit: Any) -> Any:
    total, batches = df.constant(0, df.int64), 0
    for _ in df.range(limit):
        optional = iterator.get_next_as_optional()
        if not optional.has_value():
            break
        total += df.reduce_sum(optional.get_value())
        batches += 1
    return total, batches


def test_functions_take_and_return_optionals() -> None:
    @df.function
    def doubled(optional: Any) -> Any:
        return df.experimental.Optional.from_value(2.0 * optional.get_value())

    value = doubled(df.experimental.Optional.from_value([1.0, 2.0]))
    assert isinstance(value, df.data.experimental.Optional)
    assert value.get_value().numpy().tolist() == [2.0, 4.0]
    assert value.element_spec == df.TensorSpec([2])


@pytest.mark.parametrize("compiled", [False, True])
def test_no_value_is_an_error(compiled: bool) -> None:
    empty = df.experimental.Optional.empty({"x": df.TensorSpec([2, None])})
    get = (lambda optional: optional.get_value()["x"] + 1.0) if not compiled else _value
    with pytest.raises(df.errors.InvalidArgumentError, match="has none to get: test has_value"):
        get(empty)


@df.function
def _value(optional: Any) -> Any:
    return optional.get_value()["x"] + 1.0


def test_empty_optionals_have_sizes_of_their_spec() -> None:
    spec = {"x": df.TensorSpec([2, None]), "s": df.TensorSpec([1], df.string)}
    leaves = df.nest.flatten(df.experimental.Optional.empty(spec).element)  # by names
    assert [np.shape(x) for x in leaves] == [(1,), (2, 0)]
