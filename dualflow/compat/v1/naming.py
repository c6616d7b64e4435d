"""Functions that name what they add to an explicit graph: their ``name`` argument is TensorFlow's.

Where ops run at once nothing has a name, and the functions are dualflow's own behind one check.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from types import FunctionType, ModuleType
from typing import Any

from dualflow.function.session import Graph, graph_recording
from dualflow.function.session.names import checked
from dualflow.function.symbol import Symbol


def named(found: Any) -> Any:
    """A function that takes a ``name`` as one that uses it, a module as one of such functions."""
    if isinstance(found, ModuleType):
        return Namespace(found)
    if not isinstance(found, FunctionType):
        return found
    place = list(inspect.signature(found).parameters)
    return _naming(found, place.index("name")) if "name" in place else found


class Namespace(ModuleType):
    """A module of dualflow whose functions name what they add to a graph."""

    def __init__(self, module: ModuleType) -> None:
        super().__init__(module.__name__, module.__doc__)
        self._module = module

    def __getattr__(self, name: str) -> Any:
        found = named(getattr(self._module, name))
        setattr(self, name, found)
        return found

    def __dir__(self) -> list[str]:
        return dir(self._module)


def _naming(function: Callable[..., Any], place: int) -> Callable[..., Any]:
    """``function``, whose argument at ``place`` is the name."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        graph = graph_recording()
        if graph is None:
            return function(*args, **kwargs)
        name = args[place] if len(args) > place else kwargs.get("name")
        return function(*args, **kwargs) if name is None else _call(graph, name, function, args, kwargs)

    return call


def _call(graph: Graph, name: str, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """What ``function`` adds is in the scope ``name``, and the node of its result has that name itself."""
    names = graph.engine.open.names
    before = len(graph.engine.builder.nodes)
    full = names.unique(checked(name, names.scope))
    with graph.name_scope(f"{full}/"):
        result = function(*args, **kwargs)
    results = result if isinstance(result, list | tuple) else [result]
    makers = {x._value.node for x in results if isinstance(x, Symbol)}
    if len(makers) == 1:
        (node,) = makers
        if node is not None and node in graph.engine.builder.nodes[before:]:
            names.rename(node, full)
    return result
