"""Mean and variance, and what is normalised by them or by neighbours, against their formulas in NumPy."""

import numpy as np
import pytest

import dualflow as df

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 3, 4, 5))
AXES = [[0], [1, 2], [0, 1, 2], [3], [0, 1, 2, 3], []]


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axes", AXES, ids=str)
def test_moments_are_mean_and_variance(mode, axes, keepdims):
    mean, variance = mode(lambda x: df.nn.moments(x, axes, keepdims=keepdims))(df.constant(X))
    np.testing.assert_allclose(mean, X.mean(tuple(axes), keepdims=keepdims), rtol=1e-12)
    np.testing.assert_allclose(variance, X.var(tuple(axes), keepdims=keepdims), rtol=1e-12, atol=1e-15)


def test_the_shift_of_moments_changes_nothing():
    for result, expected in zip(df.nn.moments(X, [0], shift=3.0), df.nn.moments(X, [0]), strict=True):
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axes", AXES, ids=str)
def test_whole_weights_count_elements_as_often(mode, axes, keepdims):
    weights = RNG.integers(1, 5, (3, 1, 5)).astype(float)
    run = mode(lambda x, w: df.nn.weighted_moments(x, axes, w, keepdims=keepdims))
    mean, variance = run(df.constant(X), df.constant(weights))
    over = tuple(axes)
    wide = np.broadcast_to(weights, X.shape)
    expected = (wide * X).sum(over, keepdims=True) / wide.sum(over, keepdims=True)
    spread = (wide * (X - expected) ** 2).sum(over, keepdims=True) / wide.sum(over, keepdims=True)
    if not keepdims:
        expected, spread = expected.squeeze(over), spread.squeeze(over)
    np.testing.assert_allclose(mean, expected, rtol=1e-12)
    np.testing.assert_allclose(variance, spread, rtol=1e-12, atol=1e-15)


def test_weights_may_be_larger_than_what_they_weigh():
    mean, _ = df.nn.weighted_moments([[1.0], [3.0]], [0], [[1.0, 3.0], [1.0, 1.0]])
    np.testing.assert_allclose(mean, [2.0, 1.5])


@pytest.mark.parametrize("function", ["moments", "weighted_moments"])
def test_float16_is_computed_in_float32(mode, function):
    x = np.full((5000, 1), 3.0, np.float16)
    x[::2] = 5.0
    options = {"frequency_weights": np.ones((5000, 1), np.float16)} if function == "weighted_moments" else {}
    mean, variance = mode(lambda x: getattr(df.nn, function)(x, [0], **options))(df.constant(x))
    assert (mean.dtype, variance.dtype) == (df.float16, df.float16)
    assert (float(mean[0]), float(variance[0])) == (4.0, 1.0)


@pytest.mark.parametrize("shift", [None, 2.0])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axes", AXES[:-1], ids=str)
def test_sums_give_the_moments(mode, axes, keepdims, shift):
    def normalized(x):
        return df.nn.normalize_moments(*df.nn.sufficient_statistics(x, axes, shift, keepdims))

    for result, expected in zip(
        mode(normalized)(df.constant(X)), df.nn.moments(X, axes, keepdims=keepdims), strict=True
    ):
        np.testing.assert_allclose(result, expected, rtol=1e-10, atol=1e-12)


def test_sums_of_a_dynamic_batch_count_its_rows():
    spec = df.TensorSpec([None, 3], df.float64)
    traced = df.function(lambda x: df.nn.sufficient_statistics(x, [0])[:3], input_signature=[spec])
    count, total, squares = traced(X[0, :, :3, 0].T)
    assert float(count) == 3.0
    np.testing.assert_allclose(total, X[0, :, :3, 0].sum(1), rtol=1e-12)
    np.testing.assert_allclose(squares, (X[0, :, :3, 0] ** 2).sum(1), rtol=1e-12)


@pytest.mark.parametrize("scaled", [False, True])
def test_global_normalization_scales_if_requested(mode, scaled):
    mean, variance, beta, gamma = RNG.normal(size=5), RNG.random(5), RNG.normal(size=5), RNG.normal(size=5)
    run = mode(
        lambda x: df.nn.batch_norm_with_global_normalization(x, mean, variance, beta, gamma, 1e-3, scaled)
    )
    expected = (X - mean) / np.sqrt(variance + 1e-3) * (gamma if scaled else 1) + beta
    np.testing.assert_allclose(run(df.constant(X)), expected, rtol=1e-10)


# fused_batch_norm


fused = df.compat.v1.nn.fused_batch_norm
SCALE, OFFSET = RNG.random(5), RNG.normal(size=5)


def test_the_batch_is_normalized_by_its_own_moments(mode):
    y, mean, variance = mode(lambda x: fused(x, SCALE, OFFSET))(df.constant(X))
    centre, spread = X.mean((0, 1, 2)), X.var((0, 1, 2))
    np.testing.assert_allclose(y, (X - centre) / np.sqrt(spread + 1e-3) * SCALE + OFFSET, rtol=1e-9)
    np.testing.assert_allclose(mean, centre, rtol=1e-9)
    np.testing.assert_allclose(variance, X.var((0, 1, 2), ddof=1), rtol=1e-9)


def test_the_running_moments_are_mixed_or_used():
    mean, variance = RNG.normal(size=5), RNG.random(5)
    _, mixed, spread = fused(X, SCALE, OFFSET, mean, variance, exponential_avg_factor=0.25)
    np.testing.assert_allclose(mixed, 0.75 * mean + 0.25 * X.mean((0, 1, 2)), rtol=1e-9)
    np.testing.assert_allclose(spread, 0.75 * variance + 0.25 * X.var((0, 1, 2), ddof=1), rtol=1e-9)
    y, same, _ = fused(X, SCALE, OFFSET, mean, variance, is_training=False)
    np.testing.assert_allclose(y, (X - mean) / np.sqrt(variance + 1e-3) * SCALE + OFFSET, rtol=1e-9)
    np.testing.assert_array_equal(same, mean)


def test_channels_second_and_half_precision():
    first = fused(np.moveaxis(X, -1, 1), SCALE, OFFSET, data_format="NCHW")
    for result, expected in zip(first[1:], fused(X, SCALE, OFFSET)[1:], strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-9)
    np.testing.assert_allclose(
        np.moveaxis(first[0].numpy(), 1, -1), fused(X, SCALE, OFFSET)[0], rtol=1e-9, atol=1e-12
    )
    half = fused(X.astype(np.float16), SCALE.astype(np.float32), OFFSET.astype(np.float32))
    assert [t.dtype for t in half] == [df.float16, df.float32, df.float32]


def test_values_of_tensorflow():
    """Literal results of TensorFlow 2.21."""
    x = np.array([0.0, 0.002, 0.004, 0.006], np.float32).reshape(1, 2, 2, 1)
    y, _, variance = fused(x, [1.0], [0.0], epsilon=0.0)
    np.testing.assert_allclose(y.numpy().ravel(), [-1.3416408, -0.44721356, 0.44721368, 1.3416408], rtol=1e-5)
    np.testing.assert_allclose(variance, [6.6666666e-06], rtol=1e-5)


# Neighbours


NEIGHBOURS = [(5, 1, 1, 0.5), (2, 2.0, 0.5, 0.75), (0, 1, 2, 1)]


@pytest.mark.parametrize(("radius", "bias", "alpha", "beta"), NEIGHBOURS)
def test_channels_are_divided_by_a_power_of_their_neighbourhood(mode, radius, bias, alpha, beta):
    run = mode(lambda x: df.nn.local_response_normalization(x, radius, bias, alpha, beta))
    total = np.stack(
        [(X[..., max(0, c - radius) : c + radius + 1] ** 2).sum(-1) for c in range(X.shape[-1])], -1
    )
    np.testing.assert_allclose(run(df.constant(X)), X / (bias + alpha * total) ** beta, rtol=1e-10)
    assert df.nn.lrn is df.nn.local_response_normalization
