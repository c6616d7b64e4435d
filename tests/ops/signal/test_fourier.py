"""Fourier transforms: NumPy's values, TensorFlow's gradients, in both modes and both precisions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dualflow as df

signal = df.signal
RNG = np.random.default_rng(0)
X = RNG.standard_normal((2, 3, 4, 5))
C = X + 1j * RNG.standard_normal(X.shape)
COMPLEX = {"float32": np.complex64, "float64": np.complex128}
OF_LAST = {1: "", 2: "2d", 3: "3d"}


def close(result, expected, dtype):
    assert result.dtype == dtype
    tolerance = 1e-5 if np.dtype(dtype).itemsize in (4, 8) and dtype != np.float64 else 1e-12
    np.testing.assert_allclose(result, expected, rtol=tolerance, atol=tolerance * np.abs(expected).max())


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("rank", OF_LAST)
@pytest.mark.parametrize("kind", ["fft", "ifft"])
def test_transforms_of_complex_numbers(mode, kind, rank, dtype):
    x = C.astype(COMPLEX[dtype])
    result = mode(getattr(signal, kind + OF_LAST[rank]))(x)
    close(result, getattr(np.fft, f"{kind}n")(C, axes=range(4 - rank, 4)), x.dtype)


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("rank", OF_LAST)
@pytest.mark.parametrize("lengths", [None, [6, 2, 7], [2, 3, 4]])
def test_transforms_of_real_numbers_and_back(mode, rank, dtype, lengths):
    size = None if lengths is None else lengths[-rank:]
    axes = range(4 - rank, 4)
    ahead = mode(lambda x: getattr(signal, f"rfft{OF_LAST[rank]}")(x, size))(X.astype(dtype))
    close(ahead, np.fft.rfftn(X, size, axes), COMPLEX[dtype])
    back = mode(lambda x: getattr(signal, f"irfft{OF_LAST[rank]}")(x, size))(C.astype(COMPLEX[dtype]))
    close(back, np.fft.irfftn(C, size, axes), np.dtype(dtype))


@pytest.mark.parametrize("norm", [None, "backward", "ortho", "forward"])
@pytest.mark.parametrize("kind", ["fft", "ifft", "rfft", "irfft"])
def test_transforms_of_any_axes(kind, norm):
    x = X if kind == "rfft" else C
    for axes, lengths in ((None, None), ([1, 3], None), ([3, 0], [4, 6]), ([-2], [3])):
        result = getattr(signal, f"{kind}nd")(x, lengths, axes, norm)
        over = range(4) if axes is None else axes
        expected = getattr(np.fft, f"{kind}n")(x, lengths, over, norm or "backward")
        np.testing.assert_allclose(result, expected, rtol=1e-10, atol=1e-12)


def test_the_transforms_of_any_axes_are_top_level_names_too():
    assert df.fftnd is signal.fftnd
    assert df.irfftnd is signal.irfftnd


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 12), st.integers(2, 12), st.integers(0, 99))
def test_a_real_transform_and_its_inverse_restore_the_signal(samples, length, seed):
    x = np.random.default_rng(seed).standard_normal((2, samples))
    kept = np.zeros((2, length))
    kept[:, :samples] = x[:, :length]
    result = signal.irfft(signal.rfft(x, [length]), [length])
    np.testing.assert_allclose(result, kept, atol=1e-12)


def test_gradients_are_tensorflows(mode):
    """The gradient of ``real(sum(w * y))``: values of TensorFlow 2.21."""

    def gradient(transform, x, w):
        with df.GradientTape() as tape:
            tape.watch(x)
            loss = df.math.real(df.reduce_sum(df.cast(transform(x), df.complex128) * w))
        return tape.gradient(loss, x)

    x, c = df.constant(np.arange(4.0)), df.constant(np.arange(3) * (1 + 2j))
    w = np.array([1 + 1j, 2 - 1j, 0.5j])
    np.testing.assert_allclose(
        mode(lambda x: gradient(signal.rfft, x, w))(x), [3.0, 0.0, -1.0, 2.0], atol=1e-12
    )
    wide = np.array([1.0, -2.0, 3.0, 0.5])
    np.testing.assert_allclose(
        mode(lambda c: gradient(signal.irfft, c, wide))(c), [0.625, -1 + 1.25j, 1.375], atol=1e-12
    )
    np.testing.assert_allclose(
        mode(lambda c: gradient(signal.fft, c, w))(c),
        np.conj(np.fft.fft(w)),
        atol=1e-12,
    )


@pytest.mark.parametrize("kind", ["rfft", "irfft"])
@pytest.mark.parametrize("shape", [(6, 4), (4, 4), (5, 3, 2)])
def test_the_gradient_along_the_first_axis_is_that_along_the_last_of_the_transpose(kind, shape):
    """Also where the last axis has as many elements as there are coefficients."""
    x = RNG.standard_normal(shape) + (1j * RNG.standard_normal(shape) if kind == "irfft" else 0)
    gradients = []
    for values, axis in ((x, 0), (x.T, -1)):
        source = df.constant(values)
        with df.GradientTape() as tape:
            tape.watch(source)
            y = getattr(df.numpy.fft, kind)(source, axis=axis)
            target = df.reduce_sum(df.abs(y) ** 2)
        gradients.append(tape.gradient(target, source).numpy())
    np.testing.assert_allclose(gradients[0], gradients[1].T, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shape", [(0, 4), (2, 0), (0, 0)])
def test_empty_signals(mode, shape):
    result = mode(signal.rfft)(df.zeros(shape))
    assert result.shape.as_list() == [shape[0], shape[1] // 2 + 1 if shape[1] else 0]
    assert mode(signal.fft)(df.zeros(shape, df.complex64)).shape.as_list() == list(shape)


def test_dynamic_sizes_are_those_of_the_run():
    traced = df.function(lambda x: signal.rfft(x), input_signature=[df.TensorSpec([None, None])])
    for shape in ((2, 5), (3, 8)):
        x = RNG.standard_normal(shape).astype(np.float32)
        np.testing.assert_allclose(traced(x), np.fft.rfft(x), rtol=1e-5, atol=1e-5)


def test_status_reports_who_transforms():
    concrete = df.function(signal.rfft).get_concrete_function(df.TensorSpec([8]))
    assert "Fourier transforms are SciPy's" in str(concrete.status())


@pytest.mark.parametrize("axes", [None, 1, [0, 2], -1])
def test_shifts(mode, axes):
    np.testing.assert_array_equal(mode(lambda x: signal.fftshift(x, axes))(X), np.fft.fftshift(X, axes))
    np.testing.assert_array_equal(mode(lambda x: signal.ifftshift(x, axes))(X), np.fft.ifftshift(X, axes))
