"""Rewrites a graph so that some values are freed after a node, and recomputed for later readers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from dualflow.core.records import NamedTuple
from dualflow.graph.fused import FUSED, IterationSpace
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.passes.dead_code import eliminate_dead_code
from dualflow.graph.views import base_of, is_view
from dualflow.ops.op_kinds import Literal, Reduce

Dropped = Mapping[int, Collection[Value]]
"""The values that are dropped after a node, by the position of the node in its graph."""


class Recomputed(NamedTuple):
    """A graph with recomputations.

    Attributes:
        graph: the graph.
        source: for values of the graph, the value of the original graph that they equal. Unused outputs of
            a recomputing node have none.
        place: for each node the position of the original node; for a recomputing node, of its first reader.
        repeated: the nodes that recompute values.
    """

    graph: Graph
    source: Mapping[Value, Value]
    place: Mapping[Node, int]
    repeated: tuple[Node, ...]


class Part(NamedTuple):
    """A node that computes some outputs of an original node: the node itself, or a smaller one.

    Attributes:
        node: the node.
        inputs: the values of the original graph that it reads.
        outputs: the outputs of the original node that it computes, in their order.
    """

    node: Node
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]


class Parts:
    """A cache of nodes that compute only some outputs of a node."""

    def __init__(self) -> None:
        self._parts: dict[tuple[Value, ...], Part] = {}

    def of(self, *values: Value) -> Part:
        """The part that computes ``values``, outputs of one node in their order."""
        if values not in self._parts:
            node = values[0].node
            assert node is not None, "inputs are not computed"
            self._parts[values] = _part(node, values)
        return self._parts[values]


def _part(node: Node, values: tuple[Value, ...]) -> Part:
    """The part of ``node`` that computes ``values``: for a nest without reductions, a smaller nest.

    A nest with reductions is not cut, since the order of a sum depends on all accesses of its nest.
    """
    body: Graph | None = node.attrs["body"] if node.op is FUSED else None
    if body is None or values == node.outputs or any(isinstance(n.op.kind, Reduce) for n in body.nodes):
        return Part(node, node.inputs, node.outputs)
    outputs = tuple([body.outputs[v.index] for v in values])
    needed = set(outputs)
    nodes: list[Node] = []
    for inner in reversed(body.nodes):
        if not needed.isdisjoint(inner.outputs):
            nodes.append(inner)
            needed.update(inner.inputs)
    read = [i for i, v in enumerate(body.inputs) if v in needed]
    smaller = Graph(body.name, tuple([body.inputs[i] for i in read]), tuple(nodes[::-1]), outputs)
    space: IterationSpace = node.attrs["space"]
    index_axes = {n: space.index_axes[n] for n in nodes if n in space.index_axes}
    attrs = {"body": smaller, "space": IterationSpace(space.shape, space.reduced, index_axes, space.repeated)}
    inputs = tuple([node.inputs[i] for i in read])
    return Part(
        Node(FUSED, inputs, attrs, [v.spec for v in values], node.origin, node.merged_origins), inputs, values
    )


def recomputed(graph: Graph, dropped: Dropped, parts: Parts) -> Recomputed:
    """``graph`` in which dropped values are recomputed just before their next reader.

    Dropped values that a recomputation reads are recomputed before it. The results are the same, whatever is
    dropped; the caller ensures that the nodes may run twice. A value without a reader before it is dropped is
    only computed later.
    """
    rewriter = _Rewriter(graph, parts)
    for at, node in enumerate(graph.nodes):
        if not is_view(node) and not isinstance(node.op.kind, Literal):
            rewriter.append(node, at)
            for value in dropped.get(at, ()):
                rewriter.drop(value)
    results = rewriter.read(graph.results, len(graph.nodes))
    rewritten = graph.with_results(results, nodes=tuple(rewriter.nodes))
    live = eliminate_dead_code(rewritten).nodes
    ran: set[Node] = set()
    repeated: list[Node] = []
    for node in live:
        if node.outputs and node.inputs and not is_view(node):
            original = next(rewriter.source[v].node for v in node.outputs if v in rewriter.source)
            assert original is not None, "a value of the graph has a node"
            if original in ran:
                repeated.append(node)
            ran.add(original)
    graph = rewritten.with_results(rewritten.results, nodes=live)
    return Recomputed(graph, rewriter.source, rewriter.place, tuple(repeated))


class _Rewriter:
    """Builds the new graph node by node.

    Attributes:
        current: for each old value that is available, the new one.
        nodes, source, place: see :class:`Recomputed`.
    """

    def __init__(self, graph: Graph, parts: Parts) -> None:
        self.current: dict[Value, Value] = {v: v for v in graph.inputs}
        self.nodes: list[Node] = []
        self.source: dict[Value, Value] = {}
        self.place: dict[Node, int] = {}
        self._parts = parts
        self._views: dict[Value, list[Value]] = {}

    def append(self, node: Node, at: int) -> None:
        """Append a node of the old graph."""
        self.read(node.inputs, at)
        self._add(node, node.inputs, node.outputs, at)

    def drop(self, value: Value) -> None:
        """Drop a value and the views of it."""
        for view in (value, *self._views.pop(value, ())):
            self.current.pop(view, None)

    def read(self, values: Sequence[Value], at: int) -> list[Value]:
        """The new values of ``values``, recomputed if they are dropped, without recursion."""
        pending = self._missing(values)
        while pending:
            part = self._parts.of(*pending[-1])
            missing = self._missing(part.inputs)
            pending += missing
            if not missing:
                for value in pending.pop():
                    if value not in self.current:
                        self._add(part.node, part.inputs, part.outputs, at)
                        self._record_view(value)
        return [self.current[v] for v in values]

    def _missing(self, values: Sequence[Value]) -> list[tuple[Value, ...]]:
        """The ``values`` that are dropped, grouped by the nodes that compute them."""
        groups: dict[Node | None, set[Value]] = {}
        for value in values:
            if value not in self.current:
                groups.setdefault(value.node, set()).add(value)
        return [tuple(sorted(group, key=lambda v: v.index)) for group in groups.values()]

    def _record_view(self, value: Value) -> None:
        if value.node is not None and is_view(value.node):
            self._views.setdefault(base_of(value), []).append(value)

    def _add(self, node: Node, inputs: Sequence[Value], outputs: Sequence[Value], at: int) -> None:
        """Append ``node``, whose results are the old values ``outputs``; available ones are not replaced."""
        new_inputs = [self.current[v] for v in inputs]
        changed = node in self.place or any(a is not b for a, b in zip(new_inputs, node.inputs, strict=True))
        new_node = node.with_inputs(new_inputs) if changed else node
        self.nodes.append(new_node)
        self.place[new_node] = at
        computed = {
            old: new for old, new in zip(outputs, new_node.outputs, strict=True) if old not in self.current
        }
        self.current.update(computed)
        self.source.update({new: old for old, new in computed.items()})
