"""Registers the gradient rules of conditionals and loops.

The ops are defined in :mod:`dualflow.graph`, which can't import the tracer that the rules need. A gradient
that is computed inside a trace extends that trace. Where a traced function runs op by op, as under a
``ForwardAccumulator``, it is a separate trace, which is evaluated at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from dualflow.core import dispatch
from dualflow.core.spec import TensorSpec
from dualflow.function.control.cond_gradient import cond_vjp
from dualflow.function.control.loop_gradient import loop_vjp
from dualflow.function.options import compile_options
from dualflow.function.tracing.tracer import Tracer, tracing
from dualflow.graph.control_ops import COND, COND_GRADIENT, LOOP, LOOP_GRADIENT
from dualflow.graph.interpret import replay
from dualflow.ops.record import Op

Cotangents = Sequence[Any]
_NAME: Final = "gradient"


def _vjp(
    op: Op,
    rule: Callable[..., Cotangents],
    needed: Sequence[bool],
    g: Any,
    out: Any,
    *inputs: Any,
    **attrs: Any,
) -> Cotangents:
    """The cotangents of the inputs of ``op``, by the gradient rule ``rule``."""
    if isinstance(dispatch.current().innermost, Tracer):
        return rule(needed, g, out, *inputs, **attrs)
    gs, outs = (g, out) if isinstance(out, tuple) else ((g,), (out,))
    tracer = Tracer(_NAME, options=compile_options())
    input_specs = [TensorSpec.of(x.shape, x.dtype) for x in inputs]
    specs = op.specs(input_specs, attrs)  # sizes that a loop may have changed are dynamic
    with tracing(tracer):
        traced_inputs = list(map(tracer.argument, input_specs))
        traced_outs = tuple(map(tracer.argument, specs))
        traced_gs = tuple([x if x is None else tracer.argument(s) for x, s in zip(gs, specs, strict=True)])
        traced_cotangents = rule(needed, traced_gs, traced_outs, *traced_inputs, **attrs)
    with_cotangent = [i for i, x in enumerate(traced_cotangents) if x is not None]
    graph = tracer.builder.finish([tracer.lift(traced_cotangents[i])._value for i in with_cotangent])
    results = replay(graph, [*inputs, *outs, *(x for x in gs if x is not None)])
    cotangents: list[Any] = [None] * len(traced_cotangents)
    for i, result in zip(with_cotangent, results, strict=True):
        cotangents[i] = result
    return cotangents


COND_GRADIENT.fill(partial(_vjp, COND, cond_vjp))
LOOP_GRADIENT.fill(partial(_vjp, LOOP, loop_vjp))
