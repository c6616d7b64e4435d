"""TensorFlow Probability: distributions, bijectors and Hamiltonian Monte Carlo, eagerly and in functions."""

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp

tfb, tfd = tfp.bijectors, tfp.distributions

DISTRIBUTIONS = {
    "Bernoulli": lambda: tfd.Bernoulli(logits=[0.0, 1.0]),
    "Beta": lambda: tfd.Beta(2.0, 3.0),
    "Binomial": lambda: tfd.Binomial(10.0, probs=[0.3, 0.5]),
    "Categorical": lambda: tfd.Categorical(logits=[0.0, 1.0, 2.0]),
    "Cauchy": lambda: tfd.Cauchy(0.0, 1.0),
    "Dirichlet": lambda: tfd.Dirichlet([1.0, 2.0, 3.0]),
    "Exponential": lambda: tfd.Exponential(2.0),
    "Gamma": lambda: tfd.Gamma(2.0, [1.0, 3.0]),
    "GaussianProcess": lambda: tfd.GaussianProcess(
        tfp.math.psd_kernels.ExponentiatedQuadratic(), index_points=[[0.0], [1.0]]
    ),
    "HalfNormal": lambda: tfd.HalfNormal(1.0),
    "HiddenMarkovModel": lambda: tfd.HiddenMarkovModel(
        tfd.Categorical(probs=[0.5, 0.5]),
        tfd.Categorical(probs=[[0.7, 0.3], [0.2, 0.8]]),
        tfd.Normal([0.0, 5.0], [1.0, 1.0]),
        6,
    ),
    "Independent": lambda: tfd.Independent(tfd.Normal([0.0, 1.0], 1.0), 1),
    "JointDistributionNamed": lambda: tfd.JointDistributionNamed(
        {"a": tfd.Normal(0.0, 1.0), "b": lambda a: tfd.Normal(a, 1.0)}
    ),
    "LKJ": lambda: tfd.LKJ(3, 1.5),
    "Laplace": lambda: tfd.Laplace(0.0, 1.0),
    "LogNormal": lambda: tfd.LogNormal(0.0, 1.0),
    "MixtureSameFamily": lambda: tfd.MixtureSameFamily(
        tfd.Categorical(probs=[0.3, 0.7]), tfd.Normal([0.0, 3.0], [1.0, 1.0])
    ),
    "Multinomial": lambda: tfd.Multinomial(4.0, probs=[0.2, 0.3, 0.5]),
    "MultivariateNormalTriL": lambda: tfd.MultivariateNormalTriL([0.0, 1.0], [[1.0, 0.0], [0.5, 2.0]]),
    "NegativeBinomial": lambda: tfd.NegativeBinomial(5.0, probs=0.4),
    "Normal": lambda: tfd.Normal(0.0, [1.0, 2.0]),
    "Poisson": lambda: tfd.Poisson([1.0, 3.0]),
    "StudentT": lambda: tfd.StudentT(3.0, 0.0, 1.0),
    "TransformedDistribution": lambda: tfd.TransformedDistribution(tfd.Normal(0.0, 1.0), tfb.Exp()),
    "TruncatedNormal": lambda: tfd.TruncatedNormal(0.0, 1.0, -1.0, 2.0),
    "Uniform": lambda: tfd.Uniform(0.0, [1.0, 2.0]),
    "VonMises": lambda: tfd.VonMises(0.0, 1.0),
    "WishartTriL": lambda: tfd.WishartTriL(5.0, scale_tril=tf.eye(2)),
}
BIJECTORS = {
    "Chain": lambda: tfb.Chain([tfb.Shift(1.0), tfb.Scale(2.0), tfb.Exp()]),
    "Exp": tfb.Exp,
    "FillScaleTriL": tfb.FillScaleTriL,
    "Scale": lambda: tfb.Scale(2.0),
    "ScaleMatvecTriL": lambda: tfb.ScaleMatvecTriL([[1.0, 0.0, 0.0], [0.5, 2.0, 0.0], [0.1, 0.2, 1.0]]),
    "Sigmoid": tfb.Sigmoid,
    "SoftmaxCentered": tfb.SoftmaxCentered,
    "Softplus": tfb.Softplus,
    "Tanh": tfb.Tanh,
}
VALUES = tf.constant([0.3, -0.7, 0.5])


def distribution(name):
    d = DISTRIBUTIONS[name]()
    draws = d.sample(3, seed=(1, 2))
    eager = d.log_prob(draws)
    compiled = tf.function(lambda d, x: d.log_prob(x))(d, draws)
    np.testing.assert_allclose(eager, compiled, rtol=2e-4, atol=1e-4)


def bijector(name):
    def forth_and_back(x):
        b = BIJECTORS[name]()
        y = b.forward(x)
        return b.inverse(tf.identity(y)), b.forward_log_det_jacobian(x, event_ndims=1)

    for run in (forth_and_back, tf.function(forth_and_back)):
        back, log_det = run(VALUES)
        np.testing.assert_allclose(back, VALUES, rtol=1e-4, atol=1e-5)
        assert np.isfinite(log_det)


def hamiltonian_monte_carlo(run):
    target = tfd.Normal([1.0, -2.0], [0.5, 1.5])
    kernel = tfp.mcmc.HamiltonianMonteCarlo(
        lambda x: tf.reduce_sum(target.log_prob(x)), step_size=0.4, num_leapfrog_steps=4
    )

    def sample():
        return tfp.mcmc.sample_chain(
            400, tf.zeros([2]), kernel=kernel, num_burnin_steps=100, seed=(1, 2), trace_fn=None
        )

    draws = run(sample)().numpy()
    np.testing.assert_allclose(draws.mean(0), [1.0, -2.0], atol=0.6)
    np.testing.assert_allclose(draws.std(0), [0.5, 1.5], rtol=0.5)


def posterior_by_gradient():
    location = tf.Variable(0.0)
    scale = tfp.util.TransformedVariable(1.0, tfb.Softplus())
    model = tfd.Normal(location, scale)
    data = tf.constant([2.0, 3.0, 4.0])
    for _ in range(200):
        with tf.GradientTape() as tape:
            loss = -tf.reduce_mean(model.log_prob(data))
        for variable, gradient in zip(
            model.trainable_variables, tape.gradient(loss, model.trainable_variables), strict=True
        ):
            variable.assign_sub(0.1 * gradient)
    np.testing.assert_allclose(location, 3.0, atol=0.05)
    np.testing.assert_allclose(model.stddev(), np.std([2.0, 3.0, 4.0]), atol=0.05)


TESTS = {
    **{f"distribution {name}": lambda name=name: distribution(name) for name in DISTRIBUTIONS},
    **{f"bijector {name}": lambda name=name: bijector(name) for name in BIJECTORS},
    "HMC eagerly": lambda: hamiltonian_monte_carlo(lambda sample: sample),
    "HMC in a function": lambda: hamiltonian_monte_carlo(tf.function),
    "a fit by gradients": posterior_by_gradient,
}
for test, run in TESTS.items():
    try:
        run()
    except Exception as error:  # the others run too
        print(f"fail {test}: {type(error).__name__}: {str(error)[:300]}", flush=True)
    else:
        print(f"pass {test}", flush=True)
