"""Specialises the bodies of branches and loops, which were traced with dynamic sizes, for static sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dualflow.core.errors import DualflowError
from dualflow.core.records import replace
from dualflow.core.spec import TensorSpec
from dualflow.graph.control_spec import CondSpec, LoopSpec, branches_of, loop_of, row_spec
from dualflow.graph.deferred_errors import deferrable, failing_branch, failing_loop_body
from dualflow.graph.error_notes import note_place
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.rewrite import Expansion, rebuild, replaced_by
from dualflow.ops.op_kinds import Cond, Loop


def attrs_for(node: Node, specs: Sequence[TensorSpec]) -> Mapping[str, Any]:
    """The attributes of ``node``, with its bodies specialised for inputs of ``specs``."""
    if isinstance(node.op.kind, Cond):
        return {"cond": CondSpec(_resized_branches(branches_of(node), specs[1:]))}
    if isinstance(node.op.kind, Loop):
        return {"loop": _resized_loop(loop_of(node), specs)}
    return node.attrs


def _resized_branches(branches: Sequence[Graph], specs: Sequence[TensorSpec]) -> tuple[Graph, ...]:
    """The branches for inputs of ``specs``. A branch that is invalid for these raises when it is taken.

    Raises:
        DualflowError: all branches are invalid.
    """
    new: list[Graph | DualflowError] = []
    for branch in branches:
        try:
            new.append(resized(branch, specs))
        except DualflowError as error:
            new.append(deferrable(error))
    possible = next((g for g in new if isinstance(g, Graph)), None)
    if possible is None:
        raise next(error for error in new if isinstance(error, DualflowError))
    results = [v.spec for v in possible.outputs]
    return tuple(
        [
            g if isinstance(g, Graph) else failing_branch(branch, specs, results, g)
            for branch, g in zip(branches, new, strict=True)
        ]
    )


def _resized_loop(loop: LoopSpec, specs: Sequence[TensorSpec]) -> LoopSpec:
    """``loop`` for inputs of ``specs``.

    A size of a carried value that an iteration changes stays dynamic.
    """
    carried, scanned, invariants = loop.split_inputs(specs)
    if loop.scanned and loop.length is None:
        loop = replace(loop, length=scanned[0].shape[0])
    rows = list(map(row_spec, scanned))
    while True:
        new = _with_inputs(loop, [*carried, *rows, *invariants])
        next_carried = [
            TensorSpec.of(before.shape.most_specific_compatible_shape(after.spec.shape), before.dtype)
            for before, after in zip(carried, new.body.outputs, strict=False)
        ]
        if all(a.shape == b.shape for a, b in zip(carried, next_carried, strict=True)):
            return new
        carried = next_carried


def _with_inputs(loop: LoopSpec, specs: Sequence[TensorSpec]) -> LoopSpec:
    """``loop`` with graphs for inputs of ``specs``. A body that is invalid for these raises when it runs."""
    condition = None if loop.condition is None else resized(loop.condition, specs)
    try:
        body = resized(loop.body, specs)
    except DualflowError as error:
        body = failing_loop_body(loop.body, specs, loop.carried, deferrable(error))
    return loop.with_bodies(lambda graph: body if graph is loop.body or condition is None else condition)


def resized(graph: Graph, specs: Sequence[TensorSpec]) -> Graph:
    """The body ``graph``, specialised for inputs of ``specs``."""
    if all(v.spec == spec for v, spec in zip(graph.inputs, specs, strict=True)):
        return graph
    pairs = zip(graph.inputs, specs, strict=True)
    inputs = [Value(TensorSpec(spec.shape, spec.dtype, v.spec.name)) for v, spec in pairs]
    new_values = dict(zip(graph.inputs, inputs, strict=True))
    return replace(rebuild(graph, _inferred, new_values), inputs=tuple(inputs))


def _inferred(node: Node, current: Node) -> Expansion | None:
    """``current`` with specs inferred again from its new inputs."""
    if current is node:
        return None
    specs = [v.spec for v in current.inputs]
    try:
        attrs = dict(attrs_for(node, specs))
        results = node.op.specs(specs, attrs)
    except DualflowError as error:
        note_place(error, node)
        raise
    return replaced_by(node.like(node.op, current.inputs, attrs, results))
