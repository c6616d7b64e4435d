"""Losses that compare predictions with labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dualflow import nn
from dualflow.compat.v1.collection import GraphKeys
from dualflow.compat.v1.losses.weighted import Reduction, add_loss, compute_weighted_loss, nonzero_weights
from dualflow.compat.v1.weighting import as_numbers, fit_weights, require_one_shape, required_tensor
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.tracebacks import entry
from dualflow.graph_mode import name_scope
from dualflow.ops.arithmetic import divide_no_nan, maximum, minimum
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.creation import zeros_like
from dualflow.ops.powers import log
from dualflow.ops.selection import where

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike
    from dualflow.ops.tensor import Tensor


def _as_matching_floats(labels: Any, predictions: Any, argument_name: str = "predictions") -> tuple[Any, Any]:
    """Labels and predictions as float32; raises an error unless their shapes are equal."""
    y_true = as_numbers(required_tensor(labels, "labels"))
    y_pred = as_numbers(required_tensor(predictions, argument_name))
    require_one_shape(y_true, y_pred)
    return y_true, y_pred


@entry
def absolute_difference(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """``abs(predictions - labels)``; see :func:`compute_weighted_loss` for the other arguments.

    Raises:
        InvalidArgumentError: labels and predictions of different shapes.

    >>> from dualflow.compat import v1
    >>> float(v1.losses.absolute_difference([1.0, 2.0], [1.0, 5.0]))
    1.5
    """
    with name_scope(scope, "absolute_difference") as inner:
        y_true, y_pred = _as_matching_floats(labels, predictions)
        return compute_weighted_loss(abs(y_pred - y_true), weights, inner, loss_collection, reduction)


@entry
def mean_squared_error(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """``(predictions - labels) ** 2``; see :func:`compute_weighted_loss` for the other arguments.

    Raises:
        InvalidArgumentError: labels and predictions of different shapes.

    >>> from dualflow.compat import v1
    >>> float(v1.losses.mean_squared_error([1.0, 2.0], [1.0, 5.0]))
    4.5
    """
    with name_scope(scope, "mean_squared_error") as inner:
        y_true, y_pred = _as_matching_floats(labels, predictions)
        difference = y_pred - y_true
        return compute_weighted_loss(difference * difference, weights, inner, loss_collection, reduction)


@entry
def cosine_distance(
    labels: TensorLike,
    predictions: TensorLike,
    axis: int | None = None,
    weights: TensorLike = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
    dim: int | None = None,
) -> Tensor:
    """``1 - sum(labels * predictions)`` along an axis; the vectors must be normalised to length 1.

    Args:
        labels, predictions: of equal shape.
        axis: the axis of the vectors; ``dim`` is its older name.

    See :func:`compute_weighted_loss` for the other arguments.

    Raises:
        InvalidArgumentError: labels and predictions of different shapes; no axis, or both names of it.

    >>> from dualflow.compat import v1
    >>> float(v1.losses.cosine_distance([[1.0, 0.0]], [[0.0, 1.0]], axis=1))
    1.0
    """
    if (axis is None) == (dim is None):
        raise InvalidArgumentError("You must specify `axis`, or else its older name `dim`.")
    with name_scope(scope, "cosine_distance_loss") as inner:
        y_true, y_pred = _as_matching_floats(labels, predictions)
        losses = 1 - reduce_sum(y_pred * y_true, dim if axis is None else axis, keepdims=True)
        return compute_weighted_loss(losses, weights, inner, loss_collection, reduction)


@entry
def hinge_loss(
    labels: TensorLike,
    logits: TensorLike,
    weights: TensorLike = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """``max(0, 1 - logits)`` where the label is 1, and ``max(0, 1 + logits)`` where it is 0.

    See :func:`compute_weighted_loss` for the other arguments.

    Raises:
        InvalidArgumentError: labels and logits of different shapes.

    >>> from dualflow.compat import v1
    >>> float(v1.losses.hinge_loss([1.0, 0.0], [0.5, -3.0]))
    0.25
    """
    with name_scope(scope, "hinge_loss") as inner:
        y_true, y_pred = _as_matching_floats(labels, logits, "logits")
        losses = nn.relu(1 - (2 * y_true - 1) * y_pred)
        return compute_weighted_loss(losses, weights, inner, loss_collection, reduction)


@entry
def huber_loss(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike = 1.0,
    delta: float = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """The Huber loss: half the square of errors up to ``delta``, and linear for larger errors.

    Huber, "Robust estimation of a location parameter", 1964. See :func:`compute_weighted_loss` for the other
    arguments.

    Raises:
        InvalidArgumentError: labels and predictions of different shapes.

    >>> from dualflow.compat import v1
    >>> float(v1.losses.huber_loss([0.0, 0.0], [1.0, 3.0]))
    1.5
    """
    with name_scope(scope, "huber_loss") as inner:
        y_true, y_pred = _as_matching_floats(labels, predictions)
        error = abs(y_pred - y_true)
        quadratic = minimum(error, delta)
        linear = error - quadratic
        losses = 0.5 * quadratic * quadratic + delta * linear
        return compute_weighted_loss(losses, weights, inner, loss_collection, reduction)


@entry
def log_loss(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike = 1.0,
    epsilon: float = 1e-7,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """The cross entropy of probabilities: ``-log(predictions)`` where the label is 1.

    Args:
        labels, predictions: in [0, 1], of equal shape.
        epsilon: added to the arguments of the logarithms.

    See :func:`compute_weighted_loss` for the other arguments.

    Raises:
        InvalidArgumentError: labels and predictions of different shapes.

    >>> from dualflow.compat import v1
    >>> round(float(v1.losses.log_loss([1.0, 0.0], [0.5, 0.5])), 4)
    0.6931
    """
    with name_scope(scope, "log_loss") as inner:
        y_true, y_pred = _as_matching_floats(labels, predictions)
        losses = -y_true * log(y_pred + epsilon) - (1 - y_true) * log(1 - y_pred + epsilon)
        return compute_weighted_loss(losses, weights, inner, loss_collection, reduction)


@entry
def mean_pairwise_squared_error(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
) -> Tensor:
    """The mean squared error of the differences between elements of a sample, summed over samples.

    Args:
        labels, predictions: ``[batch, ...]``, of equal shape.
        weights: a scalar, or one for each sample.
        scope, loss_collection: as for :func:`compute_weighted_loss`.

    Raises:
        InvalidArgumentError: labels and predictions of different shapes, or without a second axis.

    >>> from dualflow.compat import v1
    >>> float(v1.losses.mean_pairwise_squared_error([[0.0, 1.0]], [[0.0, 3.0]]))
    4.0
    """
    with name_scope(scope, "mean_pairwise_squared_error"):
        y_true, y_pred = _as_matching_floats(labels, predictions)
        if len(y_pred.shape) < 2:
            raise InvalidArgumentError(
                f"mean_pairwise_squared_error takes [batch, ...], not shape {y_pred.shape} without pairs."
            )
        w = as_numbers(required_tensor(weights, "weights"))
        difference = y_pred - y_true
        w = fit_weights(w, difference)
        axes = list(range(1, len(difference.shape)))
        count = reduce_sum(nonzero_weights(difference, w), axes, keepdims=True)
        squares = reduce_sum(difference * difference, axes, keepdims=True)
        total = reduce_sum(difference, axes, keepdims=True)
        first = 2 * divide_no_nan(squares, maximum(count - 1, 0))
        second = 2 * divide_no_nan(total * total, maximum(count * (count - 1), 0))
        loss = reduce_sum((first - second) * w)
        loss = where(reduce_sum(count) > 0, loss, zeros_like(loss))
        add_loss(loss, loss_collection)
        return loss
