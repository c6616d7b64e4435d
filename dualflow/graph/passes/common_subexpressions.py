"""Common subexpression elimination."""

from __future__ import annotations

from collections.abc import Hashable

from dualflow.core.exact_equality import exact_attrs
from dualflow.graph.ir import Graph, Node
from dualflow.graph.rewrite import Make, Replacement, rewrite


def merge_common_subexpressions(graph: Graph) -> Graph:
    """``graph`` with equal nodes (op, inputs, attributes to the bit) merged into the first.

    Nodes with an effect are never merged: two random draws differ.
    """
    first: dict[Hashable, Node] = {}

    def same_as_before(node: Node, make: Make) -> Replacement:
        """f(x) = the results of an earlier f(x), an equal node."""
        if node.effect is not None:
            return None
        attrs = exact_attrs(node.attrs) if node.attrs else ()
        earlier = first.setdefault((node.op, node.inputs, attrs), node)
        return None if earlier is node else earlier.outputs

    return rewrite(graph, same_as_before)
