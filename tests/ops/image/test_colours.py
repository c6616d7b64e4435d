"""Dtype and colour conversions of images: TensorFlow's values, and their inverses."""

from __future__ import annotations

import colorsys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dualflow as df

image = df.image
PIXELS = np.array([[[10, 200, 30], [0, 0, 0]], [[255, 128, 64], [7, 7, 7]]], np.uint8)

# Values of TensorFlow 2.21
ADJUSTED = {
    "hue": (lambda x: image.adjust_hue(x, 0.3), "10 28 200 0 0 0 64 255 89 7 7 7"),
    "saturation": (lambda x: image.adjust_saturation(x, 0.5), "105 200 115 0 0 0 255 191 159 7 7 7"),
    "contrast": (lambda x: image.adjust_contrast(x, 1.5), "0 255 32 0 0 0 255 150 83 0 0 0"),
    "brightness": (lambda x: image.adjust_brightness(x, 0.2), "61 251 81 51 51 51 255 179 115 58 58 58"),
    "gamma": (lambda x: image.adjust_gamma(x, 2.0), "0 157 3 0 0 0 255 64 16 0 0 0"),
}


@pytest.mark.parametrize("name", ADJUSTED)
def test_adjusted_pixels_are_tensorflows(mode, name):
    change, expected = ADJUSTED[name]
    result = mode(change)(PIXELS)
    assert result.dtype is df.uint8
    assert result.numpy().ravel().tolist() == [int(n) for n in expected.split()]


@pytest.mark.parametrize("name", ADJUSTED)
def test_floats_stay_floats_of_their_dtype(name):
    for dtype in (df.float16, df.float32, df.float64):
        assert ADJUSTED[name][0](df.cast(PIXELS, dtype) / 255).dtype is dtype


INTEGERS = ["uint8", "int8", "uint16", "int16", "int32", "int64"]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_the_ends_of_integers_are_zero_and_one(mode, dtype):
    most = np.iinfo(dtype).max
    result = mode(lambda x: image.convert_image_dtype(x, df.float64))(np.array([0, most], dtype))
    np.testing.assert_allclose(result, [0, 1])
    back = mode(lambda x: image.convert_image_dtype(x, dtype))(np.array([-9.0, 0, 1, 9]))
    assert back.numpy().tolist() == [np.iinfo(dtype).min, 0, most, most]


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16"])
@pytest.mark.parametrize("between", ["float32", "float64", "int32", "int64"])
def test_wider_dtypes_and_back_change_nothing(dtype, between):
    x = np.arange(np.iinfo(dtype).max + 1).astype(dtype)
    wide = image.convert_image_dtype(x, between)
    np.testing.assert_array_equal(image.convert_image_dtype(wide, dtype), x)


def test_half_precision_reaches_the_ends_of_wide_integers():
    result = image.convert_image_dtype(df.constant([0.0, 1.0], df.float16), df.uint16)
    assert result.numpy().tolist() == [0, 65535]


@given(st.tuples(*[st.integers(0, 255).map(lambda n: n / 255)] * 3))
def test_hue_saturation_and_value(colour):
    result = image.rgb_to_hsv(df.constant([colour], df.float64))
    np.testing.assert_allclose(result[0], colorsys.rgb_to_hsv(*colour), atol=1e-9)
    np.testing.assert_allclose(image.hsv_to_rgb(result)[0], colour, atol=1e-9)


@pytest.mark.parametrize("space", ["yiq", "yuv"])
def test_other_spaces_and_back(mode, space):
    x = np.random.default_rng(0).uniform(size=(2, 3, 3)).astype(np.float32)
    there, back = getattr(image, f"rgb_to_{space}"), getattr(image, f"{space}_to_rgb")
    result = mode(there)(x)
    np.testing.assert_allclose(result[..., 0], x @ np.array([0.299, 0.587, 0.114], np.float32), rtol=1e-5)
    np.testing.assert_allclose(mode(back)(result), x, atol=1e-4)


def test_grey(mode):
    grey = mode(image.rgb_to_grayscale)(PIXELS)
    assert (grey.dtype, grey.shape.as_list()) == (df.uint8, [2, 2, 1])
    np.testing.assert_allclose(grey[..., 0], PIXELS @ np.array([0.2989, 0.587, 0.114]), atol=1)
    np.testing.assert_array_equal(mode(image.grayscale_to_rgb)(grey), np.repeat(grey, 3, -1))


def test_standardized_images_have_mean_zero_and_deviation_one(mode):
    x = np.random.default_rng(0).integers(0, 255, (2, 9, 8, 3)).astype(np.uint8)
    result = mode(image.per_image_standardization)(x)
    np.testing.assert_allclose(result.numpy().mean((1, 2, 3)), 0, atol=1e-5)
    np.testing.assert_allclose(result.numpy().std((1, 2, 3)), 1, rtol=1e-4)


def test_gradients_flow_through_colours(mode):
    """Turning the hue keeps the largest channel, so the gradient of the value is its place."""

    def gradient(x):
        with df.GradientTape() as tape:
            tape.watch(x)
            value = df.reduce_max(image.adjust_hue(x, 0.2), -1)
        return tape.gradient(value, x)

    slope = mode(gradient)(df.constant([[0.2, 0.9, 0.4]]))
    np.testing.assert_allclose(slope, [[0, 1, 0]], atol=1e-5)
