"""Distinct elements, places in sorted rows and the best classes: against NumPy, in both modes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import dualflow as df

NAN, INF = np.nan, np.inf
FLOATS = st.integers(-3, 3) | st.just(NAN) | st.just(-0.0)


@given(x=arrays.arrays(np.float32, st.integers(0, 12), elements=FLOATS))
def test_distinct_elements_make_up_the_input(x):
    y, idx, count = df.unique_with_counts(x)
    np.testing.assert_array_equal(y.numpy()[idx.numpy()], x)
    np.testing.assert_array_equal(count, np.bincount(idx.numpy(), minlength=y.shape[0]))
    numbers = y.numpy()[~np.isnan(y.numpy())]
    assert len(set(numbers.tolist())) == len(numbers)
    first = [idx.numpy().tolist().index(i) for i in range(y.shape[0])]
    assert first == sorted(first)


@pytest.mark.parametrize(
    ("x", "y", "idx"),
    [
        ([3, 1, 3, 2, 1], [3, 1, 2], [0, 1, 0, 2, 1]),
        ([True, False, True], [True, False], [0, 1, 0]),
        ([NAN, 1.0, NAN, 0.0, -0.0], [NAN, 1, NAN, 0], [0, 1, 2, 3, 3]),
        (np.zeros(0, np.float32), [], []),
    ],
)
def test_distinct_elements_in_order_of_appearance(mode, x, y, idx):
    result = mode(df.unique)(df.constant(x))
    np.testing.assert_array_equal(result[0], y)
    np.testing.assert_array_equal(result[1], idx)


@pytest.mark.llvm  # Numba leaves sizes that depend on data to NumPy
def test_only_the_search_for_equal_elements_is_numpys():
    f = df.function(df.unique_with_counts, input_signature=[df.TensorSpec([None])])
    for x in ([3.0, 1.0, 3.0], [], [NAN, NAN]):
        for result, expected in zip(f(x), df.unique_with_counts(df.constant(x)), strict=True):
            np.testing.assert_array_equal(result, expected)
    by_numpy = [line.split()[1] for line in str(f.status()).splitlines() if "numpy:" in line]
    assert by_numpy == ["filled_unique"]


def test_places_of_distinct_elements_have_the_dtype_requested(mode):
    result = mode(lambda x: df.unique_with_counts(x, df.int64))(df.constant([1, 1]))
    assert [part.dtype for part in result] == [df.int32, df.int64, df.int64]


def test_the_gradient_of_distinct_elements_goes_to_the_first(mode):
    def gradient(x):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = df.unique(x).y ** 2
        return tape.gradient(y, x)

    np.testing.assert_array_equal(mode(gradient)(df.constant([3.0, 1.0, 3.0])), [6, 2, 0])


@given(
    rows=arrays.arrays(np.int32, (2, 5), elements=st.integers(-4, 4)),
    values=arrays.arrays(np.int32, (2, 3), elements=st.integers(-5, 5)),
    side=st.sampled_from(["left", "right"]),
)
def test_values_belong_where_numpy_reports(rows, values, side):
    rows = np.sort(rows, axis=1)
    expected = [row.searchsorted(value, side) for row, value in zip(rows, values, strict=True)]
    np.testing.assert_array_equal(df.searchsorted(rows, values, side), expected)


@pytest.mark.parametrize(
    ("row", "values", "side", "expected"),
    [
        ([1, 3, 5], [0, 1, 2, 5, 9], "left", [0, 0, 1, 2, 3]),
        ([1, 3, 5], [0, 1, 2, 5, 9], "right", [0, 1, 1, 3, 3]),
        (np.zeros(0, np.float32), [2.0], "left", [0]),
        ([1, 3], [1.5], "left", [1]),
        ([1.0, 3.0, NAN], [INF, NAN], "left", [2, 2]),
    ],
)
def test_places_in_a_sorted_row(mode, row, values, side, expected):
    call = mode(lambda row, values: df.searchsorted(row, values, side))
    np.testing.assert_array_equal(
        call(df.constant(row), df.constant(values)), np.array(expected, np.int32), strict=True
    )


@pytest.mark.parametrize(
    ("targets", "scores", "k", "expected"),
    [
        ([0, 2], [[0.1, 0.2, 0.3], [0.3, 0.2, 0.1]], 3, [True, True]),
        ([0, 2], [[0.1, 0.2, 0.3], [0.3, 0.2, 0.1]], 2, [False, False]),
        ([0, 1], [[0.1, 0.1, 0.1], [0.3, 0.3, 0.3]], 1, [True, True]),
        ([0, 1], [[NAN, 0.1, 0.1], [0.3, NAN, 0.3]], 3, [False, False]),
        ([0, 1], [[INF, 0.1, 0.1], [0.3, 0.2, INF]], 3, [False, False]),
        ([5, -1], [[0.1, 0.2, 0.3], [0.3, 0.2, 0.1]], 3, [False, False]),
        ([0, 2], [[0.1, 0.2, 0.3], [0.3, 0.2, 0.1]], 0, [False, False]),
        ([0], np.zeros((1, 0), np.float32), 1, [False]),
    ],
)
def test_whether_a_class_is_among_the_best(mode, targets, scores, k, expected):
    call = mode(lambda targets, scores: df.math.in_top_k(targets, scores, k))
    scores = df.constant(scores, df.float32)
    np.testing.assert_array_equal(call(df.constant(targets), scores), expected)


def test_whether_a_class_is_among_the_best_is_native():
    f = df.function(lambda targets, scores: df.math.in_top_k(targets, scores, 2))
    f(df.constant([0, 2]), df.ones([2, 3]))
    assert "numpy:" not in str(f.status())


@pytest.mark.parametrize(
    ("axis", "values", "places"),
    [(1, [[3, 2], [9, 5]], [[1, 2], [0, 2]]), (0, [[9, 3, 5], [1, 0, 2]], [[1, 0, 1], [0, 1, 0]])],
)
def test_extremes_along_an_axis(mode, axis, values, places):
    x = df.constant([[1.0, 3.0, 2.0], [9.0, 0.0, 5.0]])
    largest = mode(lambda x: df.math.approx_max_k(x, 2, axis))(x)
    np.testing.assert_array_equal(largest[0], values)
    np.testing.assert_array_equal(largest[1], places)
    smallest = mode(lambda x: df.math.approx_min_k(x, 2, axis))(-x)
    np.testing.assert_array_equal(smallest[0], -np.array(values))


@given(order=st.permutations(range(6)))
def test_a_permutation_and_its_inverse_leave_all_in_place(order):
    inverse = df.math.invert_permutation(order)
    np.testing.assert_array_equal(np.array(order)[inverse.numpy()], range(6))


@pytest.mark.parametrize("x", [[2, 0, 0], [2, 0, 3], [1, 0, -1]])
def test_an_invalid_permutation_is_an_error(mode, x):
    with pytest.raises(df.errors.InvalidArgumentError, match="once"):
        mode(df.math.invert_permutation)(df.constant(x))


@pytest.mark.parametrize(
    ("x", "non_decreasing", "increasing"),
    [
        ([1, 1, 2], True, False),
        ([1, 3, 2], False, False),
        ([1, 2, 3], True, True),
        ([], True, True),
        (3, True, True),
        ([1.0, NAN], False, False),
        ([[1, 2], [2, 3]], True, False),
    ],
)
def test_whether_numbers_are_in_order(mode, x, non_decreasing, increasing):
    assert bool(mode(df.math.is_non_decreasing)(df.constant(x))) is non_decreasing
    assert bool(mode(df.math.is_strictly_increasing)(df.constant(x))) is increasing
