"""Replaces sums of a tensor and a scatter: ``c + scatter(i, rows)`` adds the rows to ``c`` in place."""

from __future__ import annotations

from collections.abc import Set

from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.rewrite import replace_matches
from dualflow.graph.scalar_functions import scalar_op_of
from dualflow.ops.op_kinds import Scatter
from dualflow.ops.scattering import ADD_ND
from dualflow.ops.taking import SCATTER_ONTO
from dualflow.scalar import ScalarOp


def add_in_scatters(graph: Graph) -> Graph:
    """c + scatter(i, rows) = scatter onto c, if nothing else reads the scatter.

    So the gradient of an indexing in a loop writes one row per iteration instead of the whole tensor.
    """
    if not any(isinstance(op.kind, Scatter) for op in graph.ops):
        return graph
    return replace_matches(graph, _match, _onto, lambda match: [match[1]])


def _match(node: Node, single: Set[Value]) -> tuple[Value, Node] | None:
    """If ``node`` is ``onto + scatter(...)``: ``onto`` and the scatter."""
    if scalar_op_of(node) is not ScalarOp.ADD:
        return None
    for onto, term in (node.inputs, node.inputs[::-1]):
        producer = term.node
        if producer is None or term not in single or onto is term or onto.spec != node.output.spec:
            continue
        kind = producer.op.kind
        if isinstance(kind, Scatter) and kind.join == "add" and not kind.onto:
            return onto, producer
    return None


def _onto(node: Node, match: tuple[Value, Node]) -> Node:
    """The scatter onto a tensor, in place of their sum ``node``."""
    onto, scattered = match
    if "axis" in scattered.attrs:
        op, attrs = SCATTER_ONTO, {"axis": scattered.attrs["axis"]}
    else:
        op, attrs = ADD_ND, {}
    return Node(op, (onto, *scattered.inputs), attrs, node.specs, scattered.origin, node.merged_origins)
