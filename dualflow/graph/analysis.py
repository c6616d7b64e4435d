"""Questions about a graph as a graph, answered by networkx.

For people and tools at the edge: compiling never comes here.
"""

from __future__ import annotations

from collections.abc import Callable

import networkx as nx

from dualflow.graph.ir import Graph, Node, Value
from dualflow.ops.forms import Contraction, Element

Vertex = Node | Value


def to_networkx(graph: Graph) -> nx.MultiDiGraph:
    """``graph`` as a directed multigraph.

    Its vertices are the nodes and the input values; an edge runs from each producer to each reader, with
    the value as ``value`` and its place among the reader's inputs as ``slot``.
    """
    found = nx.MultiDiGraph(name=graph.name)
    found.add_nodes_from(graph.inputs)
    found.add_nodes_from(graph.nodes)
    for node in graph.nodes:
        for slot, value in enumerate(node.inputs):
            found.add_edge(value if value.node is None else value.node, node, value=value, slot=slot)
    return found


def work(node: Node) -> float:
    """A rough cost of a node in additions, from its op's form and its sizes; all sizes must be known."""
    elements = float(sum(spec.size for spec in node.specs))
    if isinstance(node.op.form, Contraction):
        return 2 * elements * _contracted(node)
    if isinstance(node.op.form, Element):
        return elements * node.op.form.cost
    return max([elements, *(float(v.spec.size) for v in node.inputs)])


def critical_path(graph: Graph, cost: Callable[[Node], float] = work) -> list[Node]:
    """The dependent nodes whose costs add up to the most: no number of threads runs the graph faster."""
    weighted = nx.DiGraph()
    weighted.add_nodes_from(graph.nodes)
    for node in graph.nodes:
        weighted.add_weighted_edges_from(
            (v.node, node, cost(v.node)) for v in node.inputs if v.node is not None
        )
        weighted.add_edge(node, _END, weight=cost(node))
    path = nx.dag_longest_path(weighted)
    return [vertex for vertex in path if vertex is not _END]


def _contracted(node: Node) -> float:
    """How many products each element of a matrix product adds up."""
    return float(node.inputs[0].spec.shape[-2 if node.attrs.get("transpose_a") else -1])


_END = object()
