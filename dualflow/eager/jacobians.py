"""Jacobians: gradients of all elements of a target, batched or one after another."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.errors import InvalidArgumentError
from dualflow.eager import recording
from dualflow.eager.recording import Tape
from dualflow.gradient.vmap_slot import VMAP
from dualflow.ops.creation import convert_to_tensor, zeros_like
from dualflow.ops.joining import stack

_MAX_SWEEPS: Final = 8
"""The maximum number of backward passes that a Jacobian takes one by one; more are batched in a trace."""


def gradient_columns(
    tape: Tape, target: Any, shape: Any, sources: Sequence[Any], *, at_once: bool
) -> Sequence[Any]:
    """The Jacobian of ``target`` for each source: gradients of its elements, stacked along the first axis.

    ``shape`` is the shape of a row of ``target``. None for a source that ``target`` doesn't depend on.
    """
    units = _units(target, shape)

    def swept(unit: Any) -> list[Any]:
        return recording.gradients(tape, [target], [unit], sources, keep=True)

    if at_once and len(units) > _MAX_SWEEPS:
        batched = VMAP.value(swept, convert_to_tensor(units))
        if batched is not None:
            return batched
    engine = dispatch.current()
    rows = [swept(engine.constant(units[i, ...])) for i in range(len(units))]  # arrays, even of a scalar
    columns = zip(*rows, strict=True) if rows else [(None,)] * len(sources)
    return [_stacked(column, source) for column, source in zip(columns, sources, strict=True)]


def _units(target: Any, shape: Any) -> Any:
    """The unit cotangents, one for each element of a row of ``target``, stacked."""
    if not target.shape.is_static:
        raise InvalidArgumentError(
            f"A jacobian needs a target of static shape, not {target.shape}; give static shapes."
        )
    count = math.prod(shape)
    lead = target.shape[: len(target.shape) - len(shape)]
    identity = np.eye(count, dtype=target.dtype.dtype).reshape(count, *(1,) * len(lead), *shape)
    return np.ascontiguousarray(np.broadcast_to(identity, (count, *target.shape)))


def _stacked(column: Sequence[Any], source: Any) -> Any:
    if all(g is None for g in column):
        return None
    return stack([zeros_like(source) if g is None else g for g in column])
