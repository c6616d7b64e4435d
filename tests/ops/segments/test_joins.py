"""Scatter-max and scatter-min, and that many updates equal their sequential application."""

from __future__ import annotations

import numpy as np
import pytest

import dualflow as df
from dualflow.ops.row_joins import join_rows


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (df.tensor_scatter_nd_max, [5, 2, 3]),
        (df.tensor_scatter_nd_min, [-4, 2, -1]),
        (df.tensor_scatter_nd_sub, [0, 2, 4]),
    ],
)
def test_several_values_for_one_position(mode, function, expected):
    x, at, updates = df.constant([1, 2, 3]), df.constant([[0], [0], [2]]), df.constant([5, -4, -1])
    np.testing.assert_array_equal(mode(function)(x, at, updates), expected)


def test_positions_may_name_several_axes(mode):
    x, at = df.zeros([2, 3]), df.constant([[0, 1], [1, 2], [0, 1]])
    result = mode(df.tensor_scatter_nd_max)(x, at, df.constant([1.0, 7.0, 4.0]))
    np.testing.assert_array_equal(result, [[0, 4, 0], [0, 0, 7]])


@pytest.mark.parametrize(
    ("x", "updates", "expected"),
    [
        ([1.0, 2, 3], [5.0, 4, -1], ([0, 1, 1], [1, 0, 0])),
        ([5.0, 2, 3], [5.0, 5, -1], ([1 / 3, 1, 1], [1 / 3, 1 / 3, 0])),
    ],
)
def test_ties_share_the_gradient_as_in_tensorflow(mode, x, updates, expected):
    def gradients(x, updates):
        with df.GradientTape() as tape:
            tape.watch([x, updates])
            y = df.tensor_scatter_nd_max(x, [[0], [0], [2]], updates)
        return tape.gradient(y, [x, updates])

    for actual, desired in zip(mode(gradients)(df.constant(x), df.constant(updates)), expected, strict=True):
        np.testing.assert_allclose(actual, desired, rtol=1e-6)


def test_a_position_outside_is_an_error(mode):
    with pytest.raises(df.errors.OutOfRangeError):
        mode(df.tensor_scatter_nd_max)(df.constant([1, 2, 3]), df.constant([[3]]), df.constant([5]))


@pytest.mark.parametrize("ufunc", [np.add, np.multiply, np.maximum])
@pytest.mark.parametrize(
    ("iterations", "size", "count", "length"),
    [
        (1, 3, 7, 1),
        (1, 5, 40000, 3),
        (700, 4, 200, 1),
        (3, 4, 200, 5),
        (2, 3, 2, 70000),
        (0, 3, 4, 2),
        (2, 3, 0, 2),
    ],
)
def test_rows_are_joined_in_order(ufunc, iterations, size, count, length):
    rng = np.random.default_rng(1)
    out = rng.normal(size=(iterations, size, length)).astype(np.float32)
    places = rng.integers(0, size, count)
    rows = (1 + 1e-3 * rng.normal(size=(iterations, count, length))).astype(np.float32)
    expected = out.copy()
    for at, row in zip(places, rows.transpose(1, 0, 2), strict=True):
        expected[:, at] = ufunc(expected[:, at], row)
    join_rows(ufunc, out, places, rows)
    np.testing.assert_array_equal(out, expected)
