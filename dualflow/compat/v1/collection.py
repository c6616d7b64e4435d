"""The default graph's collections: lists of values by name."""

from __future__ import annotations

from collections.abc import Iterable
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
    TABLE_INITIALIZERS: Final = "table_initializer"
    ACTIVATIONS: Final = "activations"
    ASSET_FILEPATHS: Final = "asset_filepaths"
    BIASES: Final = "biases"
    CONCATENATED_VARIABLES: Final = "concatenated_variables"
    COND_CONTEXT: Final = "cond_context"
    EVAL_STEP: Final = "eval_step"
    GLOBAL_STEP: Final = "global_step"
    INIT_OP: Final = "init_op"
    LOCAL_INIT_OP: Final = "local_init_op"
    LOCAL_RESOURCES: Final = "local_resources"
    LOCAL_VARIABLES: Final = "local_variables"
    LOSSES: Final = "losses"
    METRIC_VARIABLES: Final = "metric_variables"
    MODEL_VARIABLES: Final = "model_variables"
    MOVING_AVERAGE_VARIABLES: Final = "moving_average_variables"
    QUEUE_RUNNERS: Final = "queue_runners"
    READY_FOR_LOCAL_INIT_OP: Final = "ready_for_local_init_op"
    READY_OP: Final = "ready_op"
    RESOURCES: Final = "resources"
    SAVEABLE_OBJECTS: Final = "saveable_objects"
    SAVERS: Final = "savers"
    SUMMARIES: Final = "summaries"
    SUMMARY_OP: Final = "summary_op"
    TRAINABLE_RESOURCE_VARIABLES: Final = "trainable_resource_variables"
    TRAIN_OP: Final = "train_op"
    UPDATE_OPS: Final = "update_ops"
    WEIGHTS: Final = "weights"
    WHILE_CONTEXT: Final = "while_context"


def add_to_collection(name: str, value: object) -> None:
    """Add ``value``, of any type, to a collection of the default graph.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default():
    ...     v1.add_to_collection("layers", 3)
    ...     v1.get_collection("layers")
    [3]
    """
    get_default_graph().add_to_collection(name, value)


def add_to_collections(names: str | Iterable[str], value: object) -> None:
    """Add ``value``, of any type, to several collections of the default graph.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default():
    ...     v1.add_to_collections(["layers", "all"], 3)
    ...     v1.get_collection("all")
    [3]
    """
    get_default_graph().add_to_collections(names, value)


def get_collection_ref(key: str) -> list[Any]:
    """The list itself of a collection of the default graph: what is added to it is in the collection.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default():
    ...     v1.get_collection_ref("layers").append(3)
    ...     v1.get_collection("layers")
    [3]
    """
    return get_default_graph().get_collection_ref(key)


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


def model_variables(scope: str | None = None) -> list[Any]:
    """The variables in the default graph's collection of variables of models.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default():
    ...     v1.model_variables()
    []
    """
    return get_collection(GraphKeys.MODEL_VARIABLES, scope)


def moving_average_variables(scope: str | None = None) -> list[Any]:
    """The variables in the default graph's collection of those that have moving averages.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default():
    ...     v1.moving_average_variables()
    []
    """
    return get_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, scope)


def local_variables_initializer() -> Operation | None:
    """The operation that assigns the initial values of the local variables.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default(), v1.Session() as session:
    ...     session.run([v1.global_variables_initializer(), v1.local_variables_initializer()])
    [None, None]
    """
    return variables_initializer(local_variables(), name="init")
