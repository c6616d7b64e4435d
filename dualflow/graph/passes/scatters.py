"""Sums with rows scattered onto zeros: ``c + scatter(i, rows)`` adds the rows to ``c`` where they belong."""

from __future__ import annotations

from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.rewrite import Expansion, by, reading, rebuild, without
from dualflow.graph.scalar_functions import scalar_op_of
from dualflow.ops.op_kinds import Scatter
from dualflow.ops.scattering import ADD_ND
from dualflow.ops.taking import SCATTER_ONTO
from dualflow.scalar import ScalarOp


def add_in_scatters(graph: Graph) -> Graph:
    """c + scatter(i, rows) = scatter onto c, where only the sum reads what is scattered.

    So the gradient of an index in a loop touches a row in each iteration, and not all of what is indexed.
    """
    if Scatter not in {type(node.op.kind) for node in graph.nodes}:
        return graph
    results = set(graph.results)
    single = {v for v, readers in graph.users().items() if len(readers) == 1 and v not in results}
    sums = {n: found for n in graph.nodes if (found := _match(n, single)) is not None}
    if not sums:
        return graph
    gone = {scattered for _, scattered in sums.values()}
    moved: dict[Value, Value] = {}

    def added(node: Node, current: Node) -> Expansion | None:
        if node in sums:
            return by(reading(_onto(node, *sums[node]), moved))
        return without(node) if node in gone else None

    return rebuild(graph, added, moved)


def _match(node: Node, single: set[Value]) -> tuple[Value, Node] | None:
    """What ``node`` adds to, and the scatter that it adds."""
    if scalar_op_of(node) is not ScalarOp.ADD:
        return None
    for onto, term in (node.inputs, node.inputs[::-1]):
        maker = term.node
        if maker is None or term not in single or onto is term or onto.spec != node.output.spec:
            continue
        kind = maker.op.kind
        if isinstance(kind, Scatter) and kind.join == "add" and not kind.onto:
            return onto, maker
    return None


def _onto(node: Node, onto: Value, scattered: Node) -> Node:
    if "axis" in scattered.attrs:
        op, attrs = SCATTER_ONTO, {"axis": scattered.attrs["axis"]}
    else:
        op, attrs = ADD_ND, {}
    return Node(op, (onto, *scattered.inputs), attrs, node.specs, scattered.origin, node.also)
