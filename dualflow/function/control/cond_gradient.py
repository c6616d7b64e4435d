"""The gradient of a conditional: a conditional between the gradients of its branches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dualflow.core.spec import TensorSpec
from dualflow.eager.tape import GradientTape, apply_vjp
from dualflow.function.control.bodies import traced
from dualflow.gradient.sweep import filled
from dualflow.graph.control import run_cond
from dualflow.graph.control_spec import CondSpec
from dualflow.graph.interpret import replay
from dualflow.graph.ir import Graph
from dualflow.ops.shapes import ensure_shape


def pull_cond(
    needed: Sequence[bool],
    g: Any,
    out: Any,
    index: Any,
    *operands: Any,
    cond: CondSpec,
) -> list[Any]:
    """The cotangents of the inputs, by a conditional between the gradients of the branches."""
    wanted = [i for i, x in enumerate(operands) if needed[i + 1] and x.dtype.is_inexact]
    several = filled(g, out)
    cotangents = [
        c for c, v in zip(several, cond.branches[0].outputs, strict=True) if v.spec.dtype.is_inexact
    ]
    if not wanted or not cotangents:
        return [None] * len(needed)
    graphs = [_pull_graph(b, operands, cotangents, wanted) for b in cond.branches]
    found = run_cond(index, [*operands, *cotangents], graphs)
    flows: list[Any] = [None] * len(needed)
    for i, flow in zip(wanted, found, strict=True):
        flows[i + 1] = flow
    return flows


def _pull_graph(
    body: Graph, operands: Sequence[Any], cotangents: Sequence[Any], wanted: Sequence[int]
) -> Graph:
    """From a body's inputs and the cotangents of its float outputs to those of its inputs ``wanted``."""
    taking = [i for i, v in enumerate(body.outputs) if v.spec.dtype.is_inexact]

    def pull(*symbols: Any) -> Any:
        values, flows = symbols[: len(operands)], symbols[len(operands) :]
        sources = [values[i] for i in wanted]
        with GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(sources)
            results = replay(body, values)
        targets = [results[i] for i in taking]
        fitting = [ensure_shape(g, x.shape) for g, x in zip(flows, targets, strict=True)]
        return apply_vjp(tape, targets, fitting, sources)

    specs = [TensorSpec.of(x.shape, x.dtype) for x in (*operands, *cotangents)]
    return traced(pull, specs)
