"""Assignments as nodes of a trace, in program order, and the pass that drops them.

A compiled graph gives each variable its last value, at the end. Where a call fails on the way, the trace is
run again up to the failing line, and these nodes say what each variable holds there. Nobody else needs them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from dualflow.graph.failing import may_fail
from dualflow.graph.ir import Graph, Node
from dualflow.graph.passes.bodies import map_bodies
from dualflow.graph.rewrite import Expansion, by, expand, without
from dualflow.graph.scalars import bodies
from dualflow.ops.forms import Opaque
from dualflow.ops.record import Effect, Op

ASSIGNMENT: Final = Op(
    name="assignment",
    doc="From here on ``variable`` holds the input.",
    infer=lambda x, variable: (),
    kernel=lambda x, variable: (),
    form=Opaque("the first pass drops it"),
    outputs=None,
    effect=Effect.ASSIGN,
)


def acting(nodes: Iterable[Node]) -> list[Node]:
    """Those of ``nodes`` that have an effect when they run, which noting an assignment is not."""
    return [n for n in nodes if n.effect not in (None, Effect.ASSIGN)]


def drop_assignments(graph: Graph) -> Graph:
    """``graph`` without the nodes that note assignments, in bodies too."""
    graph = map_bodies(graph, drop_assignments)
    return expand(graph, lambda node: without(node) if node.op is ASSIGNMENT else None, (Opaque,))


def with_variables(graph: Graph, others: Mapping[int, Any]) -> Graph:
    """``graph`` whose assignments to variables whose ids are in ``others`` are to those found there."""

    def changed(node: Node) -> Expansion | None:
        other = others.get(id(node.attrs["variable"])) if node.op is ASSIGNMENT else None
        return (
            None if other is None else by(Node(ASSIGNMENT, node.inputs, {"variable": other}, (), node.origin))
        )

    return expand(map_bodies(graph, lambda body: with_variables(body, others)), changed)


def assigns_before_failure(graph: Graph) -> bool:
    """Whether some assignment may have happened when a call fails."""
    assigned = False
    for node in graph.nodes:
        if assigned and may_fail(node):
            return True
        if node.op is ASSIGNMENT:
            assigned = True
        elif bodies(node):
            inside = [*_inside(node)]
            if any(n.op is ASSIGNMENT for n in inside):
                if any(map(may_fail, inside)):
                    return True
                assigned = True
    return False


def _inside(node: Node) -> Iterator[Node]:
    """``node``, and those of its bodies."""
    yield node
    for body in bodies(node):
        for inner in body.nodes:
            yield from _inside(inner)
