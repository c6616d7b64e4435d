"""Loops whose number of turns is known: those of none and of one are none, and others need no condition."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dualflow.core.shape import Shape
from dualflow.graph.control import loop_attrs
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.passes.trip_count import trip_count
from dualflow.graph.rewrite import Expansion, copied, expand
from dualflow.graph.scalars import is_scalar_control
from dualflow.ops.forms import Literal, Loop
from dualflow.ops.record import REGISTRY

MAX_BYTES: Final = 1 << 28
"""Stacks of a loop with a condition that are larger are made turn by turn."""


def count_turns(graph: Graph) -> Graph:
    """``graph`` whose loops know their number of turns where that can be known, and none of which has one."""
    return expand(graph, _counted)


def _counted(node: Node) -> Expansion | None:
    if not isinstance(node.op.form, Loop):
        return None
    turns = _turns(node)
    if turns == 0 and all(v.spec.shape[1:].is_static for v in node.outputs[node.attrs["carried"] :]):
        return _none(node)
    if turns == 1 and _one_is_static(node):
        return _one(node)
    if turns is None or (node.attrs["length"] == turns and node.attrs["condition"] is None):
        return None
    if is_scalar_control(node) or not _takes_little(node, turns):
        return None  # scalars stay in registers; stacks grow with the turns that there are
    a = node.attrs
    attrs = loop_attrs(a["body"], a["carried"], a["mapped"], turns, reverse=a["reverse"], again=a["again"])
    specs = node.op.specs([v.spec for v in node.inputs], attrs)
    made = Node(node.op, node.inputs, attrs, specs, node.origin, node.also)
    return Expansion((made,), made.outputs)


def _takes_little(node: Node, turns: int) -> bool:
    """Whether the loop's stacks may be made at once: a check can end it long before its last turn."""
    if node.attrs["condition"] is None:
        return True  # the rows that it reads are no fewer
    body: Graph = node.attrs["body"]
    rows = [v.spec for v in body.outputs[node.attrs["carried"] :]]
    return all(r.shape.is_static for r in rows) and turns * sum(r.nbytes for r in rows) <= MAX_BYTES


def _turns(node: Node) -> int | None:
    carried, mapped = node.attrs["carried"], node.attrs["mapped"]
    if mapped and node.attrs["length"] is None:
        rows: int | None = node.inputs[carried].spec.shape[0]
        return rows
    return trip_count(node.attrs, [_literal(v) for v in node.inputs])


def _literal(value: Value) -> np.ndarray[Any, Any] | None:
    known = value.node is not None and isinstance(value.node.op.form, Literal)
    return value.node.attrs["value"] if known and value.node is not None else None


def _none(node: Node) -> Expansion:
    """What a loop without turns gives."""
    carried = node.attrs["carried"]
    stacks = [
        _made(node, "constant", (), value=np.empty((0, *v.spec.shape[1:]), v.spec.dtype.dtype))
        for v in node.outputs[carried:]
    ]
    return Expansion(stacks, (*node.inputs[:carried], *[n.output for n in stacks]))


def _one_is_static(node: Node) -> bool:
    """Whether the sizes of all rows are known."""
    body: Graph = node.attrs["body"]
    return all(v.spec.shape.is_static for v in (*body.inputs, *body.outputs))


def _one(node: Node) -> Expansion:
    """The body of a loop of one turn, and what becomes of its results."""
    body: Graph = node.attrs["body"]
    carried, end = node.attrs["carried"], node.attrs["carried"] + node.attrs["mapped"]
    rows = [
        _made(node, "reshape", (x,), shape=v.spec.shape)
        for x, v in zip(node.inputs[carried:end], body.inputs[carried:end], strict=True)
    ]
    given = (*node.inputs[:carried], *[n.output for n in rows], *node.inputs[end:])
    moved = dict(zip(body.inputs, given, strict=True))
    nodes = copied(body.nodes, moved)
    results = [moved[v] for v in body.outputs]
    stacks = [_made(node, "reshape", (v,), shape=Shape((1, *v.spec.shape))) for v in results[carried:]]
    return Expansion((*rows, *nodes, *stacks), (*results[:carried], *[n.output for n in stacks]))


def _made(like: Node, name: str, inputs: tuple[Value, ...], **attrs: Any) -> Node:
    op = REGISTRY[name]
    return Node(op, inputs, attrs, op.specs([v.spec for v in inputs], attrs), like.origin)
