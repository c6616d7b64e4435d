"""What is computed from stacks whose length only the run knows: row by row, in a loop."""

from __future__ import annotations

from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.graph.control import LOOP, loop_attrs
from dualflow.graph.ir import Graph, Node, Value
from dualflow.ops.forms import Element


def loop_over_stacks(graph: Graph) -> Graph:
    """f(stack) = a loop that applies f to each row, for f that works element by element.

    Such are the sums of cotangents in gradients of the third order and beyond.
    """
    new: dict[Value, Value] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        inputs = [new.get(v, v) for v in node.inputs]
        made = node if tuple(inputs) == node.inputs else node.with_inputs(inputs)
        if isinstance(node.op.form, Element) and not node.output.spec.shape.is_static:
            made = _looped(made)
        nodes.append(made)
        if made is not node:
            new.update(zip(node.outputs, made.outputs, strict=True))
    return graph.with_results([new.get(v, v) for v in graph.results], nodes=tuple(nodes)) if new else graph


def _looped(node: Node) -> Node:
    stacks = [v for v in node.inputs if not v.spec.shape.is_static]
    rest = [v for v in node.inputs if v.spec.shape.is_static]
    rows = {v: Value(_row(v.spec)) for v in stacks} | {v: Value(v.spec) for v in rest}
    one = Node(node.op, [rows[v] for v in node.inputs], node.attrs, [_row(node.output.spec)], node.origin)
    body = Graph(node.op.name, tuple(rows.values()), (one,), one.outputs)
    mapped, others = [v for v in rows if v in stacks], [v for v in rows if v not in stacks]
    attrs = loop_attrs(body, 0, len(mapped), None)
    return Node(LOOP, [*mapped, *others], attrs, node.specs, node.origin, node.also)


def _row(spec: TensorSpec) -> TensorSpec:
    return TensorSpec.of(Shape(tuple(spec.shape)[1:]), spec.dtype)
