"""Convolutions and pooling against their definition, loop by loop."""

import itertools

import numpy as np
import pytest

import dualflow as df

SHAPES = [((2, 7, 6, 4), (3, 2, 4, 5)), ((1, 5, 5, 4), (1, 1, 4, 2)), ((2, 9, 4, 3), (3, 3, 3, 2))]


def padded(x, size, strides, dilations, padding, value=0.0):
    """The input with what TensorFlow's "SAME" puts around it: the odd element goes behind."""
    if padding == "VALID":
        return x
    pairs = [(0, 0)]
    for length, k, s, d in zip(x.shape[1:-1], size, strides, dilations, strict=True):
        total = max(0, (-(-length // s) - 1) * s + (k - 1) * d + 1 - length)
        pairs.append((total // 2, total - total // 2))
    return np.pad(x, [*pairs, (0, 0)], constant_values=value)


def windows(x, size, strides, dilations):
    """``(position, window)`` for each window, the window of shape (batch, *size, channels)."""
    counts = [
        (n - (k - 1) * d - 1) // s + 1
        for n, k, s, d in zip(x.shape[1:-1], size, strides, dilations, strict=True)
    ]
    for position in itertools.product(*map(range, counts)):
        place = [
            slice(p * s, p * s + (k - 1) * d + 1, d)
            for p, k, s, d in zip(position, size, strides, dilations, strict=True)
        ]
        yield counts, position, x[(slice(None), *place)]


@pytest.mark.parametrize("padding", ["VALID", "SAME"])
@pytest.mark.parametrize(("strides", "dilations"), [((1, 1), (1, 1)), ((2, 3), (1, 1)), ((1, 1), (2, 2))])
@pytest.mark.parametrize(("x", "w"), SHAPES)
def test_conv2d_is_a_sum_of_products_over_each_window(x, w, strides, dilations, padding):
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=x), rng.normal(size=w)
    found = df.nn.conv2d(x, w, strides=strides, padding=padding, dilations=dilations).numpy()
    wide = padded(x, w.shape[:2], strides, dilations, padding)
    for _, (i, j), window in windows(wide, w.shape[:2], strides, dilations):
        np.testing.assert_allclose(
            found[:, i, j], np.einsum("nhwc,hwcf->nf", window, w), rtol=1e-12, atol=1e-12
        )


def test_groups_convolve_their_own_channels():
    rng = np.random.default_rng(1)
    x, w = rng.normal(size=(2, 5, 5, 6)), rng.normal(size=(3, 3, 2, 9))
    found = df.nn.convolution(x, w)
    parts = [df.nn.conv2d(x[..., 2 * g : 2 * g + 2], w[..., 3 * g : 3 * g + 3]) for g in range(3)]
    np.testing.assert_allclose(found, df.concat(parts, -1), rtol=1e-12)


def test_a_depthwise_convolution_is_one_for_each_channel():
    rng = np.random.default_rng(2)
    x, w = rng.normal(size=(2, 5, 5, 3)), rng.normal(size=(3, 3, 3, 2))
    found = df.nn.depthwise_conv2d(x, w, strides=[1, 1, 1, 1], padding="SAME")
    parts = [df.nn.conv2d(x[..., c : c + 1], w[:, :, c : c + 1], padding="SAME") for c in range(3)]
    np.testing.assert_allclose(found, df.concat(parts, -1), rtol=1e-12)


@pytest.mark.parametrize("padding", ["VALID", "SAME"])
def test_conv2d_transpose_is_the_gradient_of_conv2d(padding):
    rng = np.random.default_rng(3)
    x, w = df.constant(rng.normal(size=(2, 7, 6, 3))), rng.normal(size=(3, 2, 3, 4))
    with df.GradientTape() as tape:
        tape.watch(x)
        y = df.nn.conv2d(x, w, strides=2, padding=padding)
    g = rng.normal(size=y.shape)
    expected = tape.gradient(y, x, output_gradients=df.constant(g))
    found = df.nn.conv2d_transpose(g, w, output_shape=x.shape, strides=2, padding=padding)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_channels_first_is_the_same_with_the_axes_moved():
    rng = np.random.default_rng(4)
    x, w = rng.normal(size=(2, 3, 5, 5)), rng.normal(size=(3, 3, 3, 4))
    found = df.nn.conv2d(x, w, padding="SAME", data_format="NCHW")
    expected = df.nn.conv2d(x.transpose(0, 2, 3, 1), w, padding="SAME").numpy().transpose(0, 3, 1, 2)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("padding", ["VALID", "SAME"])
@pytest.mark.parametrize(("ksize", "strides"), [((2, 2), (2, 2)), ((3, 2), (1, 2))])
def test_pooling_takes_the_maximum_or_mean_of_each_window_without_the_padding(ksize, strides, padding):
    x = np.random.default_rng(5).normal(size=(2, 7, 5, 3))
    highest = df.nn.max_pool2d(x, ksize, strides, padding).numpy()
    mean = df.nn.avg_pool2d(x, ksize, strides, padding).numpy()
    wide = padded(x, ksize, strides, (1, 1), padding, np.nan)
    for _, (i, j), window in windows(wide, ksize, strides, (1, 1)):
        np.testing.assert_allclose(highest[:, i, j], np.nanmax(window, axis=(1, 2)))
        np.testing.assert_allclose(mean[:, i, j], np.nanmean(window, axis=(1, 2)))


def test_one_and_three_axes_convolve_too():
    rng = np.random.default_rng(6)
    line, cube = rng.normal(size=(2, 8, 3)), rng.normal(size=(1, 4, 4, 4, 2))
    assert df.nn.conv1d(line, rng.normal(size=(3, 3, 5)), stride=2, padding="SAME").shape == (2, 4, 5)
    assert df.nn.conv3d(cube, rng.normal(size=(2, 2, 2, 2, 3))).shape == (1, 3, 3, 3, 3)
    assert df.nn.max_pool1d(line, 2).shape == (2, 4, 3)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: df.nn.conv2d(df.ones([1, 4, 4, 3]), df.ones([3, 3, 2, 5])), "channels"),
        (lambda: df.nn.conv2d(df.ones([4, 4, 3]), df.ones([3, 3, 3, 5])), "batch"),
        (lambda: df.nn.conv2d(df.ones([1, 4, 4, 3]), df.ones([3, 3, 3, 5]), padding="FULL"), "SAME"),
        (lambda: df.nn.conv2d(df.ones([1, 4, 4, 3]), df.ones([3, 3, 3, 5]), strides=0), "positive"),
        (lambda: df.nn.max_pool2d(df.ones([1, 4, 4, 3]), 2, data_format="HWCN"), "data_format"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_remedy(call, words):
    with pytest.raises(df.errors.InvalidArgumentError, match=words):
        call()


def test_strides_and_dilations_are_1_by_default():
    x, w = df.ones([1, 4, 1]), df.ones([2, 1, 1])
    expected = df.nn.convolution(x, w, 1, "SAME", None, 1)
    np.testing.assert_array_equal(df.nn.convolution(x, w, None, "SAME", None, None), expected)
