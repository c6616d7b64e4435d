"""An order in which steps that free memory run as soon as they can."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heappop, heappush

from dualflow.graph.axes import base_of, is_view
from dualflow.graph.compiled import Footprint
from dualflow.graph.failing import may_fail
from dualflow.graph.ir import Graph, Node, Value
from dualflow.ops.op_kinds import Literal
from dualflow.schedule.operands import CallKind, kind_of, strides_wanted

FirstReaders = Mapping[Value, Node | None]
"""Values of kernels that lie in memory as their first reader wants, and that reader: it stays the first."""


def first_readers(graph: Graph, taken: Footprint) -> FirstReaders:
    """The values that lie otherwise than in order for some reader, or would if other readers came first."""
    found: dict[Value, Node | None] = dict.fromkeys(taken.non_contiguous)
    first: dict[Value, Node] = {}
    for node in graph.nodes:
        for value in () if is_view(node) else node.inputs:
            base = base_of(value)
            first.setdefault(base, node)
            made = base.node is not None and base is not value and kind_of(base.node) is CallKind.KERNEL
            if made and base not in found and strides_wanted(value) is not None:
                found[base] = None
    return {value: first.get(value) for value in found}


def ordered_early(graph: Graph, taken: Footprint, fixed: FirstReaders) -> Graph:
    """``graph`` where a node that takes no more memory than what is read there last runs early.

    Such are updates of variables by their gradients, which a program writes at its end. What has effects or
    may fail stays, and the first readers of ``fixed`` values stay the first.
    """
    made: dict[Node, int] = {}
    last: dict[Node, int] = {}
    for block in taken.blocks:
        value = block.value
        if value is None or value.node is None:
            continue
        made[value.node] = made.get(value.node, 0) + block.nbytes
        reader = taken.steps[block.reads[-1]] if block.reads else None
        if reader is not None:
            last[reader] = last.get(reader, 0) + block.nbytes
    old_readers = _readers_of_old_values(graph)
    before: dict[Node, set[Node]] = {}
    for node in graph.nodes:
        if not _stays(node) and made.get(node, 0) <= last.get(node, 0):
            read = {base_of(v) for v in node.inputs}
            found = {v.node for v in read if v.node is not None and not isinstance(v.node.op.kind, Literal)}
            found |= {n for v in read if (n := fixed.get(v)) is not None and n is not node}
            before[node] = found | old_readers.get(node, set())
    return _with_views(graph, _as_soon_as_ready(graph, before))


def _as_soon_as_ready(graph: Graph, before: Mapping[Node, set[Node]]) -> list[Node]:
    """The nodes that are no views, those with a set ``before`` as soon as that has run."""
    place = {node: i for i, node in enumerate(graph.nodes)}
    waiting = {node: len(needed) for node, needed in before.items() if needed}
    behind: dict[Node, list[Node]] = {}
    for node, needed in before.items():
        for other in needed:
            behind.setdefault(other, []).append(node)
    order: dict[Node, None] = {n: None for n in graph.nodes if isinstance(n.op.kind, Literal)}
    ready: list[int] = []
    for node in graph.nodes:
        if is_view(node) or node in order:
            continue
        heappush(ready, place[node])
        while ready:
            now = graph.nodes[heappop(ready)]
            order[now] = None
            for other in behind.get(now, ()):
                waiting[other] -= 1
                if not waiting[other] and other not in order:
                    heappush(ready, place[other])
    return list(order)


def _readers_of_old_values(graph: Graph) -> dict[Node, set[Node]]:
    """For what makes the new value of a variable the other nodes that read the old one: it comes last."""
    makers = {u.input: u.value.node for u in graph.updates if u.value.node is not None}
    found: dict[Node, set[Node]] = {}
    for node in graph.nodes:
        for value in map(base_of, node.inputs):
            maker = makers.get(value)
            if maker is not None and maker is not node and not is_view(node):
                found.setdefault(maker, set()).add(node)
    return found


def _stays(node: Node) -> bool:
    return is_view(node) or isinstance(node.op.kind, Literal) or node.effect is not None or may_fail(node)


def _with_views(graph: Graph, order: Sequence[Node]) -> Graph:
    """``graph`` with its nodes in ``order``, each view just before its first reader."""
    nodes: dict[Node, None] = {}
    for node in order:
        for value in node.inputs:
            nodes.update(dict.fromkeys(_views(value)))
        nodes[node] = None
    for value in graph.results:
        nodes.update(dict.fromkeys(_views(value)))
    return graph.with_results(graph.results, nodes=tuple(nodes))


def _views(value: Value) -> list[Node]:
    """The views that make ``value``, the first one first."""
    found = []
    while value.node is not None and is_view(value.node):
        found.append(value.node)
        value = value.node.inputs[0]
    return found[::-1]
