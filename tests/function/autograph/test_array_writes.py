"""Items of NumPy arrays that a traced function creates can be assigned, as in eager code."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.function.errors import SymbolicValueError

X = np.array([1.5, -2.0, 0.5])


def unrolled(x: Any) -> Any:
    out = np.zeros((3, 2))
    for i in range(3):
        out[i, 0] = x[i] * 2
        out[i] += x[i]
    return out


def at_slices(x: Any) -> Any:
    out = np.ones((2, 3))
    out[:, ::-1] = x
    out[0, 1:] *= x[0]
    out[..., 0] = 7.0
    return out


def at_arrays_and_masks(x: Any) -> Any:
    out = np.zeros(4)
    out[np.array([3, 1, 0])] = x
    out[np.array([False, True, False, True])] = x[0]
    return out


def with_reads_between(x: Any) -> Any:
    out = np.empty(4)
    out[0] = x[0]
    for i in range(1, 4):
        out[i] = out[i - 1] * x[1] + np.sum(out[:i])
    return out, np.max(out)


def from_a_copy(x: Any) -> Any:
    first = np.arange(3.0)
    second = np.copy(first)
    second[1] = x[0]
    first[0] = x[1]
    return first, second


def with_plain_items(x: Any) -> Any:
    weights = np.zeros(3)
    weights[0] = 2.0
    weights[1:] = 3.0
    return x * weights


@pytest.mark.parametrize(
    "function", [unrolled, at_slices, at_arrays_and_masks, with_reads_between, from_a_copy, with_plain_items]
)
def test_a_function_computes_what_numpy_computes(function: Any) -> None:
    results = df.nest.flatten(df.function(function)(df.constant(X)))
    for result, expected in zip(results, df.nest.flatten(function(X)), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-12)


def in_a_loop(x: Any, count: Any) -> Any:
    out = np.zeros((4, 3))
    out[0] = 1.0
    for i in df.range(count):
        out[i, 1] += x[0]
        out[i] = out[i] * 2 + x
        if x[0] > i:
            out[-1] = 9.0
    return out


@pytest.mark.parametrize("count", [0, 1, 3])
def test_loops_over_tensors_carry_the_array(count: int) -> None:
    expected = in_a_loop(X, count)
    np.testing.assert_allclose(df.function(in_a_loop)(df.constant(X), df.constant(count)), expected)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_branch_that_is_not_taken_changes_nothing(sign: float) -> None:
    @df.function
    def f(x: Any) -> Any:
        out = np.zeros(2)
        if x > 0:
            out[0] = 5.0
        else:
            out[1] = x
        return out

    assert f(df.constant(sign, df.float64)).numpy().tolist() == ([5, 0] if sign > 0 else [0, -1])


def test_a_symbolic_index_may_be_negative() -> None:
    @df.function
    def f(i: Any) -> Any:
        out = np.zeros(3)
        out[i] = 1.0
        return out

    assert f(df.constant(-1)).numpy().tolist() == [0, 0, 1]
    assert f(df.constant(1)).numpy().tolist() == [0, 1, 0]
    with pytest.raises(df.errors.InvalidArgumentError):
        f(df.constant(3))


def test_values_take_the_dtype_of_the_array() -> None:
    @df.function
    def f(x: Any) -> Any:
        out = np.zeros(2, np.float32)
        out[0] = x
        return out

    assert f(df.constant(2.5, df.float64)).dtype is df.float32
    assert f(df.constant(2)).numpy().tolist() == [2, 0]


def test_gradients_flow_through_the_items() -> None:
    x = df.constant(X)
    with df.GradientTape() as tape:
        tape.watch(x)
        y = df.reduce_sum(df.function(unrolled)(x) ** 2)
    first = df.constant(X)
    with df.GradientTape() as expected:
        expected.watch(first)
        z = df.reduce_sum((3 * first) ** 2 + first**2)
    np.testing.assert_allclose(tape.gradient(y, x), expected.gradient(z, first))


def test_lists_dicts_and_tensors_are_assigned_as_before() -> None:
    @df.function
    def f(x: Any) -> Any:
        values, table = [None, None], {}
        values[0] = table["a"] = x
        return values[0] + table["a"]

    assert float(f(df.constant(2.0))) == 4

    @df.function
    def g(x: Any) -> Any:
        y = df.zeros([2])
        y[0] = x
        return y

    with pytest.raises(TypeError, match="Tensors do not change"):
        g(df.constant(2.0))


# Augmented assignments without tensors


def test_an_augmented_assignment_changes_the_item_of_another_container_in_place() -> None:
    @df.function
    def f(x: Any) -> Any:
        original = {"list": [1], "array": np.zeros(2)}
        shallow = copy.copy(original)
        shallow["list"] += (2,)
        shallow["array"] += 1.5
        return x + len(original["list"]), x + original["array"]

    count, array = f(df.constant(0.0, df.float64))
    assert (float(count), array.numpy().tolist()) == (2, [1.5, 1.5])


def test_an_augmented_assignment_to_a_part_keeps_the_dtype_of_the_array() -> None:
    @df.function
    def f(x: Any) -> Any:
        out = np.zeros(3, int)
        out[:2] += 0.5
        return x + out

    with pytest.raises(TypeError, match=r"Cannot cast ufunc 'add' output"):
        f(df.constant(0))


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_an_augmented_assignment_in_a_branch_that_is_not_taken_changes_nothing(sign: float) -> None:
    @df.function
    def f(x: Any) -> Any:
        out = np.zeros(3)
        if x > 0:
            out[:2] += 4.0
        return x * out

    assert f(df.constant(sign, df.float64)).numpy().tolist() == ([4, 4, 0] if sign > 0 else [0, 0, 0])


# Where something else refers to the array


def to_a_variable(x: Any) -> Any:
    out = np.zeros(3)
    other = out
    out[0] = x[0]
    return other


def to_a_list(x: Any) -> Any:
    out, history = None, []
    out = np.zeros(3)
    for i in range(3):
        out[i] = x[i]
        history.append(out)
    return history


def by_two_targets(x: Any) -> Any:
    out = np.zeros(1)
    out = other = np.zeros(3)
    out[0] = x[0]
    return other


def by_a_call(x: Any) -> Any:
    out = np.zeros(3)
    keep = list
    held = keep([out])
    out[0] = x[0]
    return held


@pytest.mark.parametrize("function", [to_a_variable, to_a_list, by_two_targets, by_a_call])
def test_an_array_with_another_name_is_refused(function: Any) -> None:
    with pytest.raises(SymbolicValueError, match=r"something else may refer to[\s\S]*np\.copy"):
        df.function(function)(df.constant(X))


def test_an_array_of_the_callers_is_refused() -> None:
    def f(out: Any, x: Any) -> Any:
        out[0] = x[0]
        return out

    with pytest.raises(SymbolicValueError, match=r"can't be written into a NumPy array[\s\S]*df\.stack"):
        df.function(lambda x: f(np.zeros(3), x))(df.constant(X))


def test_plain_items_of_an_aliased_array_are_seen_by_all() -> None:
    @df.function
    def f(x: Any) -> Any:
        out = np.zeros(3)
        other = out
        out[0] = 4.0
        return x * other

    assert f(df.ones([3], df.float64)).numpy().tolist() == [4, 0, 0]
