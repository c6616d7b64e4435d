"""``v1.layers`` against NumPy: what they compute, how their variables are named, what they refuse."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.compat import v1

RANDOM = np.random.default_rng(0)


def value(x: Any) -> Any:
    """The value, eagerly or in a session that has started all variables."""
    if df.executing_eagerly():
        return x.numpy()
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        return session.run(x)


def draw(*shape: int) -> Any:
    return RANDOM.normal(size=shape).astype(np.float32)


def constant(array: Any) -> Any:
    return v1.constant_initializer(array)


# Convolutions


def convolved(x: Any, kernel: Any, stride: int = 1) -> Any:
    """The convolution of images without padding, by its definition."""
    height, width = kernel.shape[:2]
    rows, columns = (x.shape[1] - height) // stride + 1, (x.shape[2] - width) // stride + 1
    out = np.zeros([x.shape[0], rows, columns, kernel.shape[-1]])
    for i in range(rows):
        for j in range(columns):
            window = x[:, i * stride : i * stride + height, j * stride : j * stride + width, :]
            out[:, i, j] = np.tensordot(window, kernel, 3)
    return out


@pytest.mark.parametrize("stride", [1, 2])
def test_conv2d_is_a_convolution_a_bias_and_an_activation(eager_or_graph: None, stride: int) -> None:
    x, kernel, bias = draw(2, 6, 5, 3), draw(3, 2, 3, 4), draw(4)
    layer = v1.layers.Conv2D(
        4,
        [3, 2],
        stride,
        activation="relu",
        kernel_initializer=constant(kernel),
        bias_initializer=constant(bias),
    )
    expected = np.maximum(convolved(x, kernel, stride) + bias, 0)
    np.testing.assert_allclose(value(layer(x)), expected, rtol=1e-4, atol=1e-5)


def test_channels_may_come_first(eager_or_graph: None) -> None:
    x, kernel = draw(2, 6, 5, 3), draw(3, 3, 3, 4)
    result = v1.layers.conv2d(
        x.transpose(0, 3, 1, 2),
        4,
        3,
        data_format="channels_first",
        kernel_initializer=constant(kernel),
        bias_initializer=constant(np.float32([1, 2, 3, 4])),
    )
    expected = (convolved(x, kernel) + np.float32([1, 2, 3, 4])).transpose(0, 3, 1, 2)
    np.testing.assert_allclose(value(result), expected, rtol=1e-4, atol=1e-5)


def test_conv1d_and_conv3d_agree_with_conv2d(eager_or_graph: None) -> None:
    x, kernel = draw(2, 6, 3), draw(3, 3, 4)
    expected = convolved(x[:, :, None], kernel[:, None])[:, :, 0]
    result = v1.layers.conv1d(x, 4, 3, use_bias=False, kernel_initializer=constant(kernel))
    np.testing.assert_allclose(value(result), expected, rtol=1e-4, atol=1e-5)
    result = v1.layers.conv3d(
        x[:, :, None, None],
        4,
        [3, 1, 1],
        use_bias=False,
        name="c",
        kernel_initializer=constant(kernel[:, None, None]),
    )
    np.testing.assert_allclose(value(result)[:, :, 0, 0], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("axes", [1, 2])
@pytest.mark.parametrize("first", [False, True])
def test_a_separable_convolution_is_one_of_each_channel_and_a_mix(
    eager_or_graph: None, axes: int, first: bool
) -> None:
    x, deep, point = draw(2, 5, 5, 3), draw(2, 2, 3, 2), draw(1, 1, 6, 4)
    if axes == 1:
        x, deep = x[:, :1], deep[:1]
    each = [convolved(x[..., c : c + 1], deep[:, :, c : c + 1]) for c in range(3)]
    expected = np.concatenate(each, -1) @ point[0, 0]
    layer = v1.layers.SeparableConv1D if axes == 1 else v1.layers.SeparableConv2D
    inputs, answer = (x[:, 0], expected[:, 0]) if axes == 1 else (x, expected)
    convolution = layer(
        4,
        2,
        depth_multiplier=2,
        use_bias=False,
        depthwise_initializer=constant(deep[0] if axes == 1 else deep),
        pointwise_initializer=constant(point[0] if axes == 1 else point),
        data_format="channels_first" if first else "channels_last",
    )
    result = value(convolution(np.moveaxis(inputs, -1, 1) if first else inputs))
    np.testing.assert_allclose(np.moveaxis(result, 1, -1) if first else result, answer, rtol=1e-4, atol=1e-5)
    assert [v.name.rpartition("/")[2] for v in convolution.weights] == [
        "depthwise_kernel:0",
        "pointwise_kernel:0",
    ]


@pytest.mark.parametrize(("padding", "size"), [("valid", 8), ("same", 6)])
def test_a_transposed_convolution_spreads_each_element(eager_or_graph: None, padding: str, size: int) -> None:
    x, kernel = draw(1, 3, 3, 2), draw(4, 4, 5, 2)
    spread = np.zeros([1, 8, 8, 5])
    for i in range(3):
        for j in range(3):
            spread[:, 2 * i : 2 * i + 4, 2 * j : 2 * j + 4] += np.einsum("bc,hwoc->bhwo", x[:, i, j], kernel)
    cut = (8 - size) // 2
    expected = spread[:, cut : cut + size, cut : cut + size] + 0.5
    result = v1.layers.conv2d_transpose(
        x,
        5,
        4,
        2,
        padding,
        kernel_initializer=constant(kernel),
        bias_initializer=constant(0.5),
    )
    np.testing.assert_allclose(value(result), expected, rtol=1e-4, atol=1e-5)


def test_a_transposed_convolution_takes_batches_of_any_size() -> None:
    with v1.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(v1.float32, [None, 3, 3, 2])
        y = v1.layers.conv2d_transpose(x, 1, 2, 2)
        session.run(v1.global_variables_initializer())
        assert session.run(y, {x: np.ones([5, 3, 3, 2])}).shape == (5, 6, 6, 1)


# Pooling, flattening, dropping


@pytest.mark.parametrize(("kind", "reduce"), [("Max", np.max), ("Average", np.mean)])
@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("first", [False, True])
def test_pooling_reduces_windows(
    eager_or_graph: None, kind: str, reduce: Callable[..., Any], axes: int, first: bool
) -> None:
    x = draw(2, *[4] * axes, 3)
    windows = x.reshape(2, *[2, 2] * axes, 3)
    expected = reduce(windows, axis=tuple(range(2, 2 * axes + 1, 2)))
    layer = getattr(v1.layers, f"{kind}Pooling{axes}D")(
        2, None, data_format="channels_first" if first else "channels_last"
    )
    result = value(layer(np.moveaxis(x, -1, 1) if first else x))
    np.testing.assert_allclose(np.moveaxis(result, 1, -1) if first else result, expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("shape", "expected"), [([2, 3, 4], (2, 12)), ([0, 3, 4], (0, 12)), ([2, 0, 4], (2, 0)), ([5], (5, 1))]
)
def test_flatten_keeps_the_batch(eager_or_graph: None, shape: list[int], expected: tuple[int, int]) -> None:
    assert value(v1.layers.flatten(v1.ones(shape))).shape == expected


def test_flatten_puts_channels_last(eager_or_graph: None) -> None:
    x = draw(2, 3, 4, 5)
    result = v1.layers.flatten(x, data_format="channels_first")
    np.testing.assert_array_equal(value(result), x.transpose(0, 2, 3, 1).reshape(2, -1))


@pytest.mark.parametrize("shape", [[None, 3, 4], [None, None, 4]])
def test_flatten_takes_sizes_known_only_at_run_time(shape: list[int | None]) -> None:
    with v1.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(v1.float32, shape)
        assert session.run(v1.layers.flatten(x), {x: np.ones([7, 3, 4])}).shape == (7, 12)


def test_dropout_drops_in_training_only() -> None:
    df.random.set_seed(1)
    x = np.ones([1000], np.float32)
    layer = v1.layers.Dropout(0.25)
    assert layer(x).numpy().tolist() == x.tolist()
    kept = layer(x, training=True).numpy()
    assert set(kept.tolist()) == {0.0, np.float32(1 / 0.75)}
    assert 650 < np.count_nonzero(kept) < 850


def test_a_tensor_reports_whether_it_is_training() -> None:
    with v1.Graph().as_default(), v1.Session() as session:
        training = v1.placeholder(v1.bool, [])
        y = v1.reduce_min(v1.layers.dropout(v1.ones([1000]), 0.5, training=training))
        assert [session.run(y, {training: t}) for t in (False, True)] == [1.0, 0.0]


# Batch normalization


def normalized(x: Any, mean: Any, variance: Any) -> Any:
    return (x - mean) / np.sqrt(variance + 1e-3)


@pytest.mark.parametrize("shape", [[6, 3], [4, 2, 3], [2, 3, 4, 3]])
def test_batch_normalization_takes_the_batchs_moments_in_training(shape: list[int]) -> None:
    x = draw(*shape)
    axes = tuple(range(len(shape) - 1))
    mean, variance, n = x.mean(axes), x.var(axes), x.size // 3
    layer = v1.layers.BatchNormalization(momentum=0.9)
    np.testing.assert_allclose(
        layer(x, training=True).numpy(), normalized(x, mean, variance), rtol=1e-3, atol=1e-4
    )
    moved = variance * n / (n - 1) if len(shape) == 4 else variance
    np.testing.assert_allclose(layer.moving_mean.numpy(), 0.1 * mean, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(layer.moving_variance.numpy(), 0.9 + 0.1 * moved, rtol=1e-4)
    expected = normalized(x, 0.1 * mean, 0.9 + 0.1 * moved)
    np.testing.assert_allclose(layer(x).numpy(), expected, rtol=1e-3, atol=1e-4)


def test_batch_normalization_of_several_axes_and_of_one_in_the_middle(eager_or_graph: None) -> None:
    x = draw(5, 2, 3)
    result = v1.layers.batch_normalization(x, axis=[1, 2], training=True)
    np.testing.assert_allclose(value(result), normalized(x, x.mean(0), x.var(0)), rtol=1e-3, atol=1e-4)
    result = v1.layers.batch_normalization(x, axis=1, training=True, name="b")
    mean, variance = x.mean((0, 2))[:, None], x.var((0, 2))[:, None]
    np.testing.assert_allclose(value(result), normalized(x, mean, variance), rtol=1e-3, atol=1e-4)


def test_in_a_graph_the_averages_move_where_the_updates_run() -> None:
    x = draw(6, 3)
    with v1.Graph().as_default(), v1.Session() as session:
        training = v1.placeholder(v1.bool, [])
        layer = v1.layers.BatchNormalization(momentum=0.9)
        y = layer(x, training=training)
        updates = v1.get_collection(v1.GraphKeys.UPDATE_OPS)
        assert updates == layer.updates
        assert len(updates) == 2
        session.run(v1.global_variables_initializer())
        session.run(y, {training: True})
        assert session.run(layer.moving_mean).tolist() == [0, 0, 0]
        session.run(updates, {training: False})
        assert session.run(layer.moving_mean).tolist() == [0, 0, 0]
        session.run(updates, {training: True})
        np.testing.assert_allclose(session.run(layer.moving_mean), 0.1 * x.mean(0), rtol=1e-4, atol=1e-6)


def test_a_traced_function_moves_the_averages() -> None:
    x = draw(6, 3)
    layer = v1.layers.BatchNormalization(momentum=0.0)
    step = df.function(lambda x: layer(x, training=True))
    step(x)
    np.testing.assert_allclose(layer.moving_mean.numpy(), x.mean(0), rtol=1e-4, atol=1e-6)


def test_the_averages_are_not_trained() -> None:
    layer = v1.layers.BatchNormalization()
    layer(v1.ones([2, 3]))
    assert [v.name for v in layer.trainable_weights] == [
        "batch_normalization/gamma:0",
        "batch_normalization/beta:0",
    ]
    assert [v.name for v in layer.non_trainable_weights] == [
        "batch_normalization/moving_mean:0",
        "batch_normalization/moving_variance:0",
    ]


def test_half_precision_is_normalized_in_float32() -> None:
    x = np.float16([[60000.0], [50000.0]])
    result = v1.layers.batch_normalization(x, training=True)
    assert result.dtype is df.float16
    np.testing.assert_allclose(result.numpy(), [[1], [-1]], atol=1e-3)


# The base


class Scale(v1.layers.Layer):
    """A layer with a variable that the user's class makes."""

    def build(self, input_shape: Any) -> None:
        self.by = self.add_variable("by", [input_shape[-1]], initializer=v1.ones_initializer())

    def call(self, inputs: Any, times: float = 1.0) -> Any:
        return inputs * self.by * times


def test_a_layer_is_built_once_and_called_with_what_it_takes(eager_or_graph: None) -> None:
    layer = Scale()
    assert not layer.built
    assert value(layer([[1.0, 2.0]], times=3.0)).tolist() == [[3.0, 6.0]]
    assert layer.built
    assert layer.count_params() == 2
    first = layer.by
    layer([[1.0, 2.0]])
    assert layer.by is first


def test_a_layer_takes_a_structure_of_tensors() -> None:
    class Product(v1.layers.Layer):
        def build(self, input_shape: Any) -> None:
            self.shapes = input_shape

        def call(self, inputs: Any) -> Any:
            return inputs["a"] * inputs["b"]

    layer = Product()
    assert layer({"a": df.constant([2.0]), "b": np.float32([3.0])}).numpy().tolist() == [6.0]
    assert layer.shapes == {"a": (1,), "b": (1,)}


def test_layers_of_one_class_have_names_of_their_own() -> None:
    with v1.Graph().as_default():
        names = [v1.layers.Conv2D(1, 1)(v1.ones([1, 2, 2, 1])).name for _ in range(2)]
        v1.layers.Conv2D(1, 1, name="mine")(v1.ones([1, 2, 2, 1]))
        assert [v.name for v in v1.global_variables() if "kernel" in v.name] == [
            "conv2d/kernel:0",
            "conv2d_1/kernel:0",
            "mine/kernel:0",
        ]
        assert [name.partition("/")[0] for name in names] == ["conv2d", "conv2d_1"]


def test_variables_are_found_in_the_layers_that_a_layer_holds() -> None:
    class Two(v1.layers.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.steps = [v1.layers.Dense(4), v1.layers.Dense(2)]

        def call(self, inputs: Any) -> Any:
            return self.steps[1](self.steps[0](inputs))

    layer = Two()
    layer(v1.ones([1, 3]))
    assert [tuple(v.shape) for v in layer.weights] == [(3, 4), (4,), (4, 2), (2,)]
    assert layer.variables == tuple(layer.trainable_weights)


def test_a_failed_build_is_made_again() -> None:
    class Late(Scale):
        ready = False

        def build(self, input_shape: Any) -> None:
            super().build(input_shape)
            if not self.ready:
                raise RuntimeError("not yet")

    layer = Late()
    with pytest.raises(RuntimeError, match="not yet"):
        layer(v1.ones([1, 2]))
    assert not layer.built
    layer.ready = True
    assert layer(v1.ones([1, 2])).numpy().tolist() == [[1.0, 1.0]]


def test_regularizers_report_the_losses(eager_or_graph: None) -> None:
    layer = v1.layers.Dense(
        2,
        kernel_initializer=v1.ones_initializer(),
        kernel_regularizer=lambda w: 0.5 * v1.reduce_sum(w * w),
        activity_regularizer=lambda y: v1.reduce_sum(y),
    )
    layer(v1.ones([1, 3]))
    losses = layer.losses
    assert [float(value(loss)) for loss in losses] == [3.0, 6.0]
    if not df.executing_eagerly():
        assert v1.get_collection(v1.GraphKeys.REGULARIZATION_LOSSES) == losses


def test_eagerly_a_loss_is_that_of_the_variables_now_and_of_the_last_call() -> None:
    layer = v1.layers.Dense(
        1,
        use_bias=False,
        kernel_initializer=v1.ones_initializer(),
        kernel_regularizer=v1.reduce_sum,
        activity_regularizer=v1.reduce_sum,
    )
    layer(v1.ones([1, 1]))
    layer(v1.ones([1, 1]) * 3)
    layer.kernel.assign([[5.0]])
    assert [float(x) for x in layer.losses] == [5.0, 3.0]


def test_a_layer_learns_in_a_traced_function() -> None:
    layer = v1.layers.Conv2D(1, 2, use_bias=False, kernel_initializer=v1.zeros_initializer())
    optimizer = v1.train.GradientDescentOptimizer(0.05)

    @df.function
    def step(x: Any, y: Any) -> Any:
        with df.GradientTape() as tape:
            loss = df.reduce_mean((layer(x) - y) ** 2)
        optimizer.apply_gradients(
            zip(tape.gradient(loss, layer.trainable_weights), layer.trainable_weights, strict=True)
        )
        return loss

    x, kernel = draw(8, 5, 5, 1), draw(2, 2, 1, 1)
    y = convolved(x, kernel).astype(np.float32)
    losses = [float(step(x, y)) for _ in range(150)]
    assert losses[-1] < 1e-3 * losses[0]


@pytest.mark.parametrize("name", [n for n in dir(v1.layers) if n[0].islower()])
def test_a_function_takes_inputs_first_and_reuse_or_a_name_last(name: str) -> None:
    parameters = list(inspect.signature(getattr(v1.layers, name)).parameters)
    assert parameters[0] == "inputs"
    assert "name" in parameters
    assert not {"dtype", "_reuse"} & set(parameters)


def test_a_function_uses_the_variables_of_its_name_again() -> None:
    with v1.Graph().as_default():
        for reuse in (None, True):
            v1.layers.conv2d(v1.ones([1, 3, 3, 1]), 2, 2, name="c", reuse=reuse)
        assert len(v1.global_variables()) == 2
        with pytest.raises(ValueError, match="c/kernel already exists"):
            v1.layers.conv2d(v1.ones([1, 3, 3, 1]), 2, 2, name="c")


# What is refused


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: v1.layers.Conv2D(3, 0), "`kernel_size` argument must be 2 positive integers, not 0"),
        (lambda: v1.layers.Conv2D(3, [1, 2, 3]), "`kernel_size` argument must be 2 positive integers"),
        (lambda: v1.layers.Conv2D(3, 3, 1.5), "`strides` argument must be 2 positive integers, not 1.5"),
        (lambda: v1.layers.Conv2D(3, 3, padding="full"), '`padding` argument must be "valid" or "same"'),
        (lambda: v1.layers.Conv2D(3, 3, data_format="NHWC"), "one of .*channels_first.*not 'NHWC'"),
        (lambda: v1.layers.SeparableConv2D(3, 3, [1, 2]), "one stride for all axes"),
        (
            lambda: v1.layers.Conv2D(3, 3)(v1.ones([2, 3])),
            "conv2d is incompatible.* expected ndim=4, found ndim=2",
        ),
        (lambda: v1.layers.MaxPooling2D(2, 2)(v1.ones([2, 3])), "expected ndim=4, found ndim=2"),
        (lambda: v1.layers.Flatten()(3.0), "expected min_ndim=1, found ndim=0"),
        (lambda: v1.layers.BatchNormalization(renorm=True), "BatchNormalization has no renorm"),
        (
            lambda: v1.layers.BatchNormalization(axis=3)(v1.ones([2, 3])),
            r"Invalid axis \[3\] of inputs of 2 axes",
        ),
        (lambda: v1.layers.Dense(3).count_params(), "has no variables before its first call"),
        (lambda: v1.layers.Dense(3).scope_name, "has no scope before its first call"),
        (lambda: v1.layers.Layer().add_weight("w", [1], colour=3), "unexpected keyword argument 'colour'"),
        (lambda: v1.layers.conv2d(v1.ones([1, 2, 2, 1]), 1, colour=3), r"conv2d\(\) .*argument"),
    ],
)
def test_bad_arguments_are_errors(make: Callable[[], Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        make()


def test_a_layer_refuses_other_channels_than_it_was_built_for() -> None:
    layer = v1.layers.Conv2D(2, 1)
    layer(v1.ones([1, 2, 2, 3]))
    with pytest.raises(ValueError, match="expected axis 3 of input shape to have value 3"):
        layer(v1.ones([1, 2, 2, 4]))


@pytest.mark.parametrize(
    ("make", "shape", "message"),
    [
        (lambda x: v1.layers.conv2d(x, 1, 1), [2, 2, 2, None], "channel dimension .*should be defined"),
        (lambda x: v1.layers.conv2d_transpose(x, 1, 1), [2, None, 2, 1], "axes have known sizes"),
        (v1.layers.batch_normalization, [2, None], "needs the size of axis"),
        (lambda x: v1.layers.dense(x, 1), [2, None], "last dimension .* should be defined"),
    ],
)
def test_sizes_that_variables_need_must_be_known(make: Any, shape: list[int | None], message: str) -> None:
    with v1.Graph().as_default():
        x = v1.placeholder(v1.float32, shape)
        with pytest.raises(ValueError, match=message):
            make(x)


def test_dropouts_whose_training_is_fed_have_gradients() -> None:
    """Each is a branch of its own; the gradient takes the one that ran, with the mask that it drew."""
    x = draw(3, 4)
    with v1.Graph().as_default(), v1.Session() as session:
        fed = v1.placeholder(df.float32, [None, 4])
        training = v1.placeholder(df.bool)
        hidden = v1.layers.dropout(v1.layers.dense(fed, 5, name="a"), rate=0.3, training=training)
        hidden = v1.layers.dropout(v1.layers.dense(hidden, 6, name="b"), rate=0.5, training=training)
        loss = v1.reduce_sum(v1.layers.dense(hidden, 3, name="c", use_bias=False))
        kernels = [v for v in v1.trainable_variables() if "kernel" in v.name]
        gradients = v1.gradients(loss, kernels)
        session.run(v1.global_variables_initializer())
        first, second, third = session.run(kernels)
        fetches = [*gradients, hidden]
        without_dropout = session.run(fetches, {fed: x, training: False})
        drawn = session.run(fetches, {fed: x, training: True})
    expected = x @ first @ second
    np.testing.assert_allclose(without_dropout[3], expected, rtol=1e-5)
    assert 0 < (drawn[3] == 0.0).sum() < drawn[3].size
    for results in (without_dropout, drawn):
        np.testing.assert_allclose(results[2], np.outer(results[3].sum(0), np.ones(3)), rtol=1e-4, atol=1e-5)
    cotangent = np.ones([3, 3]) @ third.T
    np.testing.assert_allclose(without_dropout[1], (x @ first).T @ cotangent, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(without_dropout[0], x.T @ (cotangent @ second.T), rtol=1e-4, atol=1e-5)
    assert not np.allclose(drawn[0], without_dropout[0])
