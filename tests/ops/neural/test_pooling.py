"""The gradient of max pooling goes to one element of each window: the first of the largest, row by row."""

import numpy as np
import pytest

import dualflow as df


def slope(x, ksize, strides, padding, data_format=None):
    """The gradient of the maxima, weighted by 1, 2, 3, ... ."""
    with df.GradientTape() as tape:
        tape.watch(x)
        y = df.nn.max_pool(x, ksize, strides, padding, data_format)
        weights = df.reshape(df.range(1, df.size(y) + 1), df.shape(y))
        loss = df.reduce_sum(y * df.cast(weights, y.dtype))
    return tape.gradient(loss, x)


def expected(x, ksize, strides, padding):
    """By hand: each window's weight on the first of its largest elements."""
    found, weight = np.zeros_like(x), 0
    _, rows, columns, channels = x.shape
    before, (high, wide) = _before((rows, columns), ksize, strides, padding)
    for n in range(len(x)):
        for i in range(high):
            for j in range(wide):
                for c in range(channels):
                    weight += 1
                    places = [
                        (r, q)
                        for r in range(i * strides - before[0], i * strides - before[0] + ksize)
                        for q in range(j * strides - before[1], j * strides - before[1] + ksize)
                        if 0 <= r < rows and 0 <= q < columns
                    ]
                    r, q = max(places, key=lambda at, n=n, c=c: x[n, at[0], at[1], c])
                    found[n, r, q, c] += weight
    return found


def _before(sizes, ksize, strides, padding):
    if padding == "VALID":
        return (0, 0), tuple((size - ksize) // strides + 1 for size in sizes)
    counts = tuple(-(-size // strides) for size in sizes)
    return tuple(
        max(0, (count - 1) * strides + ksize - size) // 2 for count, size in zip(counts, sizes, strict=True)
    ), counts


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(("ksize", "strides"), [(2, 2), (3, 1), (3, 2), (2, 1)])
@pytest.mark.parametrize("padding", ["VALID", "SAME"])
@pytest.mark.parametrize("values", [1, 3], ids=["all equal", "ties"])
def test_ties_and_overlapping_windows(mode, values, padding, ksize, strides, dtype):
    x = np.random.default_rng(0).integers(0, values, (2, 5, 4, 2)).astype(dtype)
    found = mode(lambda x: slope(x, ksize, strides, padding))(df.constant(x))
    np.testing.assert_array_equal(found, expected(x, ksize, strides, padding))


def test_channels_first(mode):
    x = np.random.default_rng(0).integers(0, 2, (1, 2, 4, 4)).astype(np.float32)

    def summed(x):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = df.nn.max_pool2d(x, 2, 2, "VALID", data_format="NCHW")
        return tape.gradient(y, x)

    found = mode(summed)(df.constant(x)).numpy()
    assert np.isin(found, [0, 1]).all()
    np.testing.assert_array_equal(found.reshape(1, 2, 2, 2, 2, 2).sum((3, 5)), np.ones((1, 2, 2, 2)))


@pytest.mark.parametrize(
    ("pool", "shape"), [(df.nn.max_pool1d, (1, 4, 1)), (df.nn.max_pool3d, (1, 2, 2, 2, 1))]
)
def test_one_and_three_axes(mode, pool, shape):
    def summed(x):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = pool(x, 2, 1, "SAME")
        return tape.gradient(y, x)

    np.testing.assert_array_equal(mode(summed)(df.ones(shape)), np.ones(shape))


def test_the_first_nan_has_the_gradient_of_its_window(mode):
    def summed(x):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = df.nn.max_pool2d(x, 2, 2, "VALID")
        return tape.gradient(y, x)

    x = df.reshape(df.constant([1.0, np.nan, 2.0, np.nan]), [1, 2, 2, 1])
    assert mode(summed)(x).numpy().ravel().tolist() == [0.0, 1.0, 0.0, 0.0]


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.uint8, np.int64])
def test_integers_are_pooled_as_they_are(mode, dtype):
    x = np.random.default_rng(0).integers(0, 100, (1, 5, 4, 2)).astype(dtype)
    x = x - 100 if np.dtype(dtype).kind == "i" else x
    found = mode(lambda x: df.nn.max_pool2d(x, 3, 2, "SAME"))(df.constant(x))
    floats = df.nn.max_pool2d(df.cast(x, df.float64), 3, 2, "SAME")
    np.testing.assert_array_equal(found, df.cast(floats, dtype), strict=True)
