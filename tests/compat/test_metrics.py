"""``v1.metrics``: values and updates in sessions, against NumPy and TensorFlow 2.21's results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dualflow.compat import v1

RANDOM = np.random.default_rng(3)
X, Y = (RANDOM.normal(size=(3, 4)).astype(np.float32) for _ in range(2))
HOLDS = np.float32([[1, 1, 1, 0], [1, 0, 0, 1], [0, 1, 1, 0]])
SCORES = np.float32([[0.9, 0.2, 0.6, 0.4], [0.7, 0.65, 0.1, 0.5], [0.3, 0.55, 0.8, 0.95]])
WEIGHTS = {
    "alike": None,
    "rows": np.float32([[1], [0], [2]]),
    "each": np.float32([[1, 0, 2, 1], [0, 0, 0, 0], [3, 1, 0, 1]]),
}


def run(make: Callable[[], tuple[Any, Any]], times: int = 1) -> tuple[Any, Any]:
    """The value after `times` updates, and the result of the last one."""
    with v1.Graph().as_default(), v1.Session() as session:
        result, update = make()
        session.run(v1.local_variables_initializer())
        updated = [session.run(update) for _ in range(times)][-1]
        return session.run(result), updated


def mean(values: Any, weights: Any) -> Any:
    w = np.broadcast_to(1.0 if weights is None else weights, values.shape)
    return (values.astype(np.float64) * w).sum() / w.sum()


MEANS: dict[str, tuple[Callable[..., Any], Any]] = {
    "mean": (lambda w: v1.metrics.mean(X, w), X),
    "accuracy": (lambda w: v1.metrics.accuracy(HOLDS, SCORES > 0.5, w), (SCORES > 0.5) == HOLDS),
    "mean_absolute_error": (lambda w: v1.metrics.mean_absolute_error(Y, X, w), abs(X - Y)),
    "mean_squared_error": (lambda w: v1.metrics.mean_squared_error(Y, X, w), (X - Y) ** 2),
    "mean_relative_error": (
        lambda w: v1.metrics.mean_relative_error(Y, X, HOLDS * 2, w),
        abs(X - Y) / 2 * HOLDS,
    ),
    "percentage_below": (lambda w: v1.metrics.percentage_below(X, 0.3, w), X < 0.3),
}


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("name", MEANS)
def test_a_mean_is_that_of_all_updates(name: str, weights: str) -> None:
    make, values = MEANS[name]
    expected = mean(values, WEIGHTS[weights])
    for result in run(lambda: make(WEIGHTS[weights]), 2):
        np.testing.assert_allclose(result, expected, rtol=1e-5)


def test_means_of_other_kinds() -> None:
    expected = np.sqrt(((X - Y) ** 2).mean())
    np.testing.assert_allclose(run(lambda: v1.metrics.root_mean_squared_error(Y, X)), expected, rtol=1e-5)
    expected = 1 - (X * Y).sum(1).mean()
    np.testing.assert_allclose(run(lambda: v1.metrics.mean_cosine_distance(Y, X, 1)), expected, rtol=1e-5)
    result = run(lambda: v1.metrics.mean_tensor(X, WEIGHTS["each"]), 2)
    np.testing.assert_allclose(result, [np.where(WEIGHTS["each"] != 0, X, 0)] * 2, rtol=1e-5)


COUNTS = {
    "true_positives": HOLDS * (SCORES > 0.5),
    "false_positives": (1 - HOLDS) * (SCORES > 0.5),
    "true_negatives": (1 - HOLDS) * (SCORES <= 0.5),
    "false_negatives": HOLDS * (SCORES <= 0.5),
}


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("name", COUNTS)
def test_counts_add_up(name: str, weights: str) -> None:
    w = WEIGHTS[weights]
    expected = 2 * (COUNTS[name] * (1 if w is None else w)).sum()
    assert run(lambda: getattr(v1.metrics, name)(HOLDS, SCORES > 0.5, w), 2) == (expected, expected)
    at = run(lambda: getattr(v1.metrics, f"{name}_at_thresholds")(HOLDS, SCORES, [0.5, 2.0], w), 2)
    assert at[0][0] == at[1][0] == expected


@pytest.mark.parametrize(("name", "other"), [("precision", "false_positives"), ("recall", "false_negatives")])
@pytest.mark.parametrize("weights", WEIGHTS)
def test_precision_and_recall_are_shares_of_true_positives(name: str, other: str, weights: str) -> None:
    w = WEIGHTS[weights]
    hits, misses = (COUNTS[n] * (1 if w is None else w) for n in ("true_positives", other))
    expected = hits.sum() / (hits.sum() + misses.sum())
    result = run(lambda: getattr(v1.metrics, name)(HOLDS, SCORES > 0.5, w), 2)
    np.testing.assert_allclose(result, [expected] * 2, rtol=1e-6)
    result = run(lambda: getattr(v1.metrics, f"{name}_at_thresholds")(HOLDS, SCORES, [0.5], w), 2)
    np.testing.assert_allclose(result, [[expected]] * 2, rtol=1e-5)


def test_nothing_seen_is_zero() -> None:
    with v1.Graph().as_default(), v1.Session() as session:
        values = [v1.metrics.mean(X)[0], v1.metrics.precision(HOLDS, HOLDS)[0]]
        session.run(v1.local_variables_initializer())
        assert session.run(values) == [0.0, 0.0]


AREAS = [
    ("ROC", "trapezoidal", 0.628571),
    ("ROC", "careful_interpolation", 0.628571),
    ("ROC", "minoring", 0.628571),
    ("ROC", "majoring", 0.628571),
    ("PR", "trapezoidal", 0.602257),
    ("PR", "careful_interpolation", 0.613208),
    ("PR", "minoring", 0.535374),
    ("PR", "majoring", 0.669140),
]
SENSITIVITY = 0.857143
SPECIFICITY = 0.6


@pytest.mark.parametrize(("curve", "method", "expected"), AREAS)
def test_areas_are_tensorflows(curve: str, method: str, expected: float) -> None:
    result = run(lambda: v1.metrics.auc(HOLDS, SCORES, None, 20, curve=curve, summation_method=method), 2)
    np.testing.assert_allclose(result, [expected] * 2, rtol=2e-5)


def test_the_auc_is_the_probability_that_a_true_label_scores_higher() -> None:
    high, low = SCORES[HOLDS == 1], SCORES[HOLDS == 0]
    chance = (high[:, None] > low).mean()
    np.testing.assert_allclose(run(lambda: v1.metrics.auc(HOLDS, SCORES))[0], chance, atol=1e-5)
    np.testing.assert_allclose(
        run(lambda: v1.metrics.auc(HOLDS, SCORES, thresholds=np.arange(0.01, 1, 0.01)))[0], chance, atol=1e-5
    )


def test_a_rate_at_another_rate() -> None:
    result = run(lambda: v1.metrics.sensitivity_at_specificity(HOLDS, SCORES, 0.6))
    np.testing.assert_allclose(result, SENSITIVITY, rtol=1e-5)
    result = run(lambda: v1.metrics.specificity_at_sensitivity(HOLDS, SCORES, 0.6))
    np.testing.assert_allclose(result, SPECIFICITY, rtol=1e-5)


GUESSED, RIGHT = np.array([[0, 2, 2], [2, 1, 0]]), np.array([[0, 1, 2], [2, 2, 0]])


def test_mean_iou() -> None:
    value, matrix = run(lambda: v1.metrics.mean_iou(RIGHT, GUESSED, 4), 2)
    assert matrix.tolist() == [[4, 0, 0, 0], [0, 0, 2, 0], [0, 2, 4, 0], [0, 0, 0, 0]]
    np.testing.assert_allclose(value, (1 + 0 + 4 / 8) / 3, rtol=1e-6)


def test_mean_per_class_accuracy() -> None:
    value, shares = run(lambda: v1.metrics.mean_per_class_accuracy(RIGHT, GUESSED, 4), 2)
    np.testing.assert_allclose(shares, [1, 0, 2 / 3, 0], rtol=1e-6)
    np.testing.assert_allclose(value, (1 + 2 / 3) / 4, rtol=1e-6)


def test_a_last_axis_of_size_one_is_dropped() -> None:
    result = run(lambda: v1.metrics.accuracy(np.array([[1], [2]]), np.array([1, 3]), np.float32([[1], [3]])))
    assert result == (0.25, 0.25)


def test_variables_are_local_and_have_the_metrics_name() -> None:
    with v1.Graph().as_default():
        (
            v1.metrics.mean(X),
            v1.metrics.precision(HOLDS, HOLDS),
            v1.metrics.mean(X),
            v1.metrics.mean(X, name="m"),
        )
        names = [v.name for v in v1.local_variables()]
        assert names == [
            "mean/total:0",
            "mean/count:0",
            "precision/true_positives/count:0",
            "precision/false_positives/count:0",
            "mean_1/total:0",
            "mean_1/count:0",
            "m/total:0",
            "m/count:0",
        ]
        assert v1.get_collection(v1.GraphKeys.METRIC_VARIABLES) == v1.local_variables()
        assert v1.global_variables() == []


def test_values_and_updates_join_collections() -> None:
    with v1.Graph().as_default():
        value, update = v1.metrics.accuracy(HOLDS, HOLDS, None, ["values"], ["updates"])
        assert (v1.get_collection("values"), v1.get_collection("updates")) == ([value], [update])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: v1.metrics.mean(X, np.float32([1, 2])), "weights can not be broadcast to values"),
        (lambda: v1.metrics.accuracy(X, X[:2]), r"Shapes \(2, 4\) and \(3, 4\) are incompatible"),
        (lambda: v1.metrics.accuracy(None, X), "labels must not be None"),
        (lambda: v1.metrics.auc(HOLDS, SCORES, curve="X"), 'curve must be either "ROC" or "PR"'),
        (lambda: v1.metrics.auc(HOLDS, SCORES, summation_method="X"), "Invalid summation_method 'X'"),
        (lambda: v1.metrics.auc(HOLDS, SCORES, num_thresholds=1), "num_thresholds must be at least 2"),
        (lambda: v1.metrics.sensitivity_at_specificity(HOLDS, SCORES, 1.5), r"must be in the range \[0, 1\]"),
        (lambda: v1.metrics.specificity_at_sensitivity(HOLDS, SCORES, -1), r"must be in the range \[0, 1\]"),
    ],
)
def test_bad_arguments_are_errors(make: Callable[[], Any], message: str) -> None:
    with v1.Graph().as_default(), pytest.raises(ValueError, match=message):
        make()


def test_metrics_need_a_graph() -> None:
    with pytest.raises(RuntimeError, match=r"not supported when eager .*df\.eager\.metrics"):
        v1.metrics.mean(X)
