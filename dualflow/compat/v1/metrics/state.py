"""What every metric of a graph is made of: local variables, a value, and the operation that updates them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from dualflow.compat.v1.collection import GraphKeys
from dualflow.compat.v1.scopes import variable_scope
from dualflow.compat.v1.weighting import aligned, fitting, given
from dualflow.core.dtypes import DType, float32
from dualflow.core.errors import FailedPreconditionError
from dualflow.graph_mode import VariableV1, get_default_graph, graph_recording
from dualflow.ops.creation import zeros

Pair = tuple[Any, Any]
"""A metric's value, and the operation that updates it and gives the value after that."""


@contextmanager
def metric_scope(name: str | None, default: str) -> Iterator[None]:
    """The block of a metric's variables and operations, in the scope ``name`` or one of the metric's name.

    Raises:
        FailedPreconditionError: ops run now; there is no session to update the metric in.
    """
    if graph_recording() is None:
        raise FailedPreconditionError(
            f"v1.metrics.{default} is not supported when eager execution is enabled: it makes operations "
            "for a session to run. Where ops run now, use the objects of df.eager.metrics."
        )
    with variable_scope(name, default):
        yield


def metric_variable(shape: Any, name: str, dtype: DType = float32) -> Any:
    """A variable of zeros among the graph's local ones and those of metrics."""
    kinds = [GraphKeys.LOCAL_VARIABLES, GraphKeys.METRIC_VARIABLES]
    return VariableV1(zeros(shape, dtype), trainable=False, collections=kinds, name=name)


def compared(labels: Any, predictions: Any, weights: Any) -> tuple[Any, Any, Any]:
    """Labels and predictions of one shape, and weights that broadcast to them, or None.

    Raises:
        InvalidArgumentError: they don't fit.
    """
    right, guess = aligned(given(labels, "labels"), given(predictions, "predictions"))
    return right, guess, None if weights is None else fitting(weights, guess)


def collected(pair: Pair, metrics_collections: Any, updates_collections: Any) -> Pair:
    """The pair, whose value and operation have joined the graph's collections of these names."""
    graph = get_default_graph()
    for item, names in zip(pair, (metrics_collections, updates_collections), strict=True):
        for name in [names] if isinstance(names, str) else names or ():
            graph.add_to_collection(name, item)
    return pair


def of_both(function: Callable[..., Any], *pairs: Pair) -> Pair:
    """The pair of what ``function`` makes of values, and of what it makes of updates."""
    return function(*(value for value, _ in pairs)), function(*(update for _, update in pairs))
