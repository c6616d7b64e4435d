"""Metrics of scores in [0, 1] for several thresholds: a score above the threshold is a true prediction."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from dualflow.compat.v1.metrics.state import (
    Pair,
    add_to_collections,
    align_labels,
    metric_scope,
    metric_variable,
)
from dualflow.compat.v1.weighting import as_numbers, broadcast_weights
from dualflow.core.dtypes import bool_
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.tracebacks import entry
from dualflow.ops.arithmetic import divide_no_nan, maximum, minimum
from dualflow.ops.arrangement import reshape
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.comparison import logical_and, logical_not
from dualflow.ops.conversion import cast
from dualflow.ops.creation import constant, ones_like
from dualflow.ops.powers import log
from dualflow.ops.reduction import argmin
from dualflow.ops.repetition import reverse
from dualflow.ops.selection import where
from dualflow.ops.taking import gather

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualflow.core.argument_types import TensorLike

_EPSILON: Final = 1e-7
_AUC_EPSILON: Final = 1e-6


class Counts(NamedTuple):
    """The numbers of true and false positives and negatives, vectors with an element for each threshold."""

    tp: Any
    fn: Any
    tn: Any
    fp: Any


_NAMES: Final = Counts("true_positives", "false_negatives", "true_negatives", "false_positives")


def _counts(
    labels: Any, predictions: Any, thresholds: Any, weights: Any, needed: str = "tp fn tn fp"
) -> tuple[Counts, Counts]:
    """The current counts among ``needed``, and the operations that update them; the others are None."""
    y_true, y_pred, w = align_labels(labels, predictions, weights)
    score = reshape(as_numbers(y_pred), [1, -1])
    is_true = reshape(cast(y_true, bool_), [1, -1])
    above = score > reshape(constant(np.float32(thresholds)), [-1, 1])
    weight = None if w is None else reshape(broadcast_weights(w, y_pred), [1, -1])
    values, updates = {}, {}
    for key in needed.split():
        count = metric_variable([len(thresholds)], getattr(_NAMES, key))
        label = is_true if key in ("tp", "fn") else logical_not(is_true)
        matches = as_numbers(logical_and(label, above if key[1] == "p" else logical_not(above)))
        values[key] = count.value()
        updates[key] = count.assign_add(reduce_sum(matches if weight is None else matches * weight, 1))
    no_counts = Counts(None, None, None, None)
    return no_counts._replace(**values), no_counts._replace(**updates)


def _at_thresholds(
    name: str, scope: str, doc: str, needed: str, compute: Callable[[Counts], Any]
) -> Callable[..., Pair]:
    """A metric with a value for each threshold; ``compute`` takes it from the counts."""

    def metric(
        labels: TensorLike,
        predictions: TensorLike,
        thresholds: Sequence[float],
        weights: TensorLike | None = None,
        metrics_collections: str | Sequence[str] | None = None,
        updates_collections: str | Sequence[str] | None = None,
        name: str | None = None,
    ) -> Pair:
        with metric_scope(name, scope):
            values, updates = _counts(labels, predictions, list(thresholds), weights, needed)
            return add_to_collections(
                (compute(values), compute(updates)), metrics_collections, updates_collections
            )

    metric.__name__ = metric.__qualname__ = name
    metric.__doc__ = f"""{doc}, for each of several thresholds.

    Args:
        labels: converted to bools.
        predictions: scores of the shape of ``labels``; a prediction is true if it is above the threshold.
        thresholds: a list of floats in [0, 1].

    See :func:`mean` for the other arguments and the errors. The result is a vector.
    """
    return entry(metric)


true_positives_at_thresholds = _at_thresholds(
    "true_positives_at_thresholds",
    "true_positives",
    "The number of true predictions whose labels are true",
    "tp",
    lambda c: c.tp,
)
false_negatives_at_thresholds = _at_thresholds(
    "false_negatives_at_thresholds",
    "false_negatives",
    "The number of false predictions whose labels are true",
    "fn",
    lambda c: c.fn,
)
true_negatives_at_thresholds = _at_thresholds(
    "true_negatives_at_thresholds",
    "true_negatives",
    "The number of false predictions whose labels are false",
    "tn",
    lambda c: c.tn,
)
false_positives_at_thresholds = _at_thresholds(
    "false_positives_at_thresholds",
    "false_positives",
    "The number of true predictions whose labels are false",
    "fp",
    lambda c: c.fp,
)
precision_at_thresholds = _at_thresholds(
    "precision_at_thresholds",
    "precision_at_thresholds",
    "The fraction of true predictions whose labels are true",
    "tp fp",
    lambda c: c.tp / (_EPSILON + c.tp + c.fp),
)
recall_at_thresholds = _at_thresholds(
    "recall_at_thresholds",
    "recall_at_thresholds",
    "The fraction of true labels whose predictions are true",
    "tp fn",
    lambda c: c.tp / (_EPSILON + c.tp + c.fn),
)


def _even(count: int) -> list[float]:
    """``count`` evenly spaced thresholds, the first below 0 and the last above 1."""
    if count < 2:
        raise InvalidArgumentError(f"num_thresholds must be at least 2, not {count}.")
    inner = [(i + 1) / (count - 1) for i in range(count - 2)]
    return [-_EPSILON, *inner, 1 + _EPSILON]


@entry
def auc(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike | None = None,
    num_thresholds: int = 200,
    metrics_collections: str | Sequence[str] | None = None,
    updates_collections: str | Sequence[str] | None = None,
    curve: str = "ROC",
    name: str | None = None,
    summation_method: str = "trapezoidal",
    thresholds: TensorLike | None = None,
) -> Pair:
    """The approximate area under the curve (AUC) of two rates over all thresholds.

    Args:
        labels: converted to bools.
        predictions: scores in [0, 1], of the shape of ``labels``.
        num_thresholds: the number of thresholds.
        curve: "ROC", the rates of true and false positives, or "PR", precision and recall.
        summation_method: "trapezoidal"; "minoring" or "majoring" for the lower or the upper sum; or
            "careful_interpolation" of the curve "PR" (Davis and Goadrich, "The relationship between
            Precision-Recall and ROC curves", 2006).
        thresholds: replace the evenly spaced ones; 0 and 1 are added.

    See :func:`mean` for the other arguments and the result.

    Raises:
        InvalidArgumentError: the curve or method is unknown, or there are fewer than two thresholds.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default(), v1.Session() as session:
    ...     value, update = v1.metrics.auc([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    ...     session.run(v1.local_variables_initializer())
    ...     print(round(float(session.run(update)), 3))
    0.75
    """
    if curve not in ("ROC", "PR"):
        raise InvalidArgumentError(f'curve must be either "ROC" or "PR", not {curve!r}.')
    area = _AREAS.get(summation_method)
    if area is None:
        raise InvalidArgumentError(
            f"Invalid summation_method {summation_method!r}; it is one of {', '.join(_AREAS)}."
        )
    interpolated = curve == "PR" and summation_method == "careful_interpolation"

    def compute(counts: Counts) -> Any:
        if interpolated:
            return _interpolated_area(counts)
        tp, fn, tn, fp = counts
        recall = (tp + _AUC_EPSILON) / (tp + fn + _AUC_EPSILON)
        if curve == "ROC":
            return area(fp / (fp + tn + _AUC_EPSILON), recall)
        return area(recall, (tp + _AUC_EPSILON) / (tp + fp + _AUC_EPSILON))

    thresholds = _even(num_thresholds) if thresholds is None else _with_end_points(thresholds)
    with metric_scope(name, "auc"):
        values, updates = _counts(labels, predictions, thresholds, weights)
        return add_to_collections(
            (compute(values), compute(updates)), metrics_collections, updates_collections
        )


def _with_end_points(thresholds: Any) -> list[float]:
    return [-_EPSILON, *sorted(float(t) for t in thresholds), 1 + _EPSILON]


def _trapezoidal_area(x: Any, y: Any) -> Any:
    return reduce_sum((x[:-1] - x[1:]) * (y[:-1] + y[1:]) / 2)


def _lower_area(x: Any, y: Any) -> Any:
    return reduce_sum((x[:-1] - x[1:]) * minimum(y[:-1], y[1:]))


def _upper_area(x: Any, y: Any) -> Any:
    return reduce_sum((x[:-1] - x[1:]) * maximum(y[:-1], y[1:]))


_AREAS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "trapezoidal": _trapezoidal_area,
    "careful_interpolation": _trapezoidal_area,
    "minoring": _lower_area,
    "majoring": _upper_area,
}


def _interpolated_area(counts: Counts) -> Any:
    """The area under the PR curve, with true positives linear in false positives between thresholds."""
    tp, fn, _, fp = counts
    step = tp[:-1] - tp[1:]
    positives = tp + fp
    slope = divide_no_nan(step, maximum(positives[:-1] - positives[1:], 0))
    start = tp[1:] - slope * positives[1:]
    both = logical_and(positives[:-1] > 0, positives[1:] > 0)
    ratio = where(both, divide_no_nan(positives[:-1], maximum(positives[1:], 0)), ones_like(start))
    return reduce_sum(divide_no_nan(slope * (step + start * log(ratio)), maximum(tp[1:] + fn[1:], 0)))


@entry
def sensitivity_at_specificity(
    labels: TensorLike,
    predictions: TensorLike,
    specificity: float,
    weights: TensorLike | None = None,
    num_thresholds: int = 200,
    metrics_collections: str | Sequence[str] | None = None,
    updates_collections: str | Sequence[str] | None = None,
    name: str | None = None,
) -> Pair:
    """The sensitivity at the threshold whose specificity is closest to ``specificity``.

    Sensitivity is the fraction of true labels whose predictions are true, specificity the fraction of false
    labels whose predictions are false. See :func:`auc` for the arguments.

    Raises:
        InvalidArgumentError: ``specificity`` is outside [0, 1].
    """
    _require_fraction(specificity, "specificity")

    def compute(counts: Counts) -> Any:
        tp, fn, tn, fp = counts
        best = argmin(abs(tn / (tn + fp + _EPSILON) - specificity), 0)
        return gather(tp, best) / (gather(tp, best) + gather(fn, best) + _EPSILON)

    with metric_scope(name, "sensitivity_at_specificity"):
        values, updates = _counts(labels, predictions, _even(num_thresholds), weights)
        return add_to_collections(
            (compute(values), compute(updates)), metrics_collections, updates_collections
        )


@entry
def specificity_at_sensitivity(
    labels: TensorLike,
    predictions: TensorLike,
    sensitivity: float,
    weights: TensorLike | None = None,
    num_thresholds: int = 200,
    metrics_collections: str | Sequence[str] | None = None,
    updates_collections: str | Sequence[str] | None = None,
    name: str | None = None,
) -> Pair:
    """The specificity at the threshold whose sensitivity is closest to ``sensitivity``.

    See :func:`sensitivity_at_specificity` for the terms, and :func:`auc` for the arguments.

    Raises:
        InvalidArgumentError: ``sensitivity`` is outside [0, 1].
    """
    _require_fraction(sensitivity, "sensitivity")

    def compute(counts: Counts) -> Any:
        tp, fn, tn, fp = counts
        distance = abs(tp / (tp + fn + _EPSILON) - sensitivity)
        best = num_thresholds - 1 - argmin(reverse(distance, [0]), 0)  # the last of equals
        return gather(tn, best) / (gather(tn, best) + gather(fp, best) + _EPSILON)

    with metric_scope(name, "specificity_at_sensitivity"):
        thresholds = [*_even(num_thresholds)[:-1], 1 - _EPSILON]
        values, updates = _counts(labels, predictions, thresholds, weights)
        return add_to_collections(
            (compute(values), compute(updates)), metrics_collections, updates_collections
        )


def _require_fraction(value: float, what: str) -> None:
    if not 0 <= value <= 1:
        raise InvalidArgumentError(f"`{what}` must be in the range [0, 1], not {value!r}.")
