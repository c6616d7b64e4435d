"""Rewriting of graphs by rules, node by node, in program order: all passes use it.

There are three entry points. :func:`rewrite` takes rules, small functions whose docstring is the algebra::

    def double_negation(node: Node, make: Make) -> Replacement:
        '''--x = x'''
        inner = producer(node.inputs[0], negative.op)
        return inner.inputs if inner else None

A rule gets a node whose inputs have been rewritten. It returns the values that replace the node's outputs, or
None to keep the node. ``make(op, inputs, attrs)`` adds a node and returns its value; rules are applied to it
too. New nodes have the user's lines of the nodes that they replace.

:func:`expand` takes a rule that returns whole nodes. The rule of :func:`rebuild` also gets the node of the
original graph, for decisions that were made before the walk. :func:`replace_matches` is :func:`rebuild` for
nodes that are fused with operands that nothing else reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from operator import is_
from typing import Any, Protocol, TypeVar

from dualflow.core.errors import InternalError
from dualflow.core.records import NamedTuple
from dualflow.graph.ir import Graph, Node, Origin, Value
from dualflow.ops.op_kinds import Literal
from dualflow.ops.record import Op

Replacement = Sequence[Value] | None
_ORIGINS = 4
M = TypeVar("M")


class Make(Protocol):
    """Adds a node to the new graph, and returns its value."""

    def __call__(self, op: Op, inputs: Sequence[Value], attrs: Mapping[str, Any] | None = None) -> Value: ...


Rule = Callable[[Node, Make], Replacement]


def rewrite(graph: Graph, rule: Rule, ops: Set[Op] | None = None) -> Graph:
    """``graph`` with ``rule`` applied once to each node in program order, and to each new node.

    Unchanged nodes are shared with ``graph``, which is returned itself if nothing changes. Replaced nodes
    stay in the graph, unused, until dead code elimination. With ``ops``, nodes of ``graph`` with other ops
    stay as they are.
    """
    return rebuild(graph, _Applied(rule), ops=ops)


class Expansion(NamedTuple):
    """The nodes that replace a node, and the values that replace its outputs."""

    nodes: Sequence[Node]
    values: Sequence[Value]


def replaced_by(node: Node) -> Expansion:
    """The expansion that replaces a node by one with the same number of outputs."""
    return Expansion((node,), node.outputs)


def removal(node: Node) -> Expansion:
    """The expansion that removes a node without consumers, or with values that are replaced already."""
    return Expansion((), node.outputs)


def expand(
    graph: Graph, rule: Callable[[Node], Expansion | None], kinds: tuple[type, ...] = (object,)
) -> Graph:
    """``graph`` with nodes replaced by ``rule(node)``, which returns None to keep the node.

    The rule gets nodes of the op ``kinds``, whose inputs have been replaced. Unlike in :func:`rewrite`, new
    values may have other specs, if their consumers allow it.
    """
    ops = {op for op in graph.ops if isinstance(op.kind, kinds)}
    return rebuild(graph, lambda _, node: rule(node), ops=ops) if ops else graph


def rebuild(
    graph: Graph,
    rule: Callable[[Node, Node], Expansion | None],
    replaced: dict[Value, Value] | None = None,
    ops: Set[Op] | None = None,
) -> Graph:
    """``graph`` with nodes replaced by ``rule``; itself if nothing changes.

    Args:
        rule: ``rule(node, current)`` returns what replaces ``node``, a node of ``graph``, or None to keep it.
            ``current`` is ``node`` with its inputs replaced.
        replaced: initial replacements of values. All other replacements are added.
        ops: the ops of the nodes that the rule is called for; by default all.
    """
    replaced = {} if replaced is None else replaced
    nodes = rebuilt(graph.nodes, rule, replaced, ops)
    if not replaced and len(nodes) == len(graph.nodes) and all(map(is_, nodes, graph.nodes)):
        return graph
    return graph.with_results([replaced.get(v, v) for v in graph.results], nodes=tuple(nodes))


def rebuilt(
    nodes: Iterable[Node],
    rule: Callable[[Node, Node], Expansion | None],
    replaced: dict[Value, Value],
    ops: Set[Op] | None = None,
) -> list[Node]:
    """The nodes that replace ``nodes``; new replacements of values are added to ``replaced``.

    The rule is called for nodes of ``ops``, by default for all.
    """
    new_nodes: list[Node] = []
    replaced_values = replaced.keys()
    for node in nodes:
        current = node
        if replaced and not replaced_values.isdisjoint(node.inputs):
            current = node.with_inputs([replaced.get(v, v) for v in node.inputs])
        expansion = rule(node, current) if ops is None or node.op in ops else None
        if expansion is not None:
            new_nodes += expansion.nodes
            values = expansion.values
        else:
            new_nodes.append(current)
            if current is node:
                continue
            values = current.outputs
        for old, new in zip(node.outputs, values, strict=True):
            if new is not old:
                replaced.setdefault(old, new)
    return new_nodes


def replace_matches(
    graph: Graph,
    match: Callable[[Node, Set[Value]], M | None],
    replacement: Callable[[Node, M], Node],
    unused: Callable[[M], Iterable[Node]],
) -> Graph:
    """``graph`` with each node that matches fused with operands that nothing else reads.

    Args:
        match: returns a description of the node, or None. Its second argument is the set of values that have
            one reader, and are no results of the graph.
        replacement: returns the fused node.
        unused: the fused operands, which are removed.
    """
    results = set(graph.results)
    read_once = {v for v, readers in graph.users().items() if len(readers) == 1 and v not in results}
    matches = {node: matched for node in graph.nodes if (matched := match(node, read_once)) is not None}
    if not matches:
        return graph
    removed = {node for matched in matches.values() for node in unused(matched)}
    replaced: dict[Value, Value] = {}

    def rule(node: Node, current: Node) -> Expansion | None:
        if node in matches:
            return replaced_by(with_replaced_inputs(replacement(node, matches[node]), replaced))
        return removal(node) if node in removed else None

    return rebuild(graph, rule, replaced, {node.op for node in (*matches, *removed)})


def with_replaced_inputs(node: Node, replaced: Mapping[Value, Value]) -> Node:
    """``node``, or a copy that reads the replacements of its inputs."""
    if replaced.keys().isdisjoint(node.inputs):
        return node
    return node.with_inputs([replaced.get(v, v) for v in node.inputs])


def copied(nodes: Iterable[Node], replaced: dict[Value, Value]) -> list[Node]:
    """Copies of nodes for another graph, with operands mapped by ``replaced``.

    Their outputs are added to it.
    """

    def copy(node: Node, current: Node) -> Expansion:
        return replaced_by(current if current is not node else node.with_inputs(node.inputs))

    return rebuilt(nodes, copy, replaced)


def first_of(rules: Iterable[Rule]) -> Rule:
    """The rule that applies the first of ``rules`` that returns a replacement."""
    rules = tuple(rules)

    def rule(node: Node, make: Make) -> Replacement:
        for candidate in rules:
            replacement = candidate(node, make)
            if replacement is not None:
                return replacement
        return None

    return rule


def producer(value: Value, op: Op) -> Node | None:
    """The producer of ``value`` if its op is ``op``."""
    node = value.node
    return node if node is not None and node.op is op else None


class _Applied:
    """Adapts a rule of :func:`rewrite` to :func:`rebuild`, and collects the nodes that the rule makes."""

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self._new_nodes: list[Node] = []
        self._replaced: Node

    def __call__(self, node: Node, current: Node) -> Expansion | None:
        self._replaced = current
        values = self._rule(current, self._make)
        if values is None:
            return None
        _check_specs(current, values)
        new_nodes, self._new_nodes = self._new_nodes, []
        return Expansion(new_nodes, values)

    def _make(self, op: Op, inputs: Sequence[Value], attrs: Mapping[str, Any] | None = None) -> Value:
        own_attrs = dict(attrs or {})
        specs = op.specs([v.spec for v in inputs], own_attrs)
        node = Node(op, inputs, own_attrs, specs, self._replaced.origin, self._merged(inputs))
        values = self._rule(node, self._make)
        if values is None:
            self._new_nodes.append(node)
            return node.output
        _check_specs(node, values)
        return values[0]

    def _merged(self, inputs: Sequence[Value]) -> tuple[Origin, ...]:
        """The ``merged_origins`` of a new node: the lines of the producers that it replaces."""
        lines = list(self._replaced.merged_origins)
        for value in self._replaced.inputs:
            node = value.node
            if node is not None and value not in inputs and not isinstance(node.op.kind, Literal):
                lines += (
                    [node.origin, *node.merged_origins] if node.origin is not None else node.merged_origins
                )
        distinct = dict.fromkeys(o for o in lines if o != self._replaced.origin)
        return tuple(distinct)[:_ORIGINS]


def _check_specs(node: Node, values: Sequence[Value]) -> None:
    for new, old in zip(values, node.outputs, strict=True):
        if new.spec is not old.spec and new.spec != old.spec:
            raise InternalError(f"a rewrite replaced {node} by {list(values)}, of another spec")
