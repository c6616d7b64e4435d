"""erf, erfc and the normal distribution against the C library, in units of the last place."""

import math
from fractions import Fraction

import numpy as np
import pytest

from dualflow.ops.error_function import erf, erfc, ndtr

SPREAD = np.concatenate(
    [
        np.linspace(-7, 7, 5001),
        np.random.default_rng(0).uniform(-2, 2, 5000),
        np.geomspace(1e-300, 1.0, 300),
        [0.84375, 1.25, 1 / 0.35, 6.0, 26.5, 27.3, 30.0],
    ]
)


@pytest.mark.parametrize(("ours", "theirs", "places"), [(erf, math.erf, 2), (erfc, math.erfc, 4)])
def test_within_a_few_units_of_the_last_place(ours, theirs, places):
    expected = np.array([theirs(x) for x in SPREAD])
    error = np.abs(ours(SPREAD) - expected) / np.spacing(np.maximum(np.abs(expected), 1e-300))
    assert error.max() <= places


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_narrow_floats_are_rounded_once(dtype):
    x = SPREAD.astype(dtype)
    np.testing.assert_array_equal(erf(x), np.array([math.erf(v) for v in x]).astype(dtype))
    below = np.array([math.erfc(float(v) * -math.sqrt(0.5)) / 2 for v in x])
    np.testing.assert_array_equal(ndtr(x), below.astype(dtype))


def test_limits_signs_and_nan():
    x = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0])
    np.testing.assert_array_equal(erf(x), [1.0, -1.0, np.nan, 0.0, -0.0])
    np.testing.assert_array_equal(np.signbit(erf(x)), [False, True, False, False, True])
    np.testing.assert_array_equal(erfc(x), [0.0, 2.0, np.nan, 1.0, 1.0])
    np.testing.assert_array_equal(ndtr(x), [1.0, 0.0, np.nan, 0.5, 0.5])


def test_the_normal_distribution_keeps_its_places_far_out():
    root = math.sqrt(2)
    shares = np.array([1.0, 5.0, 9.0, 20.0, 26.0])  # of which x, a multiple of sqrt(2), is not exact
    x = -root * shares
    remainder = np.array(
        [float(Fraction(v) ** 2 / 2 - Fraction(s) ** 2) for v, s in zip(x, shares, strict=True)]
    )
    expected = np.array([math.erfc(s) / 2 for s in shares]) * np.exp(-remainder)
    np.testing.assert_array_max_ulp(ndtr(x), expected, 4)
