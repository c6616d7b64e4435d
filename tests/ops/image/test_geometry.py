"""Images moved, turned, mirrored, cut and padded: NumPy's own movements."""

from __future__ import annotations

import numpy as np
import pytest

import dualflow as df

image = df.image
X = np.arange(2 * 4 * 5 * 3).reshape(2, 4, 5, 3)

MOVED = {
    "left and right": (image.flip_left_right, lambda x: x[:, :, ::-1]),
    "up and down": (image.flip_up_down, lambda x: x[:, ::-1]),
    "transposed": (image.transpose, lambda x: x.swapaxes(1, 2)),
    **{
        f"{k} rotations": (lambda x, k=k: image.rot90(x, k), lambda x, k=k: np.rot90(x, k, (1, 2)))
        for k in range(-1, 5)
    },
    "cut": (lambda x: image.crop_to_bounding_box(x, 1, 2, 3, 2), lambda x: x[:, 1:4, 2:4]),
    "padded": (
        lambda x: image.pad_to_bounding_box(x, 1, 2, 6, 9),
        lambda x: np.pad(x, [(0, 0), (1, 1), (2, 2), (0, 0)]),
    ),
    "cut and padded": (
        lambda x: image.resize_with_crop_or_pad(x, 3, 8),
        lambda x: np.pad(x[:, :3], [(0, 0), (0, 0), (1, 2), (0, 0)]),
    ),
    "the middle": (lambda x: image.central_crop(x, 0.5), lambda x: x[:, 1:3, 1:4]),
}


@pytest.mark.parametrize("case", MOVED)
def test_batches_and_single_images(mode, case):
    move, expected = MOVED[case]
    np.testing.assert_array_equal(mode(move)(X), expected(X))
    np.testing.assert_array_equal(mode(move)(X[0]), expected(X[:1])[0])


def test_batches_of_dynamic_size():
    turned = df.function(image.rot90, input_signature=[df.TensorSpec([None, 4, 5, 3], df.int64)])
    np.testing.assert_array_equal(turned(X), np.rot90(X, 1, (1, 2)))
