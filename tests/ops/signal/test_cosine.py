"""Cosine transforms: SciPy's values, their inverses, and the reconstruction of overlapping frames."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.fft
from hypothesis import given
from hypothesis import strategies as st

import dualflow as df

signal = df.signal
X = np.random.default_rng(0).standard_normal((2, 5))
KINDS = [(1, None), *[(kind, norm) for kind in (2, 3, 4) for norm in (None, "ortho")]]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("kind", "norm"), KINDS)
def test_transforms_are_scipys(mode, kind, norm, dtype):
    tolerance = 1e-5 if dtype == "float32" else 1e-12
    for n in (None, 3, 8):
        result = mode(lambda x, n=n: signal.dct(x, kind, n, norm=norm))(X.astype(dtype))
        assert result.dtype == dtype
        np.testing.assert_allclose(
            result, scipy.fft.dct(X, kind, n, norm=norm), rtol=tolerance, atol=tolerance
        )


@given(st.sampled_from(KINDS), st.integers(2, 9), st.integers(0, 99))
def test_inverses(kind_and_norm, samples, seed):
    kind, norm = kind_and_norm
    x = np.random.default_rng(seed).standard_normal(samples)
    factor = 1 if norm else 2 * (samples - 1 if kind == 1 else samples)
    result = signal.idct(signal.dct(x, kind, norm=norm), kind, norm=norm)
    np.testing.assert_allclose(result / factor, x, atol=1e-12)


@pytest.mark.parametrize("window", [signal.vorbis_window, signal.kaiser_bessel_derived_window, None])
@pytest.mark.parametrize("norm", [None, "ortho"])
def test_overlapping_frames_restore_the_signal(mode, window, norm):
    x = np.random.default_rng(1).standard_normal((2, 40)).astype(np.float32)

    def there_and_back(x):
        return signal.inverse_mdct(signal.mdct(x, 16, window, norm=norm), window, norm=norm)

    np.testing.assert_allclose(mode(there_and_back)(x)[:, 8:-8], x[:, 8:-8], atol=1e-5)


def test_the_modified_transform_is_its_definition():
    frames, half = np.stack([np.arange(8.0), np.arange(4.0, 12.0)]), 4
    k, n = np.arange(half)[:, None], np.arange(2 * half)
    terms = np.cos(np.pi / half * (n + 0.5 + half / 2) * (k + 0.5)) / np.sqrt(2)
    result = signal.mdct(np.arange(12.0), 8, None)
    np.testing.assert_allclose(result, 2 * frames @ terms.T, rtol=1e-10)


def test_a_gradient_is_the_transposed_transform(mode):
    def gradient(x):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = signal.dct(x, 2)
        return tape.gradient(y, x, output_gradients=df.constant(X[0]))

    matrix = scipy.fft.dct(np.eye(5), axis=0)
    np.testing.assert_allclose(mode(gradient)(df.constant(X[1])), matrix.T @ X[0], rtol=1e-10)
