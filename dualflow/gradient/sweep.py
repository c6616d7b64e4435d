"""The reverse sweep: computes cotangents of sources from those of targets, over a list of records.

It calls only ops, so that it runs eagerly, is traced, or is recorded for higher-order gradients, depending on
the current engine. Tensors are identified by their ids. The work is linear in the number of records. Ops with
one output and a rule for each input are handled inline: a function call for each takes a tenth of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from dualflow.core import dispatch
from dualflow.core.defer_slot import DEFER
from dualflow.core.records import NamedTuple
from dualflow.core.shape import UNKNOWN_RANK
from dualflow.ops.arithmetic import add
from dualflow.ops.broadcasting import sum_like, sum_to
from dualflow.ops.creation import zeros_like
from dualflow.ops.record import Op


class Record(NamedTuple):
    """One executed op, with its inputs and outputs, which the record keeps alive."""

    op: Op
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]
    attrs: dict[str, Any]


Records = list[tuple[Op, tuple[Any, ...], tuple[Any, ...], dict[str, Any]]]
"""Executed ops in order: each a :class:`Record`, or the plain tuple of its fields, which takes less time."""


def sweep(
    records: Records, targets: Sequence[Any], cotangents: Sequence[Any], sources: Sequence[Any]
) -> list[Any]:
    """The cotangent of each source, computed from those of the targets.

    Args:
        records: the executed ops in order; they are popped, which frees tensors that only they refer to.
        targets: outputs of the records, or sources.
        cotangents: one for each target, of its shape and dtype.
        sources: tensors, or variables that a record reads.

    Returns:
        For each source a tensor of its shape, the sum of its cotangents; None if no target depends on it.
    """
    reached = _reached(records, sources)
    symbolic = not dispatch.current().eager  # then equal shapes may have different unknown sizes
    source_ids = {id(s) for s in sources}
    cotangent_of: dict[int, Any] = {}
    for target, cotangent in zip(targets, cotangents, strict=True):
        if id(target) in reached:
            _accumulate(cotangent_of, id(target), cotangent)
    while records:
        op, inputs, outputs, attrs = records.pop()
        if len(outputs) == 1:
            out = outputs[0]
            g = cotangent_of.pop(id(out), None)
            if g is not None and id(out) in source_ids:
                cotangent_of[id(out)] = g
        else:
            out = outputs
            g = _cotangents_of_outputs(op, outputs, cotangent_of, source_ids)
        if g is None:
            continue
        rules = op.vjp
        if type(rules) is not tuple:
            input_cotangents = _input_cotangents(op, g, out, inputs, attrs, reached)
            for x, cotangent in zip(inputs, input_cotangents, strict=True):
                if cotangent is not None and id(x) in reached:
                    if cotangent.shape is not x.shape or symbolic:
                        cotangent = _unbroadcast(cotangent, x, inputs)
                    _accumulate(cotangent_of, id(x), cotangent)
            continue
        for i, x in enumerate(inputs):
            key = id(x)
            if key in reached and (rule := rules[i]) is not None:
                try:
                    cotangent = rule(g, out, *inputs, **attrs) if attrs else rule(g, out, *inputs)
                except Exception as error:
                    cotangent = _deferred(rule, (g, out, *inputs), attrs, error)
                if cotangent is not None:
                    if len(inputs) > 1 and (cotangent.shape is not x.shape or symbolic):
                        cotangent = _unbroadcast(cotangent, x, inputs)
                    before = cotangent_of.get(key)
                    cotangent_of[key] = cotangent if before is None else add(before, cotangent)
    return [cotangent_of.get(id(s)) for s in sources]


def _reached(records: Records, sources: Sequence[Any]) -> set[int]:
    """The ids of the tensors that depend on a source: only these need a cotangent."""
    reached = {id(s) for s in sources}
    for _, inputs, outputs, _ in records:
        for x in inputs:
            if id(x) in reached:
                for y in outputs:
                    reached.add(id(y))
                break
    return reached


def _cotangents_of_outputs(
    op: Op, outputs: tuple[Any, ...], cotangent_of: dict[int, Any], source_ids: set[int]
) -> tuple[Any, ...] | None:
    """The cotangents of an op's outputs, removed from ``cotangent_of`` except for sources.

    None if no target depends on the outputs.
    """
    gs = tuple([cotangent_of.pop(id(y), None) for y in outputs])
    if all(g is None for g in gs):
        return None
    cotangent_of.update(
        {id(y): g for y, g in zip(outputs, gs, strict=True) if g is not None and id(y) in source_ids}
    )
    return gs if op.joint_vjp is not None else filled(gs, outputs)


def _input_cotangents(
    op: Op, g: Any, out: Any, inputs: tuple[Any, ...], attrs: dict[str, Any], reached: set[int]
) -> Sequence[Any]:
    """The cotangents of all inputs of an op, by one call of its rule; None for inputs not in ``reached``."""
    needed = tuple([id(x) in reached for x in inputs])
    rule = op.joint_vjp or partial(_by_each_rule, op)
    try:
        input_cotangents: Sequence[Any] = rule(needed, g, out, *inputs, **attrs)
    except Exception as error:
        input_cotangents = _deferred(rule, (needed, g, out, *inputs), attrs, error)
    return input_cotangents


def _deferred(
    rule: Callable[..., Any], args: tuple[Any, ...], attrs: dict[str, Any], error: Exception
) -> Any:
    """The deferred result of a rule that failed in a trace for lack of a size; raises any other error."""
    result = DEFER.value(rule, args, attrs, error)
    if result is None:
        raise error
    return result


def _by_each_rule(
    op: Op, needed: tuple[bool, ...], g: Any, out: Any, *inputs: Any, **attrs: Any
) -> Sequence[Any]:
    return [op.cotangent(i, g, out, inputs, attrs) if needed[i] else None for i in range(len(inputs))]


def _unbroadcast(cotangent: Any, x: Any, inputs: Sequence[Any]) -> Any:
    """``cotangent`` summed to the shape of ``x``, which the op may have broadcast.

    Ops with inputs of unknown rank are calls, whose gradients have the inputs' shapes already.
    """
    shape = x.shape
    if shape is not UNKNOWN_RANK and None in shape:
        others = [y.shape for y in inputs if y is not x and y.shape is not UNKNOWN_RANK]
        for axis, size in enumerate(reversed(shape), start=1):
            if size is None and any(len(other) >= axis and other[-axis] != 1 for other in others):
                return sum_like(cotangent, x)
    return cotangent if cotangent.shape is shape else sum_to(cotangent, shape)


def filled(g: Any, out: Any) -> tuple[Any, ...]:
    """The cotangents of an op's outputs, with zeros for None."""
    if not isinstance(g, tuple):
        return (g,)
    return tuple([zeros_like(y) if c is None else c for c, y in zip(g, out, strict=True)])


def _accumulate(cotangent_of: dict[int, Any], key: int, cotangent: Any) -> None:
    before = cotangent_of.get(key)
    cotangent_of[key] = cotangent if before is None else add(before, cotangent)
