"""``v1.losses`` against NumPy, in both places where ops may run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.compat import v1

Reduction = v1.losses.Reduction
RANDOM = np.random.default_rng(0)
X, Y = (RANDOM.normal(size=(3, 4)).astype(np.float32) for _ in range(2))
HOLDS = (RANDOM.normal(size=(3, 4)) > 0).astype(np.float32)
SHARES = RANDOM.uniform(size=(3, 4)).astype(np.float32)
WEIGHTS = [2.0, np.float32([[1], [0], [3]]), np.float32([[1, 0, 2, 1], [0, 0, 0, 0], [3, 1, 0, 1]]), 0.0]


pytestmark = pytest.mark.usefixtures("eager_or_graph")


def value(x: Any) -> Any:
    if df.executing_eagerly():
        return x.numpy()
    with v1.Session() as session:
        return session.run(x)


def reduced(losses: Any, weights: Any, reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS) -> Any:
    """The reductions by their definitions."""
    losses = losses.astype(np.float64)
    w = np.broadcast_to(np.float64(weights), losses.shape)
    total = (losses * w).sum()
    divisors = {
        Reduction.SUM: 1,
        Reduction.MEAN: w.sum(),
        Reduction.SUM_OVER_BATCH_SIZE: losses.size,
        Reduction.SUM_BY_NONZERO_WEIGHTS: np.count_nonzero(w),
    }
    if reduction == Reduction.NONE:
        return losses * w
    return total / divisors[reduction] if divisors[reduction] else 0.0


def log1pexp(x: Any) -> Any:
    return np.logaddexp(0, x.astype(np.float64))


def softmax_loss(labels: Any) -> Any:
    x = X.astype(np.float64)
    return -(labels * (x - np.log(np.exp(x).sum(-1, keepdims=True)))).sum(-1)


def huber(error: Any, delta: float) -> Any:
    error = abs(error)
    return np.where(error <= delta, error**2 / 2, delta * error - delta**2 / 2)


LOSSES: dict[str, tuple[Callable[..., Any], Any]] = {
    "absolute_difference": (lambda **k: v1.losses.absolute_difference(Y, X, **k), abs(X - Y)),
    "mean_squared_error": (lambda **k: v1.losses.mean_squared_error(Y, X, **k), (X - Y) ** 2),
    "hinge_loss": (
        lambda **k: v1.losses.hinge_loss(HOLDS, X, **k),
        np.maximum(0, 1 - (2 * HOLDS - 1) * X),
    ),
    "huber_loss": (lambda **k: v1.losses.huber_loss(Y, X, delta=0.7, **k), huber(X - Y, 0.7)),
    "log_loss": (
        lambda **k: v1.losses.log_loss(HOLDS, SHARES, **k),
        -HOLDS * np.log(SHARES + 1e-7) - (1 - HOLDS) * np.log(1 - SHARES + 1e-7),
    ),
    "sigmoid_cross_entropy": (
        lambda **k: v1.losses.sigmoid_cross_entropy(HOLDS, X, **k),
        log1pexp(X) - X * HOLDS,
    ),
    "smoothed_sigmoid": (
        lambda **k: v1.losses.sigmoid_cross_entropy(HOLDS, X, label_smoothing=0.2, **k),
        log1pexp(X) - X * (HOLDS * 0.8 + 0.1),
    ),
}


@pytest.mark.parametrize("weights", WEIGHTS, ids=["all", "rows", "each", "none"])
@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_is_the_mean_of_those_that_count(name: str, weights: Any) -> None:
    loss, losses = LOSSES[name]
    np.testing.assert_allclose(value(loss(weights=weights)), reduced(losses, weights), rtol=1e-5)


@pytest.mark.parametrize("reduction", Reduction.all())
@pytest.mark.parametrize("weights", WEIGHTS, ids=["all", "rows", "each", "none"])
def test_reductions(reduction: str, weights: Any) -> None:
    result = value(v1.losses.compute_weighted_loss(X, weights, reduction=reduction))
    np.testing.assert_allclose(result, reduced(X, weights, reduction), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("smoothing", [0, 0.2])
def test_softmax_cross_entropy(smoothing: float) -> None:
    labels = np.eye(4)[[1, 3, 0]]
    weights = np.float32([1, 0, 2])
    result = v1.losses.softmax_cross_entropy(labels, X, weights, smoothing)
    expected = reduced(softmax_loss(labels * (1 - smoothing) + smoothing / 4), weights)
    np.testing.assert_allclose(value(result), expected, rtol=1e-5)


@pytest.mark.parametrize("column", [False, True])
def test_sparse_softmax_cross_entropy(column: bool) -> None:
    labels, weights = np.array([1, 3, 0]), np.float32([1, 0, 2])
    arguments = (labels[:, None], weights[:, None]) if column else (labels, weights)
    result = v1.losses.sparse_softmax_cross_entropy(arguments[0], X, arguments[1])
    np.testing.assert_allclose(value(result), reduced(softmax_loss(np.eye(4)[labels]), weights), rtol=1e-5)


def test_cosine_distance() -> None:
    result = value(v1.losses.cosine_distance(Y, X, axis=1, weights=WEIGHTS[1]))
    expected = reduced(1 - (X * Y).sum(1, keepdims=True), WEIGHTS[1])
    np.testing.assert_allclose(result, expected, rtol=1e-5)
    np.testing.assert_allclose(
        value(v1.losses.cosine_distance(Y, X, dim=1, weights=WEIGHTS[1])), expected, rtol=1e-5
    )


def test_mean_pairwise_squared_error_is_that_of_differences() -> None:
    d = (X - Y).astype(np.float64)
    pairs = d[:, :, None] - d[:, None, :]
    each = (pairs**2).sum((1, 2)) / (4 * 3)
    result = value(v1.losses.mean_pairwise_squared_error(Y, X, np.float32([[1], [0], [2]])))
    np.testing.assert_allclose(result, each @ [1, 0, 2], rtol=1e-5)
    assert value(v1.losses.mean_pairwise_squared_error(Y, X, 0.0)) == 0


def test_losses_are_float32_unless_they_come_in_float64() -> None:
    assert v1.losses.mean_squared_error(Y.astype(np.float64), X.astype(np.float64)).dtype is df.float32
    wide = v1.losses.compute_weighted_loss(np.array([1 / 3]), 2.0)
    assert value(wide) == 2 / 3
    whole = v1.losses.compute_weighted_loss(np.array([1, 2, 4]), 2.0)
    assert (int(value(whole)), whole.dtype) == (4, df.int64)


def test_a_graph_collects_losses() -> None:
    mse, mae = v1.losses.mean_squared_error(Y, X), v1.losses.absolute_difference(Y, X, loss_collection=None)
    del mae
    if df.executing_eagerly():
        assert v1.losses.get_losses() == []
        return
    assert v1.losses.get_losses() == [mse]
    v1.add_to_collection(v1.GraphKeys.REGULARIZATION_LOSSES, v1.constant(3.0))
    assert value(v1.losses.get_regularization_loss()) == 3.0
    np.testing.assert_allclose(value(v1.losses.get_total_loss()), ((X - Y) ** 2).mean() + 3, rtol=1e-5)
    alone = v1.losses.get_total_loss(add_regularization_losses=False)
    np.testing.assert_allclose(value(alone), ((X - Y) ** 2).mean(), rtol=1e-5)


def test_a_loss_has_a_gradient_by_the_predictions_alone() -> None:
    if not df.executing_eagerly():
        return
    labels, logits = df.constant([[0.2, 0.8]]), df.constant([[1.0, 2.0]])
    with df.GradientTape(persistent=True) as tape:
        tape.watch([labels, logits])
        loss = v1.losses.softmax_cross_entropy(labels, logits)
    assert tape.gradient(loss, labels) is None
    shares = np.exp([[1, 2]]) / np.exp([[1, 2]]).sum()
    np.testing.assert_allclose(tape.gradient(loss, logits), shares - labels.numpy(), rtol=1e-5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: v1.losses.mean_squared_error(Y, X[:2]), r"Shapes \(2, 4\) and \(3, 4\) are incompatible"),
        (lambda: v1.losses.mean_squared_error(Y, X, [1.0, 2.0]), "weights can not be broadcast to values"),
        (lambda: v1.losses.mean_squared_error(None, X), "labels must not be None"),
        (lambda: v1.losses.mean_squared_error(Y, X, reduction="all"), "Invalid Reduction Key all"),
        (lambda: v1.losses.cosine_distance(Y, X), "You must specify `axis`"),
        (lambda: v1.losses.cosine_distance(Y, X, axis=1, dim=1), "You must specify `axis`"),
        (lambda: v1.losses.mean_pairwise_squared_error([1.0], [2.0]), r"takes \[batch, ...\]"),
        (lambda: v1.losses.get_total_loss(), "There are no losses"),
    ],
)
def test_bad_arguments_are_errors(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
