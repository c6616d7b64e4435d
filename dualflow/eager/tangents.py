"""Forward mode for one op: the tangents of its outputs, given those of its inputs.

An op's record has a rule that takes cotangents back; forward mode is derived from it. A view of a tangent is
the tangent of a view, a product has the product rule, and the rule of an elementwise op multiplies by the
derivative whichever way it is read. Any other rule is transposed: it is linear in the cotangent, so its own
gradient by the cotangent is what takes tangents forward.
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
"""A tensor for each input or output; None stands for zeros."""


def push_forward(
    op: Op, inputs: tuple[Any, ...], outputs: tuple[Any, ...], attrs: dict[str, Any], tangents: Tangents
) -> Tangents:
    """The tangents of the outputs of an op that ran, computed by ops on the current engine.

    Args:
        op: its record.
        inputs: what it took.
        outputs: what it made.
        attrs: its attributes.
        tangents: of the inputs, each of its input's shape and dtype.
    """
    flowing = [i for i, t in enumerate(tangents) if t is not None and op.differentiable(i)]
    if not flowing or not outputs:
        return [None] * len(outputs)
    if len(outputs) == 1 and isinstance(op.kind, View | MatMul | Gather):
        return [_linear_in_each(op, inputs, attrs, tangents, flowing)]
    if _is_elementwise(op, inputs, outputs, flowing):
        return [_elementwise(op, inputs, outputs[0], attrs, tangents, flowing)]
    return _transposed(op, inputs, outputs, attrs, tangents, flowing)


def _linear_in_each(
    op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any], tangents: Tangents, flowing: Sequence[int]
) -> Any:
    """``op(dx, y) + op(x, dy)``."""
    parts = [dispatch.current().run(op, (*inputs[:i], tangents[i], *inputs[i + 1 :]), attrs) for i in flowing]
    return reduce(add, parts)


def _is_elementwise(
    op: Op, inputs: tuple[Any, ...], outputs: tuple[Any, ...], flowing: Sequence[int]
) -> bool:
    """Whether each element of a cotangent is multiplied by a real derivative, in the output's dtype."""
    dtype = outputs[0].dtype
    same = dtype.is_floating and all(inputs[i].dtype is dtype for i in flowing)
    return same and len(outputs) == 1 and isinstance(op.kind, Elementwise) and op.pullback is None


def _elementwise(
    op: Op,
    inputs: tuple[Any, ...],
    out: Any,
    attrs: dict[str, Any],
    tangents: Tangents,
    flowing: Sequence[int],
) -> Any:
    parts = []
    for i in flowing:
        part = op.cotangent(i, broadcast_like(tangents[i], out), out, inputs, attrs)
        if part is not None:
            parts.append(part)
    return reduce(add, parts) if parts else None


def _transposed(
    op: Op,
    inputs: tuple[Any, ...],
    outputs: tuple[Any, ...],
    attrs: dict[str, Any],
    tangents: Tangents,
    flowing: Sequence[int],
) -> Tangents:
    """The gradient, by the cotangents, of the cotangents of the inputs paired with their tangents.

    The pairing is the real part of the sum of products, which the sweep's cotangents are made for.
    """
    places = [k for k, y in enumerate(outputs) if y.dtype.is_inexact]
    given = [ones_like(outputs[k]) for k in places]  # where rules that take logarithms are smooth too
    tape = Tape(accessed=False)
    for g in given:
        tape.watch(g)
    distinct = {id(inputs[i]): (inputs[i], tangents[i]) for i in flowing}
    with dispatch.using(_listening(tape)):
        record = Record(op, inputs, outputs, attrs)
        sources = [x for x, _ in distinct.values()]
        flows = sweep([record], [outputs[k] for k in places], given, sources)
        pairs = [(f, t) for f, (_, t) in zip(flows, distinct.values(), strict=True) if f is not None]
        parts = [reduce_sum(real(f * t)) for f, t in pairs if id(f) in tape.watched]
        total = reduce(add, parts) if parts else None
    found: list[Any] = [None] * len(outputs)
    if total is not None:
        for k, tangent in zip(places, sweep(tape.records, [total], [ones_like(total)], given), strict=True):
            found[k] = tangent
    return found


def _listening(tape: Tape) -> Recording:
    engine = dispatch.current()
    if type(engine) is Recording:
        return Recording(engine.base, (*engine.tapes, tape))
    return Recording(engine, (tape,))
