"""Patches, and boxes that are cut out and resized."""

from __future__ import annotations

import numpy as np
import pytest

import dualflow as df

image = df.image
X = np.random.default_rng(0).uniform(size=(2, 7, 8, 3)).astype(np.float32)


@pytest.mark.parametrize("padding", ["VALID", "SAME"])
@pytest.mark.parametrize(
    ("size", "step", "rate"), [((2, 3), (2, 2), (1, 1)), ((3, 3), (1, 2), (2, 1)), ((1, 1), (3, 3), (1, 1))]
)
def test_patches_are_rows_of_pixels(mode, size, step, rate, padding):
    # SAME: ceil(size / step) windows, so (windows - 1) * step + window_extent elements, the odd one after
    window_extent = [(k - 1) * r + 1 for k, r in zip(size, rate, strict=True)]
    sizes, padded = X.shape[1:3], X
    if padding == "SAME":
        extra = [
            max(0, (-(-n // s) - 1) * s + e - n) for n, s, e in zip(sizes, step, window_extent, strict=True)
        ]
        padded = np.pad(X, [(0, 0), *[(b // 2, b - b // 2) for b in extra], (0, 0)])
    rows = [
        [
            padded[:, y : y + window_extent[0] : rate[0], x : x + window_extent[1] : rate[1]].reshape(2, -1)
            for x in range(0, padded.shape[2] - window_extent[1] + 1, step[1])
        ]
        for y in range(0, padded.shape[1] - window_extent[0] + 1, step[0])
    ]
    expected = np.array(rows).transpose(2, 0, 1, 3)
    result = mode(lambda x: image.extract_patches(x, [1, *size, 1], [1, *step, 1], [1, *rate, 1], padding))(X)
    np.testing.assert_array_equal(result, expected)


def test_the_whole_image_as_a_box_is_itself(mode):
    whole = [[0.0, 0.0, 1.0, 1.0], [1.0, 1.0, 0.0, 0.0]]
    result = mode(lambda x: image.crop_and_resize(x, whole, [1, 0], [7, 8]))(X)
    np.testing.assert_allclose(result[0], X[1], atol=1e-6)
    np.testing.assert_allclose(result[1], X[0, ::-1, ::-1], atol=1e-5)


@pytest.mark.parametrize("method", ["bilinear", "nearest"])
def test_pixels_outside_of_the_image_have_the_extrapolation_value(mode, method):
    box = [[-0.5, 0.0, 1.0, 1.0]]
    result = mode(lambda x: image.crop_and_resize(x, box, [0], [10, 8], method, 7.0))(X)
    np.testing.assert_array_equal(result[0, :3], np.full((3, 8, 3), 7.0))
    np.testing.assert_allclose(result[0, -1], X[0, -1], atol=1e-5)


def test_boxes_are_interpolated_between_pixels():
    ramp = np.arange(5.0).reshape(1, 5, 1, 1) + np.zeros((1, 5, 5, 1))
    result = image.crop_and_resize(ramp, [[0.1, 0.3, 0.6, 0.3]], [0], [3, 1])
    np.testing.assert_allclose(result.numpy().ravel(), [0.4, 1.4, 2.4], atol=1e-6)


def test_gradients_flow_to_the_image_and_the_boxes(mode):
    def gradients(x, boxes):
        with df.GradientTape() as tape:
            tape.watch([x, boxes])
            total = df.reduce_sum(image.crop_and_resize(x, boxes, [0], [2, 2]))
        return tape.gradient(total, [x, boxes])

    ramp = np.arange(5.0).reshape(1, 5, 1, 1) + np.zeros((1, 5, 5, 1))
    to_image, to_boxes = mode(gradients)(df.constant(ramp, df.float32), df.constant([[0.1, 0.2, 0.6, 0.7]]))
    assert float(df.reduce_sum(to_image)) == pytest.approx(4)
    np.testing.assert_allclose(to_boxes, [[8, 0, 8, 0]], atol=1e-5)
