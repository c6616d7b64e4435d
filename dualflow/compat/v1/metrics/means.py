"""Metrics that are means."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualflow.compat.v1.metrics.state import (
    Pair,
    add_to_collections,
    align_labels,
    map_pairs,
    metric_scope,
    metric_variable,
)
from dualflow.compat.v1.weighting import as_numbers, broadcast_weights, required_tensor, squeeze_to_equal_rank
from dualflow.core.dtypes import float32
from dualflow.core.tracebacks import entry
from dualflow.ops.arithmetic import divide_no_nan
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.comparison import equal, less
from dualflow.ops.conversion import cast
from dualflow.ops.creation import ones_like, zeros_like
from dualflow.ops.powers import sqrt
from dualflow.ops.selection import where
from dualflow.ops.shapes import size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualflow.core.argument_types import TensorLike


@entry
def mean(
    values: TensorLike,
    weights: TensorLike | None = None,
    metrics_collections: str | Sequence[str] | None = None,
    updates_collections: str | Sequence[str] | None = None,
    name: str | None = None,
) -> Pair:
    """The weighted mean of all values of past updates.

    Args:
        values: numbers of any shape.
        weights: a scalar, or a tensor with the size of each axis of the values or 1; 1 by default.
        metrics_collections: the names of the graph's collections to which the value is added.
        updates_collections: the names of the graph's collections to which the operation is added.
        name: of the scope of the variables, by default the function's.

    Returns:
        A float32 tensor with the current result, 0 before the first update; and an operation that updates
        the metric by the values and returns the new result.

    Raises:
        FailedPreconditionError: in eager execution; use :mod:`dualflow.eager.metrics`.
        InvalidArgumentError: weights don't broadcast to the values.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default(), v1.Session() as session:
    ...     x = v1.placeholder(v1.float32, [None])
    ...     value, update = v1.metrics.mean(x)
    ...     session.run(v1.local_variables_initializer())
    ...     print(session.run(update, {x: [1.0, 2.0]}), session.run(update, {x: [6.0]}), session.run(value))
    1.5 3.0 3.0
    """
    with metric_scope(name, "mean"):
        total, count = metric_variable([], "total"), metric_variable([], "count")
        numbers = as_numbers(required_tensor(values, "values"))
        if weights is None:
            weight = cast(size(numbers), float32)
        else:
            w = broadcast_weights(weights, numbers)
            numbers, weight = numbers * w, reduce_sum(w)
        updates = total.assign_add(reduce_sum(numbers)), count.assign_add(weight)
        pair = divide_no_nan(total, count), divide_no_nan(*updates)
        return add_to_collections(pair, metrics_collections, updates_collections)


@entry
def mean_tensor(
    values: TensorLike,
    weights: TensorLike | None = None,
    metrics_collections: str | Sequence[str] | None = None,
    updates_collections: str | Sequence[str] | None = None,
    name: str | None = None,
) -> Pair:
    """The mean of each element over the tensors of past updates; see :func:`mean`.

    Args:
        values: numbers of a static shape.
        weights: numbers that broadcast to it.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default(), v1.Session() as session:
    ...     x = v1.placeholder(v1.float32, [2])
    ...     value, update = v1.metrics.mean_tensor(x)
    ...     session.run(v1.local_variables_initializer())
    ...     _ = [session.run(update, {x: row}) for row in ([1.0, 2.0], [3.0, 6.0])]
    ...     print(session.run(value).tolist())
    [2.0, 4.0]
    """
    with metric_scope(name, "mean"):
        numbers = as_numbers(required_tensor(values, "values"))
        total = metric_variable(numbers.shape, "total_tensor")
        count = metric_variable(numbers.shape, "count_tensor")
        w = ones_like(numbers) if weights is None else broadcast_weights(weights, numbers)
        updates = total.assign_add(numbers * w), count.assign_add(w)
        pair = divide_no_nan(total, count), divide_no_nan(*updates)
        return add_to_collections(pair, metrics_collections, updates_collections)


@entry
def accuracy(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike | None = None,
    metrics_collections: str | Sequence[str] | None = None,
    updates_collections: str | Sequence[str] | None = None,
    name: str | None = None,
) -> Pair:
    """The fraction of predictions that equal their labels; see :func:`mean`.

    Raises:
        InvalidArgumentError: the shapes of labels, predictions or weights don't match.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default(), v1.Session() as session:
    ...     value, update = v1.metrics.accuracy([1, 2, 3, 4], [1, 2, 0, 0])
    ...     session.run(v1.local_variables_initializer())
    ...     print(session.run(update))
    0.5
    """
    y_true, y_pred, w = align_labels(labels, predictions, weights)
    correct = equal(y_pred, y_true if y_true.dtype is y_pred.dtype else cast(y_true, y_pred.dtype))
    return mean(correct, w, metrics_collections, updates_collections, name or "accuracy")


@entry
def mean_absolute_error(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike | None = None,
    metrics_collections: str | Sequence[str] | None = None,
    updates_collections: str | Sequence[str] | None = None,
    name: str | None = None,
) -> Pair:
    """The mean of ``abs(predictions - labels)``; see :func:`mean`."""
    y_true, y_pred, w = align_labels(labels, predictions, weights)
    error = abs(as_numbers(y_pred) - as_numbers(y_true))
    return mean(error, w, metrics_collections, updates_collections, name or "mean_absolute_error")


@entry
def mean_squared_error(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike | None = None,
    metrics_collections: str | Sequence[str] | None = None,
    updates_collections: str | Sequence[str] | None = None,
    name: str | None = None,
) -> Pair:
    """The mean of ``(predictions - labels) ** 2``; see :func:`mean`."""
    y_true, y_pred, w = align_labels(labels, predictions, weights)
    error = as_numbers(y_pred) - as_numbers(y_true)
    return mean(error * error, w, metrics_collections, updates_collections, name or "mean_squared_error")


@entry
def root_mean_squared_error(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike | None = None,
    metrics_collections: str | Sequence[str] | None = None,
    updates_collections: str | Sequence[str] | None = None,
    name: str | None = None,
) -> Pair:
    """The square root of the mean of ``(predictions - labels) ** 2``; see :func:`mean`."""
    pair = mean_squared_error(labels, predictions, weights, None, None, name or "root_mean_squared_error")
    return add_to_collections(map_pairs(sqrt, pair), metrics_collections, updates_collections)


@entry
def mean_relative_error(
    labels: TensorLike,
    predictions: TensorLike,
    normalizer: TensorLike,
    weights: TensorLike | None = None,
    metrics_collections: str | Sequence[str] | None = None,
    updates_collections: str | Sequence[str] | None = None,
    name: str | None = None,
) -> Pair:
    """The mean of ``abs(predictions - labels) / normalizer``, 0 where that divides by 0; see :func:`mean`.

    Args:
        normalizer: of the shape of ``predictions``.
    """
    y_true, y_pred, w = align_labels(labels, predictions, weights)
    divisor, _ = squeeze_to_equal_rank(required_tensor(normalizer, "normalizer"), y_pred)
    divisor = as_numbers(divisor)
    ratio = where(
        equal(divisor, 0.0), zeros_like(divisor), abs(as_numbers(y_true) - as_numbers(y_pred)) / divisor
    )
    return mean(ratio, w, metrics_collections, updates_collections, name or "mean_relative_error")


@entry
def mean_cosine_distance(
    labels: TensorLike,
    predictions: TensorLike,
    dim: int,
    weights: TensorLike | None = None,
    metrics_collections: str | Sequence[str] | None = None,
    updates_collections: str | Sequence[str] | None = None,
    name: str | None = None,
) -> Pair:
    """1 minus the mean of ``sum(labels * predictions)`` along an axis; see :func:`mean`.

    Args:
        dim: the axis of the vectors, which must be normalised to length 1.
        weights: numbers that broadcast to one number for each vector, with that axis of size 1.
    """
    y_true, y_pred, _ = align_labels(labels, predictions, None)
    along = reduce_sum(as_numbers(y_true) * as_numbers(y_pred), dim, keepdims=True)
    pair = mean(along, weights, None, None, name or "mean_cosine_distance")
    return add_to_collections(map_pairs(lambda x: 1 - x, pair), metrics_collections, updates_collections)


@entry
def percentage_below(
    values: TensorLike,
    threshold: TensorLike,
    weights: TensorLike | None = None,
    metrics_collections: str | Sequence[str] | None = None,
    updates_collections: str | Sequence[str] | None = None,
    name: str | None = None,
) -> Pair:
    """The fraction of values below a threshold; see :func:`mean`."""
    below = less(as_numbers(required_tensor(values, "values")), threshold)
    return mean(
        below, weights, metrics_collections, updates_collections, name or "percentage_below_threshold"
    )
