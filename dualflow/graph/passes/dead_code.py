"""Dead code elimination."""

from __future__ import annotations

from dualflow.core.records import replace
from dualflow.graph.ir import Graph, Node, Value


def eliminate_dead_code(graph: Graph) -> Graph:
    """``graph`` without unused nodes and captures, and without updates that change nothing.

    A pure node without consumers is removed even if it would fail at run time. Nodes with an effect stay, and
    so do all arguments. An update of a variable by its own value is removed. The result is ``graph`` itself
    if nothing is removed.
    """
    if is_live(graph):
        return graph
    updates = tuple([u for u in graph.updates if u.value is not u.input])
    live: set[Value] = {*graph.outputs, *(u.value for u in updates)}
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        if node.effect is not None or not live.isdisjoint(node.outputs):
            kept.append(node)
            live.update(node.inputs)
    live.update(u.input for u in updates)
    arguments = graph.arguments
    captured = [
        (v, c) for v, c in zip(graph.inputs[len(arguments) :], graph.captures, strict=True) if v in live
    ]
    counts = len(kept), len(captured), len(updates)
    if counts != (len(graph.nodes), len(graph.captures), len(graph.updates)):
        graph = replace(
            graph,
            inputs=(*arguments, *(v for v, _ in captured)),
            captures=tuple([c for _, c in captured]),
            nodes=tuple(reversed(kept)),
            updates=updates,
        )
    graph.facts[eliminate_dead_code] = True
    return graph


def is_live(graph: Graph) -> bool:
    """Whether ``graph`` is a result of :func:`eliminate_dead_code`."""
    return eliminate_dead_code in graph.facts
