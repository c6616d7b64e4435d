"""Slices of the batch of linear operators: the same slices of the arguments that they were built from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dualflow.core.dispatch import TENSORS
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import Shape
from dualflow.linear_operators.linear_operator_base import LinearOperatorBase
from dualflow.ops.creation import convert_to_tensor


def sliced(operator: Any, key: Any) -> Any:
    """The operator of a part of the batch.

    Args:
        operator: the operator.
        key: an index of its batch, as of a tensor of the shape of the batch.

    Raises:
        InvalidArgumentError: the key has too many entries or two ellipses; or the operator does not state
            which axes of its arguments belong to the batch.
    """
    axes_of = operator._experimental_parameter_ndims_to_matrix_ndims
    if not axes_of:
        raise InvalidArgumentError(
            f"{operator.name} has no slices: its class does not state which axes of its arguments belong to "
            "the batch, in _experimental_parameter_ndims_to_matrix_ndims."
        )
    keys = _entries(key, operator.batch_shape)
    changed = {}
    for name, axes in axes_of.items():
        value = getattr(operator, name)
        if value is not None:
            changed[name] = _sliced_parts(value, axes, keys, operator.batch_shape)
    return type(operator)(**(operator.parameters | changed))


def _sliced_parts(value: Any, axes: Any, keys: Sequence[Any], batch: Shape) -> Any:
    if isinstance(axes, list | tuple):
        return [_sliced_parts(part, count, keys, batch) for part, count in zip(value, axes, strict=True)]
    if isinstance(value, LinearOperatorBase):
        own = _own_keys(keys, value.batch_shape, batch)
        return value[tuple(own)] if own else value  # type: ignore[index]  # a LinearOperator
    tensor: Any = value if isinstance(value, TENSORS) else convert_to_tensor(value)
    own = _own_keys(keys, tensor.shape[: len(tensor.shape) - axes], batch)
    return tensor[(*own, *[slice(None)] * axes)] if own else tensor


def _entries(key: Any, batch: Shape) -> list[Any]:
    """The entries of an index: one for each axis of the batch, and None for each new axis."""
    entries = list(key) if isinstance(key, tuple) else [key]
    used = sum(entry is not None and entry is not Ellipsis for entry in entries)
    ellipses = [i for i, entry in enumerate(entries) if entry is Ellipsis]
    if len(ellipses) > 1 or used > len(batch):
        raise InvalidArgumentError(
            f"A batch of shape {batch} has no part {key!r}: give at most one index for each axis, and one "
            "'...'."
        )
    at = ellipses[0] if ellipses else len(entries)
    return [*entries[:at], *[slice(None)] * (len(batch) - used), *entries[at + 1 :]]


def _own_keys(keys: Sequence[Any], own: Shape, batch: Shape) -> list[Any]:
    """The entries of an index for one part, whose batch shape ``own`` broadcasts to ``batch``.

    The part lacks the first axes, or has size 1 where the whole batch has more.
    """
    missing = len(batch) - len(own)
    result: list[Any] = []
    axis = 0
    for key in keys:
        if key is None:
            if axis >= missing:
                result.append(None)
            continue
        if axis >= missing:
            repeats = own[axis - missing] == 1 and batch[axis] != 1
            result.append(_broadcast_axis_key(key) if repeats else key)
        axis += 1
    return result


def _broadcast_axis_key(key: Any) -> Any:
    """The entry for an axis of size 1 that broadcasting repeats."""
    return slice(None) if isinstance(key, slice) else 0
