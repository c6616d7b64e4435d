"""Lowers host ops whose operands are small to ops with kernels, by the rules of their kinds."""

from __future__ import annotations

from dualflow.graph.ir import Graph, Node
from dualflow.graph.passes.dead_code import eliminate_dead_code
from dualflow.graph.rewrite import Make, Replacement, rewrite
from dualflow.graph.size_guards import decided_by_guards
from dualflow.ops.op_kinds import Opaque


def lower_small_operands(graph: Graph) -> Graph:
    """``graph`` with kernels in place of host calls on small operands."""
    if not any(isinstance(op.kind, Opaque) and op.kind.lowering for op in graph.ops):
        return graph
    rewritten = rewrite(graph, _lower)
    return graph if rewritten is graph else eliminate_dead_code(rewritten)


def _lower(node: Node, make: Make) -> Replacement:
    kind = node.op.kind
    if not isinstance(kind, Opaque) or kind.lowering is None:
        return None
    with decided_by_guards():
        value = kind.lowering(make, *node.inputs, **node.attrs)
    return None if value is None else (value,)
