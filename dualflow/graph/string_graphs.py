"""Graphs with strings, which run through NumPy: there is no machine code for Python objects."""

from __future__ import annotations

from typing import Final

from dualflow.core.dtypes import uncommon_in_use
from dualflow.graph.ir import Graph, Node
from dualflow.graph.nested_bodies import computed_from_bodies

REASON: Final = "strings are Python's objects, which machine code does not read"


def holds_strings(graph: Graph) -> bool:
    """Whether a value of the graph, or of a body in it, has dtype string."""
    return "string" in uncommon_in_use and _contains_strings(graph)


def with_strings(graph: Graph) -> Node | None:
    """The first node that computes or reads strings; None if they only pass through the graph."""
    return next((n for n in graph.nodes if _has_string(n)), None)


def _has_string(node: Node) -> bool:
    specs = (*node.specs, *[v.spec for v in node.inputs])
    return any(spec.dtype.is_string for spec in specs) or any(_contains_strings(b) for _, b in node.bodies)


@computed_from_bodies
def _contains_strings(graph: Graph) -> bool:
    if any(v.spec.dtype.is_string for v in graph.inputs):
        return True
    return any(map(_has_string, graph.nodes))
