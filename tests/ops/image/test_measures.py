"""Image measures: PSNR, SSIM, total variation and Sobel edges."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.ndimage

import dualflow as df

image = df.image
A = np.random.default_rng(0).uniform(size=(2, 20, 24, 3)).astype(np.float32)
B = np.random.default_rng(1).uniform(size=(2, 20, 24, 3)).astype(np.float32)


def test_signal_to_noise(mode):
    result = mode(lambda a, b: image.psnr(a, b, 1.0))(A, B)
    np.testing.assert_allclose(result, -10 * np.log10(((A - B) ** 2).mean((1, 2, 3))), rtol=1e-5)
    assert np.isinf(image.psnr(A, A, 1.0)).all()


def test_signal_to_noise_of_integers():
    a, b = (A * 255).astype(np.uint8), (B * 255).astype(np.uint8)
    error = ((a.astype(float) - b) ** 2).mean((1, 2, 3))
    np.testing.assert_allclose(image.psnr(a, b, 255), 20 * np.log10(255) - 10 * np.log10(error), rtol=1e-5)


def similarity(a, b):
    """The definition, with SciPy's Gaussian filter."""

    def mean(x):
        return scipy.ndimage.gaussian_filter(x, (0, 1.5, 1.5, 0), truncate=5 / 1.5)[:, 5:-5, 5:-5]

    a, b = a.astype(float), b.astype(float)
    c1, c2 = 0.01**2, 0.03**2
    ma, mb = mean(a), mean(b)
    va, vb, both = mean(a * a) - ma**2, mean(b * b) - mb**2, mean(a * b) - ma * mb
    return (2 * ma * mb + c1) / (ma**2 + mb**2 + c1) * (2 * both + c2) / (va + vb + c2)


def test_structural_similarity(mode):
    expected = similarity(A, B)
    result = mode(lambda a, b: image.ssim(a, b, 1.0))(A, B)
    np.testing.assert_allclose(result, expected.mean((1, 2, 3)), rtol=1e-4, atol=1e-6)
    windows = image.ssim(A, B, 1.0, return_index_map=True)
    np.testing.assert_allclose(windows, expected.mean(3), rtol=1e-3, atol=1e-5)


def test_equal_images_are_similar_at_every_scale(mode):
    x = df.random.stateless_uniform([2, 48, 50, 1], (1, 2))
    np.testing.assert_allclose(mode(lambda x: image.ssim(x, x, 1.0))(x), 1, rtol=1e-6)
    scales = mode(lambda x: image.ssim_multiscale(x, x, 1.0, (0.2, 0.5, 0.3)))(x)
    np.testing.assert_allclose(scales, 1, rtol=1e-6)


def test_similarities_are_tensorflows(mode):
    """Values of TensorFlow 2.21."""
    x, y = (df.random.stateless_uniform([40, 40, 1], seed) for seed in ((1, 2), (3, 4)))
    np.testing.assert_allclose(mode(lambda x, y: image.ssim(x, y, 1.0))(x, y), -0.012833079, rtol=1e-4)
    mixed = y * 0.3 + x * 0.7
    result = mode(lambda x, y: image.ssim_multiscale(x, y, 1.0, (0.4, 0.6)))(x, mixed)
    np.testing.assert_allclose(result, 0.87879443, rtol=1e-5)


def test_similarity_is_machine_code():
    spec = df.TensorSpec([2, 20, 24, 3])
    concrete = df.function(lambda a, b: image.ssim(a, b, 1.0)).get_concrete_function(spec, spec)
    assert {part.kind for part in concrete.parts} == {"native"}


def test_variation_and_gradients(mode):
    down, right = np.diff(A, axis=1), np.diff(A, axis=2)
    result = mode(image.total_variation)(A)
    np.testing.assert_allclose(result, abs(down).sum((1, 2, 3)) + abs(right).sum((1, 2, 3)), rtol=1e-5)
    dy, dx = mode(image.image_gradients)(A)
    np.testing.assert_array_equal(dy, np.pad(down, [(0, 0), (0, 1), (0, 0), (0, 0)]))
    np.testing.assert_array_equal(dx, np.pad(right, [(0, 0), (0, 0), (0, 1), (0, 0)]))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_edges_are_scipys(mode, dtype):
    result = mode(image.sobel_edges)(A.astype(dtype))
    for i, axis in enumerate((1, 2)):
        other = 3 - axis
        smooth = scipy.ndimage.correlate1d(A.astype(float), [1, 2, 1], other, mode="mirror")
        expected = scipy.ndimage.correlate1d(smooth, [-1, 0, 1], axis, mode="mirror")
        np.testing.assert_allclose(result[..., i], expected, atol=1e-5)
