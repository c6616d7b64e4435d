"""Running products and sums of exponentials against plain loops, and their gradients at zeros."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import dualflow as df

WAYS = list(itertools.product((False, True), (False, True)))


def running(function, start, x, exclusive, reverse):
    """The running results along the last axis, one element after another."""
    rows = x[..., ::-1] if reverse else x
    out, held = np.empty_like(rows), np.full(rows.shape[:-1], start, rows.dtype)
    for i in range(rows.shape[-1]):
        joined = function(held, rows[..., i])
        out[..., i] = held if exclusive else joined
        held = joined
    return out[..., ::-1] if reverse else out


@pytest.mark.parametrize(("exclusive", "reverse"), WAYS)
def test_running_products(mode, exclusive, reverse):
    x = np.random.default_rng(0).normal(size=(3, 8))
    expected = running(np.multiply, 1, x, exclusive, reverse)
    for axis, turn in ((-1, lambda x: x), (0, np.transpose)):
        call = mode(lambda x, axis=axis: df.math.cumprod(x, axis, exclusive, reverse))
        np.testing.assert_allclose(call(df.constant(turn(x))), turn(expected), rtol=1e-14)


@pytest.mark.parametrize(("exclusive", "reverse"), WAYS)
def test_running_sums_of_exponentials(mode, exclusive, reverse):
    x = np.random.default_rng(0).normal(size=(3, 8)) * 50
    expected = running(np.logaddexp, -math.inf, x, exclusive, reverse)
    call = mode(lambda x: df.math.cumulative_logsumexp(x, 1, exclusive, reverse))
    np.testing.assert_allclose(call(df.constant(x)), expected, rtol=1e-14)


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        ([-math.inf, -math.inf, 1.0], [-math.inf, -math.inf, 1]),
        ([math.inf, 1.0, math.inf], [math.inf] * 3),
        ([], []),
    ],
)
def test_sums_of_exponentials_at_infinity(mode, x, expected):
    np.testing.assert_array_equal(mode(df.math.cumulative_logsumexp)(df.constant(x)), expected)


@pytest.mark.parametrize("dtype", [df.int8, df.uint16, df.int64, df.float16, df.complex64])
def test_running_products_keep_the_dtype(mode, dtype):
    result = mode(df.math.cumprod)(df.constant([2, 3, 4], dtype))
    np.testing.assert_array_equal(result, np.array([2, 6, 24], dtype.dtype), strict=True)


def slopes(function, x):
    """Each element's gradient of the weighted sum of the results, by differences in float64."""
    weights, result = np.cos(np.arange(len(x)) + 1.0), np.empty(len(x))
    for i in range(len(x)):
        step = np.zeros(len(x))
        step[i] = 1e-6
        result[i] = np.sum(weights * (function(x + step) - function(x - step))) / 2e-6
    return result


@pytest.mark.parametrize(("exclusive", "reverse"), WAYS)
@pytest.mark.parametrize("x", [[1.0, 2.0, 3.0, 4.0], [1.0, 0.0, 3.0, 4.0], [0.0, 2.0, 0.0, -1.0], [5.0]])
def test_gradients_of_running_products_are_right_at_zeros(mode, x, exclusive, reverse):
    def gradient(x):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = df.math.cumprod(x, 0, exclusive, reverse)
        return tape.gradient(y, x, output_gradients=df.cos(df.range(len(x), dtype=df.float64) + 1))

    x = np.array(x)
    expected = slopes(lambda x: running(np.multiply, 1, x, exclusive, reverse), x)
    np.testing.assert_allclose(mode(gradient)(df.constant(x)), expected, atol=1e-7)


@pytest.mark.parametrize("exclusive", [False, True])
def test_gradients_of_sums_of_exponentials_are_0_at_minus_infinity(mode, exclusive):
    def gradient(x):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = df.math.cumulative_logsumexp(x, exclusive=exclusive, reverse=True)
        return tape.gradient(y, x)

    slope = mode(gradient)(df.constant([-math.inf, 2.0, 3.0])).numpy()
    expected = [0, 2 / (1 + math.e), 1 + 2 * math.e / (1 + math.e)]
    if exclusive:
        expected = [0, 1 / (1 + math.e), 1 + math.e / (1 + math.e)]
    np.testing.assert_allclose(slope, expected, rtol=1e-6)
