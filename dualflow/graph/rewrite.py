"""Rewriting: one walk over the nodes that every pass which replaces values shares.

A rule is a small function whose docstring is the algebra::

    def double_negation(node: Node, make: Make) -> Replacement:
        '''--x = x'''
        inner = producer(node.inputs[0], "negative")
        return inner.inputs if inner else None

It sees the node with its inputs already rewritten and answers the values that take the place of the node's
outputs, or None to keep the node. ``make(op name, inputs, attrs)`` adds a node and answers its value; rules
apply to the nodes they make. The walk carries over the lines of the nodes that a made node replaces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from dualflow.core.errors import InternalError
from dualflow.graph.ir import Graph, Node, Origin, Value
from dualflow.ops.forms import Literal
from dualflow.ops.record import REGISTRY

Replacement = Sequence[Value] | None
_ORIGINS = 4


class Make(Protocol):
    """Adds a node to the graph that is being written."""

    def __call__(self, op: str, inputs: Sequence[Value], attrs: Mapping[str, Any] | None = None) -> Value: ...


Rule = Callable[[Node, Make], Replacement]


def rewrite(graph: Graph, rule: Rule) -> Graph:
    """``graph`` with ``rule`` applied once to each node in program order, and to each node that it makes.

    Nodes that change neither by the rule nor in their inputs are shared with ``graph``. Replaced nodes stay
    behind, unused, for dead code elimination.
    """
    return _Walk(rule).run(graph)


class Expansion(NamedTuple):
    """Nodes that take the place of one, and the values that take the place of its outputs."""

    nodes: Sequence[Node]
    values: Sequence[Value]


def expand(graph: Graph, rule: Callable[[Node], Expansion | None]) -> Graph:
    """``graph`` where nodes stand as others: ``rule`` answers which, or None for a node that stays.

    It sees a node with its inputs already moved. Unlike those of :func:`rewrite`, values may get other specs,
    where their readers know.
    """
    moved: dict[Value, Value] = {}
    nodes: list[Node] = []
    changed = False
    for node in graph.nodes:
        current = reading(node, moved)
        found = rule(current)
        changed |= found is not None
        nodes += (current,) if found is None else found.nodes
        outputs = current.outputs if found is None else found.values
        if outputs is not node.outputs:
            moved.update(zip(node.outputs, outputs, strict=True))
    if not changed:
        return graph
    return graph.with_results([moved.get(v, v) for v in graph.results], nodes=tuple(nodes))


def reading(node: Node, moved: Mapping[Value, Value]) -> Node:
    """``node``, which reads what ``moved`` says in the place of its inputs."""
    if moved.keys().isdisjoint(node.inputs):
        return node
    return node.with_inputs([moved.get(v, v) for v in node.inputs])


def copied(nodes: Iterable[Node], moved: dict[Value, Value]) -> list[Node]:
    """Copies of nodes for another graph, where ``moved`` has what they read; it learns their outputs."""
    copies = []
    for node in nodes:
        copies.append(node.with_inputs([moved[v] for v in node.inputs]))
        moved.update(zip(node.outputs, copies[-1].outputs, strict=True))
    return copies


def first_of(rules: Iterable[Rule]) -> Rule:
    """The rule that answers with the first of ``rules`` that does."""
    rules = tuple(rules)

    def rule(node: Node, make: Make) -> Replacement:
        for candidate in rules:
            found = candidate(node, make)
            if found is not None:
                return found
        return None

    return rule


def producer(value: Value, op: str) -> Node | None:
    """The node that made ``value`` if it is an ``op``."""
    node = value.node
    return node if node is not None and node.op.name == op else None


class _Walk:
    """The graph being written, and where the old one's values went."""

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self._nodes: list[Node] = []
        self._moved: dict[Value, Value] = {}
        self._replaced: Node

    def run(self, graph: Graph) -> Graph:
        moved = self._moved
        for node in graph.nodes:
            if not moved.keys().isdisjoint(node.inputs):
                current = node.with_inputs([moved.get(v, v) for v in node.inputs])
            else:
                current = node
            self._replaced = current
            outputs = self._place(current)
            if outputs is not node.outputs:
                moved.update(zip(node.outputs, outputs, strict=True))
        return graph.with_results([moved.get(v, v) for v in graph.results], nodes=tuple(self._nodes))

    def _place(self, node: Node) -> Sequence[Value]:
        found = self._rule(node, self._make)
        if found is None:
            self._nodes.append(node)
            return node.outputs
        if any(
            new.spec is not old.spec and new.spec != old.spec
            for new, old in zip(found, node.outputs, strict=True)
        ):
            raise InternalError(f"a rewrite put {list(found)} in the place of {node}")
        return found

    def _make(self, op: str, inputs: Sequence[Value], attrs: Mapping[str, Any] | None = None) -> Value:
        record, given = REGISTRY[op], dict(attrs or {})
        specs = record.specs([v.spec for v in inputs], given)
        return self._place(Node(record, inputs, given, specs, self._replaced.origin, self._merged(inputs)))[0]

    def _merged(self, inputs: Sequence[Value]) -> tuple[Origin, ...]:
        """The lines of the nodes that a made node, reading ``inputs``, stands for beside the replaced one."""
        lines = list(self._replaced.also)
        for value in self._replaced.inputs:
            node = value.node
            if node is not None and value not in inputs and not isinstance(node.op.form, Literal):
                lines += [node.origin, *node.also] if node.origin is not None else node.also
        distinct = dict.fromkeys(o for o in lines if o != self._replaced.origin)
        return tuple(distinct)[:_ORIGINS]
