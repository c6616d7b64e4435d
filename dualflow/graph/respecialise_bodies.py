"""Bodies of control flow for other sizes: what was recorded with open sizes, once these are known."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.graph.control_spec import ChoiceSpec, LoopSpec, branches_of, loop_of
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.rewrite import Expansion, by, rebuild
from dualflow.ops.forms import Choice, Loop


def attrs_for(node: Node, specs: Sequence[TensorSpec]) -> Mapping[str, Any]:
    """The attributes of ``node`` for inputs of ``specs``: those of before, with the bodies in these sizes."""
    if isinstance(node.op.form, Choice):
        return {"choice": ChoiceSpec(tuple([resized(b, specs[1:]) for b in branches_of(node)]))}
    if isinstance(node.op.form, Loop):
        return {"loop": _resized_loop(loop_of(node), specs)}
    return node.attrs


def _resized_loop(loop: LoopSpec, specs: Sequence[TensorSpec]) -> LoopSpec:
    """The graphs of a loop take a row of each mapped input; where there is a condition, nothing is mapped.

    A size of a carried value that an iteration changes is open.
    """
    carried, stacks, rest = loop.parts(specs)
    rows = [TensorSpec.of(Shape(tuple(s.shape)[1:]), s.dtype) for s in stacks]
    while True:
        inputs = [*carried, *rows, *rest]
        new = loop.with_bodies(functools.partial(resized, specs=inputs))
        following = [
            TensorSpec.of(before.shape.most_specific_compatible_shape(after.spec.shape), before.dtype)
            for before, after in zip(carried, new.body.outputs, strict=False)
        ]
        if all(a.shape == b.shape for a, b in zip(carried, following, strict=True)):
            return new
        carried = following


def resized(graph: Graph, specs: Sequence[TensorSpec]) -> Graph:
    """``graph``, a body, whose inputs have ``specs``."""
    if all(v.spec == spec for v, spec in zip(graph.inputs, specs, strict=True)):
        return graph
    named = zip(graph.inputs, specs, strict=True)
    inputs = [Value(TensorSpec(spec.shape, spec.dtype, v.spec.name)) for v, spec in named]
    moved = dict(zip(graph.inputs, inputs, strict=True))
    return replace(rebuild(graph, _inferred, moved), inputs=tuple(inputs))


def _inferred(node: Node, current: Node) -> Expansion | None:
    """``current`` with the outputs that its inputs make."""
    if current is node:
        return None
    specs = [v.spec for v in current.inputs]
    attrs = dict(attrs_for(node, specs))
    return by(Node(node.op, current.inputs, attrs, node.op.specs(specs, attrs), node.origin, node.also))
