"""Whether a node may fail: because of the values of its operands, for lack of memory, or by a signal.

In machine code, elementwise ops without checks, reductions, views, copies and matrix products can't fail.
"""

from __future__ import annotations

from typing import Final

from dualflow.graph.fused import body_of
from dualflow.graph.ir import Graph, Node
from dualflow.graph.loop_dtypes import computed_in_loops, in_loops
from dualflow.graph.nested_bodies import computed_from_bodies
from dualflow.graph.scalar_functions import function_of
from dualflow.graph.scalars import bodies
from dualflow.ops.op_kinds import Cond, CopyPieces, Elementwise, Literal, MatMul, Reduce, SizeVector, View
from dualflow.ops.record import Effect
from dualflow.scalar import ScalarOp

_FREE: Final = (View, Literal, SizeVector)
_MACHINE_CODE: Final = (Reduce, CopyPieces, MatMul)


def may_fail(node: Node) -> bool:
    """Whether running ``node`` may raise, or be interrupted.

    Loops poll for signals. What has no machine code runs in Python, which handles signals between bytecodes.
    """
    kind = node.op.kind
    if isinstance(kind, Elementwise):  # most nodes
        return not computed_in_loops(node) or _checks(node, kind)
    body = body_of(node)
    if body is not None:
        return _graph_may_fail(body)
    if isinstance(kind, _FREE) or node.effect is Effect.ASSIGN:
        return False
    if isinstance(kind, Cond):
        return any(map(_graph_may_fail, bodies(node)))
    return not isinstance(kind, _MACHINE_CODE) or not _in_machine_code(node)


@computed_from_bodies
def _graph_may_fail(graph: Graph) -> bool:
    return any(map(may_fail, graph.nodes))


def _in_machine_code(node: Node) -> bool:
    if not isinstance(node.op.kind, MatMul):
        return computed_in_loops(node)
    dtypes = [v.spec.dtype for v in (*node.inputs, *node.outputs)]
    return all(in_loops(dtype) and dtype.kind == "f" and dtype.size >= 4 for dtype in dtypes)


def _checks(node: Node, kind: Elementwise) -> bool:
    """Whether the scalar function of ``node`` has checks; of floats alone its op has an error for them."""
    if kind.error is None and all(v.spec.dtype.is_inexact for v in node.inputs):
        return False
    return function_of(node).uses(ScalarOp.CHECK)
