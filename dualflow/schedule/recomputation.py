"""A graph in which values are forgotten and, where they are read again, computed once more."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from dualflow.core.records import NamedTuple
from dualflow.graph.axes import base_of, is_view
from dualflow.graph.fused import FUSED, IterationSpace
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.passes.dead_code import eliminate_dead_code
from dualflow.ops.op_kinds import Literal, Reduce

Dropped = Mapping[int, Collection[Value]]
"""By the place of a node in its graph, the values that are forgotten once it has run."""


class Recomputed(NamedTuple):
    """A graph with recomputations.

    Attributes:
        graph: it.
        source: the value of the original graph that each of its values is; what a node computes beside what
            it is there for is none.
        place: for each of its nodes the place of the original node that it, or its first reader, is.
        repeated: those of its nodes that compute something again.
    """

    graph: Graph
    source: Mapping[Value, Value]
    place: Mapping[Node, int]
    repeated: tuple[Node, ...]


class Part(NamedTuple):
    """What computes some results of a node: the node itself, or a smaller one.

    Attributes:
        node: it.
        inputs: what of the original graph it reads.
        outputs: the results of the original node that it has, in their order.
    """

    node: Node
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]


class Parts:
    """What computes values of a graph alone, found when it is first asked for."""

    def __init__(self) -> None:
        self._known: dict[tuple[Value, ...], Part] = {}

    def of(self, *values: Value) -> Part:
        """What computes ``values``, results of one node in their order."""
        if values not in self._known:
            node = values[0].node
            assert node is not None, "inputs are not computed"
            self._known[values] = _part(node, values)
        return self._known[values]


def _part(node: Node, values: tuple[Value, ...]) -> Part:
    """A nest without reductions is cut to what ``values`` need.

    With reductions it stays whole: the order of a sum follows from all that its nest reads and writes.
    """
    body: Graph | None = node.attrs["body"] if node.op is FUSED else None
    if body is None or values == node.outputs or any(isinstance(n.op.kind, Reduce) for n in body.nodes):
        return Part(node, node.inputs, node.outputs)
    outputs = tuple([body.outputs[v.index] for v in values])
    needed = set(outputs)
    kept: list[Node] = []
    for inner in reversed(body.nodes):
        if not needed.isdisjoint(inner.outputs):
            kept.append(inner)
            needed.update(inner.inputs)
    read = [i for i, v in enumerate(body.inputs) if v in needed]
    smaller = Graph(body.name, tuple([body.inputs[i] for i in read]), tuple(kept[::-1]), outputs)
    space: IterationSpace = node.attrs["space"]
    own = {n: space.own[n] for n in kept if n in space.own}
    attrs = {"body": smaller, "space": IterationSpace(space.shape, space.reduced, own, space.repeated)}
    inputs = tuple([node.inputs[i] for i in read])
    return Part(Node(FUSED, inputs, attrs, [v.spec for v in values], node.origin, node.also), inputs, values)


def recomputed(graph: Graph, dropped: Dropped, parts: Parts) -> Recomputed:
    """``graph`` where what is dropped is computed again just before its next reader.

    What that needs, and was dropped too, is computed before it. Whatever is dropped, the results are the
    same; the caller says what may run twice. What nobody reads before it is dropped is only moved.
    """
    walk = _Walk(graph, parts)
    for at, node in enumerate(graph.nodes):
        if not is_view(node) and not isinstance(node.op.kind, Literal):
            walk.keep(node, at)
            for value in dropped.get(at, ()):
                walk.forget(value)
    results = walk.read(graph.results, len(graph.nodes))
    made = graph.with_results(results, nodes=tuple(walk.nodes))
    kept = eliminate_dead_code(made).nodes
    ran: set[Node] = set()
    repeated: list[Node] = []
    for node in kept:
        if node.outputs and node.inputs and not is_view(node):
            original = next(walk.source[v].node for v in node.outputs if v in walk.source)
            assert original is not None, "a node made it"
            if original in ran:
                repeated.append(node)
            ran.add(original)
    return Recomputed(made.with_results(made.results, nodes=kept), walk.source, walk.place, tuple(repeated))


class _Walk:
    """The nodes of the new graph, and where each value of the old one is by now.

    Attributes:
        now: for each old value that is known, the new one.
        nodes, source, place: see :class:`Recomputed`.
    """

    def __init__(self, graph: Graph, parts: Parts) -> None:
        self.now: dict[Value, Value] = {v: v for v in graph.inputs}
        self.nodes: list[Node] = []
        self.source: dict[Value, Value] = {}
        self.place: dict[Node, int] = {}
        self._parts = parts
        self._seen_through: dict[Value, list[Value]] = {}

    def keep(self, node: Node, at: int) -> None:
        """Run a node of the old graph in its place."""
        self.read(node.inputs, at)
        self._add(node, node.inputs, node.outputs, at)

    def forget(self, value: Value) -> None:
        """Drop a value, and the views of it."""
        for view in (value, *self._seen_through.pop(value, ())):
            self.now.pop(view, None)

    def read(self, values: Sequence[Value], at: int) -> list[Value]:
        """Where ``values`` are, computed first if need be; a chain of any length is a loop here."""
        pending = self._missing(values)
        while pending:
            part = self._parts.of(*pending[-1])
            missing = self._missing(part.inputs)
            pending += missing
            if not missing:
                for value in pending.pop():
                    if value not in self.now:
                        self._add(part.node, part.inputs, part.outputs, at)
                        self._note_view(value)
        return [self.now[v] for v in values]

    def _missing(self, values: Sequence[Value]) -> list[tuple[Value, ...]]:
        """Those of ``values`` that are not known, by the nodes that make them."""
        found: dict[Node | None, set[Value]] = {}
        for value in values:
            if value not in self.now:
                found.setdefault(value.node, set()).add(value)
        return [tuple(sorted(group, key=lambda v: v.index)) for group in found.values()]

    def _note_view(self, value: Value) -> None:
        if value.node is not None and is_view(value.node):
            self._seen_through.setdefault(base_of(value), []).append(value)

    def _add(self, node: Node, inputs: Sequence[Value], outputs: Sequence[Value], at: int) -> None:
        """Run ``node``, whose results are the old values ``outputs``; those that are known stay."""
        given = [self.now[v] for v in inputs]
        changed = node in self.place or any(a is not b for a, b in zip(given, node.inputs, strict=True))
        made = node.with_inputs(given) if changed else node
        self.nodes.append(made)
        self.place[made] = at
        found = {old: new for old, new in zip(outputs, made.outputs, strict=True) if old not in self.now}
        self.now.update(found)
        self.source.update({new: old for old, new in found.items()})
