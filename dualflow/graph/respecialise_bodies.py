"""Bodies of control flow for other sizes: what was recorded with open sizes, once these are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.graph.ir import Graph, GraphBuilder, Node, Value
from dualflow.ops.forms import Choice, Loop


def attrs_for(node: Node, specs: Sequence[TensorSpec]) -> Mapping[str, Any]:
    """The attributes of ``node`` for inputs of ``specs``: those of before, with the bodies in these sizes."""
    if isinstance(node.op.form, Choice):
        return {**node.attrs, "branches": tuple([resized(b, specs[1:]) for b in node.attrs["branches"]])}
    if isinstance(node.op.form, Loop):
        return {**node.attrs, **_loop_bodies(node.attrs, specs)}
    return node.attrs


def _loop_bodies(attrs: Mapping[str, Any], specs: Sequence[TensorSpec]) -> dict[str, Graph]:
    """The graphs inside a loop: they take a row of each mapped input, the condition takes none."""
    start, end = attrs["carried"], attrs["carried"] + attrs["mapped"]
    rows = [TensorSpec.of(Shape(tuple(s.shape)[1:]), s.dtype) for s in specs[start:end]]
    found = {"body": resized(attrs["body"], [*specs[:start], *rows, *specs[end:]])}
    if attrs["condition"] is not None:
        found["condition"] = resized(attrs["condition"], specs)
    return found


def resized(graph: Graph, specs: Sequence[TensorSpec]) -> Graph:
    """``graph``, a body, whose inputs have ``specs``."""
    if all(v.spec == spec for v, spec in zip(graph.inputs, specs, strict=True)):
        return graph
    builder = GraphBuilder(graph.name)
    known: dict[Value, Value] = {
        v: builder.argument(TensorSpec(spec.shape, spec.dtype, v.spec.name))
        for v, spec in zip(graph.inputs, specs, strict=True)
    }
    for node in graph.nodes:
        inputs = [known[v] for v in node.inputs]
        new = builder.add(node.op, inputs, attrs_for(node, [v.spec for v in inputs]), node.origin)
        known.update(zip(node.outputs, new.outputs, strict=True))
    return builder.finish([known[v] for v in graph.outputs])
