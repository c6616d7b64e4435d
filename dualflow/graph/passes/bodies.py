"""Passes inside control flow: the bodies of choices and loops are graphs too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dualflow.graph.ir import Graph, Node
from dualflow.graph.rewrite import Expansion, expand
from dualflow.graph.scalars import bodies

BODIES = ("branches", "condition", "body")
Transform = Callable[[Graph], Graph]


def in_bodies(transform: Transform) -> Transform:
    """The pass that applies ``transform`` to every graph inside a choice or loop, the outer ones first."""

    def run(graph: Graph) -> Graph:
        """Nested graphs are simplified as the outer one is."""
        return map_bodies(graph, lambda body: run(transform(body)))

    return run


def inside_out(transform: Transform) -> Transform:
    """The pass that applies ``transform`` to the graphs inside choices and loops, then to the one around."""

    def run(graph: Graph) -> Graph:
        """What leaves an inner graph is in the outer one before this is looked at."""
        return transform(map_bodies(graph, run))

    return run


def map_bodies(graph: Graph, change: Transform) -> Graph:
    """``graph`` whose choices and loops have the bodies that ``change`` makes of theirs."""

    def changed(node: Node) -> Expansion | None:
        if not bodies(node):
            return None
        attrs = {k: _each(v, change) for k, v in node.attrs.items() if k in BODIES}
        if all(attrs[k] is node.attrs[k] for k in attrs):
            return None
        made = Node(node.op, node.inputs, {**node.attrs, **attrs}, node.specs, node.origin, node.also)
        return Expansion((made,), made.outputs)

    return expand(graph, changed)


def _each(body: Any, change: Transform) -> Any:
    if isinstance(body, tuple):
        made = tuple([change(b) for b in body])
        return body if all(new is old for new, old in zip(made, body, strict=True)) else made
    return change(body) if isinstance(body, Graph) else body
