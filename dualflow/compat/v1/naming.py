"""Wraps dualflow's functions for TensorFlow 1: with old names of arguments, and with names of operations.

In an explicit graph the argument ``name`` of a function is the name of the operation that it adds. A function
without a result, such as print, returns its operation there, for a session to run. Eagerly nothing has a
name, and a call costs one check more than dualflow's own function.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from types import FunctionType, ModuleType
from typing import Any

from dualflow.compat.v1.arguments import ArgumentTranslation
from dualflow.core.tracebacks import entry, hide_frames
from dualflow.function.tracing.symbolic_tensor import SymbolicTensor
from dualflow.graph.ir import Node
from dualflow.graph_mode import ExplicitGraph, Operation, recording_graph
from dualflow.graph_mode.names import check_name
from dualflow.graph_mode.unknown_rank import has_unknown_rank, postpone


def with_name(value: Any, order: str = "") -> Any:
    """A function with an argument ``name`` that names its operation, or a module of such functions.

    Other values are returned unchanged. ``order`` has TensorFlow 1's arguments of the function, if their
    order differs.
    """
    if isinstance(value, ModuleType):
        return Namespace(value)
    if not isinstance(value, FunctionType):
        return value
    parameters = inspect.signature(value).parameters
    optional = "name" in parameters and isinstance(parameters["name"].default, str | None)
    if not optional:  # a required name is not that of an op
        return value
    positional = parameters["name"].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    return _with_named_operation(
        value, list(parameters).index("name") if positional else None, ArgumentTranslation(value, order)
    )


class Namespace(ModuleType):
    """A module of dualflow whose functions name the operations that they add to a graph.

    Args:
        module: of dualflow.
        overrides: what replaces its own members, or is added to them.
    """

    def __init__(self, module: ModuleType, **overrides: Any) -> None:
        super().__init__(module.__name__, module.__doc__)
        self._module = module
        self._overrides = overrides

    @entry
    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return sorted({*self._module.__all__, *self._overrides})
        function = self._overrides.get(name) or with_name(getattr(self._module, name))
        setattr(self, name, function)
        return function

    def __dir__(self) -> list[str]:
        return sorted({*dir(self._module), *self._overrides})


def _with_named_operation(
    function: Callable[..., Any], name_index: int | None, translation: ArgumentTranslation
) -> Callable[..., Any]:
    """``function`` with named operations.

    ``name_index`` is the index of its argument ``name`` if it may be positional, else None.
    """

    @wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        try:
            if len(args) > translation.untranslated_count or (
                kwargs and not translation.translated_names.isdisjoint(kwargs)
            ):
                args, kwargs = translation.translate(args, kwargs)
            graph = recording_graph()
            if graph is None:
                return function(*args, **kwargs)
            node_count = len(graph.engine.builder.nodes)
            name = (
                args[name_index] if name_index is not None and len(args) > name_index else kwargs.get("name")
            )
            call = _postpone_for_unknown_rank(function) if has_unknown_rank(args, kwargs) else function
            result = (
                call(*args, **kwargs)
                if name is None
                else _call_in_named_scope(graph, name, call, args, kwargs)
            )
            return _last_effect(graph, node_count) if result is None else result
        except Exception as error:
            hide_frames(error)
            raise

    return wrapper


def _postpone_for_unknown_rank(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args, **kwargs: postpone(function, args, kwargs)


def _call_in_named_scope(
    graph: ExplicitGraph, name: str, function: Callable[..., Any], args: Any, kwargs: Any
) -> Any:
    """Call ``function`` in the scope ``name``, and give that name to the node of its result."""
    names = graph.engine.open.names
    node_count = len(graph.engine.builder.nodes)
    unique_name = names.unique(check_name(name, names.scope))
    with graph.name_scope(f"{unique_name}/"):
        result = function(*args, **kwargs)
    new_nodes = graph.engine.builder.nodes[node_count:]
    results = result if isinstance(result, list | tuple) else [result]
    producers = {x._value.node for x in results if isinstance(x, SymbolicTensor)} or set(_effects(new_nodes))
    if len(producers) == 1:
        (node,) = producers
        if node is not None and node in new_nodes:
            graph.engine.rename(node, unique_name)
    return result


def _last_effect(graph: ExplicitGraph, node_count: int) -> Operation | None:
    """The operation of the last node with an effect after the first ``node_count`` nodes; None if none."""
    effects = _effects(graph.engine.builder.nodes[node_count:])
    return graph.engine.operation_of(effects[-1]) if effects else None


def _effects(nodes: Sequence[Node]) -> list[Node]:
    return [node for node in nodes if node.effect is not None]
