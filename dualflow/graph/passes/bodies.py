"""Passes inside control flow: the bodies of choices and loops are graphs too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.scalars import bodies

BODIES = ("branches", "condition", "body")


def in_bodies(transform: Callable[[Graph], Graph]) -> Callable[[Graph], Graph]:
    """The pass that applies ``transform`` to every graph inside a choice or loop, however deep."""

    def run(graph: Graph) -> Graph:
        """Nested graphs are simplified as the outer one is."""
        new: dict[Value, Value] = {}
        nodes: list[Node] = []
        for node in graph.nodes:
            attrs = {k: _changed(v) for k, v in node.attrs.items() if k in BODIES and bodies(node)}
            made = (
                node
                if not attrs
                else Node(node.op, node.inputs, {**node.attrs, **attrs}, node.specs, node.origin, node.also)
            )
            if any(v in new for v in made.inputs):
                made = made.with_inputs([new.get(v, v) for v in made.inputs])
            if made is not node:
                new.update(zip(node.outputs, made.outputs, strict=True))
            nodes.append(made)
        return (
            graph.with_results([new.get(v, v) for v in graph.results], nodes=tuple(nodes)) if new else graph
        )

    def _changed(body: Any) -> Any:
        if isinstance(body, tuple):
            return tuple(map(_changed, body))
        return run(transform(body)) if isinstance(body, Graph) else body

    return run
