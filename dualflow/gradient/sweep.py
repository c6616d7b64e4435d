"""The reverse sweep: from the cotangents of some targets to those of some sources, over a list of records.

It calls ops only, so that it runs now, is traced, or is itself recorded for a higher order, whatever engine is
current. Tensors are told apart by identity. The work is linear in the number of records.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from dualflow.ops.arithmetic import add
from dualflow.ops.broadcasting import sum_to
from dualflow.ops.creation import zeros_like
from dualflow.ops.record import Op


class Record(NamedTuple):
    """One op that ran: the tensors it took and gave, each one object for as long as the record lives."""

    op: Op
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]
    attrs: dict[str, Any]


def sweep(
    records: Sequence[Record], targets: Sequence[Any], cotangents: Sequence[Any], sources: Sequence[Any]
) -> list[Any]:
    """The cotangent of each source, given those of the targets.

    Args:
        records: what ran, in the order it ran.
        targets: tensors that the records made, or sources themselves.
        cotangents: one for each target, of its shape and dtype.
        sources: tensors, or variables that a record reads.

    Returns:
        For each source the sum of what flows back to it, a tensor of its shape; None where nothing does.
    """
    reached = _reached(records, sources)
    kept = {id(s) for s in sources}
    found: dict[int, Any] = {}
    for target, cotangent in zip(targets, cotangents, strict=True):
        if id(target) in reached:
            _accumulate(found, id(target), cotangent)
    for record in reversed(records):
        outputs = record.outputs
        if len(outputs) == 1:
            key = id(outputs[0])
            g = found.get(key) if key in kept else found.pop(key, None)
            if g is not None:
                _pull(record, g, outputs[0], reached, found)
        else:
            gs = [found.get(id(y)) if id(y) in kept else found.pop(id(y), None) for y in outputs]
            if any(g is not None for g in gs):
                filled = tuple(zeros_like(y) if g is None else g for g, y in zip(gs, outputs, strict=True))
                _pull(record, filled, outputs, reached, found)
    return [found.get(id(s)) for s in sources]


def _reached(records: Sequence[Record], sources: Sequence[Any]) -> set[int]:
    """The ids of the tensors that depend on a source: only these are worth a cotangent."""
    reached = {id(s) for s in sources}
    for record in records:
        for x in record.inputs:
            if id(x) in reached:
                reached.update([id(y) for y in record.outputs])
                break
    return reached


def _pull(record: Record, g: Any, out: Any, reached: set[int], found: dict[int, Any]) -> None:
    """Add to ``found`` what flows from the outputs of ``record`` to its inputs."""
    op, inputs, _, attrs = record
    if op.pullback is not None:
        needed = tuple([id(x) in reached for x in inputs])
        flows = op.pullback(needed, g, out, *inputs, **attrs)
        for x, flow in zip(inputs, flows, strict=True):
            if flow is not None and id(x) in reached:
                _accumulate(found, id(x), sum_to(flow, x.shape))
        return
    for i, x in enumerate(inputs):
        if id(x) in reached:
            flow = op.cotangent(i, g, out, inputs, attrs)
            if flow is not None:
                _accumulate(found, id(x), sum_to(flow, x.shape))


def _accumulate(found: dict[int, Any], key: int, cotangent: Any) -> None:
    before = found.get(key)
    found[key] = cotangent if before is None else add(before, cotangent)
