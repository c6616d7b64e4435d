"""Metrics that are means."""

from __future__ import annotations

from typing import Any

from dualflow.compat.v1.metrics.state import Pair, collected, compared, metric_scope, metric_variable, of_both
from dualflow.compat.v1.weighting import aligned, as_numbers, given, spread
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


@entry
def mean(
    values: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Pair:
    """The mean of all values seen, weighted where weights are given.

    Args:
        values: numbers of any shape.
        weights: a scalar, or for each axis of the values its size or 1; 1 by default.
        metrics_collections: names of the graph's collections that the value joins.
        updates_collections: names of those that the operation joins.
        name: of the scope of the variables, by default the function's.

    Returns:
        A float32 tensor of what was seen up to now, 0 if that is nothing; and an operation that lets the
        metric see the values and gives the result after that.

    Raises:
        FailedPreconditionError: ops run now; :mod:`dualflow.eager.metrics` is for that.
        InvalidArgumentError: weights that don't fit.

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
        numbers = as_numbers(given(values, "values"))
        if weights is None:
            weight = cast(size(numbers), float32)
        else:
            shares = spread(weights, numbers)
            numbers, weight = numbers * shares, reduce_sum(shares)
        updates = total.assign_add(reduce_sum(numbers)), count.assign_add(weight)
        pair = divide_no_nan(total, count), divide_no_nan(*updates)
        return collected(pair, metrics_collections, updates_collections)


@entry
def mean_tensor(
    values: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Pair:
    """The mean of each element over all tensors seen; see :func:`mean`.

    Args:
        values: numbers of a shape that is known.
        weights: what broadcasts to it.

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
        numbers = as_numbers(given(values, "values"))
        total = metric_variable(numbers.shape, "total_tensor")
        count = metric_variable(numbers.shape, "count_tensor")
        shares = ones_like(numbers) if weights is None else spread(weights, numbers)
        updates = total.assign_add(numbers * shares), count.assign_add(shares)
        pair = divide_no_nan(total, count), divide_no_nan(*updates)
        return collected(pair, metrics_collections, updates_collections)


@entry
def accuracy(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Pair:
    """The share of predictions that equal their labels; see :func:`mean`.

    Raises:
        InvalidArgumentError: labels, predictions or weights that don't fit.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default(), v1.Session() as session:
    ...     value, update = v1.metrics.accuracy([1, 2, 3, 4], [1, 2, 0, 0])
    ...     session.run(v1.local_variables_initializer())
    ...     print(session.run(update))
    0.5
    """
    right, guess, w = compared(labels, predictions, weights)
    found = equal(guess, right if right.dtype is guess.dtype else cast(right, guess.dtype))
    return mean(found, w, metrics_collections, updates_collections, name or "accuracy")


@entry
def mean_absolute_error(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Pair:
    """The mean of ``abs(predictions - labels)``; see :func:`mean`."""
    right, guess, w = compared(labels, predictions, weights)
    error = abs(as_numbers(guess) - as_numbers(right))
    return mean(error, w, metrics_collections, updates_collections, name or "mean_absolute_error")


@entry
def mean_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Pair:
    """The mean of ``(predictions - labels) ** 2``; see :func:`mean`."""
    right, guess, w = compared(labels, predictions, weights)
    error = as_numbers(guess) - as_numbers(right)
    return mean(error * error, w, metrics_collections, updates_collections, name or "mean_squared_error")


@entry
def root_mean_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Pair:
    """The square root of the mean of ``(predictions - labels) ** 2``; see :func:`mean`."""
    pair = mean_squared_error(labels, predictions, weights, None, None, name or "root_mean_squared_error")
    return collected(of_both(sqrt, pair), metrics_collections, updates_collections)


@entry
def mean_relative_error(
    labels: Any,
    predictions: Any,
    normalizer: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Pair:
    """The mean of ``abs(predictions - labels) / normalizer``, 0 where that is 0; see :func:`mean`.

    Args:
        normalizer: of the shape of ``predictions``.
    """
    right, guess, w = compared(labels, predictions, weights)
    by, _ = aligned(given(normalizer, "normalizer"), guess)
    by = as_numbers(by)
    ratio = where(equal(by, 0.0), zeros_like(by), abs(as_numbers(right) - as_numbers(guess)) / by)
    return mean(ratio, w, metrics_collections, updates_collections, name or "mean_relative_error")


@entry
def mean_cosine_distance(
    labels: Any,
    predictions: Any,
    dim: int,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Pair:
    """1 minus the mean of ``sum(labels * predictions)`` along an axis; see :func:`mean`.

    Args:
        dim: the axis of the vectors, which have been made of length 1.
        weights: what broadcasts to one number for each vector, with that axis of size 1.
    """
    right, guess, _ = compared(labels, predictions, None)
    along = reduce_sum(as_numbers(right) * as_numbers(guess), dim, keepdims=True)
    pair = mean(along, weights, None, None, name or "mean_cosine_distance")
    return collected(of_both(lambda x: 1 - x, pair), metrics_collections, updates_collections)


@entry
def percentage_below(
    values: Any,
    threshold: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Pair:
    """The share of values below a threshold; see :func:`mean`."""
    below = less(as_numbers(given(values, "values")), threshold)
    return mean(
        below, weights, metrics_collections, updates_collections, name or "percentage_below_threshold"
    )
