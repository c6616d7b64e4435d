"""Cross entropies of logits as losses."""

from __future__ import annotations

from typing import Any

from dualflow import nn
from dualflow.compat.v1.collection import GraphKeys
from dualflow.compat.v1.losses.weighted import Reduction, compute_weighted_loss
from dualflow.compat.v1.weighting import given, require_one_shape
from dualflow.core.tracebacks import entry
from dualflow.graph_mode import name_scope
from dualflow.ops.arrangement import squeeze
from dualflow.ops.conversion import cast, stop_gradient
from dualflow.ops.shapes import shape as shape_of


@entry
def sigmoid_cross_entropy(
    multi_class_labels: Any,
    logits: Any,
    weights: Any = 1.0,
    label_smoothing: float = 0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Any:
    """:func:`dualflow.nn.sigmoid_cross_entropy_with_logits` as a loss.

    Args:
        multi_class_labels, logits: of one shape.
        label_smoothing: how far labels are moved to one half.

    See :func:`compute_weighted_loss` for the other arguments.

    Raises:
        InvalidArgumentError: labels and logits of different shapes.

    >>> from dualflow.compat import v1
    >>> round(float(v1.losses.sigmoid_cross_entropy([[1.0]], [[0.0]])), 4)
    0.6931
    """
    with name_scope(scope, "sigmoid_cross_entropy_loss") as inner:
        guess = given(logits, "logits")
        right = cast(given(multi_class_labels, "multi_class_labels"), guess.dtype)
        require_one_shape(right, guess)
        if label_smoothing > 0:
            right = right * (1 - label_smoothing) + 0.5 * label_smoothing
        losses = nn.sigmoid_cross_entropy_with_logits(right, guess)
        return compute_weighted_loss(losses, weights, inner, loss_collection, reduction)


@entry
def softmax_cross_entropy(
    onehot_labels: Any,
    logits: Any,
    weights: Any = 1.0,
    label_smoothing: float = 0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Any:
    """:func:`dualflow.nn.softmax_cross_entropy_with_logits` as a loss; no gradient flows to the labels.

    Args:
        onehot_labels, logits: ``[..., classes]``, of one shape.
        label_smoothing: how far labels are moved to equal shares.

    See :func:`compute_weighted_loss` for the other arguments.

    Raises:
        InvalidArgumentError: labels and logits of different shapes.

    >>> from dualflow.compat import v1
    >>> round(float(v1.losses.softmax_cross_entropy([[0.0, 1.0]], [[1.0, 1.0]])), 4)
    0.6931
    """
    with name_scope(scope, "softmax_cross_entropy_loss") as inner:
        guess = given(logits, "logits")
        right = cast(given(onehot_labels, "onehot_labels"), guess.dtype)
        require_one_shape(right, guess)
        if label_smoothing > 0:
            classes = cast(shape_of(right)[-1], guess.dtype)
            right = right * (1 - label_smoothing) + label_smoothing / classes
        losses = nn.softmax_cross_entropy_with_logits(stop_gradient(right), guess)
        return compute_weighted_loss(losses, weights, inner, loss_collection, reduction)


@entry
def sparse_softmax_cross_entropy(
    labels: Any,
    logits: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Any:
    """:func:`dualflow.nn.sparse_softmax_cross_entropy_with_logits` as a loss.

    Args:
        labels: indices of classes: of the shape of ``logits`` without its last axis, or with one of size 1.
        logits: ``[..., classes]``.

    See :func:`compute_weighted_loss` for the other arguments.

    >>> from dualflow.compat import v1
    >>> round(float(v1.losses.sparse_softmax_cross_entropy([1], [[1.0, 1.0]])), 4)
    0.6931
    """
    with name_scope(scope, "sparse_softmax_cross_entropy_loss") as inner:
        right, guess = given(labels, "labels"), given(logits, "logits")
        if len(right.shape) == len(guess.shape) and right.shape[-1:] == (1,):
            right = squeeze(right, [-1])
        losses = nn.sparse_softmax_cross_entropy_with_logits(right, guess)
        return compute_weighted_loss(losses, weights, inner, loss_collection, reduction)
