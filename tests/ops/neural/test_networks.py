"""Reductions to statistics, activations and losses against their formulas in NumPy."""

import math

import numpy as np
import pytest

import dualflow as df

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 5)) * 3
LABELS = np.array([0, 4, 2, 2])


def softmax(x, axis=-1):
    powers = np.exp(x - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


def gradient(function, x):
    tensor = df.constant(x)
    with df.GradientTape() as tape:
        tape.watch(tensor)
        y = function(tensor)
    return tape.gradient(y, tensor).numpy()


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 1), []])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (df.reduce_sum, np.sum),
        (df.reduce_mean, np.mean),
        (df.reduce_variance, np.var),
        (df.reduce_std, np.std),
        (df.reduce_max, np.max),
        (df.reduce_prod, np.prod),
        (df.reduce_logsumexp, lambda x, axis, keepdims: np.log(np.sum(np.exp(x), axis, keepdims=keepdims))),
        (df.reduce_euclidean_norm, lambda x, axis, keepdims: np.sqrt(np.sum(x * x, axis, keepdims=keepdims))),
    ],
)
def test_reductions(ours, theirs, axis, keepdims):
    expected = theirs(X, axis=tuple(axis) if axis == [] else axis, keepdims=keepdims)
    np.testing.assert_allclose(ours(X, axis, keepdims), expected, rtol=1e-12, atol=1e-12)


def test_the_mean_of_integers_stays_an_integer():
    assert df.reduce_mean([1, 2, 4]).numpy() == 2
    assert df.reduce_mean([1, 2, 4]).dtype is df.int32
    assert df.reduce_mean([-1, -2]).numpy() == -1


def test_the_mean_of_nothing_is_nan_its_maximum_the_least_number_and_its_place_an_error():
    assert math.isnan(df.reduce_mean(df.zeros([0])))
    assert float(df.reduce_max(df.zeros([0]))) == -math.inf
    with pytest.raises(df.errors.InvalidArgumentError, match="no elements"):
        df.argmax(df.zeros([0]))


def test_bools_are_counted_not_summed():
    with pytest.raises(df.errors.DTypeError, match="count_nonzero"):
        df.reduce_sum([True, False])
    assert int(df.math.count_nonzero([True, False, True])) == 2
    assert int(df.math.count_nonzero([[0.0, 2.0], [1.0, 3.0]], axis=0)[1]) == 2


def test_logsumexp_stays_finite_where_exponentials_overflow():
    assert df.reduce_logsumexp([1000.0, 1000.0]).numpy() == np.float32(1000 + math.log(2))
    assert df.reduce_logsumexp([-math.inf, -math.inf]).numpy() == -math.inf
    assert df.reduce_logsumexp([math.inf, 1.0]).numpy() == math.inf


@pytest.mark.parametrize("function", [df.nn.softmax, df.nn.log_softmax])
def test_no_axis_of_a_softmax_is_the_last_one(function):
    np.testing.assert_array_equal(function(X, None), function(X, -1))


@pytest.mark.parametrize("axis", [-1, 0])
def test_softmax_and_its_logarithm(axis):
    np.testing.assert_allclose(df.nn.softmax(X, axis), softmax(X, axis), rtol=1e-12)
    np.testing.assert_allclose(df.nn.log_softmax(X, axis), np.log(softmax(X, axis)), rtol=1e-12)
    assert df.nn.softmax([1e4, 0.0]).numpy().tolist() == [1.0, 0.0]
    assert df.nn.log_softmax([1e4, 0.0]).numpy().tolist() == [0.0, -1e4]


@pytest.mark.parametrize(
    ("ours", "formula"),
    [
        (df.nn.relu, lambda x: np.maximum(x, 0)),
        (df.nn.relu6, lambda x: np.clip(x, 0, 6)),
        (df.nn.leaky_relu, lambda x: np.where(x > 0, x, 0.2 * x)),
        (df.nn.elu, lambda x: np.where(x > 0, x, np.expm1(x))),
        (df.nn.selu, lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x))),
        (df.nn.gelu, lambda x: x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))),
        (df.nn.silu, lambda x: x / (1 + np.exp(-x))),
        (df.nn.softplus, lambda x: np.log1p(np.exp(x))),
        (df.nn.softsign, lambda x: x / (1 + np.abs(x))),
        (df.nn.sigmoid, lambda x: 1 / (1 + np.exp(-x))),
    ],
)
def test_activations(ours, formula):
    np.testing.assert_allclose(ours(X), formula(X), rtol=1e-12, atol=1e-15)


def test_the_approximate_gelu_is_close():
    np.testing.assert_allclose(df.nn.gelu(X, approximate=True), df.nn.gelu(X), atol=5e-4)


@pytest.mark.parametrize("function", [df.nn.softplus, df.nn.sigmoid, df.nn.elu, df.nn.silu, df.nn.gelu])
@pytest.mark.parametrize("x", [-1e4, 1e4])
def test_activations_and_their_slopes_are_finite_far_out(function, x):
    assert np.isfinite(function(df.constant(x)).numpy())
    assert np.isfinite(gradient(function, np.float64(x)))


def test_cross_entropies_agree_and_their_gradient_is_softmax_minus_the_labels():
    expected = -np.log(softmax(X))[np.arange(4), LABELS]
    one_hot = np.eye(5)[LABELS]
    sparse = df.nn.sparse_softmax_cross_entropy_with_logits(labels=LABELS, logits=X)
    np.testing.assert_allclose(sparse, expected, rtol=1e-12)
    np.testing.assert_allclose(df.nn.softmax_cross_entropy_with_logits(one_hot, X), expected, rtol=1e-12)
    for loss in (
        lambda x: df.nn.sparse_softmax_cross_entropy_with_logits(LABELS, x),
        lambda x: df.nn.softmax_cross_entropy_with_logits(one_hot, x),
    ):
        np.testing.assert_allclose(gradient(loss, X), softmax(X) - one_hot, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("labels", [[0, 5], [-1, 0]])
def test_a_label_that_is_no_class_is_refused_with_the_range(labels):
    with pytest.raises(df.errors.InvalidArgumentError, match=r"\[0, 5\)"):
        df.nn.sparse_softmax_cross_entropy_with_logits(labels, X[:2])


def test_labels_and_logits_that_do_not_match_are_refused():
    with pytest.raises(df.errors.InvalidArgumentError, match="do not match"):
        df.nn.sparse_softmax_cross_entropy_with_logits([0, 1, 2], X)
    with pytest.raises(df.errors.DTypeError, match="class numbers"):
        df.nn.sparse_softmax_cross_entropy_with_logits([0.0, 1.0, 2.0, 2.0], X)


def test_the_sigmoid_cross_entropy_is_finite_far_out():
    z, x = np.array([0.0, 1.0, 0.3]), np.array([2.0, -1.0, 0.5])
    s = 1 / (1 + np.exp(-x))
    result = df.nn.sigmoid_cross_entropy_with_logits(labels=z, logits=x)
    np.testing.assert_allclose(result, -z * np.log(s) - (1 - z) * np.log(1 - s), rtol=1e-12)
    assert df.nn.sigmoid_cross_entropy_with_logits(labels=0.0, logits=1e4).numpy() == 1e4


def test_clipping_by_norm_scales_only_what_is_too_long():
    np.testing.assert_allclose(df.clip_by_norm([3.0, 4.0], 1.0), [0.6, 0.8])
    np.testing.assert_array_equal(df.clip_by_norm([3.0, 4.0], 10.0), [3.0, 4.0])
    np.testing.assert_array_equal(gradient(lambda x: df.clip_by_norm(x, 1.0), np.zeros(2)), [1.0, 1.0])


def test_clipping_by_the_global_norm_scales_all_together():
    clipped, norm = df.clip_by_global_norm([df.constant([3.0]), None, df.constant([[4.0]])], 2.5)
    assert norm.numpy() == 5.0
    assert clipped[1] is None
    assert [float(c.numpy().sum()) for c in (clipped[0], clipped[2])] == [1.5, 2.0]
    assert math.isnan(df.clip_by_global_norm([df.constant([math.inf])], 1.0)[0][0][0])


def test_normalization():
    mean, variance = df.nn.moments(X, axes=[0])
    np.testing.assert_allclose(mean, X.mean(0), rtol=1e-12)
    np.testing.assert_allclose(variance, X.var(0), rtol=1e-12)
    result = df.nn.batch_normalization(X, mean, variance, offset=1.0, scale=2.0, variance_epsilon=1e-3)
    np.testing.assert_allclose(result, (X - X.mean(0)) / np.sqrt(X.var(0) + 1e-3) * 2 + 1, rtol=1e-9)
    np.testing.assert_allclose(df.nn.l2_normalize(X, axis=1), X / np.linalg.norm(X, axis=1, keepdims=True))
    assert df.nn.l2_normalize(df.zeros([3])).numpy().tolist() == [0.0] * 3
    assert df.nn.l2_loss([3.0, 4.0]).numpy() == 12.5


def test_a_bias_is_a_vector_along_the_channels():
    x = np.zeros((2, 3, 4))
    np.testing.assert_array_equal(df.nn.bias_add(x, np.arange(4.0)), x + np.arange(4.0))
    np.testing.assert_array_equal(df.nn.bias_add(x, np.arange(3.0), "NCW"), x + np.arange(3.0)[:, None])
    with pytest.raises(df.errors.InvalidArgumentError, match="bias of shape"):
        df.nn.bias_add(x, np.arange(3.0))


@pytest.mark.parametrize(
    ("order", "expected"), [("euclidean", 5.0), (1, 7.0), (2, 5.0), (math.inf, 4.0), (3, 91 ** (1 / 3))]
)
def test_norms(order, expected):
    np.testing.assert_allclose(df.norm([3.0, -4.0], ord=order), expected, rtol=1e-6)


def test_dropout_zeroes_at_the_rate_and_keeps_the_mean():
    df.random.set_seed(1)
    result = df.nn.dropout(df.ones([10000]), rate=0.25).numpy()
    assert set(np.unique(result)) == {np.float32(0), np.float32(1 / 0.75)}
    assert abs(result.mean() - 1) < 0.03
    with pytest.raises(df.errors.InvalidArgumentError, match=r"\[0, 1\)"):
        df.nn.dropout(df.ones([2]), rate=1.0)


def test_the_slope_of_softsign_is_0_at_infinity(mode):
    @mode
    def slope(x):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = df.nn.softsign(x)
        return tape.gradient(y, x)

    assert slope(df.constant([math.inf, -math.inf, 0.0, 1.0])).numpy().tolist() == [0.0, 0.0, 1.0, 0.25]


def test_clipping_by_a_norm_that_is_nan_is_nan_throughout(mode):
    clip = mode(lambda x: df.clip_by_norm(x, 2.0))
    assert np.isnan(clip(df.constant([math.nan, 1.0])).numpy()).all()
    assert clip(df.zeros([2])).numpy().tolist() == [0.0, 0.0]
