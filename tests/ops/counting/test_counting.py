"""Counts against NumPy's, in both modes; values at the edges are TensorFlow 2.21's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import dualflow as df

X = [1, 1, 2, 5]
MATRIX = [[1, 1, 2], [0, 3, 3]]


@given(
    x=arrays.arrays(np.int64, st.integers(0, 30), elements=st.integers(0, 9)),
    least=st.none() | st.integers(0, 12),
    most=st.none() | st.integers(0, 12),
)
def test_counts_are_numpys(x, least, most):
    size = max(int(x.max(initial=-1)) + 1, least or 0)
    size = size if most is None else min(size, most)
    result = df.math.bincount(x, minlength=least, maxlength=most)
    np.testing.assert_array_equal(result, np.bincount(x, minlength=max(size, 1))[:size])


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [0, 2, 1, 0, 0, 1]),
        ({"weights": [1.0, 2.0, 3.0, 4.0]}, [0, 3, 3, 0, 0, 4]),
        ({"minlength": 8}, [0, 2, 1, 0, 0, 1, 0, 0]),
        ({"maxlength": 3}, [0, 2, 1]),
        ({"minlength": 5, "maxlength": 3}, [0, 2, 1]),
        ({"binary_output": True}, [0, 1, 1, 0, 0, 1]),
    ],
)
def test_counts_with_options(mode, options, expected):
    np.testing.assert_array_equal(mode(lambda x: df.math.bincount(x, **options))(df.constant(X)), expected)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"axis": -1}, [[0, 2, 1, 0], [1, 0, 0, 2]]),
        ({"axis": 0}, [1, 2, 1, 2]),
        ({}, [1, 2, 1, 2]),
        ({"axis": -1, "weights": [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]}, [[0, 3, 3, 0], [4, 0, 0, 11]]),
        ({"axis": -1, "binary_output": True}, [[0, 1, 1, 0], [1, 0, 0, 1]]),
        ({"axis": -1, "maxlength": 2}, [[0, 2], [1, 0]]),
    ],
)
def test_rows_are_counted_by_themselves(mode, options, expected):
    result = mode(lambda x: df.math.bincount(x, **options))(df.constant(MATRIX))
    np.testing.assert_array_equal(result, expected)


def test_counts_of_nothing(mode):
    assert mode(df.math.bincount)(df.zeros([0], df.int32)).shape == (0,)
    assert mode(lambda x: df.math.bincount(x, axis=-1))(df.zeros([2, 0], df.int32)).shape == (2, 0)
    np.testing.assert_array_equal(mode(df.math.bincount)(df.constant(3)), [0, 0, 0, 1])


@pytest.mark.parametrize("dtype", [df.int32, df.int64, df.float32, df.float64])
def test_counts_have_the_dtype_that_is_requested(mode, dtype):
    assert mode(lambda x: df.math.bincount(x, dtype=dtype))(df.constant(X)).dtype is dtype
    weights = df.ones([4], df.float64)
    assert mode(lambda x: df.math.bincount(x, weights, dtype=dtype))(df.constant(X)).dtype is df.float64


def test_a_negative_number_is_an_error(mode):
    with pytest.raises(df.errors.InvalidArgumentError, match="0 or more"):
        mode(df.math.bincount)(df.constant([-1, 1]))


def test_the_gradient_of_weighted_counts_goes_to_the_weights(mode):
    def gradient(w):
        with df.GradientTape() as tape:
            tape.watch(w)
            y = df.math.bincount(X, weights=w) ** 2
        return tape.gradient(y, w)

    np.testing.assert_array_equal(mode(gradient)(df.constant([1.0, 2.0, 3.0, 4.0])), [6, 6, 6, 8])


@pytest.mark.parametrize(
    ("values", "ends", "nbins", "expected"),
    [
        ([-1.0, 0.0, 1.5, 2.0, 5.0, 15.0], [0.0, 5.0], 5, [2, 1, 1, 0, 2]),
        ([1, 2, 3, 7], [0, 5], 5, [0, 1, 1, 1, 1]),
        ([[1.0, 2.0], [3.0, 7.0]], [0.0, 5.0], 2, [2, 2]),
        ([np.inf, -np.inf], [0.0, 5.0], 2, [1, 1]),
    ],
)
def test_a_histogram_counts_the_values_in_its_bins(mode, values, ends, nbins, expected):
    x = df.constant(values)
    result = mode(lambda x: df.histogram_fixed_width(x, ends, nbins))(x)
    np.testing.assert_array_equal(result, expected)
    bins = mode(lambda x: df.histogram_fixed_width_bins(x, ends, nbins))(x)
    assert bins.shape == x.shape
    np.testing.assert_array_equal(np.bincount(bins.numpy().reshape(-1), minlength=nbins), expected)


@pytest.mark.parametrize(
    ("values", "ends"), [([np.nan], [0.0, 5.0]), ([1.0], [5.0, 0.0]), ([1.0], [5.0, 5.0])]
)
def test_no_histogram_of_nan_or_of_no_interval(mode, values, ends):
    with pytest.raises(df.errors.InvalidArgumentError, match="the lower one first"):
        mode(lambda x, ends: df.histogram_fixed_width(x, ends))(df.constant(values), df.constant(ends))


def test_the_number_of_parts_may_be_a_tensor(mode):
    result = mode(lambda x, n: df.histogram_fixed_width(x, [0.0, 5.0], n))(
        df.constant([1.0, 4.0]), df.constant(2)
    )
    np.testing.assert_array_equal(result, [1, 1])


@pytest.mark.parametrize(
    ("labels", "predictions", "options", "expected"),
    [
        ([1, 2, 0], [2, 2, 0], {}, [[1, 0, 0], [0, 0, 1], [0, 0, 1]]),
        ([1, 0], [0, 0], {"num_classes": 3}, [[1, 0, 0], [1, 0, 0], [0, 0, 0]]),
        ([1, 0], [0, 0], {"weights": [1.5, 2.0], "dtype": df.float32}, [[2, 0], [1.5, 0]]),
        ([1, 0], [0, 0], {"weights": [1.5, 2.0]}, [[2, 0], [1, 0]]),
        ([[1], [0]], [0, 0], {}, [[1, 0], [1, 0]]),
        ([1, 0], [[0], [0]], {}, [[1, 0], [1, 0]]),
    ],
)
def test_labels_are_broadcast_with_predictions(mode, labels, predictions, options, expected):
    call = mode(lambda x, y: df.math.confusion_matrix(x, y, **options))
    np.testing.assert_array_equal(call(df.constant(labels), df.constant(predictions)), expected)


@pytest.mark.parametrize("labels", [[-1, 2], [3, 2]])
def test_a_label_that_is_no_class_is_an_error(mode, labels):
    with pytest.raises(df.errors.InvalidArgumentError, match=r"below num_classes \(3\)"):
        mode(lambda x: df.math.confusion_matrix(x, [0, 1], num_classes=3))(df.constant(labels))


@pytest.mark.parametrize(("x", "part"), [([0, 1, 0, 3], 0.5), ([], np.nan), ([0.0, np.nan, -0.0, 1.0], 0.5)])
def test_zero_fraction(mode, x, part):
    result = mode(df.math.zero_fraction)(df.constant(x))
    np.testing.assert_array_equal(result, np.float32(part), strict=True)
    assert df.nn.zero_fraction is df.math.zero_fraction
