"""Splits the joint graph of a computation and its gradient into a forward and a backward graph."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Final

from dualflow.core.records import NamedTuple, replace
from dualflow.graph.backward_sizes import (
    SizeNodes,
    backward_sizes,
    late_bindings,
    nodes_that_bind_sizes,
    size_nodes,
)
from dualflow.graph.extract import ancestors, extract
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.symbolic_size_ops import binds_or_checks_size
from dualflow.ops.op_kinds import Literal, View
from dualflow.ops.record import Effect
from dualflow.sizes.symbolic_sizes import typical


class SourceKind(Enum):
    """The source of an argument of the backward graph."""

    INPUT = "an input"
    OUTPUT = "one of the first outputs"
    RESIDUAL = "an additional output of the forward graph"


Source = tuple[SourceKind, int]
"""A kind of source and the index within it."""

_REPEATABLE: Final = (None, Effect.CHECK)
"""The effects of nodes of dynamic size that the backward graph runs again: it passes the checks again."""


class ForwardBackwardGraphs(NamedTuple):
    """The forward and backward graphs of a joint graph.

    Attributes:
        forward: computes the first outputs of the joint graph, then the residuals, from its first inputs.
        backward: computes the remaining outputs from ``sources``.
        sources: the source of each argument of ``backward``: an input of the joint graph (a cotangent, too),
            one of its first outputs, or a residual.
    """

    forward: Graph
    backward: Graph
    sources: tuple[Source, ...]


def nodes_with_effects(graph: Graph) -> list[Node]:
    """The nodes of a graph with an effect, without those that bind or compare sizes."""
    return [n for n in graph.nodes if n.effect is not None and not binds_or_checks_size(n)]


def split_forward_backward(
    joint: Graph, inputs: int, outputs: int, effects: int, kept_inputs: Sequence[Value] = ()
) -> ForwardBackwardGraphs:
    """Split ``joint`` into a forward and a backward graph.

    The forward graph computes what the first ``outputs``, the updates and the first ``effects`` nodes with an
    effect need, from the first ``inputs``. A residual is a value of the forward graph that the backward graph
    reads. Inputs, constants, and views no smaller than their operand are no residuals: the backward graph
    reads their source. It recomputes values of dynamic size, such as the stacks of a loop whose trip count is
    dynamic, and values that depend on ``kept_inputs`` alone.

    Each graph binds the size variables that it reads, to sizes of its own arguments. ``effects`` doesn't
    count nodes that bind or compare sizes: the forward graph has those before the last of its other nodes.

    Raises:
        UndecidedSize: the backward graph reads a size of which none of its arguments is.
    """
    active = nodes_with_effects(joint)
    results, gradients = joint.outputs[:outputs], joint.outputs[outputs:]
    needed = [*results, *(u.value for u in joint.updates)]
    forward_nodes, forward_effects, sizes = _forward_nodes(joint, inputs, needed, active[:effects])
    stored = forward_nodes - _recomputed(joint, forward_nodes, kept_inputs)
    backward_effects = [*active[effects:], *sizes.backward]
    backward = _backward_graph(joint, gradients, stored, backward_effects, sizes.forward)
    residuals = [v for v in backward.saved if v not in set(results)]
    forward = extract(
        joint,
        joint.arguments[:inputs],
        [*results, *residuals],
        updates=joint.updates,
        effects=[*forward_effects, *sizes.forward],
    )
    source_of = _source_of_values(joint, results, residuals)
    sources = [source_of[v] for v in (*backward.inputs, *backward.saved)]
    return ForwardBackwardGraphs(forward, backward.graph, tuple(sources))


def _forward_nodes(
    joint: Graph, inputs: int, needed: Sequence[Value], effects: Sequence[Node]
) -> tuple[set[Node], list[Node], SizeNodes]:
    """The nodes of the forward graph, those that have an effect or bind sizes, and the nodes of sizes.

    The first set has the nodes on which the values ``needed`` and the effects depend. Branches and loops that
    bind a size which these read are added to ``effects``.
    """
    effects = list(effects)
    nodes, _ = ancestors(needed, (), effects)
    sizes = size_nodes(joint, inputs, nodes)
    while binding := nodes_that_bind_sizes(joint, inputs, nodes, sizes.forward):
        effects += binding
        nodes, _ = ancestors(needed, (), effects)
        sizes = size_nodes(joint, inputs, nodes)
    return nodes, effects, sizes


class _BackwardGraph(NamedTuple):
    """The backward graph, and the values of the joint graph that are its arguments.

    Attributes:
        graph: its arguments are ``inputs``, then ``saved``.
        inputs: arguments of the joint graph.
        saved: values that the forward graph computes.
    """

    graph: Graph
    inputs: list[Value]
    saved: list[Value]


def _backward_graph(
    joint: Graph,
    gradients: Sequence[Value],
    stored: set[Node],
    effects: Sequence[Node],
    forward_sizes: Sequence[Node],
) -> _BackwardGraph:
    """The graph that computes ``gradients`` and ``effects``, from results of the nodes ``stored``.

    It binds the size variables that it reads; the forward graph binds them by ``forward_sizes``.
    """
    effects = list(effects)
    while True:
        read = _read([*gradients, *(v for n in effects for v in n.inputs)], stored)
        inputs = [v for v in joint.arguments if v in read]
        saved = [v for n in joint.nodes if n in stored for v in n.outputs if v in read]
        nodes, _ = ancestors(gradients, [*inputs, *saved], effects)
        late = late_bindings([*inputs, *saved], nodes, forward_sizes)
        if not late:
            break
        effects += late
    bindings: tuple[Node, ...] = ()
    if forward_sizes:
        binding = backward_sizes(joint, [*inputs, *saved], nodes, forward_sizes)
        inputs, bindings = [*binding.inputs, *inputs], binding.bindings
    graph = extract(joint, [*inputs, *saved], gradients, name=f"{joint.name}_backward", effects=effects)
    return _BackwardGraph(replace(graph, nodes=(*bindings, *graph.nodes)), inputs, saved)


def _source_of_values(
    joint: Graph, results: Sequence[Value], residuals: Sequence[Value]
) -> dict[Value, Source]:
    """The source of each value that the backward graph may read; the first one of an output that repeats."""
    outputs = {v: (SourceKind.OUTPUT, i) for i, v in reversed(list(enumerate(results)))}
    extra_outputs = {v: (SourceKind.RESIDUAL, i) for i, v in enumerate(residuals)}
    inputs = {v: (SourceKind.INPUT, i) for i, v in enumerate(joint.arguments)}
    return {**outputs, **extra_outputs, **inputs}


def _recomputed(joint: Graph, forward_nodes: set[Node], kept_inputs: Sequence[Value]) -> set[Node]:
    """The nodes of the forward graph that the backward graph recomputes."""
    kept_values = set(kept_inputs)
    recomputed = {
        n
        for n in forward_nodes
        if n.effect in _REPEATABLE and not all(v.spec.shape.is_static for v in n.outputs)
    }
    for node in joint.nodes if kept_inputs else ():
        if node not in forward_nodes or not node.inputs or node.effect is not None:
            continue
        if kept_values.issuperset(node.inputs):
            kept_values.update(node.outputs)
            recomputed.add(node)
    return recomputed


def _read(values: Sequence[Value], stored: set[Node]) -> set[Value]:
    """The arguments, and results of the nodes ``stored``, that the backward graph reads for ``values``."""
    read: set[Value] = set()
    visited: set[Value] = set()
    pending = list(values)
    while pending:
        value = pending.pop()
        if value in visited:
            continue
        visited.add(value)
        node = value.node
        if node is None or (node in stored and not _is_free(node)):
            read.add(value)
        else:
            pending += node.inputs
    return read


def _is_free(node: Node) -> bool:
    """Whether ``node`` costs nothing to recompute: a constant, or a view no smaller than its operand."""
    if isinstance(node.op.kind, Literal):
        return True
    if not isinstance(node.op.kind, View) or not all(
        v.spec.shape.is_static for v in (*node.inputs, *node.outputs)
    ):
        return False
    return sum(typical(v.spec.nbytes) for v in node.inputs) <= typical(node.output.spec.nbytes)
