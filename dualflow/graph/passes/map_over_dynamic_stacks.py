"""Replaces elementwise ops on stacks of dynamic length by loops over their rows."""

from __future__ import annotations

from collections.abc import Hashable

from dualflow.graph.control_ops import LOOP
from dualflow.graph.control_spec import LoopSpec, loop_of, row_spec
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.rewrite import Expansion, expand, replaced_by
from dualflow.ops.op_kinds import Elementwise, Loop


def loop_over_stacks(graph: Graph) -> Graph:
    """``graph`` with loops over rows in place of elementwise ops on stacks of dynamic length.

    Gradients of the third order and beyond have such sums of cotangents.
    """
    return expand(graph, _looped, (Elementwise,))


def _looped(node: Node) -> Expansion | None:
    if node.output.spec.shape.is_static:
        return None
    rank = len(node.output.spec.shape)
    stacks = [v for v in node.inputs if not v.spec.shape.is_static]
    static = [v for v in node.inputs if v.spec.shape.is_static]
    if not all(_is_stack(v, rank) for v in stacks) or any(len(v.spec.shape) >= rank for v in static):
        return None  # a row of one would broadcast with all of the other
    if len(set(map(_trip_count_key, stacks))) > 1:
        return None  # one of them may have a single row, which broadcasts too
    rows = {v: Value(row_spec(v.spec)) for v in stacks} | {v: Value(v.spec) for v in static}
    one = Node(node.op, [rows[v] for v in node.inputs], node.attrs, [row_spec(node.output.spec)], node.origin)
    body = Graph(node.op.name, tuple(rows.values()), (one,), one.outputs)
    scanned, invariants = [v for v in rows if v in stacks], [v for v in rows if v not in stacks]
    loop = LoopSpec(body, carried=0, scanned=len(scanned), length=None)
    return replaced_by(
        Node(LOOP, [*scanned, *invariants], {"loop": loop}, node.specs, node.origin, node.merged_origins)
    )


def _is_stack(value: Value, rank: int) -> bool:
    """Whether ``value`` has ``rank`` axes, and only the first size is dynamic."""
    first, *sizes = value.spec.shape
    return len(value.spec.shape) == rank and first is None and None not in sizes


def _trip_count_key(stack: Value) -> Hashable:
    """A key that is equal for stacks with equally many rows: the loop that they come from, or the stack."""
    while stack.node is not None and isinstance(stack.node.op.kind, Loop):
        loop, node = loop_of(stack.node), stack.node
        if stack in loop.split_results(node.outputs).carried:
            break
        if loop.condition is not None:
            return (loop.derivation[0], node.inputs)
        if not loop.scanned:
            break
        stack = loop.split_inputs(node.inputs).scanned[0]
    return stack
