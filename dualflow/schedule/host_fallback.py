"""Host fallbacks: conditionals and loops that can't run natively become host calls, with the reason."""

from __future__ import annotations

from collections.abc import Iterable

from dualflow.core.records import replace
from dualflow.core.symbolic_sizes import UndecidedSize
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.rewrite import Expansion, by, rebuild
from dualflow.graph.scalars import bodies
from dualflow.graph.symbolic_size_ops import binds_sizes, depends_on_symbolic_sizes
from dualflow.graph.views import is_view
from dualflow.ops.op_kinds import Literal, Opaque
from dualflow.schedule.operands import CallKind, is_control, kind_of


def with_host_fallbacks(graph: Graph, moved: dict[Value, Value] | None = None) -> Graph:
    """``graph`` in which each conditional or loop that can't run natively is opaque, with the reason.

    The new value of each replaced value is added to ``moved``.
    """
    reasons = {
        n: reason for n in graph.nodes if is_control(n) and (reason := reason_not_native(n)) is not None
    }
    reasons |= _separated(graph, reasons)
    if not reasons:
        return graph
    if any(map(binds_sizes, reasons)) or any(map(depends_on_symbolic_sizes, reasons)):
        raise UndecidedSize("NumPy runs a branch or loop whose sizes depend on data")

    def opaque(node: Node, current: Node) -> Expansion | None:
        if node not in reasons:
            return None
        op = replace(node.op, kind=Opaque(reasons[node]))
        return by(Node(op, current.inputs, node.attrs, node.specs, node.origin, node.merged_origins))

    return rebuild(graph, opaque, moved)


def reason_not_native(node: Node) -> str | None:
    """The reason why a conditional or loop can't run natively; None if it can."""
    inner = next((n for body in bodies(node) for n in body.nodes if _is_host(n)), None)
    if inner is None:
        return None
    reason = reason_not_native(inner) if is_control(inner) else None
    kind = inner.op.kind
    return (
        reason or f"it runs {inner.op.name}: {kind.reason if isinstance(kind, Opaque) else 'no native code'}"
    )


def _is_host(node: Node) -> bool:
    if isinstance(node.op.kind, Literal) or is_view(node):
        return False
    return reason_not_native(node) is not None if is_control(node) else kind_of(node) is CallKind.HOST


def _separated(graph: Graph, hosts: Iterable[Node]) -> dict[Node, str]:
    """The loops that can't run natively, since a host call is between loops that share a stack; with reasons.

    A growable buffer belongs to one piece of native code: all loops that write or read it run there, or none
    does.
    """
    hosts = set(hosts)
    place = {n: i for i, n in enumerate(graph.nodes)}
    barriers = {i for n, i in place.items() if n in hosts or (not is_control(n) and _is_host(n))}
    reasons: dict[Node, str] = {}
    for group in _sharing_stacks(graph):
        first, last = min(place[n] for n in group), max(place[n] for n in group)
        if any(first <= i <= last for i in barriers):
            reason = "a host call is between the loop and another one that shares a stack with it"
            reasons.update((n, reason) for n in group if n not in hosts)
    return reasons


def _sharing_stacks(graph: Graph) -> list[set[Node]]:
    """The groups of loops that share stacks of dynamic length."""
    groups: dict[Node, set[Node]] = {}
    for node in graph.nodes:
        producers = {v.node for v in node.inputs if not v.spec.shape.is_static and v.node is not None}
        if not producers:
            continue
        group = {node}.union(*[groups.get(m, {m}) for m in producers])
        groups.update(dict.fromkeys(group, group))
    return [g for i, g in enumerate(groups.values()) if g not in list(groups.values())[:i]]
