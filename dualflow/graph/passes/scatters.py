"""Sums with rows scattered onto zeros: ``c + scatter(i, rows)`` adds the rows to ``c`` where they belong."""

from __future__ import annotations

from dualflow.graph.ir import Graph, Node, Value
from dualflow.ops.forms import Scatter
from dualflow.ops.record import REGISTRY


def add_in_scatters(graph: Graph) -> Graph:
    """c + scatter(i, rows) = scatter onto c, where only the sum reads what is scattered.

    So the gradient of an index in a loop touches a row in each turn, and not all of what is indexed.
    """
    results = set(graph.results)
    single = {v for v, readers in graph.users().items() if len(readers) == 1 and v not in results}
    sums = {n: found for n in graph.nodes if (found := _match(n, single)) is not None}
    gone = {scattered for _, scattered in sums.values()}
    new: dict[Value, Value] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        if node in gone:
            continue
        if node in sums:
            onto, scattered = sums[node]
            made = _onto(node, new.get(onto, onto), scattered, new)
        else:
            inputs = [new.get(v, v) for v in node.inputs]
            made = node if tuple(inputs) == node.inputs else node.with_inputs(inputs)
        nodes.append(made)
        if made is not node:
            new.update(zip(node.outputs, made.outputs, strict=True))
    return graph.with_results([new.get(v, v) for v in graph.results], nodes=tuple(nodes))


def _match(node: Node, single: set[Value]) -> tuple[Value, Node] | None:
    """What ``node`` adds to, and the scatter that it adds."""
    if node.op is not REGISTRY["add"]:
        return None
    for onto, term in (node.inputs, node.inputs[::-1]):
        maker = term.node
        if maker is None or term not in single or onto is term or onto.spec != node.output.spec:
            continue
        form = maker.op.form
        if isinstance(form, Scatter) and form.add and not form.onto:
            return onto, maker
    return None


def _onto(node: Node, onto: Value, scattered: Node, new: dict[Value, Value]) -> Node:
    inputs = [onto, *[new.get(v, v) for v in scattered.inputs]]
    if "axis" in scattered.attrs:
        op, attrs = REGISTRY["scatter_onto"], {"axis": scattered.attrs["axis"]}
    else:
        op, attrs = REGISTRY["tensor_scatter_nd_add"], {}
    return Node(op, inputs, attrs, node.specs, scattered.origin, node.also)
