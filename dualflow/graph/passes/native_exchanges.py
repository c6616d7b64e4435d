"""The pass that selects the exchanges between workers which machine code runs.

A call that fails is repeated by the interpreter up to the failing node. Other workers don't repeat it, so the
results of earlier exchanges are needed then: host calls record them, and machine code does not. So an
exchange is native only if no node that may fail follows. In a training step, updates of variables follow.
Exchanges in branches and loops stay host calls: a signal may end a loop after any iteration.
"""

from __future__ import annotations

from dualflow.core.records import replace
from dualflow.graph.failing import may_fail
from dualflow.graph.ir import Graph, Node
from dualflow.graph.rewrite import Expansion, rebuild, replaced_by
from dualflow.ops.op_kinds import Exchange, Opaque


def run_exchanges_natively(graph: Graph) -> Graph:
    """``graph`` in which machine code runs the exchanges that no node which may fail follows."""
    native: dict[Node, Exchange] = {}
    for node in reversed(graph.nodes):
        exchange = _exchange(node)
        if exchange is not None:
            native[node] = exchange
        elif may_fail(node):
            break
    if not native:
        return graph
    return rebuild(graph, lambda node, current: _with_kind(current, native.get(node)))


def _exchange(node: Node) -> Exchange | None:
    """The call of the MPI library that runs ``node``; None if there is none."""
    kind = node.op.kind
    if not isinstance(kind, Opaque) or kind.exchange is None:
        return None
    spec = node.inputs[0].spec
    return kind.exchange(spec, **node.attrs) if all(type(size) is int for size in spec.shape) else None


def _with_kind(node: Node, kind: Exchange | None) -> Expansion | None:
    if kind is None:
        return None
    op = replace(node.op, kind=kind)
    return replaced_by(Node(op, node.inputs, node.attrs, node.specs, node.origin, node.merged_origins))
