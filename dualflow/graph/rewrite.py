"""Rewriting: one walk over the nodes that every pass which replaces values shares.

Three doors lead to it. :func:`rewrite` takes rules, small functions whose docstring is the algebra::

    def double_negation(node: Node, make: Make) -> Replacement:
        '''--x = x'''
        inner = producer(node.inputs[0], negative.op)
        return inner.inputs if inner else None

A rule sees the node with its inputs already rewritten and returns the values that take the place of the
node's outputs, or None to keep the node. ``make(op, inputs, attrs)`` adds a node and returns its value;
rules apply to the nodes they make. The walk carries over the lines of the nodes that a made node replaces.

:func:`expand` takes a function that names whole nodes instead, and :func:`rebuild` one that decides by the
graph's own nodes, which it has looked at before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import is_
from typing import Any, Protocol

from dualflow.core.errors import InternalError
from dualflow.core.records import NamedTuple
from dualflow.graph.ir import Graph, Node, Origin, Value
from dualflow.ops.op_kinds import Literal
from dualflow.ops.record import Op

Replacement = Sequence[Value] | None
_ORIGINS = 4


class Make(Protocol):
    """Adds a node to the graph that is being written."""

    def __call__(self, op: Op, inputs: Sequence[Value], attrs: Mapping[str, Any] | None = None) -> Value: ...


Rule = Callable[[Node, Make], Replacement]


def rewrite(graph: Graph, rule: Rule) -> Graph:
    """``graph`` with ``rule`` applied once to each node in program order, and to each node that it makes.

    Nodes that change neither by the rule nor in their inputs are shared with ``graph``, which is returned as
    it is if nothing changes. Replaced nodes stay behind, unused, for dead code elimination.
    """
    return rebuild(graph, _Applied(rule))


class Expansion(NamedTuple):
    """Nodes that take the place of one, and the values that take the place of its outputs."""

    nodes: Sequence[Node]
    values: Sequence[Value]


def by(node: Node) -> Expansion:
    """The expansion to one node with as many outputs."""
    return Expansion((node,), node.outputs)


def without(node: Node) -> Expansion:
    """The expansion of a node that goes: nobody reads it, or other values have taken its place before."""
    return Expansion((), node.outputs)


def expand(
    graph: Graph, rule: Callable[[Node], Expansion | None], forms: tuple[type, ...] = (object,)
) -> Graph:
    """``graph`` where nodes stand as others: ``rule`` says which, or None for a node that stays.

    It sees a node with its inputs already moved, if its op has one of ``forms``. Unlike those of
    :func:`rewrite`, values may get other specs, where their readers know.
    """
    if not any(issubclass(kind, forms) for kind in {type(node.op.kind) for node in graph.nodes}):
        return graph
    return rebuild(graph, lambda _, node: rule(node) if isinstance(node.op.kind, forms) else None)


def rebuild(
    graph: Graph,
    rule: Callable[[Node, Node], Expansion | None],
    moved: dict[Value, Value] | None = None,
) -> Graph:
    """``graph`` where nodes stand as others; itself if nothing changes.

    Args:
        rule: ``rule(node, current)`` says what takes the place of ``node``, a node of ``graph``, which is
            ``current`` where it reads what its inputs have become; None for a node that stays.
        moved: values that others take the place of from the start. It learns where all values go.
    """
    moved = {} if moved is None else moved
    nodes = rebuilt(graph.nodes, rule, moved)
    if not moved and len(nodes) == len(graph.nodes) and all(map(is_, nodes, graph.nodes)):
        return graph
    return graph.with_results([moved.get(v, v) for v in graph.results], nodes=tuple(nodes))


def rebuilt(
    nodes: Iterable[Node], rule: Callable[[Node, Node], Expansion | None], moved: dict[Value, Value]
) -> list[Node]:
    """What :func:`rebuild` makes of ``nodes``; a value that has moved before stays where it is."""
    made: list[Node] = []
    for node in nodes:
        current = node
        if moved and not moved.keys().isdisjoint(node.inputs):
            current = node.with_inputs([moved.get(v, v) for v in node.inputs])
        found = rule(node, current)
        if found is not None:
            made += found.nodes
            values = found.values
        else:
            made.append(current)
            if current is node:
                continue
            values = current.outputs
        for old, new in zip(node.outputs, values, strict=True):
            if new is not old:
                moved.setdefault(old, new)
    return made


def reading(node: Node, moved: Mapping[Value, Value]) -> Node:
    """``node``, which reads what ``moved`` says in the place of its inputs."""
    if moved.keys().isdisjoint(node.inputs):
        return node
    return node.with_inputs([moved.get(v, v) for v in node.inputs])


def copied(nodes: Iterable[Node], moved: dict[Value, Value]) -> list[Node]:
    """Copies of nodes for another graph, where ``moved`` has what they read; it learns their outputs."""

    def copy(node: Node, current: Node) -> Expansion:
        return by(current if current is not node else node.with_inputs(node.inputs))

    return rebuilt(nodes, copy, moved)


def first_of(rules: Iterable[Rule]) -> Rule:
    """The rule that returns what the first of ``rules`` that applies returns."""
    rules = tuple(rules)

    def rule(node: Node, make: Make) -> Replacement:
        for candidate in rules:
            found = candidate(node, make)
            if found is not None:
                return found
        return None

    return rule


def producer(value: Value, op: Op) -> Node | None:
    """The node that computes ``value`` if its op is ``op``."""
    node = value.node
    return node if node is not None and node.op is op else None


class _Applied:
    """A rule of :func:`rewrite` as one of :func:`rebuild`: the nodes that it makes are noted."""

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self._made: list[Node] = []
        self._replaced: Node

    def __call__(self, node: Node, current: Node) -> Expansion | None:
        self._replaced = current
        found = self._rule(current, self._make)
        if found is None:
            return None
        _check_specs(current, found)
        made, self._made = self._made, []
        return Expansion(made, found)

    def _make(self, op: Op, inputs: Sequence[Value], attrs: Mapping[str, Any] | None = None) -> Value:
        own_attrs = dict(attrs or {})
        specs = op.specs([v.spec for v in inputs], own_attrs)
        node = Node(op, inputs, own_attrs, specs, self._replaced.origin, self._merged(inputs))
        found = self._rule(node, self._make)
        if found is None:
            self._made.append(node)
            return node.output
        _check_specs(node, found)
        return found[0]

    def _merged(self, inputs: Sequence[Value]) -> tuple[Origin, ...]:
        """The lines of the nodes that a made node, reading ``inputs``, stands for beside the replaced one."""
        lines = list(self._replaced.also)
        for value in self._replaced.inputs:
            node = value.node
            if node is not None and value not in inputs and not isinstance(node.op.kind, Literal):
                lines += [node.origin, *node.also] if node.origin is not None else node.also
        distinct = dict.fromkeys(o for o in lines if o != self._replaced.origin)
        return tuple(distinct)[:_ORIGINS]


def _check_specs(node: Node, found: Sequence[Value]) -> None:
    for new, old in zip(found, node.outputs, strict=True):
        if new.spec is not old.spec and new.spec != old.spec:
            raise InternalError(f"a rewrite put {list(found)} in the place of {node}")
