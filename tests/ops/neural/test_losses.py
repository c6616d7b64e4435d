"""Losses against their formulas, and how a batch's are averaged."""

import math

import numpy as np

import dualflow as df


def test_a_weight_of_the_positive_counts_misses_more(mode):
    rng = np.random.default_rng(0)
    z, x, weight = rng.random(6), rng.normal(size=6) * 5, 3.0
    result = mode(lambda z, x: df.nn.weighted_cross_entropy_with_logits(z, x, weight))(
        df.constant(z), df.constant(x)
    )
    s = 1 / (1 + np.exp(-x))
    np.testing.assert_allclose(result, -weight * z * np.log(s) - (1 - z) * np.log(1 - s), rtol=1e-9)
    np.testing.assert_allclose(
        df.nn.weighted_cross_entropy_with_logits(z, x, 1.0),
        df.nn.sigmoid_cross_entropy_with_logits(labels=z, logits=x),
        rtol=1e-9,
    )


def test_a_weighted_cross_entropy_is_finite_far_out():
    result = df.nn.weighted_cross_entropy_with_logits([0.0, 1.0, 1.0], [1e4, -1e4, 1e4], 2.0)
    assert result.numpy().tolist() == [1e4, 2e4, 0.0]


def test_a_poisson_loss_is_a_negative_log_likelihood(mode):
    counts, x = np.array([0.0, 1.0, 2.0, 5.0, 40.0]), np.array([0.1, 0.2, 0.3, 0.4, 3.5])
    run = mode(lambda z, x: (df.nn.log_poisson_loss(z, x), df.nn.log_poisson_loss(z, x, True)))
    short, full = run(df.constant(counts), df.constant(x))
    np.testing.assert_allclose(short, np.exp(x) - counts * x, rtol=1e-12)
    exact = np.array([math.lgamma(c + 1) for c in counts])
    np.testing.assert_allclose(full, short + exact, atol=0.05)  # Stirling's formula is that exact
    assert full.numpy()[:2].tolist() == short.numpy()[:2].tolist()


def test_the_gradient_of_a_full_poisson_loss_is_finite_at_0():
    z = df.constant([0.0, 0.5, 3.0])
    with df.GradientTape() as tape:
        tape.watch(z)
        y = df.nn.log_poisson_loss(z, [0.0, 0.0, 0.0], compute_full_loss=True)
    assert np.isfinite(tape.gradient(y, z).numpy()).all()


def test_a_loss_is_averaged_over_the_whole_batch(mode):
    loss = df.constant([[1.0, 2.0], [3.0, 6.0]])
    assert float(mode(df.nn.compute_average_loss)(loss)) == 6.0
    assert float(df.nn.compute_average_loss(loss, global_batch_size=4)) == 3.0
    assert float(df.nn.compute_average_loss(loss, sample_weight=[1.0, 0.0])) == 1.5
    assert float(df.nn.compute_average_loss(loss, sample_weight=[[0.0, 1.0], [0.0, 1.0]])) == 4.0
    assert float(df.nn.compute_average_loss(loss, global_batch_size=0)) == 0.0


def test_an_average_of_integers_is_a_float():
    result = df.nn.compute_average_loss([1, 2, 6])
    assert (result.dtype, float(result)) == (df.float64, 3.0)


def test_an_average_over_a_dynamic_batch():
    traced = df.function(df.nn.compute_average_loss, input_signature=[df.TensorSpec([None])])
    assert float(traced(df.constant([1.0, 5.0]))) == 3.0


def test_the_terms_of_a_regularization_are_added():
    assert float(df.nn.scale_regularization_loss([1.0, 2.5])) == 3.5
    assert float(df.nn.scale_regularization_loss(2.5)) == 2.5


def test_crelu_keeps_both_signs(mode):
    x = df.constant([[-1.0, 2.0], [0.0, -3.0]])
    assert mode(df.nn.crelu)(x).numpy().tolist() == [[0.0, 2.0, 1.0, 0.0], [0.0, 0.0, 0.0, 3.0]]
    assert df.nn.crelu(x, axis=0).shape == (4, 2)


def test_a_leaky_relu_of_integers_is_a_float32():
    result = df.nn.leaky_relu([-5, 1])
    np.testing.assert_allclose(result, np.array([-1, 1], np.float32), rtol=1e-6, strict=True)
