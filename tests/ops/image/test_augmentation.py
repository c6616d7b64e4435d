"""Random changes of images: TensorFlow's by seeds, within their ranges by streams, and native in graphs."""

from __future__ import annotations

import numpy as np
import pytest

import dualflow as df

image = df.image
X = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
SEED = (1, 2)

# Values of TensorFlow 2.21, of the seed (1, 2)
DRAWN = {
    "brightness": ((0.3,), range(52, 76)),
    "contrast": ((0.2, 1.7), [0, 0, 0, 0, 0, 1, *[k + i for k in (3, 8, 12, 17, 21, 25) for i in range(3)]]),
    "hue": ((0.4,), [n for k in range(0, 24, 3) for n in (k + 2, k, k + 1)]),
    "saturation": ((0.3, 2.0), [0, 1, 2, *[n for k in range(1, 22, 3) for n in (k, k + 2, k + 4)]]),
    "flip_left_right": ((), range(24)),
    "flip_up_down": ((), range(24)),
    "crop": (((1, 2, 3),), range(6, 12)),
}


@pytest.mark.parametrize("name", DRAWN)
def test_stateless_ops_match_tensorflow(mode, name):
    arguments, expected = DRAWN[name]
    change = getattr(image, f"stateless_random_{name}")
    result = mode(lambda x, seed: change(x, *arguments, seed=seed))(X, df.constant(SEED))
    assert result.numpy().ravel().tolist() == list(expected)


@pytest.mark.parametrize("name", DRAWN)
def test_set_seed_restarts_the_stream(name):
    change = df.function(lambda x: getattr(image, f"random_{name}")(x, *DRAWN[name][0]))

    def draws():
        return [change(X).numpy().tobytes() for _ in range(12)]

    df.random.set_seed(3)
    first = draws()
    assert len(set(first)) > 1
    df.random.set_seed(3)
    assert draws() == first


def test_seeded_changes_are_machine_code():
    def changed(x, seed):
        x = image.stateless_random_flip_left_right(x, seed)
        x = image.stateless_random_crop(x, [8, 20, 20, 3], seed)
        return image.stateless_random_brightness(x, 0.2, seed)

    concrete = df.function(changed).get_concrete_function(
        df.TensorSpec([8, 32, 32, 3]), df.TensorSpec([2], df.int64)
    )
    assert {part.kind for part in concrete.parts} == {"native"}


def test_each_image_of_a_batch_is_flipped_on_its_own():
    batch = np.tile(np.arange(4.0).reshape(1, 1, 4, 1), (200, 1, 1, 1))
    first = image.stateless_random_flip_left_right(batch, SEED).numpy()[:, 0, 0, 0]
    assert set(first) == {0.0, 3.0}
    assert 70 < np.count_nonzero(first) < 130


def test_crops_are_parts_at_every_place():
    x = np.arange(30).reshape(5, 6)
    corners = set()
    for i in range(200):
        part = image.stateless_random_crop(x, [3, 4], (i, 0)).numpy()
        row, column = divmod(int(part[0, 0]), 6)
        np.testing.assert_array_equal(part, x[row : row + 3, column : column + 4])
        corners.add((row, column))
    assert len(corners) == 9
