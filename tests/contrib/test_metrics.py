"""``tfe.metrics``: sums in variables, in every mode."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import dualflow as df
import dualflow.eager as tfe
from dualflow.compat import v1

NUMBERS = arrays.arrays(np.float64, st.integers(1, 8), elements=st.floats(-10, 10))


@given(st.lists(NUMBERS, min_size=1, max_size=4))
def test_the_mean_is_that_of_all_that_was_seen(batches: list[Any]) -> None:
    mean = tfe.metrics.Mean()
    for batch in batches:
        mean(batch)
    np.testing.assert_allclose(mean.result(), np.concatenate(batches).mean(), rtol=1e-12, atol=1e-12)


def test_weights_broadcast() -> None:
    mean = tfe.metrics.Mean()
    mean([1.0, 3.0], weights=[1.0, 3.0])
    assert float(mean.result()) == 2.5
    values, weights = mean([[1.0, 2.0]], 2.0)
    assert (values, weights) == ([[1.0, 2.0]], 2.0)
    assert float(mean.result()) == (10 + 6) / (4 + 2)


def test_a_call_returns_what_it_was_given() -> None:
    assert tfe.metrics.Mean()(3.0) == 3.0
    assert tfe.metrics.Accuracy()([1], [2]) == ([1], [2])
    assert tfe.metrics.Accuracy()([1], [2], [3.0]) == ([1], [2], [3.0])


@pytest.mark.parametrize(
    ("metric", "labels", "predictions", "expected"),
    [
        (tfe.metrics.Accuracy, [1, 2, 3, 4], [1, 0, 3, 0], 0.5),
        (lambda: tfe.metrics.BinaryAccuracy(0.5), [1, 0, 1, 0], [0.5, 0.5, 0.6, 0.7], 0.5),
        (tfe.metrics.CategoricalAccuracy, [[0, 1], [1, 0]], [[0.2, 0.8], [0.4, 0.6]], 0.5),
        (tfe.metrics.SparseAccuracy, [1, 0, 0], [[0.2, 0.8], [0.9, 0.1], [0.1, 0.9]], 2 / 3),
    ],
)
def test_an_accuracy_is_the_share_of_matches(
    metric: Any, labels: Any, predictions: Any, expected: float
) -> None:
    accuracy = metric()
    accuracy(labels, predictions)
    assert float(accuracy.result()) == pytest.approx(expected, rel=1e-15)


def test_metrics_have_float64_sums_unless_requested_otherwise() -> None:
    mean, narrow = tfe.metrics.Mean(), tfe.metrics.Mean(dtype=df.float32)
    mean(1.0), narrow(1.0)
    assert (mean.result().dtype, narrow.result().dtype) == (df.float64, df.float32)


def test_init_variables_forgets() -> None:
    mean = tfe.metrics.Mean()
    mean(5.0)
    mean.init_variables()
    mean(1.0)
    assert float(mean.value()()) == 1.0


def test_the_variables_have_the_metrics_name_and_are_not_trained() -> None:
    mean = tfe.metrics.Mean("my loss")
    mean(1.0)
    assert [v.name for v in mean.variables] == ["my_loss/numer:0", "my_loss/denom:0"]
    assert mean.trainable_variables == ()


def test_a_traced_function_counts() -> None:
    mean = tfe.metrics.Mean()
    step = df.function(lambda x: mean(x))
    for x in (1.0, 2.0, 6.0):
        step(df.constant(x))
    assert float(mean.result()) == 3.0


def test_in_a_graph_a_call_is_an_operation() -> None:
    with v1.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(v1.float32, [None])
        mean = tfe.metrics.Mean()
        update, result = mean(x), mean.value()
        assert v1.local_variables() == list(mean.variables)
        session.run(mean.init_variables())
        session.run(update, {x: [1.0, 2.0]})
        session.run(update, {x: [6.0]})
        assert session.run(result) == 3.0


def test_a_graphs_variables_may_be_global() -> None:
    with v1.Graph().as_default():
        mean = tfe.metrics.Mean(use_global_variables=True)
        mean(1.0)
        assert v1.global_variables() == list(mean.variables)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tfe.metrics.Accuracy()([1, 2], [1, 2, 3]), r"unequal: \(2,\) and \(3,\)"),
        (lambda: tfe.metrics.Mean("m").result(), "'m' has no data; call it first"),
        (lambda: tfe.metrics.Mean("m").init_variables(), "'m' has no variables before its first call"),
        (lambda: tfe.metrics.Metric()(1.0), "Metric is a metric without a method build"),
        (lambda: tfe.metrics.Metric().call(1.0), "Metric is a metric without a method call"),
        (lambda: tfe.metrics.Metric().result(), "Metric is a metric without a method result"),
    ],
)
def test_bad_use_is_an_error(make: Any, message: str) -> None:
    with pytest.raises((ValueError, RuntimeError), match=message):
        make()


def test_variables_are_added_by_build_only() -> None:
    mean = tfe.metrics.Mean()
    mean(1.0)
    with pytest.raises(RuntimeError, match="except in build"):
        mean.add_variable("late")
