"""The pass that selects the collectives between workers which machine code runs.

A call that fails is repeated by the interpreter up to the failing node. Other workers don't repeat it, so the
results of earlier collectives are needed then: host calls record them, and machine code does not. So a
collective is native if no node that may fail follows. In a training step, updates of variables follow.

The results of all iterations of a loop are too many to record. If a loop exchanges, all collectives of the
graph are native, and the replay of a failed call ends at the first one: ``function/calls/failed_calls.py``.
"""

from __future__ import annotations

from functools import partial

from dualflow.core.records import replace
from dualflow.graph.failing import may_fail
from dualflow.graph.ir import BodySpec, Graph, Node
from dualflow.graph.rewrite import Expansion, rebuild, replaced_by
from dualflow.graph.scalars import bodies
from dualflow.ops.op_kinds import CONTROL, CollectiveCall, Cond, Loop, Opaque
from dualflow.ops.record import Effect


def run_collectives_natively(graph: Graph) -> Graph:
    """``graph`` in which machine code runs collectives: all if loops have some, else the last ones."""
    return _with_native(graph, all_native=_collectives_in_loops(graph), followed=False)


def _collectives_in_loops(graph: Graph) -> bool:
    """Whether a loop of ``graph`` exchanges."""
    with_collectives = [node for node in graph.nodes if node.effect is Effect.COLLECTIVE]
    return any(
        isinstance(node.op.kind, Loop) or any(map(_collectives_in_loops, bodies(node)))
        for node in with_collectives
    )


def _with_native(graph: Graph, *, all_native: bool, followed: bool) -> Graph:
    """``graph`` with native collectives.

    Args:
        all_native: whether they include those that a node which may fail follows.
        followed: whether such a node follows the graph.
    """
    if not any(node.effect is Effect.COLLECTIVE for node in graph.nodes):
        return graph
    collectives: dict[Node, CollectiveCall] = {}
    specs: dict[Node, BodySpec] = {}
    for node in reversed(graph.nodes):
        collective = _collective(node)
        if collective is not None:
            if all_native or not followed:
                collectives[node] = collective._replace(precedes_failure=followed)
            continue
        if node.effect is Effect.COLLECTIVE and isinstance(node.op.kind, CONTROL):
            (spec,) = node.attrs.values()
            change = partial(
                _with_native, all_native=all_native, followed=followed or isinstance(node.op.kind, Loop)
            )
            specs[node] = spec.with_bodies(change)
        followed = followed or _fails(node)

    def changed(node: Node, current: Node) -> Expansion | None:
        op, attrs = current.op, current.attrs
        if node in collectives:
            op = replace(op, kind=collectives[node])
        elif node in specs:
            attrs = dict.fromkeys(attrs, specs[node])
        else:
            return None
        return replaced_by(
            Node(op, current.inputs, attrs, current.specs, current.origin, current.merged_origins)
        )

    return rebuild(graph, changed) if collectives or specs else graph


def _collective(node: Node) -> CollectiveCall | None:
    """The call of the MPI library that runs ``node``; None if there is none."""
    kind = node.op.kind
    if not isinstance(kind, Opaque) or kind.collective_call is None:
        return None
    return kind.collective_call(node.inputs[0].spec, **node.attrs)


def _fails(node: Node) -> bool:
    """Whether ``node`` may fail by anything but collectives that machine code can run."""
    if _collective(node) is not None:
        return False
    if isinstance(node.op.kind, Cond):
        return any(_fails(n) for branch in bodies(node) for n in branch.nodes)
    return may_fail(node)
