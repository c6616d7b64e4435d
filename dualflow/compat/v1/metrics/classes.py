"""Metrics of classification, with labels and predictions as class indices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dualflow.compat.v1.metrics.state import Pair, add_to_collections, metric_scope, metric_variable
from dualflow.compat.v1.weighting import as_numbers, broadcast_weights, require_one_shape, required_tensor
from dualflow.core.dtypes import float32, float64, int64
from dualflow.core.tracebacks import entry
from dualflow.ops.arithmetic import divide_no_nan, maximum
from dualflow.ops.arrangement import reshape
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.comparison import equal, greater, not_equal
from dualflow.ops.conversion import cast
from dualflow.ops.counting.confusion import confusion_matrix
from dualflow.ops.creation import ones_like
from dualflow.ops.linear_algebra.diagonals import tensor_diag_part
from dualflow.ops.segments.segments import unsorted_segment_sum
from dualflow.ops.selection import where
from dualflow.ops.statistics import reduce_mean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualflow.core.argument_types import TensorLike


def _flatten_and_cast(labels: Any, predictions: Any, weights: Any) -> tuple[Any, Any, Any]:
    """Labels and predictions as vectors of int64, and weights as one of float32, or None."""
    y_true = cast(required_tensor(labels, "labels"), int64)
    y_pred = cast(required_tensor(predictions, "predictions"), int64)
    require_one_shape(y_true, y_pred)
    w = None if weights is None else reshape(broadcast_weights(weights, y_true), [-1])
    return reshape(y_true, [-1]), reshape(y_pred, [-1]), w


@entry
def mean_iou(
    labels: TensorLike,
    predictions: TensorLike,
    num_classes: int,
    weights: TensorLike | None = None,
    metrics_collections: str | Sequence[str] | None = None,
    updates_collections: str | Sequence[str] | None = None,
    name: str | None = None,
) -> Pair:
    """The mean intersection over union (IoU), over the classes that occur.

    Args:
        labels, predictions: class indices, of equal shape.
        num_classes: the number of classes.

    Returns:
        The mean, and an operation that returns the confusion matrix; see :func:`mean` for the other
        arguments.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default(), v1.Session() as session:
    ...     value, update = v1.metrics.mean_iou([0, 0, 1, 1], [0, 1, 1, 1], num_classes=2)
    ...     session.run(v1.local_variables_initializer())
    ...     print(session.run(update).tolist(), round(float(session.run(value)), 4))
    [[1.0, 1.0], [0.0, 2.0]] 0.5833
    """
    with metric_scope(name, "mean_iou"):
        y_true, y_pred, w = _flatten_and_cast(labels, predictions, weights)
        matrix = metric_variable([num_classes, num_classes], "total_confusion_matrix", float64)
        update = matrix.assign_add(confusion_matrix(y_true, y_pred, num_classes, w, dtype=float64))
        both = cast(tensor_diag_part(matrix), float32)
        either = cast(reduce_sum(matrix, 0), float32) + cast(reduce_sum(matrix, 1), float32) - both
        count = reduce_sum(as_numbers(not_equal(either, 0)))
        ratios = both / where(greater(either, 0), either, ones_like(either))
        value = where(greater(count, 0), reduce_sum(ratios) / maximum(count, 1), 0.0)
        return add_to_collections((value, update), metrics_collections, updates_collections)


@entry
def mean_per_class_accuracy(
    labels: TensorLike,
    predictions: TensorLike,
    num_classes: int,
    weights: TensorLike | None = None,
    metrics_collections: str | Sequence[str] | None = None,
    updates_collections: str | Sequence[str] | None = None,
    name: str | None = None,
) -> Pair:
    """The mean of the per-class accuracies; a class without labels counts as 0.

    Args:
        labels, predictions: class indices, of equal shape.
        num_classes: the number of classes.

    Returns:
        The mean, and an operation that returns the accuracy of each class; see :func:`mean` for the other
        arguments.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default(), v1.Session() as session:
    ...     value, update = v1.metrics.mean_per_class_accuracy([0, 0, 1], [0, 1, 1], num_classes=2)
    ...     session.run(v1.local_variables_initializer())
    ...     print(session.run(update).tolist(), session.run(value))
    [0.5, 1.0] 0.75
    """
    with metric_scope(name, "mean_accuracy"):
        y_true, y_pred, w = _flatten_and_cast(labels, predictions, weights)
        # the names of the variables are TensorFlow's
        class_weight = metric_variable([num_classes], "total")
        correct_weight = metric_variable([num_classes], "count")
        correct = as_numbers(equal(y_true, y_pred))
        weight = ones_like(correct) if w is None else w
        updates = (
            correct_weight.assign_add(unsorted_segment_sum(correct * weight, y_true, num_classes)),
            class_weight.assign_add(unsorted_segment_sum(weight, y_true, num_classes)),
        )
        pair = reduce_mean(divide_no_nan(correct_weight, class_weight)), divide_no_nan(*updates)
        return add_to_collections(pair, metrics_collections, updates_collections)
