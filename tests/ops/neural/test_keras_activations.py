"""``df.keras.activations``: against their formulas in NumPy, with gradients, in both modes."""

from __future__ import annotations

import numpy as np
import pytest

import dualflow as df

X = np.array([-9.0, -3.5, -1.2, -0.6, -0.3, 0.2, 0.7, 1.3, 2.9, 8.0])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    return np.exp(x - x.max()) / np.exp(x - x.max()).sum()


FORMULAS = {
    "celu": (lambda x: np.where(x > 0, x, 0.7 * np.expm1(x / 0.7)), {"alpha": 0.7}),
    "elu": (lambda x: np.where(x > 0, x, 0.5 * np.expm1(x)), {"alpha": 0.5}),
    "exponential": (np.exp, {}),
    "glu": (lambda x: x[:5] * sigmoid(x[5:]), {}),
    "hard_shrink": (lambda x: np.where(np.abs(x) > 0.5, x, 0), {}),
    "hard_sigmoid": (lambda x: np.clip(x / 6 + 0.5, 0, 1), {}),
    "hard_silu": (lambda x: x * np.clip(x / 6 + 0.5, 0, 1), {}),
    "hard_tanh": (lambda x: np.clip(x, -1, 1), {}),
    "leaky_relu": (lambda x: np.where(x > 0, x, 0.2 * x), {}),
    "linear": (lambda x: x, {}),
    "log_sigmoid": (lambda x: np.log(sigmoid(x)), {}),
    "log_softmax": (lambda x: np.log(softmax(x)), {}),
    "mish": (lambda x: x * np.tanh(np.log1p(np.exp(x))), {}),
    "relu": (
        lambda x: np.minimum(np.where(x >= 0.5, x, 0.1 * (x - 0.5)), 6),
        {"negative_slope": 0.1, "max_value": 6.0, "threshold": 0.5},
    ),
    "relu6": (lambda x: np.clip(x, 0, 6), {}),
    "sigmoid": (sigmoid, {}),
    "silu": (lambda x: x * sigmoid(x), {}),
    "soft_shrink": (lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.5, 0), {}),
    "softmax": (softmax, {}),
    "softplus": (lambda x: np.log1p(np.exp(x)), {}),
    "softsign": (lambda x: x / (1 + np.abs(x)), {}),
    "squareplus": (lambda x: (x + np.sqrt(x * x + 4)) / 2, {}),
    "tanh": (np.tanh, {}),
    "tanh_shrink": (lambda x: x - np.tanh(x), {}),
    "threshold": (lambda x: np.where(x > 0.5, x, 3.0), {"threshold": 0.5, "default_value": 3.0}),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_an_activation_is_its_formula(name, mode):
    formula, options = FORMULAS[name]
    found = mode(lambda x: getattr(df.keras.activations, name)(x, **options))(df.constant(X))
    np.testing.assert_allclose(found, formula(X), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", FORMULAS)
def test_an_activation_has_derivatives(name):
    _, options = FORMULAS[name]
    df.test.check_gradients(lambda x: getattr(df.keras.activations, name)(x, **options), X, order=2)


def test_relu_in_its_plain_form_keeps_integers():
    assert df.keras.activations.relu(df.constant([-2, 3])).numpy().tolist() == [0, 3]
