"""dualflow's functions as TensorFlow 1 takes them: with old names of arguments, and with names in a graph.

In an explicit graph a function's ``name`` names what it adds. What is only done, as printing, returns its
operation there, for a session to run. Where ops run at once nothing has a name, and the functions are
dualflow's own behind one check.
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
from dualflow.graph_mode import ExplicitGraph, Operation, graph_recording
from dualflow.graph_mode.names import checked
from dualflow.graph_mode.unknown_rank import postpone, takes_unknown


def named(found: Any, order: str = "") -> Any:
    """A function that takes a ``name`` as one that uses it, a module as one of such functions.

    ``order`` has TensorFlow 1's arguments of the function, where they stand in another order.
    """
    if isinstance(found, ModuleType):
        return Namespace(found)
    if not isinstance(found, FunctionType):
        return found
    parameters = inspect.signature(found).parameters
    optional = "name" in parameters and isinstance(parameters["name"].default, str | None)
    if not optional:  # another name is no op's
        return found
    positional = parameters["name"].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    return _naming(
        found, list(parameters).index("name") if positional else None, ArgumentTranslation(found, order)
    )


class Namespace(ModuleType):
    """A module of dualflow whose functions name what they add to a graph.

    Args:
        module: of dualflow.
        others: named functions in the place of its own.
    """

    def __init__(self, module: ModuleType, **others: Any) -> None:
        super().__init__(module.__name__, module.__doc__)
        self._module = module
        self._others = others

    @entry
    def __getattr__(self, name: str) -> Any:
        found = self._others.get(name) or named(getattr(self._module, name))
        setattr(self, name, found)
        return found

    def __dir__(self) -> list[str]:
        return dir(self._module)


def _naming(
    function: Callable[..., Any], place: int | None, older: ArgumentTranslation
) -> Callable[..., Any]:
    """``function``, whose argument at ``place`` is the name; without a place it is given by keyword."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            if len(args) > older.alike or (kwargs and not older.names.isdisjoint(kwargs)):
                args, kwargs = older.translated(args, kwargs)
            graph = graph_recording()
            if graph is None:
                return function(*args, **kwargs)
            before = len(graph.engine.builder.nodes)
            name = args[place] if place is not None and len(args) > place else kwargs.get("name")
            made = _postponing(function) if takes_unknown(args, kwargs) else function
            result = made(*args, **kwargs) if name is None else _call(graph, name, made, args, kwargs)
            return _done(graph, before) if result is None else result
        except Exception as error:
            hide_frames(error)
            raise

    return call


def _postponing(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args, **kwargs: postpone(function, args, kwargs)


def _call(graph: ExplicitGraph, name: str, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """What ``function`` adds is in the scope ``name``, and the node of its result has that name itself."""
    names = graph.engine.open.names
    before = len(graph.engine.builder.nodes)
    full = names.unique(checked(name, names.scope))
    with graph.name_scope(f"{full}/"):
        result = function(*args, **kwargs)
    added = graph.engine.builder.nodes[before:]
    results = result if isinstance(result, list | tuple) else [result]
    makers = {x._value.node for x in results if isinstance(x, SymbolicTensor)} or set(_effects(added))
    if len(makers) == 1:
        (node,) = makers
        if node is not None and node in added:
            graph.engine.rename(node, full)
    return result


def _done(graph: ExplicitGraph, before: int) -> Operation | None:
    """The operation of what a function that returns nothing has added to the graph."""
    effects = _effects(graph.engine.builder.nodes[before:])
    return graph.engine.operation_of(effects[-1]) if effects else None


def _effects(nodes: Sequence[Node]) -> list[Node]:
    return [node for node in nodes if node.effect is not None]
