"""Window functions: SciPy's, which make the same ones in double precision."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.signal.windows as expected
from hypothesis import given
from hypothesis import strategies as st

import dualflow as df

signal = df.signal


@pytest.mark.parametrize("dtype", [df.float16, df.float32, df.float64])
@pytest.mark.parametrize("length", [1, 2, 16, 400])
@pytest.mark.parametrize("name", ["hann", "hamming"])
def test_raised_cosines(name, length, dtype):
    tolerance = {2: 1e-3, 4: 1e-6, 8: 1e-12}[dtype.size]
    for periodic in (True, False):
        result = getattr(signal, f"{name}_window")(length, periodic, dtype)
        assert result.dtype is dtype
        np.testing.assert_allclose(result, getattr(expected, name)(length, not periodic), atol=tolerance)


def test_a_periodic_window_of_odd_length_is_symmetric_as_in_tensorflow():
    np.testing.assert_allclose(signal.hann_window(5), [0, 0.5, 1, 0.5, 0], atol=1e-7)


@pytest.mark.parametrize("length", [0, 1, 2, 7, 64])
@pytest.mark.parametrize("beta", [0.0, 4.0, 12.0])
def test_kaiser(length, beta):
    actual = signal.kaiser_window(length, beta, df.float64)
    np.testing.assert_allclose(actual, expected.kaiser(length, beta), atol=1e-12)
    if length % 2 == 0:
        actual = signal.kaiser_bessel_derived_window(length, beta, df.float64)
        desired = expected.kaiser_bessel_derived(length, beta) if length else []
        np.testing.assert_allclose(actual, desired, atol=1e-12)


@given(st.integers(1, 40).map(lambda n: 2 * n), st.sampled_from(["vorbis", "kaiser_bessel_derived"]))
def test_squares_half_a_window_apart_add_to_one(length, name):
    window = getattr(signal, f"{name}_window")(length, dtype=df.float64).numpy()
    np.testing.assert_allclose(window[: length // 2] ** 2 + window[length // 2 :] ** 2, 1, atol=1e-12)
