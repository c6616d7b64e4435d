"""The parts of a graph's metrics: local variables, a value, and the operation that updates them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from dualflow.compat.v1.collection import GraphKeys
from dualflow.compat.v1.scopes import variable_scope
from dualflow.compat.v1.weighting import fit_weights, required_tensor, squeeze_to_equal_rank
from dualflow.core.dtypes import DType, float32
from dualflow.core.errors import FailedPreconditionError
from dualflow.graph_mode import VariableV1, get_default_graph, recording_graph
from dualflow.ops.creation import zeros

Pair = tuple[Any, Any]
"""A metric's value, and the operation that updates it and returns the new value."""


@contextmanager
def metric_scope(name: str | None, default: str) -> Iterator[None]:
    """A context for the variables and operations of a metric, in the scope ``name`` or the default name.

    Raises:
        FailedPreconditionError: in eager execution, which has no session that could update the metric.
    """
    if recording_graph() is None:
        raise FailedPreconditionError(
            f"v1.metrics.{default} is not supported when eager execution is enabled: it creates operations "
            "for a session to run. In eager execution, use the objects of df.eager.metrics."
        )
    with variable_scope(name, default):
        yield


def metric_variable(shape: Any, name: str, dtype: DType = float32) -> Any:
    """A variable of zeros in the graph's collections of local and of metric variables."""
    kinds = [GraphKeys.LOCAL_VARIABLES, GraphKeys.METRIC_VARIABLES]
    return VariableV1(zeros(shape, dtype), trainable=False, collections=kinds, name=name)


def align_labels(labels: Any, predictions: Any, weights: Any) -> tuple[Any, Any, Any]:
    """Labels and predictions of equal shape, and weights that broadcast to them, or None.

    Raises:
        InvalidArgumentError: their shapes don't match.
    """
    y_true, y_pred = squeeze_to_equal_rank(
        required_tensor(labels, "labels"), required_tensor(predictions, "predictions")
    )
    return y_true, y_pred, None if weights is None else fit_weights(weights, y_pred)


def add_to_collections(pair: Pair, metrics_collections: Any, updates_collections: Any) -> Pair:
    """Add the value and the operation of ``pair`` to the graph's collections of these names; returns it."""
    graph = get_default_graph()
    for item, names in zip(pair, (metrics_collections, updates_collections), strict=True):
        for name in [names] if isinstance(names, str) else names or ():
            graph.add_to_collection(name, item)
    return pair


def map_pairs(function: Callable[..., Any], *pairs: Pair) -> Pair:
    """A metric pair: ``function`` applied to the values, and to the updates, of other pairs."""
    return function(*(value for value, _ in pairs)), function(*(update for _, update in pairs))
