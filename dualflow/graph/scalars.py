"""Branches and loops over scalars only, which a kernel computes in registers."""

from __future__ import annotations

from dualflow.graph.control_spec import branches_of, loop_of
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.loop_dtypes import in_loops
from dualflow.ops.op_kinds import CONTROL, Cond, Elementwise, Literal, Loop, View


def in_registers(value: Value) -> bool:
    """Whether a register can hold ``value``: a scalar of a dtype that loops compute with."""
    dtype = value.spec.dtype
    return not value.spec.shape and in_loops(dtype) and not dtype.is_complex


def is_scalar_control(node: Node) -> bool:
    """Whether ``node`` is a branch or loop that reads, computes and returns only scalars."""
    if not isinstance(node.op.kind, CONTROL) or node.effect is not None or not node.outputs:
        return False
    if isinstance(node.op.kind, Loop):
        loop = loop_of(node)
        if loop.condition is None or loop.stacked:
            return False
    values = (*node.inputs, *node.outputs)
    return all(map(in_registers, values)) and all(map(_is_scalar_code, bodies(node)))


def bodies(node: Node) -> tuple[Graph, ...]:
    """The graphs inside a branch or loop; empty for any other node."""
    if isinstance(node.op.kind, Cond):
        return branches_of(node)
    return loop_of(node).graphs if isinstance(node.op.kind, Loop) else ()


def _is_scalar_code(graph: Graph) -> bool:
    return all(map(in_registers, graph.inputs)) and all(_is_scalar_node(n) for n in graph.nodes)


def _is_scalar_node(node: Node) -> bool:
    if not all(map(in_registers, node.outputs)) or node.effect is not None:
        return False
    if isinstance(node.op.kind, Elementwise):
        return bool(node.inputs) and all(map(in_registers, node.inputs))
    return isinstance(node.op.kind, Literal | View) or is_scalar_control(node)
