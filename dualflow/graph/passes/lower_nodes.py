"""Replacement of the nodes that a backend has no code for."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.passes.dead_code import eliminate_dead_code
from dualflow.graph.rewrite import Make, rewrite


def lower_nodes(
    graph: Graph, selected: Callable[[Node], bool], lowering: Callable[[Node, Make], Sequence[Value]]
) -> Graph:
    """``graph`` with the values of ``lowering`` in place of each ``selected`` node; itself without any."""
    if not any(map(selected, graph.nodes)):
        return graph
    lowered = rewrite(graph, lambda node, make: lowering(node, make) if selected(node) else None)
    return eliminate_dead_code(lowered)
