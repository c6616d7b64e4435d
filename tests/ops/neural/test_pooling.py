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
    out, weight = np.zeros_like(x), 0
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
                    out[n, r, q, c] += weight
    return out


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
    result = mode(lambda x: slope(x, ksize, strides, padding))(df.constant(x))
    np.testing.assert_array_equal(result, expected(x, ksize, strides, padding))


def test_channels_first(mode):
    x = np.random.default_rng(0).integers(0, 2, (1, 2, 4, 4)).astype(np.float32)

    def summed(x):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = df.nn.max_pool2d(x, 2, 2, "VALID", data_format="NCHW")
        return tape.gradient(y, x)

    result = mode(summed)(df.constant(x)).numpy()
    assert np.isin(result, [0, 1]).all()
    np.testing.assert_array_equal(result.reshape(1, 2, 2, 2, 2, 2).sum((3, 5)), np.ones((1, 2, 2, 2)))


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
    result = mode(lambda x: df.nn.max_pool2d(x, 3, 2, "SAME"))(df.constant(x))
    floats = df.nn.max_pool2d(df.cast(x, df.float64), 3, 2, "SAME")
    np.testing.assert_array_equal(result, df.cast(floats, dtype), strict=True)


# Gradients, second gradients and machine code


def mixed(pool, x, u, weights):
    """The gradient of ``pool``, weighted, and what flows back to the weights from its product with ``u``."""
    with df.GradientTape() as outer:
        outer.watch(weights)
        with df.GradientTape() as tape:
            tape.watch(x)
            y = pool(x)
        g = tape.gradient(y, x, output_gradients=weights)
        along = df.reduce_sum(g * u)
    return g, outer.gradient(along, weights)


POOLS = {
    "means": (lambda x: df.nn.avg_pool2d(x, 3, 2, "SAME"), (2, 6, 5, 3)),
    "means of few": (lambda x: df.nn.avg_pool2d(x, [2, 1], [1, 2], "VALID"), (2, 6, 5, 3)),
    "means beyond the input": (lambda x: df.nn.avg_pool2d(x, 7, 2, "SAME"), (2, 6, 5, 3)),
    "means at a distance": (lambda x: df.nn.pool(x, [2, 3], "AVG", dilations=[2, 1]), (2, 6, 5, 3)),
    "means of a cube": (lambda x: df.nn.avg_pool3d(x, 2, 2, "SAME"), (1, 5, 4, 3, 2)),
    "maxima": (lambda x: df.nn.max_pool2d(x, 3, 2, "SAME"), (2, 6, 5, 3)),
    "maxima of few": (lambda x: df.nn.max_pool2d(x, 1, 3, "VALID"), (2, 6, 5, 3)),
    "maxima beyond the input": (lambda x: df.nn.max_pool2d(x, 7, 2, "SAME"), (2, 6, 5, 3)),
    "maxima at a distance": (lambda x: df.nn.pool(x, [2, 3], "MAX", dilations=[2, 1]), (2, 6, 5, 3)),
    "maxima of a cube": (lambda x: df.nn.max_pool3d(x, 2, 2, "SAME"), (1, 5, 4, 3, 2)),
    "maxima of a line": (lambda x: df.nn.max_pool1d(x, 3, 2, [[1, 2]]), (2, 6, 3)),
    "maxima along the channels": (
        lambda x: df.nn.max_pool2d(x, [1, 1, 1, 2], [1, 1, 1, 2], "VALID"),
        (2, 2, 3, 4),
    ),
}


@pytest.mark.parametrize("name", POOLS)
def test_the_gradient_is_the_slope_in_every_direction(mode, name):
    pool, shape = POOLS[name]
    rng = np.random.default_rng(3)
    x, u = rng.permutation(np.prod(shape)).reshape(shape).astype(float), rng.normal(size=shape)
    weights = rng.normal(size=pool(x).shape)
    g, _ = mode(lambda x, u, w: mixed(pool, x, u, w))(*map(df.constant, (x, u, weights)))
    step = 1e-3  # less than the distance of any two elements
    slope = (pool(x + step * u).numpy() - pool(x - step * u).numpy()) / (2 * step)
    np.testing.assert_allclose(np.sum(g.numpy() * u), np.sum(slope * weights), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", POOLS)
def test_the_second_gradient_is_that_of_the_linear_map(mode, name):
    pool, shape = POOLS[name]
    rng = np.random.default_rng(3)
    x, u = rng.permutation(np.prod(shape)).reshape(shape).astype(float), rng.normal(size=shape)
    weights = rng.normal(size=pool(x).shape)
    _, to_weights = mode(lambda x, u, w: mixed(pool, x, u, w))(*map(df.constant, (x, u, weights)))
    step = 1e-3
    slope = (pool(x + step * u).numpy() - pool(x - step * u).numpy()) / (2 * step)
    np.testing.assert_allclose(to_weights, slope, rtol=1e-8, atol=1e-8)


@pytest.mark.llvm
@pytest.mark.parametrize("name", POOLS)
def test_pooling_and_its_gradients_are_compiled(name):
    pool, shape = POOLS[name]
    x = np.random.default_rng(3).normal(size=shape)
    traced = df.function(lambda x, u, w: mixed(pool, x, u, w))
    traced(df.constant(x), df.constant(x), df.ones(pool(x).shape, df.float64))
    assert "numpy:" not in str(traced.status())


def test_a_window_of_the_least_numbers_chooses_one_of_its_own(mode):
    def routed(x):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = df.nn.max_pool2d(x, 3, 2, "SAME")
        return tape.gradient(y, x)

    result = mode(routed)(df.fill([1, 3, 3, 1], -np.inf))
    assert float(df.reduce_sum(result)) == 4.0


# Positions


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32])
@pytest.mark.parametrize("padding", ["VALID", "SAME"])
@pytest.mark.parametrize("batch", [False, True])
def test_positions_point_to_the_maxima(mode, dtype, padding, batch):
    x = np.random.default_rng(4).integers(-3, 3, (2, 6, 5, 3)).astype(dtype)
    run = mode(lambda x: df.nn.max_pool_with_argmax(x, 3, 2, padding, include_batch_in_index=batch))
    value, place = run(df.constant(x))
    assert place.dtype is df.int64
    flat = [x.ravel()] * 2 if batch else [row.ravel() for row in x]
    for n in range(2):
        np.testing.assert_array_equal(value.numpy()[n], flat[n][place.numpy()[n]])
    np.testing.assert_array_equal(value, df.nn.max_pool2d(x, 3, 2, padding))


def test_a_position_is_that_of_the_first_maximum_in_tensorflows_order():
    """Literal results of TensorFlow 2.21."""
    x = np.array([[3, 1, 3, 0], [3, 3, 2, 2], [0, 0, 5, 5]], np.float32).reshape(1, 3, 4, 1)
    _, place = df.nn.max_pool_with_argmax(x, 2, 2, "SAME", output_dtype=df.int32)
    assert place.dtype is df.int32
    assert place.numpy().ravel().tolist() == [0, 2, 8, 10]


# Other options


def test_pool_moves_by_one_element_by_default():
    x = np.random.default_rng(5).normal(size=(2, 6, 5, 3))
    np.testing.assert_array_equal(df.nn.pool(x, [2, 3], "MAX"), df.nn.max_pool2d(x, [2, 3], 1))
    several = df.nn.pool(x[None], [2, 3], "AVG")
    np.testing.assert_array_equal(several[0], df.nn.avg_pool2d(x, [2, 3], 1))


def test_windows_at_a_distance_skip_elements():
    x = np.arange(6.0).reshape(1, 6, 1)
    assert df.nn.pool(x, [2], "MAX", dilations=[3]).numpy().ravel().tolist() == [3.0, 4.0, 5.0]
    assert df.nn.pool(x, [2], "AVG", dilations=[3]).numpy().ravel().tolist() == [1.5, 2.5, 3.5]


@pytest.mark.parametrize(
    ("pool", "first"), [(df.nn.avg_pool1d, "NCW"), (df.nn.avg_pool2d, "NCHW"), (df.nn.avg_pool3d, "NCDHW")]
)
def test_pool_with_channels_first(pool, first):
    axes = len(first) - 2
    x = np.random.default_rng(6).normal(size=(2, 3, *(5, 4, 6)[:axes]))
    result = pool(x, 2, 2, "SAME", first)
    last = pool(np.moveaxis(x, 1, -1), 2, 2, "SAME")
    np.testing.assert_array_equal(result, np.moveaxis(last.numpy(), -1, 1))


def test_an_empty_batch(mode):
    run = mode(lambda x: slope(x, 2, 2, "SAME"))
    assert run(df.ones([0, 4, 4, 2])).shape == (0, 4, 4, 2)


def test_a_dynamic_size_of_means_with_padding():
    spec = df.TensorSpec([2, None, 3], df.float64)
    traced = df.function(lambda x: df.nn.avg_pool1d(x, 3, 1, "SAME"), input_signature=[spec])
    x = np.random.default_rng(7).normal(size=(2, 5, 3))
    np.testing.assert_allclose(traced(x), df.nn.avg_pool1d(x, 3, 1, "SAME"), rtol=1e-12)
