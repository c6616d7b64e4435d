"""``v1.nn``: TensorFlow 1's order of arguments, and names that TensorFlow 2 dropped."""

import numpy as np
import pytest

import dualflow as df
from dualflow.compat import v1

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 6, 5, 4))
W = RNG.normal(size=(3, 2, 4, 6))
DEPTH, POINT = RNG.normal(size=(3, 2, 4, 2)), RNG.normal(size=(1, 1, 8, 3))
FLAT = RNG.normal(size=(3, 2, 4))


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        (
            lambda: v1.nn.max_pool(X, [1, 2, 2, 1], [1, 2, 2, 1], "SAME"),
            lambda: df.nn.max_pool(X, 2, 2, "SAME"),
        ),
        (
            lambda: v1.nn.avg_pool(value=X, ksize=2, strides=2, padding="SAME"),
            lambda: df.nn.avg_pool(X, 2, 2, "SAME"),
        ),
        (
            lambda: v1.nn.pool(X, [2, 2], "MAX", "SAME", None, [2, 2]),
            lambda: df.nn.pool(X, [2, 2], "MAX", [2, 2], "SAME"),
        ),
        (
            lambda: v1.nn.separable_conv2d(X, DEPTH, POINT, [1, 1, 1, 1], "SAME", [2, 2]),
            lambda: df.nn.separable_conv2d(X, DEPTH, POINT, 1, "SAME", dilations=2),
        ),
        (
            lambda: v1.nn.dilation2d(X, FLAT, [1, 2, 1, 1], [1, 1, 1, 1], "SAME"),
            lambda: df.nn.dilation2d(X, FLAT, [1, 2, 1, 1], "SAME", "NHWC", 1),
        ),
        (
            lambda: v1.nn.erosion2d(value=X, kernel=FLAT, strides=1, rates=2, padding="SAME"),
            lambda: df.nn.erosion2d(X, FLAT, 1, "SAME", "NHWC", 2),
        ),
        (lambda: v1.nn.crelu(X, None, 1), lambda: df.nn.crelu(X, 1)),
        (
            lambda: v1.nn.space_to_depth(X[:, :, :4], 2, "name", "NHWC"),
            lambda: df.nn.space_to_depth(X[:, :, :4], 2),
        ),
        (
            lambda: v1.nn.weighted_moments(X, [0], 1.0, keep_dims=True)[0],
            lambda: df.nn.weighted_moments(X, [0], 1.0, keepdims=True)[0],
        ),
        (
            lambda: v1.nn.weighted_cross_entropy_with_logits(logits=X, targets=X, pos_weight=2.0),
            lambda: df.nn.weighted_cross_entropy_with_logits(X, X, 2.0),
        ),
        (
            lambda: v1.nn.depthwise_conv2d_native(X, DEPTH, 1, "SAME"),
            lambda: df.nn.depthwise_conv2d(X, DEPTH, 1, "SAME"),
        ),
        (
            lambda: v1.nn.in_top_k([[0.1, 0.9]], [1], 1),
            lambda: df.nn.in_top_k([1], [[0.1, 0.9]], 1),
        ),
    ],
)
def test_older_orders_and_names_of_arguments(older, newer):
    np.testing.assert_array_equal(older(), newer())


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_conv2d_backprop_input_and_filter(data_format):
    first = data_format == "NCHW"
    strides = [1, 1, 2, 2] if first else [1, 2, 2, 1]
    x, w = df.constant(X.transpose(0, 3, 1, 2) if first else X), df.constant(W)
    with df.GradientTape() as tape:
        tape.watch([x, w])
        y = df.nn.conv2d(x, w, strides, "SAME", data_format)
    g = df.constant(RNG.normal(size=y.shape))
    to_x, to_w = tape.gradient(y, [x, w], output_gradients=g)
    options = {"strides": strides, "padding": "SAME", "data_format": data_format}
    np.testing.assert_allclose(v1.nn.conv2d_backprop_input(x.shape, w, g, **options), to_x, rtol=1e-12)
    np.testing.assert_allclose(v1.nn.conv2d_backprop_filter(x, w.shape, g, **options), to_w, rtol=1e-12)


def test_conv3d_backprop_filter():
    x, w = df.constant(RNG.normal(size=(1, 4, 3, 5, 2))), df.constant(RNG.normal(size=(2, 2, 2, 2, 3)))
    with df.GradientTape() as tape:
        tape.watch(w)
        y = df.nn.conv3d(x, w)
    expected = tape.gradient(y, w)
    result = v1.nn.conv3d_backprop_filter_v2(x, w.shape, df.ones_like(y), [1] * 5, "VALID")
    np.testing.assert_allclose(result, expected, rtol=1e-12)


def test_a_layer_is_a_product_and_a_bias():
    x, w, b = X[0, 0], W[0, 0], RNG.normal(size=6)
    np.testing.assert_allclose(v1.nn.xw_plus_b(x, w, b), x @ w + b, rtol=1e-12)
    np.testing.assert_allclose(v1.nn.relu_layer(x, w, b), np.maximum(x @ w + b, 0), rtol=1e-12)


def test_ops_in_a_graph_have_the_requested_names():
    expected = df.nn.max_pool(X, 2, 2, "SAME")
    with v1.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(v1.float64, X.shape)
        y = v1.nn.max_pool(x, 2, 2, "SAME", name="pooled")
        assert y.name == "pooled:0"
        np.testing.assert_array_equal(session.run(y, {x: X}), expected)


CTC_LABELS = df.SparseTensor([[0, 0], [0, 1], [1, 0], [2, 0], [2, 1], [2, 2]], [0, 0, 1, 2, 2, 2], [3, 3])
CTC_SCORES = RNG.normal(size=(5, 3, 4))


def test_the_ctc_loss_has_the_last_class_as_blank():
    steps = [5, 2, 5]
    loss = df.nn.ctc_loss(CTC_LABELS, CTC_SCORES, None, steps, blank_index=-1)
    np.testing.assert_array_equal(v1.nn.ctc_loss(CTC_LABELS, CTC_SCORES, steps), loss)
    by_batch = CTC_SCORES.transpose(1, 0, 2)
    other = v1.nn.ctc_loss(CTC_LABELS, logits=by_batch, sequence_length=steps, time_major=False)
    np.testing.assert_allclose(other, loss)


def test_the_ctc_loss_of_more_labels_than_steps_is_an_error_or_0():
    steps = [5, 2, 2]
    with pytest.raises(df.errors.InvalidArgumentError, match="fewer steps than labels; set ignore_longer"):
        v1.nn.ctc_loss(CTC_LABELS, CTC_SCORES, steps)
    loss = v1.nn.ctc_loss(CTC_LABELS, CTC_SCORES, steps, ignore_longer_outputs_than_inputs=True)
    np.testing.assert_array_equal(loss.numpy() == 0.0, [False, False, True])


@pytest.mark.parametrize("option", [{"preprocess_collapse_repeated": True}, {"ctc_merge_repeated": False}])
def test_other_options_of_the_ctc_loss_are_refused(option):
    with pytest.raises(df.errors.InvalidArgumentError, match="leave preprocess_collapse_repeated and"):
        v1.nn.ctc_loss(CTC_LABELS, CTC_SCORES, [5, 2, 5], **option)
