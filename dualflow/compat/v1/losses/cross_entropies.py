"""Cross entropies of logits as losses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualflow import nn
from dualflow.compat.v1.collection import GraphKeys
from dualflow.compat.v1.losses.weighted import Reduction, compute_weighted_loss
from dualflow.compat.v1.weighting import require_one_shape, required_tensor
from dualflow.core.tracebacks import entry
from dualflow.graph_mode import name_scope
from dualflow.ops.arrangement import squeeze
from dualflow.ops.conversion import cast, stop_gradient
from dualflow.ops.shapes import shape as shape_of

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike
    from dualflow.ops.tensor import Tensor


@entry
def sigmoid_cross_entropy(
    multi_class_labels: TensorLike,
    logits: TensorLike,
    weights: TensorLike = 1.0,
    label_smoothing: float = 0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """:func:`dualflow.nn.sigmoid_cross_entropy_with_logits` as a loss.

    Args:
        multi_class_labels, logits: of equal shape.
        label_smoothing: the fraction by which labels are moved towards 0.5.

    See :func:`compute_weighted_loss` for the other arguments.

    Raises:
        InvalidArgumentError: labels and logits of different shapes.

    >>> from dualflow.compat import v1
    >>> round(float(v1.losses.sigmoid_cross_entropy([[1.0]], [[0.0]])), 4)
    0.6931
    """
    with name_scope(scope, "sigmoid_cross_entropy_loss") as inner:
        y_pred = required_tensor(logits, "logits")
        y_true = cast(required_tensor(multi_class_labels, "multi_class_labels"), y_pred.dtype)
        require_one_shape(y_true, y_pred)
        if label_smoothing > 0:
            y_true = y_true * (1 - label_smoothing) + 0.5 * label_smoothing
        losses = nn.sigmoid_cross_entropy_with_logits(y_true, y_pred)
        return compute_weighted_loss(losses, weights, inner, loss_collection, reduction)


@entry
def softmax_cross_entropy(
    onehot_labels: TensorLike,
    logits: TensorLike,
    weights: TensorLike = 1.0,
    label_smoothing: float = 0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """:func:`dualflow.nn.softmax_cross_entropy_with_logits` as a loss; no gradient flows to the labels.

    Args:
        onehot_labels, logits: ``[..., classes]``, of equal shape.
        label_smoothing: the fraction by which labels are moved towards a uniform distribution.

    See :func:`compute_weighted_loss` for the other arguments.

    Raises:
        InvalidArgumentError: labels and logits of different shapes.

    >>> from dualflow.compat import v1
    >>> round(float(v1.losses.softmax_cross_entropy([[0.0, 1.0]], [[1.0, 1.0]])), 4)
    0.6931
    """
    with name_scope(scope, "softmax_cross_entropy_loss") as inner:
        y_pred = required_tensor(logits, "logits")
        y_true = cast(required_tensor(onehot_labels, "onehot_labels"), y_pred.dtype)
        require_one_shape(y_true, y_pred)
        if label_smoothing > 0:
            classes = cast(shape_of(y_true)[-1], y_pred.dtype)
            y_true = y_true * (1 - label_smoothing) + label_smoothing / classes
        losses = nn.softmax_cross_entropy_with_logits(stop_gradient(y_true), y_pred)
        return compute_weighted_loss(losses, weights, inner, loss_collection, reduction)


@entry
def sparse_softmax_cross_entropy(
    labels: TensorLike,
    logits: TensorLike,
    weights: TensorLike = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """:func:`dualflow.nn.sparse_softmax_cross_entropy_with_logits` as a loss.

    Args:
        labels: class indices, of the shape of ``logits`` without the last axis, or with size 1 there.
        logits: ``[..., classes]``.

    See :func:`compute_weighted_loss` for the other arguments.

    >>> from dualflow.compat import v1
    >>> round(float(v1.losses.sparse_softmax_cross_entropy([1], [[1.0, 1.0]])), 4)
    0.6931
    """
    with name_scope(scope, "sparse_softmax_cross_entropy_loss") as inner:
        y_true, y_pred = required_tensor(labels, "labels"), required_tensor(logits, "logits")
        if len(y_true.shape) == len(y_pred.shape) and y_true.shape[-1:] == (1,):
            y_true = squeeze(y_true, [-1])
        losses = nn.sparse_softmax_cross_entropy_with_logits(y_true, y_pred)
        return compute_weighted_loss(losses, weights, inner, loss_collection, reduction)
