"""Forward mode for one op: computes the tangents of its outputs from those of its inputs.

An op's record has a vjp rule; forward mode is derived from it. Views are linear, products have the product
rule, and the vjp of an elementwise op multiplies by the derivative, as its jvp does. Any other vjp is
transposed: it is linear in the cotangent, so its gradient by the cotangent is the jvp ("double backward";
Townsend, 2017, "A new trick for calculating Jacobian vector products").
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from dualflow.core import dispatch
from dualflow.eager.recording import Recording, Tape
from dualflow.gradient.sweep import Record, sweep
from dualflow.ops.arithmetic import add
from dualflow.ops.broadcasting import broadcast_like, reduce_sum
from dualflow.ops.complex_numbers import real
from dualflow.ops.creation import ones_like
from dualflow.ops.op_kinds import Elementwise, Gather, MatMul, View
from dualflow.ops.record import Op

Tangents = Sequence[Any]
"""A tensor for each input or output; None for zeros."""


def push_forward(
    op: Op, inputs: tuple[Any, ...], outputs: tuple[Any, ...], attrs: dict[str, Any], tangents: Tangents
) -> Tangents:
    """The tangents of the outputs of an executed op, computed by ops on the current engine.

    Args:
        op: the op's record.
        inputs: its inputs.
        outputs: its outputs.
        attrs: its attributes.
        tangents: the tangents of the inputs, each of its input's shape and dtype.
    """
    active = [i for i, t in enumerate(tangents) if t is not None and op.differentiable(i)]  # inputs
    if not active or not outputs:
        return [None] * len(outputs)
    if len(outputs) == 1 and isinstance(op.kind, View | MatMul | Gather):
        return [_linear_in_each(op, inputs, attrs, tangents, active)]
    if _vjp_is_real_scaling(op, inputs, outputs, active):
        return [_elementwise_tangent(op, inputs, outputs[0], attrs, tangents, active)]
    return _double_backward(op, inputs, outputs, attrs, tangents, active)


def _linear_in_each(
    op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any], tangents: Tangents, active: Sequence[int]
) -> Any:
    """The tangent of an op that is linear in each of two inputs: ``op(dx, y) + op(x, dy)``."""
    parts = [dispatch.current().run(op, (*inputs[:i], tangents[i], *inputs[i + 1 :]), attrs) for i in active]
    return reduce(add, parts)


def _vjp_is_real_scaling(
    op: Op, inputs: tuple[Any, ...], outputs: tuple[Any, ...], active: Sequence[int]
) -> bool:
    """Whether the vjp multiplies each element of a cotangent by a real derivative, in the output's dtype."""
    dtype = outputs[0].dtype
    same = dtype.is_floating and all(inputs[i].dtype is dtype for i in active)
    return same and len(outputs) == 1 and isinstance(op.kind, Elementwise) and op.joint_vjp is None


def _elementwise_tangent(
    op: Op,
    inputs: tuple[Any, ...],
    out: Any,
    attrs: dict[str, Any],
    tangents: Tangents,
    active: Sequence[int],
) -> Any:
    parts = []
    for i in active:
        part = op.cotangent(i, broadcast_like(tangents[i], out), out, inputs, attrs)
        if part is not None:
            parts.append(part)
    return reduce(add, parts) if parts else None


def _double_backward(
    op: Op,
    inputs: tuple[Any, ...],
    outputs: tuple[Any, ...],
    attrs: dict[str, Any],
    tangents: Tangents,
    active: Sequence[int],
) -> Tangents:
    """The outputs' tangents by two backward passes: the vjp of the vjp, which is linear, is the jvp.

    The inner product is the real part of the sum of products, by the convention of the sweep's cotangents.
    """
    positions = [k for k, y in enumerate(outputs) if y.dtype.is_inexact]
    cotangents = [ones_like(outputs[k]) for k in positions]  # at ones, since some rules take logarithms
    tape = Tape(accessed=False)
    for g in cotangents:
        tape.watch(g)
    distinct = {id(inputs[i]): (inputs[i], tangents[i]) for i in active}  # an input may be used twice
    with dispatch.using(_recorded_on(tape)):
        record = Record(op, inputs, outputs, attrs)
        sources = [x for x, _ in distinct.values()]
        input_cotangents = sweep([record], [outputs[k] for k in positions], cotangents, sources)
        pairs = [(g, t) for g, (_, t) in zip(input_cotangents, distinct.values(), strict=True)]
        parts = [reduce_sum(real(g * t)) for g, t in pairs if g is not None and id(g) in tape.watched]
        total = reduce(add, parts) if parts else None
    output_tangents: list[Any] = [None] * len(outputs)
    if total is not None:
        for k, tangent in zip(
            positions, sweep(tape.records, [total], [ones_like(total)], cotangents), strict=True
        ):
            output_tangents[k] = tangent
    return output_tangents


def _recorded_on(tape: Tape) -> Recording:
    engine = dispatch.current()
    if type(engine) is Recording:
        return Recording(engine.base, (*engine.tapes, tape))
    return Recording(engine, (tape,))
