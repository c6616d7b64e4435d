"""The default graph's collections: lists of values by name."""

from __future__ import annotations

from typing import Any, Final

from dualflow.compat.v1.scopes import REGULARIZATION_LOSSES
from dualflow.graph_mode import (
    GLOBAL_VARIABLES,
    TRAINABLE_VARIABLES,
    Operation,
    get_default_graph,
    variables_initializer,
)


class GraphKeys:
    """The names of the collections that the library uses, and of others that programs share.

    >>> GraphKeys.TRAINABLE_VARIABLES
    'trainable_variables'
    """

    GLOBAL_VARIABLES: Final = GLOBAL_VARIABLES
    TRAINABLE_VARIABLES: Final = TRAINABLE_VARIABLES
    REGULARIZATION_LOSSES: Final = REGULARIZATION_LOSSES
    LOCAL_VARIABLES: Final = "local_variables"
    LOSSES: Final = "losses"
    METRIC_VARIABLES: Final = "metric_variables"
    MOVING_AVERAGE_VARIABLES: Final = "moving_average_variables"
    SUMMARIES: Final = "summaries"
    UPDATE_OPS: Final = "update_ops"


def add_to_collection(name: str, value: object) -> None:
    """Add ``value``, of any type, to a collection of the default graph.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default():
    ...     v1.add_to_collection("layers", 3)
    ...     v1.get_collection("layers")
    [3]
    """
    get_default_graph().add_to_collection(name, value)


def get_collection(key: str, scope: str | None = None) -> list[Any]:
    """The values of a collection of the default graph; see :meth:`Graph.get_collection`.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default():
    ...     w = v1.Variable(1.0, name="w")
    ...     [v.name for v in v1.get_collection(v1.GraphKeys.GLOBAL_VARIABLES)]
    ['w:0']
    """
    return get_default_graph().get_collection(key, scope)


def local_variables(scope: str | None = None) -> list[Any]:
    """The variables in the default graph's collection of local variables.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default():
    ...     count = v1.Variable(0, trainable=False, collections=[v1.GraphKeys.LOCAL_VARIABLES], name="count")
    ...     [v.name for v in v1.local_variables()]
    ['count:0']
    """
    return get_collection(GraphKeys.LOCAL_VARIABLES, scope)


def local_variables_initializer() -> Operation | None:
    """The operation that assigns the initial values of the local variables.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default(), v1.Session() as session:
    ...     session.run([v1.global_variables_initializer(), v1.local_variables_initializer()])
    [None, None]
    """
    return variables_initializer(local_variables(), name="init")
