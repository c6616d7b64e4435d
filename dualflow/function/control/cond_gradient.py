"""The joint vjp of a conditional: a conditional of the vjps of its branches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dualflow.core.spec import TensorSpec
from dualflow.eager.tape import GradientTape, apply_vjp
from dualflow.function.control.trace_bodies import traced
from dualflow.gradient.sweep import filled
from dualflow.graph.control_ops import run_cond
from dualflow.graph.control_spec import CondSpec
from dualflow.graph.interpret import replay
from dualflow.graph.ir import Graph
from dualflow.ops.shapes import with_shape


def cond_vjp(
    needed: Sequence[bool],
    g: Any,
    out: Any,
    index: Any,
    *operands: Any,
    cond: CondSpec,
) -> list[Any]:
    """The cotangents of the inputs, by a conditional of the vjps of the branches."""
    sources = [i for i, x in enumerate(operands) if needed[i + 1] and x.dtype.is_inexact]
    all_cotangents = filled(g, out)
    cotangents = [
        c for c, v in zip(all_cotangents, cond.branches[0].outputs, strict=True) if v.spec.dtype.is_inexact
    ]
    if not sources or not cotangents:
        return [None] * len(needed)
    graphs = [_vjp_graph(b, operands, cotangents, sources) for b in cond.branches]
    results = run_cond(index, [*operands, *cotangents], graphs)
    input_cotangents: list[Any] = [None] * len(needed)
    for i, cotangent in zip(sources, results, strict=True):
        input_cotangents[i + 1] = cotangent
    return input_cotangents


def _vjp_graph(
    body: Graph, operands: Sequence[Any], cotangents: Sequence[Any], source_indices: Sequence[int]
) -> Graph:
    """The graph of the vjp of the branch ``body``: maps its inputs and cotangents to input cotangents."""
    float_outputs = [i for i, v in enumerate(body.outputs) if v.spec.dtype.is_inexact]

    def vjp(*tensors: Any) -> Any:
        values, flows = tensors[: len(operands)], tensors[len(operands) :]
        sources = [values[i] for i in source_indices]
        with GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(sources)
            results = replay(body, values)
        targets = [results[i] for i in float_outputs]
        shaped = [with_shape(g, x.shape) for g, x in zip(flows, targets, strict=True)]
        return apply_vjp(tape, targets, shaped, sources)

    specs = [TensorSpec.of(x.shape, x.dtype) for x in (*operands, *cotangents)]
    return traced(vjp, specs)
