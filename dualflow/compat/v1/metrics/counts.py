"""Counts of true and false positives and negatives, with labels and predictions as bools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dualflow.compat.v1.metrics.state import (
    Pair,
    add_to_collections,
    align_labels,
    map_pairs,
    metric_scope,
    metric_variable,
)
from dualflow.compat.v1.weighting import as_numbers, broadcast_weights
from dualflow.core.dtypes import bool_
from dualflow.core.tracebacks import entry
from dualflow.ops.arithmetic import divide_no_nan
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.comparison import equal, logical_and
from dualflow.ops.conversion import cast

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualflow.core.argument_types import TensorLike


def _count_of(
    labels: Any, predictions: Any, weights: Any, label: bool, prediction: bool, name: str | None, default: str
) -> Pair:
    """The weight of the elements with this label and this prediction."""
    with metric_scope(name, default):
        y_true, y_pred, w = align_labels(labels, predictions, weights)
        is_match = logical_and(equal(cast(y_true, bool_), label), equal(cast(y_pred, bool_), prediction))
        count, matches = metric_variable([], "count"), as_numbers(is_match)
        if w is not None:
            matches = matches * broadcast_weights(w, matches)
        return count.value(), count.assign_add(reduce_sum(matches))


@entry
def true_positives(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike | None = None,
    metrics_collections: str | Sequence[str] | None = None,
    updates_collections: str | Sequence[str] | None = None,
    name: str | None = None,
) -> Pair:
    """The number of true predictions whose labels are true; see :func:`mean` for arguments and result.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default(), v1.Session() as session:
    ...     value, update = v1.metrics.true_positives([1, 1, 0], [1, 0, 1])
    ...     session.run(v1.local_variables_initializer())
    ...     print(session.run(update))
    1.0
    """
    pair = _count_of(labels, predictions, weights, True, True, name, "true_positives")
    return add_to_collections(pair, metrics_collections, updates_collections)


@entry
def false_positives(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike | None = None,
    metrics_collections: str | Sequence[str] | None = None,
    updates_collections: str | Sequence[str] | None = None,
    name: str | None = None,
) -> Pair:
    """The number of true predictions whose labels are false; see :func:`mean`."""
    pair = _count_of(labels, predictions, weights, False, True, name, "false_positives")
    return add_to_collections(pair, metrics_collections, updates_collections)


@entry
def true_negatives(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike | None = None,
    metrics_collections: str | Sequence[str] | None = None,
    updates_collections: str | Sequence[str] | None = None,
    name: str | None = None,
) -> Pair:
    """The number of false predictions whose labels are false; see :func:`mean`."""
    pair = _count_of(labels, predictions, weights, False, False, name, "true_negatives")
    return add_to_collections(pair, metrics_collections, updates_collections)


@entry
def false_negatives(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike | None = None,
    metrics_collections: str | Sequence[str] | None = None,
    updates_collections: str | Sequence[str] | None = None,
    name: str | None = None,
) -> Pair:
    """The number of false predictions whose labels are true; see :func:`mean`."""
    pair = _count_of(labels, predictions, weights, True, False, name, "false_negatives")
    return add_to_collections(pair, metrics_collections, updates_collections)


@entry
def precision(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike | None = None,
    metrics_collections: str | Sequence[str] | None = None,
    updates_collections: str | Sequence[str] | None = None,
    name: str | None = None,
) -> Pair:
    """The fraction of true predictions whose labels are true; 0 if there are none. See :func:`mean`.

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
        return add_to_collections(map_pairs(_ratio, right, wrong), metrics_collections, updates_collections)


@entry
def recall(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike | None = None,
    metrics_collections: str | Sequence[str] | None = None,
    updates_collections: str | Sequence[str] | None = None,
    name: str | None = None,
) -> Pair:
    """The fraction of true labels whose predictions are true; 0 if there are none. See :func:`mean`."""
    with metric_scope(name, "recall"):
        right = true_positives(labels, predictions, weights)
        missed = false_negatives(labels, predictions, weights)
        return add_to_collections(map_pairs(_ratio, right, missed), metrics_collections, updates_collections)


def _ratio(matches: Any, mismatches: Any) -> Any:
    """``matches / (matches + mismatches)``, 0 if both are 0."""
    return divide_no_nan(matches, matches + mismatches)
