"""A part of a graph as a graph of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dualflow.graph.ir import Graph, Node, Update, Value
from dualflow.graph.rewrite import rebuilt


def extract(
    graph: Graph,
    inputs: Sequence[Value],
    outputs: Sequence[Value],
    *,
    name: str | None = None,
    updates: Sequence[Update] = (),
    effects: Iterable[Node] = (),
) -> Graph:
    """The graph that computes ``outputs`` from ``inputs``, which may be any of ``graph``'s values.

    Its arguments are ``inputs``, then the other arguments of ``graph`` that the outputs depend on; its
    captures those they depend on. ``updates`` and the nodes ``effects`` belong to it, whoever reads them. An
    input that a node made is another value in the new graph, one without a node.
    """
    moved = {v: Value(v.spec) for v in inputs if v.node is not None}
    needed, sources = ancestors(
        [*outputs, *(v for u in updates for v in (u.value, u.input))], inputs, effects
    )
    first = len(graph.arguments)
    captured = [(v, c) for v, c in zip(graph.inputs[first:], graph.captures, strict=True) if v in sources]
    given = [moved.get(v, v) for v in dict.fromkeys(inputs)]
    nodes = rebuilt([n for n in graph.nodes if n in needed], lambda node, current: None, moved)
    return Graph(
        name=name or graph.name,
        inputs=(*given, *(v for v in graph.arguments if v in sources), *(v for v, _ in captured)),
        nodes=tuple(nodes),
        outputs=tuple([moved.get(v, v) for v in outputs]),
        captures=tuple([c for _, c in captured]),
        updates=tuple([Update(moved.get(u.input, u.input), moved.get(u.value, u.value)) for u in updates]),
    )


def ancestors(
    wanted: Iterable[Value], inputs: Iterable[Value], effects: Iterable[Node] = ()
) -> tuple[set[Node], set[Value]]:
    """The nodes between ``inputs`` and ``wanted`` (and ``effects``), and the other inputs they read."""
    stop = set(inputs)
    needed = set(effects)
    sources: set[Value] = set()
    pending = [*wanted, *(v for node in needed for v in node.inputs)]
    while pending:
        value = pending.pop()
        if value in stop:
            continue
        if value.node is None:
            sources.add(value)
        elif value.node not in needed:
            needed.add(value.node)
            pending += value.node.inputs
    return needed, sources
