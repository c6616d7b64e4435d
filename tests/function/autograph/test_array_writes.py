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


def by_a_row(x: Any) -> Any:
    out = np.zeros((3, 3))
    row = out[1]
    out[1] = x
    return row, out


def by_a_transposed_view(x: Any) -> Any:
    out = np.zeros((3, 3))
    columns = out.T
    out[0, 1] = x[0]
    return columns


def by_a_reshaped_view(x: Any) -> Any:
    out = np.zeros((3, 3))
    flat = np.reshape(out, -1)
    out[0] = x
    return flat


def by_a_view_of_a_view(x: Any) -> Any:
    out = np.zeros((2, 3, 3))
    first = out[0]
    second = first[1:].T
    first = None
    out[0, 2] = x
    return second


def by_a_view_of_the_tensor(x: Any) -> Any:
    out = np.zeros((3, 3))
    out[0] = x
    row = out[0]
    out[0] = 2 * x
    return row


def by_rows_in_a_list(x: Any) -> Any:
    out, rows = np.zeros((3, 3)), []
    for i in range(3):
        rows.append(out[i])
        out[i] = x
    return rows


def by_an_unpacked_row(x: Any) -> Any:
    out = np.zeros((2, 3))
    first, _ = out
    out[0] = x
    return first


def by_an_iterated_row(x: Any) -> Any:
    out, total = np.zeros((2, 3)), 0.0
    for row in out:
        out[0] = x
        total = total + row
    return total


def by_a_held_attribute(x: Any) -> Any:
    class Holder:
        pass

    holder, out = Holder(), np.zeros((2, 3))
    holder.row = out[0]
    out[0] = x
    return holder.row


def by_lists_that_contain_each_other(x: Any) -> Any:
    out, first = np.zeros((2, 3)), []
    second = [first]
    first.append(second)
    first.append(out[0])
    out[0] = x
    return first[1]


def by_a_masked_view(x: Any) -> Any:
    out = np.zeros(3)
    masked = np.ma.asarray(out)
    out[0] = x[0]
    return masked


def by_a_row_of_before_a_loop(x: Any) -> Any:
    out = np.zeros((3, 3))
    row = out[0]
    for i in df.range(2):
        out[i] = x
    return row


@pytest.mark.parametrize(
    "function",
    [
        *(to_a_variable, to_a_list, by_two_targets, by_a_call, by_a_row, by_a_transposed_view),
        *(by_a_reshaped_view, by_a_view_of_a_view, by_a_view_of_the_tensor, by_rows_in_a_list),
        *(by_an_unpacked_row, by_an_iterated_row, by_a_held_attribute, by_a_row_of_before_a_loop),
        *(by_lists_that_contain_each_other, by_a_masked_view),
    ],
)
def test_an_array_or_view_with_another_name_is_refused(function: Any) -> None:
    with pytest.raises(SymbolicValueError, match=r"something else may refer to[\s\S]*np\.copy"):
        df.function(function)(df.constant(X))


def with_rows_that_are_not_read_again(x: Any) -> Any:
    out = np.zeros((4, 3))
    for i in range(1, 4):
        last = out[i - 1]
        out[i] = last * x + 1.0
    return out


def with_copied_rows(x: Any) -> Any:
    out = np.zeros((3, 3))
    row, before = out[0].copy(), np.copy(out)
    out[0] = x
    after = np.copy(out)
    out[0] = -x
    return row, before, after, out


def with_elements(x: Any) -> Any:
    out, history = np.zeros(3), []
    first = out[0]
    for i in range(3):
        history.append(out[i])
        out[i] = x[i]
    return [first, *history], out


def with_elements_in_lists_that_contain_each_other(x: Any) -> Any:
    out, first = np.zeros(3), []
    second = [first]
    first.append(second)
    first.append(out[0])
    out[0] = x[0]
    return first[1], out


def with_a_range_too_long_to_search(x: Any) -> Any:
    out = np.zeros(3)
    indices = range(len(out), 1 << 60)
    out[0] = x[0]
    return indices[0], out


def with_computed_values(x: Any) -> Any:
    out = np.ones((3, 3))
    sums, scaled = np.sum(out, 0), out * 2
    out[0] = x
    total = np.sum(out, 1)
    out[1] = x
    return sums, scaled, total, out


def with_views_of_now(x: Any) -> Any:
    out = np.zeros((3, 3))
    out[0] = x
    rows = [row * 2 for row in out]
    columns = out.T
    return rows, columns, columns[0]


def with_rows_for_a_function(x: Any) -> Any:
    def derivative(y: Any) -> Any:
        return -y

    out = np.zeros((4, 3))
    out[0] = x
    for i in range(1, 4):
        slope = derivative(out[i - 1])
        out[i] = out[i - 1] + 0.1 * slope
        slope = np.sum(slope)
    return out, slope


@pytest.mark.parametrize(
    "function",
    [
        *(with_rows_that_are_not_read_again, with_copied_rows, with_elements, with_computed_values),
        *(with_views_of_now, with_rows_for_a_function, with_elements_in_lists_that_contain_each_other),
        with_a_range_too_long_to_search,
    ],
)
def test_copies_elements_and_views_that_are_read_before_are_no_aliases(function: Any) -> None:
    results = df.nest.flatten(df.function(function)(df.constant(X)))
    for result, expected in zip(results, df.nest.flatten(function(X)), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-12)


def test_a_loop_over_a_tensor_may_read_the_row_before() -> None:
    @df.function
    def f(x: Any, count: Any) -> Any:
        out = np.zeros((5, 3))
        out[0] = x
        for i in df.range(1, count):
            last = out[i - 1]
            out[i] = last * 2
        return out

    assert f(df.constant(X), df.constant(3)).numpy()[:, 0].tolist() == [1.5, 3.0, 6.0, 0.0, 0.0]


def test_a_view_sees_plain_items() -> None:
    @df.function
    def f(x: Any) -> Any:
        out = np.zeros((2, 2))
        row = out[0]
        out[0] = 4.0
        return x * row

    assert f(df.ones([2], df.float64)).numpy().tolist() == [4, 4]


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
