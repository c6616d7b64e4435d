"""Losses of predictions that differ from their labels."""

from __future__ import annotations

from typing import Any

from dualflow import nn
from dualflow.compat.v1.collection import GraphKeys
from dualflow.compat.v1.losses.weighted import Reduction, add_loss, compute_weighted_loss, present
from dualflow.compat.v1.weighting import as_numbers, fitting, given, require_one_shape
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.tracebacks import entry
from dualflow.graph_mode import name_scope
from dualflow.ops.arithmetic import divide_no_nan, maximum, minimum
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.creation import zeros_like
from dualflow.ops.powers import log
from dualflow.ops.selection import where


def _of_pairs(labels: Any, predictions: Any, what: str = "predictions") -> tuple[Any, Any]:
    """Both as float32, of one shape."""
    right, guess = as_numbers(given(labels, "labels")), as_numbers(given(predictions, what))
    require_one_shape(right, guess)
    return right, guess


@entry
def absolute_difference(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Any:
    """``abs(predictions - labels)``; see :func:`compute_weighted_loss` for the other arguments.

    Raises:
        InvalidArgumentError: labels and predictions of different shapes.

    >>> from dualflow.compat import v1
    >>> float(v1.losses.absolute_difference([1.0, 2.0], [1.0, 5.0]))
    1.5
    """
    with name_scope(scope, "absolute_difference") as inner:
        right, guess = _of_pairs(labels, predictions)
        return compute_weighted_loss(abs(guess - right), weights, inner, loss_collection, reduction)


@entry
def mean_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Any:
    """``(predictions - labels) ** 2``; see :func:`compute_weighted_loss` for the other arguments.

    Raises:
        InvalidArgumentError: labels and predictions of different shapes.

    >>> from dualflow.compat import v1
    >>> float(v1.losses.mean_squared_error([1.0, 2.0], [1.0, 5.0]))
    4.5
    """
    with name_scope(scope, "mean_squared_error") as inner:
        right, guess = _of_pairs(labels, predictions)
        difference = guess - right
        return compute_weighted_loss(difference * difference, weights, inner, loss_collection, reduction)


@entry
def cosine_distance(
    labels: Any,
    predictions: Any,
    axis: int | None = None,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
    dim: int | None = None,
) -> Any:
    """``1 - sum(labels * predictions)`` along an axis, of vectors that have been made of length 1.

    Args:
        labels, predictions: of one shape.
        axis: of the vectors; ``dim`` is an older name for it.

    See :func:`compute_weighted_loss` for the other arguments.

    Raises:
        InvalidArgumentError: labels and predictions of different shapes, no axis, or two.

    >>> from dualflow.compat import v1
    >>> float(v1.losses.cosine_distance([[1.0, 0.0]], [[0.0, 1.0]], axis=1))
    1.0
    """
    if (axis is None) == (dim is None):
        raise InvalidArgumentError("You must specify `axis`, or else its older name `dim`.")
    with name_scope(scope, "cosine_distance_loss") as inner:
        right, guess = _of_pairs(labels, predictions)
        losses = 1 - reduce_sum(guess * right, dim if axis is None else axis, keepdims=True)
        return compute_weighted_loss(losses, weights, inner, loss_collection, reduction)


@entry
def hinge_loss(
    labels: Any,
    logits: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Any:
    """``max(0, 1 - logits)`` where the label is 1, and ``max(0, 1 + logits)`` where it is 0.

    See :func:`compute_weighted_loss` for the other arguments.

    Raises:
        InvalidArgumentError: labels and logits of different shapes.

    >>> from dualflow.compat import v1
    >>> float(v1.losses.hinge_loss([1.0, 0.0], [0.5, -3.0]))
    0.25
    """
    with name_scope(scope, "hinge_loss") as inner:
        right, guess = _of_pairs(labels, logits, "logits")
        losses = nn.relu(1 - (2 * right - 1) * guess)
        return compute_weighted_loss(losses, weights, inner, loss_collection, reduction)


@entry
def huber_loss(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    delta: float = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Any:
    """Half the square of an error up to ``delta``, and beyond it a line that goes on from there.

    Huber, "Robust estimation of a location parameter", 1964. See :func:`compute_weighted_loss` for the other
    arguments.

    Raises:
        InvalidArgumentError: labels and predictions of different shapes.

    >>> from dualflow.compat import v1
    >>> float(v1.losses.huber_loss([0.0, 0.0], [1.0, 3.0]))
    1.5
    """
    with name_scope(scope, "huber_loss") as inner:
        right, guess = _of_pairs(labels, predictions)
        error = abs(guess - right)
        within = minimum(error, delta)
        losses = 0.5 * within * within + delta * (error - within)
        return compute_weighted_loss(losses, weights, inner, loss_collection, reduction)


@entry
def log_loss(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    epsilon: float = 1e-7,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Any:
    """The cross entropy of probabilities: ``-log(predictions)`` where the label is 1.

    Args:
        labels, predictions: in [0, 1], of one shape.
        epsilon: added to what the logarithm is taken of.

    See :func:`compute_weighted_loss` for the other arguments.

    Raises:
        InvalidArgumentError: labels and predictions of different shapes.

    >>> from dualflow.compat import v1
    >>> round(float(v1.losses.log_loss([1.0, 0.0], [0.5, 0.5])), 4)
    0.6931
    """
    with name_scope(scope, "log_loss") as inner:
        right, guess = _of_pairs(labels, predictions)
        losses = -right * log(guess + epsilon) - (1 - right) * log(1 - guess + epsilon)
        return compute_weighted_loss(losses, weights, inner, loss_collection, reduction)


@entry
def mean_pairwise_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
) -> Any:
    """The mean square of the errors of differences between the elements of each sample, summed over samples.

    Args:
        labels, predictions: ``[batch, ...]``, of one shape.
        weights: a scalar, or one for each sample.
        scope, loss_collection: as of :func:`compute_weighted_loss`.

    Raises:
        InvalidArgumentError: labels and predictions of different shapes, or without a second axis.

    >>> from dualflow.compat import v1
    >>> float(v1.losses.mean_pairwise_squared_error([[0.0, 1.0]], [[0.0, 3.0]]))
    4.0
    """
    with name_scope(scope, "mean_pairwise_squared_error"):
        right, guess = _of_pairs(labels, predictions)
        if len(guess.shape) < 2:
            raise InvalidArgumentError(
                f"mean_pairwise_squared_error takes [batch, ...], not shape {guess.shape}, without pairs."
            )
        w = as_numbers(given(weights, "weights"))
        difference = guess - right
        w = fitting(w, difference)
        axes = list(range(1, len(difference.shape)))
        count = reduce_sum(present(difference, w), axes, keepdims=True)
        squares = reduce_sum(difference * difference, axes, keepdims=True)
        total = reduce_sum(difference, axes, keepdims=True)
        first = 2 * divide_no_nan(squares, maximum(count - 1, 0))
        second = 2 * divide_no_nan(total * total, maximum(count * (count - 1), 0))
        loss = reduce_sum((first - second) * w)
        found = where(reduce_sum(count) > 0, loss, zeros_like(loss))
        add_loss(found, loss_collection)
        return found
