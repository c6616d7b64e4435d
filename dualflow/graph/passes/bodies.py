"""Passes inside control flow: the bodies of conditionals and loops are graphs too."""

from __future__ import annotations

from collections.abc import Callable

from dualflow.graph.ir import BodySpec, Graph, Node
from dualflow.graph.rewrite import Expansion, by, expand
from dualflow.ops.op_kinds import Cond, Loop

Transform = Callable[[Graph], Graph]


def inside_out(transform: Transform) -> Transform:
    """The pass that applies ``transform`` to the graphs inside conditionals and loops, then to the one
    around."""

    def run(graph: Graph) -> Graph:
        """What leaves an inner graph is in the outer one before this is looked at."""
        return transform(map_bodies(graph, run))

    return run


def map_bodies(graph: Graph, change: Transform) -> Graph:
    """``graph`` whose conditionals and loops have the bodies that ``change`` makes of theirs."""

    def changed(node: Node) -> Expansion | None:
        ((name, spec),) = node.attrs.items()
        assert isinstance(spec, BodySpec), f"{node} has no graphs inside"
        new = spec.with_bodies(change)
        if new is spec:
            return None
        return by(Node(node.op, node.inputs, {name: new}, node.specs, node.origin, node.also))

    return expand(graph, changed, (Cond, Loop))
