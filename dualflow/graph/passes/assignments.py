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
from dualflow.ops.op_kinds import Opaque
from dualflow.ops.record import Effect, Op

ASSIGNMENT: Final = Op(
    name="assignment",
    doc="From here on ``variable`` holds the input.",
    infer=lambda x, variable: (),
    kernel=lambda x, variable: (),
    kind=Opaque("the first pass drops it"),
    outputs=None,
    effect=Effect.ASSIGN,
)


class AssigningSpec:
    """An attribute that says which variables a node assigns while it runs: a base of frozen dataclasses.

    A node that fails says with the error what it has assigned
    (:func:`dualflow.graph.effect_log.note_assigned`).
    """

    __slots__ = ()
    variables: tuple[Any, ...]

    def with_variables(self, others: Mapping[int, Any]) -> AssigningSpec:
        """The same with other variables in the place of those whose ids are in ``others``."""
        raise NotImplementedError


def assigned_by(node: Node) -> tuple[Any, ...]:
    """The variables that ``node`` itself assigns, outside of bodies."""
    if node.op is ASSIGNMENT:
        return (node.attrs["variable"],)
    return tuple([v for spec in _assigning(node).values() for v in spec.variables])


def _assigning(node: Node) -> dict[str, AssigningSpec]:
    if node.effect is not Effect.PYTHON:
        return {}
    return {name: value for name, value in node.attrs.items() if isinstance(value, AssigningSpec)}


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
        if others.keys().isdisjoint(map(id, assigned_by(node))):
            return None
        if node.op is ASSIGNMENT:
            attrs: dict[str, Any] = {"variable": others[id(node.attrs["variable"])]}
        else:
            attrs = {name: spec.with_variables(others) for name, spec in _assigning(node).items()}
        specs = [v.spec for v in node.outputs]
        return by(Node(node.op, node.inputs, {**node.attrs, **attrs}, specs, node.origin, node.also))

    return expand(map_bodies(graph, lambda body: with_variables(body, others)), changed)


def assigns_before_failure(graph: Graph) -> bool:
    """Whether some assignment may have happened when a call fails."""
    assigned = False
    for node in graph.nodes:
        if assigned and may_fail(node):
            return True
        if assigned_by(node):
            if may_fail(node):
                return True
            assigned = True
        elif bodies(node):
            inside = [*_inside(node)]
            if any(map(assigned_by, inside)):
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
