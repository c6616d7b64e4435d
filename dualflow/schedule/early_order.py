"""Reorders a graph so that nodes that free memory run as soon as their inputs are computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heappop, heappush

from dualflow.graph.compiled import Footprint
from dualflow.graph.failing import may_fail
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.views import base_of, is_view
from dualflow.ops.op_kinds import Literal
from dualflow.schedule.operands import CallKind, copy_free_strides, kind_of

FirstReaders = Mapping[Value, Node | None]
"""For each value of a layout that suits its first reader, that reader: reordering must not change it."""


def first_readers(graph: Graph, footprint: Footprint) -> FirstReaders:
    """The first reader of each value whose layout is picked to suit that reader; None if no node reads it."""
    fixed: dict[Value, Node | None] = dict.fromkeys(footprint.non_contiguous)
    first: dict[Value, Node] = {}
    for node in graph.nodes:
        for value in () if is_view(node) else node.inputs:
            base = base_of(value)
            first.setdefault(base, node)
            computed = base.node is not None and base is not value and kind_of(base.node) is CallKind.KERNEL
            if computed and base not in fixed and copy_free_strides(value) is not None:
                fixed[base] = None
    return {value: first.get(value) for value in fixed}


def ordered_early(graph: Graph, footprint: Footprint, fixed: FirstReaders) -> Graph:
    """``graph``, in which nodes that free at least as many bytes as they allocate run as early as possible.

    Such nodes are, for example, updates of variables by their gradients, which would run last otherwise.
    Nodes that have effects or may fail keep their places, and first readers of ``fixed`` values stay first.
    """
    allocated: dict[Node, int] = {}
    freed: dict[Node, int] = {}
    for block in footprint.blocks:
        value = block.value
        if value is None or value.node is None:
            continue
        allocated[value.node] = allocated.get(value.node, 0) + block.nbytes
        reader = footprint.steps[block.reads[-1]] if block.reads else None
        if reader is not None:
            freed[reader] = freed.get(reader, 0) + block.nbytes
    old_readers = _readers_of_old_values(graph)
    before: dict[Node, set[Node]] = {}
    for node in graph.nodes:
        if not _keeps_position(node) and allocated.get(node, 0) <= freed.get(node, 0):
            read = {base_of(v) for v in node.inputs}
            needed = {v.node for v in read if v.node is not None and not isinstance(v.node.op.kind, Literal)}
            needed |= {n for v in read if (n := fixed.get(v)) is not None and n is not node}
            before[node] = needed | old_readers.get(node, set())
    return _with_views(graph, _as_soon_as_ready(graph, before))


def _as_soon_as_ready(graph: Graph, before: Mapping[Node, set[Node]]) -> list[Node]:
    """The nodes without views, reordered: each node runs as soon as the nodes in its set ``before`` have."""
    index = {node: i for i, node in enumerate(graph.nodes)}
    pending = {node: len(needed) for node, needed in before.items() if needed}
    dependents: dict[Node, list[Node]] = {}
    for node, needed in before.items():
        for other in needed:
            dependents.setdefault(other, []).append(node)
    order: dict[Node, None] = {n: None for n in graph.nodes if isinstance(n.op.kind, Literal)}
    ready: list[int] = []
    for node in graph.nodes:
        if is_view(node) or node in order:
            continue
        heappush(ready, index[node])
        while ready:
            node_to_run = graph.nodes[heappop(ready)]
            order[node_to_run] = None
            for other in dependents.get(node_to_run, ()):
                pending[other] -= 1
                if not pending[other] and other not in order:
                    heappush(ready, index[other])
    return list(order)


def _readers_of_old_values(graph: Graph) -> dict[Node, set[Node]]:
    """For the producer of a variable's new value, the other nodes that read the old value."""
    producers = {u.input: u.value.node for u in graph.updates if u.value.node is not None}
    readers: dict[Node, set[Node]] = {}
    for node in graph.nodes:
        for value in map(base_of, node.inputs):
            producer = producers.get(value)
            if producer is not None and producer is not node and not is_view(node):
                readers.setdefault(producer, set()).add(node)
    return readers


def _keeps_position(node: Node) -> bool:
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
    """The chain of views that ends with ``value``, from its source on."""
    chain = []
    while value.node is not None and is_view(value.node):
        chain.append(value.node)
        value = value.node.inputs[0]
    return chain[::-1]
