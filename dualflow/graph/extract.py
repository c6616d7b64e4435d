"""Extraction of a subgraph."""

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
    """The subgraph that computes ``outputs`` from ``inputs``, which may be any values of ``graph``.

    Its arguments are ``inputs``, then the other arguments of ``graph`` that the outputs depend on; its
    captures are those that they depend on. It contains ``updates`` and the nodes ``effects`` even if no
    output depends on them. An input that is computed by a node becomes a new value without a node.
    """
    new_values = {v: Value(v.spec) for v in inputs if v.node is not None}
    needed, sources = ancestors(
        [*outputs, *(v for u in updates for v in (u.value, u.input))], inputs, effects
    )
    first = len(graph.arguments)
    captured = [(v, c) for v, c in zip(graph.inputs[first:], graph.captures, strict=True) if v in sources]
    arguments = [new_values.get(v, v) for v in dict.fromkeys(inputs)]
    nodes = rebuilt([n for n in graph.nodes if n in needed], lambda node, current: None, new_values)
    return Graph(
        name=name or graph.name,
        inputs=(*arguments, *(v for v in graph.arguments if v in sources), *(v for v, _ in captured)),
        nodes=tuple(nodes),
        outputs=tuple([new_values.get(v, v) for v in outputs]),
        captures=tuple([c for _, c in captured]),
        updates=tuple(
            [Update(new_values.get(u.input, u.input), new_values.get(u.value, u.value)) for u in updates]
        ),
    )


def ancestors(
    values: Iterable[Value], inputs: Iterable[Value], effects: Iterable[Node] = ()
) -> tuple[set[Node], set[Value]]:
    """The nodes that ``values`` and ``effects`` need, up to ``inputs``, and the graph inputs they read."""
    stop = set(inputs)
    needed = set(effects)
    sources: set[Value] = set()
    pending = [*values, *(v for node in needed for v in node.inputs)]
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
