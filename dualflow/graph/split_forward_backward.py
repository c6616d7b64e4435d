"""Splits the joint graph of a computation and its gradient into a forward and a backward graph."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Final

from dualflow.core.records import NamedTuple, replace
from dualflow.graph.backward_sizes import (
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
    first, last = active[:effects], active[effects:]
    results = [*joint.outputs[:outputs], *(u.value for u in joint.updates)]
    ahead, _ = ancestors(results, (), first)
    sizes = size_nodes(joint, inputs, ahead)
    while more := nodes_that_bind_sizes(joint, inputs, ahead, sizes.forward):
        first = [*first, *more]
        ahead, _ = ancestors(results, (), first)
        sizes = size_nodes(joint, inputs, ahead)
    gradients = joint.outputs[outputs:]
    stored = ahead - _recomputed(joint, ahead, kept_inputs)
    first, last = [*first, *sizes.forward], [*last, *sizes.backward]
    while True:
        read = _read([*gradients, *(v for n in last for v in n.inputs)], stored)
        backward_inputs = [v for v in joint.arguments if v in read]
        saved = [v for n in joint.nodes if n in stored for v in n.outputs if v in read]
        needed, _ = ancestors(gradients, [*backward_inputs, *saved], last)
        late = late_bindings([*backward_inputs, *saved], needed, sizes.forward)
        if not late:
            break
        last = [*last, *late]
    bindings: tuple[Node, ...] = ()
    if sizes.forward:
        binding = backward_sizes(joint, [*backward_inputs, *saved], needed, sizes.forward)
        backward_inputs, bindings = [*binding.inputs, *backward_inputs], binding.bindings
    output_index = {v: i for i, v in reversed(list(enumerate(joint.outputs[:outputs])))}
    residuals = [v for v in saved if v not in output_index]
    residual_of = {v: i for i, v in enumerate(residuals)}
    input_index = {v: i for i, v in enumerate(joint.arguments)}
    sources: list[Source] = [(SourceKind.INPUT, input_index[v]) for v in backward_inputs]
    sources += [
        (SourceKind.OUTPUT, output_index[v]) if v in output_index else (SourceKind.RESIDUAL, residual_of[v])
        for v in saved
    ]
    forward = extract(
        joint,
        joint.arguments[:inputs],
        [*joint.outputs[:outputs], *residuals],
        updates=joint.updates,
        effects=first,
    )
    backward = extract(
        joint, [*backward_inputs, *saved], gradients, name=f"{joint.name}_backward", effects=last
    )
    backward = replace(backward, nodes=(*bindings, *backward.nodes))
    return ForwardBackwardGraphs(forward, backward, tuple(sources))


def _recomputed(joint: Graph, ahead: set[Node], kept_inputs: Sequence[Value]) -> set[Node]:
    """The nodes of the forward graph (``ahead``) that the backward graph recomputes."""
    kept_values = set(kept_inputs)
    recomputed = {
        n for n in ahead if n.effect in _REPEATABLE and not all(v.spec.shape.is_static for v in n.outputs)
    }
    for node in joint.nodes if kept_inputs else ():
        if node in ahead and node.inputs and kept_values.issuperset(node.inputs) and node.effect is None:
            kept_values.update(node.outputs)
            recomputed.add(node)
    return recomputed


def _read(values: Sequence[Value], ahead: set[Node]) -> set[Value]:
    """The inputs and residuals that the backward graph reads to compute ``values``."""
    read: set[Value] = set()
    visited: set[Value] = set()
    pending = list(values)
    while pending:
        value = pending.pop()
        if value in visited:
            continue
        visited.add(value)
        node = value.node
        if node is None or (node in ahead and not _is_free(node)):
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
