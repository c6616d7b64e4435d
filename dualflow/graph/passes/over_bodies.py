"""Applies passes to the bodies of branches and loops."""

from __future__ import annotations

from collections.abc import Callable

from dualflow.graph.ir import BodySpec, Graph, Node
from dualflow.graph.rewrite import Expansion, expand, replaced_by
from dualflow.ops.op_kinds import Cond, Loop

Transform = Callable[[Graph], Graph]


def inside_out(transform: Transform) -> Transform:
    """The pass that applies ``transform`` to all bodies, the innermost first, and then to the graph."""

    def run(graph: Graph) -> Graph:
        """Transform the bodies, then the graph, which has the nodes hoisted from the bodies by then."""
        return transform(map_bodies(graph, run))

    return run


def map_bodies(graph: Graph, change: Transform) -> Graph:
    """``graph`` with ``change`` applied to each body of its branches and loops."""

    def changed(node: Node) -> Expansion | None:
        ((name, spec),) = node.attrs.items()
        assert isinstance(spec, BodySpec), f"{node} has no graphs inside"
        new = spec.with_bodies(change)
        if new is spec:
            return None
        return replaced_by(node.like(node.op, node.inputs, {name: new}, node.specs))

    return expand(graph, changed, (Cond, Loop))
