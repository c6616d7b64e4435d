"""Short-time transforms and mel spectra."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.signal

import dualflow as df

signal = df.signal
X = np.random.default_rng(0).standard_normal((2, 1000)).astype(np.float32)


def test_short_time_transforms_are_scipys(mode):
    """SciPy counts time from the middle of a window, which changes phases only."""
    result = mode(lambda x: signal.stft(x, 256, 128))(X)
    window = scipy.signal.windows.hann(256, sym=False)
    expected = scipy.signal.ShortTimeFFT(window, 128, fs=1, mfft=256).stft(X, p0=1, p1=7)
    assert result.dtype is df.complex64
    np.testing.assert_allclose(abs(result), abs(np.swapaxes(expected, -1, -2)), rtol=1e-4, atol=1e-4)


def test_frames_windows_and_transforms_together():
    result = signal.stft(X, 100, 30, 128, signal.hamming_window, pad_end=True)
    frames = np.stack([np.pad(X, [(0, 0), (0, 100)])[:, s : s + 100] for s in range(0, 1000, 30)], 1)
    expected = np.fft.rfft(frames * signal.hamming_window(100).numpy(), 128)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)


def test_the_length_of_transforms_is_the_least_power_of_two_that_holds_a_frame():
    for length, bins in ((1, 1), (2, 2), (3, 3), (256, 129), (257, 257)):
        assert signal.stft(df.ones([600]), length, 50).shape[-1] == bins


@pytest.mark.parametrize("window", [signal.hann_window, signal.hamming_window, signal.kaiser_window])
@pytest.mark.parametrize(("length", "step", "size"), [(400, 160, None), (128, 64, 128), (100, 25, 200)])
def test_the_inverse_restores_the_signal(mode, window, length, step, size):
    def there_and_back(x):
        spectra = signal.stft(x, length, step, size, window)
        back = signal.inverse_stft_window_fn(step, window)
        return signal.inverse_stft(spectra, length, step, size, back)

    result = mode(there_and_back)(X)
    end = result.shape[-1]
    np.testing.assert_allclose(result[:, length:-length], X[:, length : end - length], atol=1e-4)


def test_gradients_flow_through_spectra(mode):
    """By Parseval, the gradient of the energy of a spectrum of all bins is that of the windowed signal."""

    def gradient(x):
        with df.GradientTape() as tape:
            tape.watch(x)
            spectra = signal.stft(x, 8, 8, 8, None)
            power = df.square(abs(spectra)) * [1.0, 2.0, 2.0, 2.0, 1.0]
            energy = df.reduce_sum(power) / 8
        return tape.gradient(energy, x)

    x = df.constant(X[0, :32])
    np.testing.assert_allclose(mode(gradient)(x), 2 * X[0, :32], rtol=1e-4, atol=1e-4)


def test_mel_bands_are_triangles_of_height_one():
    weights = signal.linear_to_mel_weight_matrix(20, 4097, 8000, dtype=df.float64).numpy()
    assert weights.shape == (4097, 20)
    assert (weights[0] == 0).all()
    assert (abs(weights.max(0) - 1) < 0.02).all()
    hertz = np.linspace(0, 4000, 4097)
    edges = 700 * np.expm1(np.linspace(np.log1p(125 / 700), np.log1p(3800 / 700), 22))
    for band, (low, middle, high) in enumerate(zip(edges, edges[1:], edges[2:], strict=False)):
        inside = (hertz > low) & (hertz < high)
        np.testing.assert_array_equal(weights[:, band] > 0, inside)
        assert abs(hertz[weights[:, band].argmax()] - middle) < 2


def test_cepstra_are_cosine_transforms(mode):
    spectra = X[:, :20]
    result = mode(signal.mfccs_from_log_mel_spectrograms)(spectra)
    np.testing.assert_allclose(result, scipy.fft.dct(spectra) / np.sqrt(40), rtol=1e-4, atol=1e-5)


def test_the_inverse_takes_a_window_and_a_dynamic_number_of_frames():
    def restored(x):
        return signal.inverse_stft(signal.stft(x, 8, 4), 8, 4, window_fn=signal.inverse_stft_window_fn(4))

    compiled = df.function(restored, input_signature=[df.TensorSpec([2, None])])
    for n in (40, 8, 100):
        np.testing.assert_allclose(compiled(X[:, :n]), restored(X[:, :n]), rtol=1e-5, atol=1e-6)
