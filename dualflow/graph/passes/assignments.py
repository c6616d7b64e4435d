"""The assignment nodes of a trace, the reads of assigned values, and the pass that removes both.

A compiled graph writes the last value of each variable, at the end. If a call fails before, the trace is
replayed up to the failing line, and assignment nodes have the value of each variable there. Nothing else
reads them.

Assignments are not differentiable: the gradient of a read after an assignment is that of the variable, not
of the assigned value. So the trace has a node for such a read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from dualflow.graph.failing import may_fail
from dualflow.graph.ir import Graph, Node, walk_nodes
from dualflow.graph.passes.over_bodies import inside_out
from dualflow.graph.rewrite import Expansion, expand, rebuild, replaced_by
from dualflow.graph.scalars import bodies
from dualflow.ops.attribute_values import in_text
from dualflow.ops.conversion import ASSIGNED_VALUE
from dualflow.ops.op_kinds import Opaque
from dualflow.ops.record import Effect, Op

ASSIGNMENT: Final = in_text(
    Op(
        name="assignment",
        doc="Assigns the input to ``variable``, for replays of failed calls.",
        infer=lambda x, variable: (),
        kernel=lambda x, variable: (),
        kind=Opaque("the first pass removes it"),
        outputs=None,
        effect=Effect.ASSIGN,
    )
)


class AssigningSpec:
    """The base class of node attributes that list variables: those that the node assigns while it runs.

    A node that fails attaches its assignments to the error
    (:func:`dualflow.graph.effect_log.note_assigned`).
    """

    __slots__ = ()
    variables: tuple[Any, ...]

    def with_variables(self, others: Mapping[int, Any]) -> AssigningSpec:
        """This spec with the variables whose ids are in ``others`` replaced."""
        raise NotImplementedError


def assigned_by(node: Node) -> tuple[Any, ...]:
    """The variables that ``node`` itself assigns, without its bodies."""
    if node.op is ASSIGNMENT:
        return (node.attrs["variable"],)
    return tuple([v for spec in _assigning(node).values() for v in spec.variables])


def _assigning(node: Node) -> dict[str, AssigningSpec]:
    if node.effect is not Effect.PYTHON:
        return {}
    return {name: value for name, value in node.attrs.items() if isinstance(value, AssigningSpec)}


def nodes_with_effects(nodes: Iterable[Node]) -> list[Node]:
    """The ``nodes`` that have an effect, except assignments, which :func:`drop_assignments` removes."""
    return [n for n in nodes if n.effect not in (None, Effect.ASSIGN)]


_DROPPED: Final = frozenset({ASSIGNMENT, ASSIGNED_VALUE})


@inside_out
def drop_assignments(graph: Graph) -> Graph:
    """``graph`` without assignments and reads of assigned values, in bodies too."""
    if _DROPPED.isdisjoint(graph.ops):
        return graph

    def dropped(node: Node, current: Node) -> Expansion:
        return Expansion((), current.inputs[: len(node.outputs)])

    return rebuild(graph, dropped, ops=_DROPPED)


def with_variables(graph: Graph, others: Mapping[int, Any]) -> Graph:
    """``graph`` with the assigned variables whose ids are in ``others`` replaced."""

    def changed(node: Node) -> Expansion | None:
        if others.keys().isdisjoint(map(id, assigned_by(node))):
            return None
        if node.op is ASSIGNMENT:
            attrs: dict[str, Any] = {"variable": others[id(node.attrs["variable"])]}
        else:
            attrs = {name: spec.with_variables(others) for name, spec in _assigning(node).items()}
        specs = [v.spec for v in node.outputs]
        return replaced_by(node.like(node.op, node.inputs, {**node.attrs, **attrs}, specs))

    return inside_out(lambda body: expand(body, changed))(graph)


def assigns_before_failure(graph: Graph) -> bool:
    """Whether a call may fail after an assignment."""
    assigned = False
    for node in graph.nodes:
        if assigned and may_fail(node):
            return True
        if node.effect is not None and assigned_by(node):
            if may_fail(node):
                return True
            assigned = True
        elif node.attrs and bodies(node):
            inside = [*walk_nodes(node)]
            if any(map(assigned_by, inside)):
                if any(map(may_fail, inside)):
                    return True
                assigned = True
    return False
