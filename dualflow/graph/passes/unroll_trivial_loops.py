"""Removes loops that run zero times or once, and the condition of loops with a static trip count."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.graph.control_ops import LOOP
from dualflow.graph.control_spec import loop_of
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.passes.trip_count import trip_count
from dualflow.graph.rewrite import Expansion, copied, expand, replaced_by
from dualflow.graph.scalars import is_scalar_control
from dualflow.graph.symbolic_size_ops import has_symbolic_sizes
from dualflow.ops.arrangement import RESHAPE
from dualflow.ops.creation import CONSTANT
from dualflow.ops.op_kinds import Literal, Loop
from dualflow.ops.record import Op
from dualflow.sizes.symbolic_sizes import typical

MAX_PREALLOCATED_STACKS: Final = 1 << 28
"""The maximum bytes of stacks that a loop with a condition allocates at once; others stay growable."""


def with_static_trip_counts(graph: Graph) -> Graph:
    """``graph`` with static trip counts in place of conditions, and loops of one iteration inlined."""
    return expand(graph, _simplified_loop, (Loop,))


def _simplified_loop(node: Node) -> Expansion | None:
    loop = loop_of(node)
    iterations = _iterations(node)
    if has_symbolic_sizes(loop.body):  # carried values may change their size
        return _with_static_length(node, iterations) if loop.scanned and loop.length is None else None
    if iterations == 0 and all(v.spec.shape.is_static for v in loop.stacked):
        return _no_iterations(node)
    if iterations == 1 and _has_static_body(node):
        return _single_iteration(node)
    if iterations is None or iterations == loop.iterations:
        return None
    if is_scalar_control(node) or not _may_preallocate(node, iterations):
        return None  # scalars stay in registers; large stacks grow with the iterations
    attrs = {"loop": loop.as_new_loop(condition=None, length=iterations)}
    specs = LOOP.specs([v.spec for v in node.inputs], attrs)
    return replaced_by(Node(LOOP, node.inputs, attrs, specs, node.origin, node.merged_origins))


def _with_static_length(node: Node, iterations: int | None) -> Expansion | None:
    """The loop with the length ``iterations``, that of its stacks; None if it is dynamic."""
    if iterations is None:
        return None
    loop = loop_of(node)
    specs = list(node.specs)
    for index in range(loop.carried, len(specs)):
        shape = Shape((iterations, *tuple(specs[index].shape)[1:]))
        specs[index] = TensorSpec.of(shape, specs[index].dtype)
    attrs = {"loop": loop.as_new_loop(length=iterations)}
    return replaced_by(Node(LOOP, node.inputs, attrs, specs, node.origin, node.merged_origins))


def _may_preallocate(node: Node, iterations: int) -> bool:
    """Whether the stacks of a loop that may end early are small enough to be allocated at once."""
    loop = loop_of(node)
    if loop.condition is None:
        return True  # it scans as many rows
    rows = [v.spec for v in loop.stacked]
    return (
        all(r.shape.is_static for r in rows)
        and typical(iterations * sum(r.nbytes for r in rows)) <= MAX_PREALLOCATED_STACKS
    )


def _iterations(node: Node) -> int | None:
    loop = loop_of(node)
    if loop.scanned and loop.length is None:
        rows: int | None = loop.split_inputs(node.inputs).scanned[0].spec.shape[0]
        return rows
    return trip_count(loop, [_literal(v) for v in node.inputs])


def _literal(value: Value) -> np.ndarray[Any, Any] | None:
    is_literal = value.node is not None and isinstance(value.node.op.kind, Literal)
    return value.node.attrs["value"] if is_literal and value.node is not None else None


def _no_iterations(node: Node) -> Expansion:
    """The outputs of a loop without iterations."""
    loop = loop_of(node)
    stacks = [
        _new_node(node, CONSTANT, (), value=np.empty((0, *v.spec.shape[1:]), v.spec.dtype.dtype))
        for v in loop.split_results(node.outputs).stacked
    ]
    return Expansion(stacks, (*loop.split_inputs(node.inputs).carried, *[n.output for n in stacks]))


def _has_static_body(node: Node) -> bool:
    """Whether all sizes in the body are static."""
    body = loop_of(node).body
    return all(v.spec.shape.is_static for v in (*body.inputs, *body.outputs))


def _single_iteration(node: Node) -> Expansion:
    """The inlined body of a loop with one iteration."""
    loop = loop_of(node)
    body = loop.body
    carried, scanned, invariants = loop.split_inputs(node.inputs)
    rows = [
        _new_node(node, RESHAPE, (x,), shape=v.spec.shape)
        for x, v in zip(scanned, loop.split_inputs(body.inputs).scanned, strict=True)
    ]
    replaced = dict(zip(body.inputs, (*carried, *[n.output for n in rows], *invariants), strict=True))
    nodes = copied(body.nodes, replaced)
    last, stacked = loop.split_results([replaced[v] for v in body.outputs])
    stacks = [_new_node(node, RESHAPE, (v,), shape=Shape((1, *v.spec.shape))) for v in stacked]
    return Expansion((*rows, *nodes, *stacks), (*last, *[n.output for n in stacks]))


def _new_node(like: Node, op: Op, inputs: tuple[Value, ...], **attrs: Any) -> Node:
    return Node(op, inputs, attrs, op.specs([v.spec for v in inputs], attrs), like.origin)
