"""Metrics that count how predictions and labels, taken as bools, meet."""

from __future__ import annotations

from typing import Any

from dualflow.compat.v1.metrics.state import Pair, collected, compared, metric_scope, metric_variable, of_both
from dualflow.compat.v1.weighting import as_numbers, spread
from dualflow.core.dtypes import bool_
from dualflow.core.tracebacks import entry
from dualflow.ops.arithmetic import divide_no_nan
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.comparison import equal, logical_and
from dualflow.ops.conversion import cast


def _meeting(
    labels: Any, predictions: Any, weights: Any, label: bool, prediction: bool, name: str | None, default: str
) -> Pair:
    """The weight of the elements that have this label and this prediction."""
    with metric_scope(name, default):
        right, guess, w = compared(labels, predictions, weights)
        met = logical_and(equal(cast(right, bool_), label), equal(cast(guess, bool_), prediction))
        count, found = metric_variable([], "count"), as_numbers(met)
        if w is not None:
            found = found * spread(w, found)
        return count.value(), count.assign_add(reduce_sum(found))


@entry
def true_positives(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Pair:
    """How many predictions hold, as their labels do; see :func:`mean` for arguments and result.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default(), v1.Session() as session:
    ...     value, update = v1.metrics.true_positives([1, 1, 0], [1, 0, 1])
    ...     session.run(v1.local_variables_initializer())
    ...     print(session.run(update))
    1.0
    """
    pair = _meeting(labels, predictions, weights, True, True, name, "true_positives")
    return collected(pair, metrics_collections, updates_collections)


@entry
def false_positives(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Pair:
    """How many predictions hold though their labels don't; see :func:`mean`."""
    pair = _meeting(labels, predictions, weights, False, True, name, "false_positives")
    return collected(pair, metrics_collections, updates_collections)


@entry
def true_negatives(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Pair:
    """How many predictions don't hold, as their labels; see :func:`mean`."""
    pair = _meeting(labels, predictions, weights, False, False, name, "true_negatives")
    return collected(pair, metrics_collections, updates_collections)


@entry
def false_negatives(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Pair:
    """How many predictions don't hold though their labels do; see :func:`mean`."""
    pair = _meeting(labels, predictions, weights, True, False, name, "false_negatives")
    return collected(pair, metrics_collections, updates_collections)


@entry
def precision(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Pair:
    """Of the predictions that hold, the share whose labels do; 0 if none holds. See :func:`mean`.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default(), v1.Session() as session:
    ...     value, update = v1.metrics.precision([1, 1, 0], [1, 0, 1])
    ...     session.run(v1.local_variables_initializer())
    ...     print(session.run(update))
    0.5
    """
    with metric_scope(name, "precision"):
        right = true_positives(labels, predictions, weights)
        wrong = false_positives(labels, predictions, weights)
        return collected(of_both(_share, right, wrong), metrics_collections, updates_collections)


@entry
def recall(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Pair:
    """Of the labels that hold, the share whose predictions do; 0 if none holds. See :func:`mean`."""
    with metric_scope(name, "recall"):
        right = true_positives(labels, predictions, weights)
        missed = false_negatives(labels, predictions, weights)
        return collected(of_both(_share, right, missed), metrics_collections, updates_collections)


def _share(one: Any, other: Any) -> Any:
    return divide_no_nan(one, one + other)
