"""Convolutions and pooling against their definition, loop by loop."""

import itertools

import numpy as np
import pytest

import dualflow as df

SHAPES = [((2, 7, 6, 4), (3, 2, 4, 5)), ((1, 5, 5, 4), (1, 1, 4, 2)), ((2, 9, 4, 3), (3, 3, 3, 2))]


def padded(x, size, strides, dilations, padding, value=0.0):
    """The input with TensorFlow's "SAME" padding: the odd element comes last."""
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
    result = df.nn.conv2d(x, w, strides=strides, padding=padding, dilations=dilations).numpy()
    wide = padded(x, w.shape[:2], strides, dilations, padding)
    for _, (i, j), window in windows(wide, w.shape[:2], strides, dilations):
        np.testing.assert_allclose(
            result[:, i, j], np.einsum("nhwc,hwcf->nf", window, w), rtol=1e-12, atol=1e-12
        )


def test_groups_convolve_their_own_channels():
    rng = np.random.default_rng(1)
    x, w = rng.normal(size=(2, 5, 5, 6)), rng.normal(size=(3, 3, 2, 9))
    result = df.nn.convolution(x, w)
    parts = [df.nn.conv2d(x[..., 2 * g : 2 * g + 2], w[..., 3 * g : 3 * g + 3]) for g in range(3)]
    np.testing.assert_allclose(result, df.concat(parts, -1), rtol=1e-12)


def test_a_depthwise_convolution_is_one_for_each_channel():
    rng = np.random.default_rng(2)
    x, w = rng.normal(size=(2, 5, 5, 3)), rng.normal(size=(3, 3, 3, 2))
    result = df.nn.depthwise_conv2d(x, w, strides=[1, 1, 1, 1], padding="SAME")
    parts = [df.nn.conv2d(x[..., c : c + 1], w[:, :, c : c + 1], padding="SAME") for c in range(3)]
    np.testing.assert_allclose(result, df.concat(parts, -1), rtol=1e-12)


@pytest.mark.parametrize("padding", ["VALID", "SAME"])
def test_conv2d_transpose_is_the_gradient_of_conv2d(padding):
    rng = np.random.default_rng(3)
    x, w = df.constant(rng.normal(size=(2, 7, 6, 3))), rng.normal(size=(3, 2, 3, 4))
    with df.GradientTape() as tape:
        tape.watch(x)
        y = df.nn.conv2d(x, w, strides=2, padding=padding)
    g = rng.normal(size=y.shape)
    expected = tape.gradient(y, x, output_gradients=df.constant(g))
    result = df.nn.conv2d_transpose(g, w, output_shape=x.shape, strides=2, padding=padding)
    np.testing.assert_allclose(result, expected, rtol=1e-12)


def test_channels_first_is_the_same_with_the_axes_moved():
    rng = np.random.default_rng(4)
    x, w = rng.normal(size=(2, 3, 5, 5)), rng.normal(size=(3, 3, 3, 4))
    result = df.nn.conv2d(x, w, padding="SAME", data_format="NCHW")
    expected = df.nn.conv2d(x.transpose(0, 2, 3, 1), w, padding="SAME").numpy().transpose(0, 3, 1, 2)
    np.testing.assert_allclose(result, expected, rtol=1e-12)


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


def test_strides_and_dilations_are_1_by_default():
    x, w = df.ones([1, 4, 1]), df.ones([2, 1, 1])
    expected = df.nn.convolution(x, w, 1, "SAME", None, 1)
    np.testing.assert_array_equal(df.nn.convolution(x, w, None, "SAME", None, None), expected)


# The products that gradients are made of


LAYERS = {
    "one axis": (df.nn.conv1d, (2, 7, 3), (3, 3, 4), {"stride": 2, "padding": "SAME"}),
    "two axes": (df.nn.conv2d, (2, 6, 5, 3), (3, 2, 3, 4), {"strides": 1, "padding": "SAME"}),
    "strides": (df.nn.conv2d, (2, 7, 6, 3), (3, 2, 3, 4), {"strides": [2, 3], "padding": "VALID"}),
    "strides beyond the window": (
        df.nn.conv2d,
        (2, 7, 6, 3),
        (1, 2, 3, 2),
        {"strides": 3, "padding": "SAME"},
    ),
    "dilations": (df.nn.conv2d, (2, 7, 6, 2), (3, 2, 2, 3), {"dilations": [2, 1], "padding": "SAME"}),
    "strides and dilations": (
        df.nn.conv2d,
        (2, 9, 8, 2),
        (3, 2, 2, 2),
        {"strides": 2, "dilations": [2, 3], "padding": "SAME"},
    ),
    "padding by hand": (
        df.nn.conv2d,
        (1, 4, 5, 2),
        (3, 2, 2, 2),
        {"padding": [[2, 1], [0, 3]], "strides": 2},
    ),
    "more padding than window": (df.nn.conv1d, (1, 3, 2), (2, 2, 1), {"padding": [[3, 4]]}),
    "few outputs of many channels": (df.nn.conv2d, (1, 4, 5, 8), (2, 2, 8, 2), {"padding": "SAME"}),
    "many outputs of few channels": (
        df.nn.conv2d,
        (1, 4, 5, 2),
        (2, 2, 2, 8),
        {"padding": "SAME", "strides": 2},
    ),
    "small groups": (df.nn.conv2d, (2, 5, 4, 6), (3, 2, 2, 9), {"strides": 2, "padding": "SAME"}),
    "large groups": (df.nn.conv2d, (2, 5, 4, 12), (3, 2, 6, 8), {"strides": 2, "padding": "SAME"}),
    "a group a channel": (df.nn.depthwise_conv2d, (2, 5, 4, 3), (3, 2, 3, 2), {"padding": "SAME"}),
    "three axes": (df.nn.conv3d, (1, 4, 3, 5, 2), (2, 1, 3, 2, 3), {"strides": 2, "padding": "SAME"}),
    "three axes in groups": (df.nn.conv3d, (1, 4, 3, 5, 4), (2, 1, 3, 2, 4), {"padding": "SAME"}),
    "windows of one element": (df.nn.conv2d, (2, 3, 4, 3), (1, 1, 3, 4), {}),
    "a window as large as the input": (df.nn.conv2d, (2, 3, 4, 3), (3, 4, 3, 4), {}),
}


@pytest.fixture(params=LAYERS)
def layer(request):
    """A convolution, and values for its input and its filter."""
    function, x, w, options = LAYERS[request.param]
    rng = np.random.default_rng(7)
    return lambda x, w: function(x, w, **options), rng.normal(size=x), rng.normal(size=w)


def gradients(y, sources, g):
    with df.GradientTape() as tape:
        tape.watch(sources)
        out = y(*sources)
    return tape.gradient(out, sources, output_gradients=g)


def test_gradients_are_the_transposed_products(mode, layer):
    function, x, w = layer
    g = np.random.default_rng(8).normal(size=function(x, w).shape)
    to_x, to_w = mode(lambda x, w, g: gradients(function, [x, w], g))(*map(df.constant, (x, w, g)))
    other_x, other_w = (
        np.random.default_rng(9).normal(size=x.shape),
        np.random.default_rng(10).normal(size=w.shape),
    )
    by_x, by_w = np.sum(g * function(other_x, w).numpy()), np.sum(g * function(x, other_w).numpy())
    np.testing.assert_allclose(np.sum(to_x.numpy() * other_x), by_x, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(np.sum(to_w.numpy() * other_w), by_w, rtol=1e-10, atol=1e-10)


def test_second_gradients_are_those_of_the_transposed_products(mode, layer):
    """``<y, conv(x, w)>`` is linear in each of the three, so mixed derivatives are convolutions again."""
    function, x, w = layer
    g = np.random.default_rng(8).normal(size=function(x, w).shape)
    u = np.random.default_rng(9).normal(size=x.shape)

    def second(x, w, g, u):
        with df.GradientTape() as tape:
            tape.watch([w, g])
            (to_x,) = gradients(lambda x: function(x, w), [x], g)
            along = df.reduce_sum(to_x * u)
        return tape.gradient(along, [w, g])

    to_w, to_g = mode(second)(*map(df.constant, (x, w, g, u)))
    np.testing.assert_allclose(to_g, function(u, w), rtol=1e-10, atol=1e-10)
    (expected,) = gradients(lambda w: function(u, w), [df.constant(w)], df.constant(g))
    np.testing.assert_allclose(to_w, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.llvm
def test_convolutions_and_their_gradients_are_compiled(layer):
    function, x, w = layer
    traced = df.function(lambda x, w: gradients(function, [x, w], None))
    traced(df.constant(x), df.constant(w))
    assert "numpy:" not in str(traced.status())


@pytest.mark.parametrize("groups", [2, 3])
@pytest.mark.parametrize("wide", [1, 8])
def test_groups_are_convolutions_side_by_side(mode, groups, wide):
    rng = np.random.default_rng(11)
    x, w = rng.normal(size=(2, 5, 5, groups * wide)), rng.normal(size=(3, 2, wide, groups * 4))
    result = mode(lambda x, w: df.nn.conv2d(x, w, 2, "SAME"))(df.constant(x), df.constant(w))
    parts = [
        df.nn.conv2d(x[..., wide * g : wide * (g + 1)], w[..., 4 * g : 4 * (g + 1)], 2, "SAME")
        for g in range(groups)
    ]
    np.testing.assert_allclose(result, df.concat(parts, -1), rtol=1e-10, atol=1e-12)


# Transposed convolutions


@pytest.mark.parametrize("padding", ["VALID", "SAME"])
@pytest.mark.parametrize(
    ("transposed", "layer", "x", "w"),
    [
        (df.nn.conv1d_transpose, df.nn.conv1d, (2, 7, 3), (3, 3, 4)),
        (df.nn.conv2d_transpose, df.nn.conv2d, (2, 7, 6, 3), (3, 2, 3, 4)),
        (df.nn.conv3d_transpose, df.nn.conv3d, (1, 5, 4, 6, 2), (3, 2, 1, 2, 3)),
        (df.nn.conv_transpose, df.nn.convolution, (1, 6, 5, 2), (3, 2, 2, 3)),
    ],
)
def test_a_transposed_convolution_is_the_gradient_of_one(mode, transposed, layer, x, w, padding):
    rng = np.random.default_rng(12)
    w, shape = rng.normal(size=w), x
    g = df.constant(rng.normal(size=layer(np.zeros(x), w, 2, padding).shape))
    (expected,) = gradients(lambda x: layer(x, w, 2, padding), [df.zeros(x, df.float64)], g)
    result = mode(lambda g, w: transposed(g, w, shape, 2, padding))(g, df.constant(w))
    np.testing.assert_allclose(result, expected, rtol=1e-10, atol=1e-12)


def test_a_transposed_convolution_takes_the_sizes_of_the_axes_or_a_dynamic_batch():
    x, w = df.ones([2, 3, 3, 6]), df.ones([3, 3, 4, 6])
    expected = df.nn.conv2d_transpose(x, w, [2, 6, 6, 4], 2)
    for shape in ([6, 6], [-1, 6, 6, 4], df.constant([2, 6, 6, 4])):
        np.testing.assert_array_equal(df.nn.conv2d_transpose(x, w, shape, 2), expected)
    first = df.nn.conv2d_transpose(df.ones([2, 6, 3, 3]), w, [2, 4, 6, 6], 2, data_format="NCHW")
    np.testing.assert_array_equal(first, df.transpose(expected, [0, 3, 1, 2]))


def test_an_atrous_transposed_convolution_is_the_gradient_of_an_atrous_one():
    rng = np.random.default_rng(13)
    w, g = rng.normal(size=(3, 3, 4, 6)), df.constant(rng.normal(size=(2, 2, 1, 6)))
    x = df.zeros([2, 6, 5, 4], df.float64)
    (expected,) = gradients(lambda x: df.nn.atrous_conv2d(x, w, 2, "VALID"), [x], g)
    result = df.nn.atrous_conv2d_transpose(g, w, x.shape, 2, "VALID")
    np.testing.assert_allclose(result, expected, rtol=1e-10, atol=1e-12)


# Depthwise and separable


@pytest.mark.parametrize("multiplier", [1, 2, 3])
@pytest.mark.parametrize(("strides", "dilations"), [(1, 1), (2, 1), (1, 2)])
def test_a_depthwise_convolution_has_a_filter_for_each_channel(mode, multiplier, strides, dilations):
    rng = np.random.default_rng(14)
    x, w = rng.normal(size=(2, 6, 5, 3)), rng.normal(size=(3, 2, 3, multiplier))
    result = mode(lambda x, w: df.nn.depthwise_conv2d(x, w, strides, "SAME", None, dilations))(
        df.constant(x), df.constant(w)
    )
    parts = [
        df.nn.conv2d(x[..., c : c + 1], w[:, :, c : c + 1], strides, "SAME", dilations=dilations)
        for c in range(3)
    ]
    np.testing.assert_allclose(result, df.concat(parts, -1), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("first", [False, True])
def test_the_gradients_of_a_depthwise_convolution_have_names(first):
    rng = np.random.default_rng(15)
    data_format = "NCHW" if first else "NHWC"
    options = {
        "strides": [1, 1, 2, 2] if first else [1, 2, 2, 1],
        "padding": "SAME",
        "data_format": data_format,
    }
    x = df.constant(rng.normal(size=(2, 3, 6, 5) if first else (2, 6, 5, 3)))
    w = df.constant(rng.normal(size=(3, 2, 3, 2)))
    y = df.nn.depthwise_conv2d(x, w, **options)
    g = df.constant(rng.normal(size=y.shape))
    to_x, to_w = gradients(lambda x, w: df.nn.depthwise_conv2d(x, w, **options), [x, w], g)
    result = df.nn.depthwise_conv2d_backprop_input(x.shape, w, g, **options)
    np.testing.assert_allclose(result, to_x, rtol=1e-10, atol=1e-12)
    result = df.nn.depthwise_conv2d_backprop_filter(x, w.shape, g, **options)
    np.testing.assert_allclose(result, to_w, rtol=1e-10, atol=1e-12)


def test_a_separable_convolution_mixes_the_channels_of_a_depthwise_one(mode):
    rng = np.random.default_rng(16)
    x, depth, point = (
        rng.normal(size=(2, 6, 5, 3)),
        rng.normal(size=(3, 2, 3, 2)),
        rng.normal(size=(1, 1, 6, 5)),
    )
    result = mode(lambda x: df.nn.separable_conv2d(x, depth, point, 2, "SAME"))(df.constant(x))
    expected = df.nn.depthwise_conv2d(x, depth, 2, "SAME").numpy() @ point[0, 0]
    np.testing.assert_allclose(result, expected, rtol=1e-10, atol=1e-12)


# Layouts, dtypes and sizes


def test_options_for_every_axis_follow_the_data_format():
    rng = np.random.default_rng(17)
    x, w = rng.normal(size=(2, 3, 6, 5)), rng.normal(size=(3, 2, 3, 4))
    result = df.nn.conv2d(x, w, [1, 1, 2, 3], [[0, 0], [0, 0], [1, 0], [2, 1]], "NCHW", [1, 1, 1, 1])
    last = df.nn.conv2d(x.transpose(0, 2, 3, 1), w, [1, 2, 3, 1], [[0, 0], [1, 0], [2, 1], [0, 0]])
    np.testing.assert_allclose(result, last.numpy().transpose(0, 3, 1, 2), rtol=1e-12)


def test_several_axes_of_the_batch_are_as_one():
    rng = np.random.default_rng(18)
    x, w = (rng.integers(-9, 10, size).astype(float) for size in ((2, 3, 6, 5, 4), (3, 2, 4, 2)))
    result = df.nn.conv2d(x, w, 2, "SAME")
    np.testing.assert_array_equal(result, df.stack([df.nn.conv2d(row, w, 2, "SAME") for row in x]))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int32, np.complex64])
@pytest.mark.parametrize("channels", [1, 2])
def test_the_result_has_the_dtype_of_the_numbers(mode, dtype, channels):
    rng = np.random.default_rng(19)
    x, w = rng.integers(-3, 4, (2, 5, 4, 2)), rng.integers(-3, 4, (3, 2, channels, 2))
    result = mode(lambda x, w: df.nn.conv2d(x, w, 1, "SAME"))(
        df.constant(x.astype(dtype)), df.constant(w.astype(dtype))
    )
    expected = df.nn.conv2d(x.astype(float), w.astype(float), 1, "SAME").numpy().astype(dtype)
    np.testing.assert_array_equal(result, expected, strict=True)


@pytest.mark.parametrize(
    ("x", "shape"), [((0, 6, 5, 4), (0, 6, 5, 2)), ((2, 0, 5, 4), (2, 0, 5, 2)), ((2, 1, 1, 4), (2, 1, 1, 2))]
)
def test_empty_and_single_element_inputs(mode, x, shape):
    def both(x, w):
        return df.nn.conv2d(x, w, 1, "SAME"), *gradients(
            lambda x, w: df.nn.conv2d(x, w, 1, "SAME"), [x, w], None
        )

    y, to_x, to_w = mode(both)(df.ones(x), df.ones([3, 3, 4, 2]))
    assert (y.shape, to_x.shape, to_w.shape) == (shape, x, (3, 3, 4, 2))


def test_a_window_larger_than_the_input_has_no_position():
    assert df.nn.conv2d(df.ones([2, 2, 2, 4]), df.ones([3, 3, 4, 5])).shape == (2, 0, 0, 5)


def test_a_dynamic_batch_is_known_when_the_function_is_called():
    w = df.constant(np.random.default_rng(20).normal(size=(3, 3, 2, 4)))
    spec = df.TensorSpec([None, 6, 5, 2], df.float64)
    traced = df.function(lambda x: df.nn.conv2d(x, w, 1, "SAME"), input_signature=[spec])
    x = np.random.default_rng(21).normal(size=(3, 6, 5, 2))
    np.testing.assert_allclose(traced(x), df.nn.conv2d(x, w, 1, "SAME"), rtol=1e-12)


def test_values_and_gradients_of_tensorflow():
    """Literal results of TensorFlow 2.21."""
    x = df.reshape(df.range(16.0), [1, 4, 4, 1])
    w = df.constant([[[[1.0, -1.0]], [[2.0, 0.5]]], [[[0.0, 1.0]], [[-1.0, 3.0]]]])
    result = df.nn.conv2d(x, w, 2, "SAME")
    assert result.numpy().tolist() == [[[[-3.0, 19.5], [1.0, 26.5]], [[13.0, 47.5], [17.0, 54.5]]]]


@pytest.mark.parametrize("size", [0, 1, 2, 3, 7])
def test_the_gradient_for_a_dynamic_size_below_that_of_the_window(size):
    w = df.constant([1.0, -2.0, 3.0], shape=[3, 1, 1])

    def gradient(x):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = df.reduce_sum(df.nn.conv1d(x, w, 1, "VALID") ** 2)
        return tape.gradient(y, x)

    x = df.range(size, dtype=df.float32)[None, :, None]
    compiled = df.function(gradient, input_signature=[df.TensorSpec([1, None, 1])])
    np.testing.assert_array_equal(compiled(x), gradient(x))


def test_a_convolution_in_groups_whose_shape_is_read_is_traced_once_for_all_batches():
    w = df.constant(np.arange(18.0).reshape(3, 1, 6), df.float32)

    @df.function
    def scaled(x):
        y = df.nn.conv1d(x, w, 1, "VALID")
        return y * y.shape[0]

    for count in (4, 5, 6, 3):
        x = df.range(count * 10, dtype=df.float32)
        y = df.nn.conv1d(df.reshape(x, [count, 5, 2]), w, 1, "VALID")
        np.testing.assert_array_equal(scaled(df.reshape(x, [count, 5, 2])), y * float(count))
    assert scaled.experimental_get_tracing_count() <= 2
