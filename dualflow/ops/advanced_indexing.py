"""Advanced indexing: ``x[...]`` with arrays of integers or bools among the indices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dispatch import AbstractComposite, AbstractTensor, AbstractVariable
from dualflow.core.dtypes import int64
from dualflow.core.errors import DTypeError, InvalidArgumentError, OutOfRangeError
from dualflow.core.shape import Dim, broadcast
from dualflow.ops.arithmetic import add
from dualflow.ops.arrangement import reshape, transpose
from dualflow.ops.broadcasting import broadcast_to
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.record import REGISTRY, holds_tensors
from dualflow.ops.selection import where
from dualflow.ops.static import dtype_of, shape_of, static_value
from dualflow.ops.taking import gather
from dualflow.ops.tensor_sizes import axis_size

_TENSORS: Final = (AbstractTensor, AbstractVariable)


def as_indices(item: Any) -> Any:
    """The integers or bools of an array, a tensor, a list or a tuple; None for other items.

    Raises:
        DTypeError: elements of other kinds.
    """
    indices: Any
    if isinstance(item, _TENSORS):
        indices = item
    elif isinstance(item, AbstractComposite):
        indices = item.__as_tensor__()
    elif isinstance(item, list | tuple):
        indices = convert_to_tensor(item) if holds_tensors(item) else _from_list(item)
    elif isinstance(item, range) or hasattr(item, "__array__"):
        indices = np.asarray(item)
    else:
        return None
    dtype = dtype_of(indices)
    if not (dtype.is_integer or dtype.is_bool):
        raise DTypeError(
            f"An index is made of integers or bools, not of {dtype.name} as this one of shape "
            f"{shape_of(indices)}; convert it with df.cast."
        )
    return indices


def _from_list(item: Sequence[Any]) -> Any:
    try:
        indices = np.asarray(item)
    except ValueError:
        raise InvalidArgumentError(
            f"Rows of different lengths can't be one index: {item!r}; give as many in each."
        ) from None
    return indices if indices.size else indices.astype(np.int64)


def mask_indices(mask: Any, sizes: Sequence[Dim]) -> list[Any]:
    """The positions where a mask is true: an array of indices for each of its axes.

    Raises:
        DTypeError: the mask is symbolic.
        InvalidArgumentError: the mask does not have the sizes of the axes that it indexes.
    """
    array = static_value(mask)
    if array is None:
        raise DTypeError(
            "A mask among other indices must be known while tracing; use df.boolean_mask first, then "
            "index the result."
        )
    if array.shape != tuple(sizes[: array.ndim]):
        raise InvalidArgumentError(
            f"A mask of shape {array.shape} does not fit axes of sizes {tuple(sizes[: array.ndim])}; they "
            "must be known and equal."
        )
    return list(np.nonzero(array))


def pick(x: Any, indices: Sequence[tuple[int, Any]], front: int) -> Any:
    """The elements of ``x`` at integers along some axes, which broadcast to the axes of the result.

    Args:
        x: a tensor.
        indices: pairs of an axis, in ascending order, and its integers.
        front: where the axes of the integers go in the result.

    Raises:
        OutOfRangeError: an integer is outside its axis.
        InvalidArgumentError: the integers do not broadcast together.
    """
    axes = [axis for axis, _ in indices]
    positive = [_inside(index, x, axis) for axis, index in indices]
    rank = len(broadcast([shape_of(index) for index in positive]))
    if len(axes) == 1:
        elements, at = gather(x, positive[0], axis=axes[0]), axes[0]
    else:
        elements, at = _pick_points(x, axes, positive), 0
    if at == front:
        return elements
    order = [a for a in range(len(elements.shape)) if not at <= a < at + rank]
    return transpose(elements, [*order[:front], *range(at, at + rank), *order[front:]])


def _pick_points(x: Any, axes: list[int], positions: list[Any]) -> Any:
    """The elements, the axes of the integers first; by gather, which is compiled, for known integers."""
    others = [a for a in range(len(x.shape)) if a not in axes]
    ordered = transpose(x, [*axes, *others])
    sizes, other_sizes = ordered.shape[: len(axes)], ordered.shape[len(axes) :]
    if all(isinstance(index, np.ndarray) for index in positions) and None not in sizes:
        merged = reshape(ordered, [math.prod(sizes), *other_sizes])
        if not math.prod(sizes):  # nothing can be picked, and no index is right
            flat = np.zeros(np.broadcast_shapes(*(index.shape for index in positions)), np.int64)
        else:
            flat = np.ravel_multi_index(np.broadcast_arrays(*positions), sizes)
        return gather(merged, flat, axis=0)
    common = broadcast([shape_of(index) for index in positions])
    whole = tuple(broadcast_to(index, common) for index in positions)
    points = dispatch.current().apply(REGISTRY["stack"], whole, {"axis": len(common)})
    return dispatch.current().apply(REGISTRY["gather_nd"], (ordered, points), {})


def _inside(index: Any, x: Any, axis: int) -> Any:
    """Indices of ``axis`` without negative ones; a checked array if they are known while tracing."""
    size = x.shape[axis]
    values = static_value(index)
    if values is None or size is None:
        index = cast(index, int64)
        return where(index < 0, add(index, axis_size(x, axis, int64)), index)
    values = values.astype(np.int64)
    outside = values[(values < -size) | (values >= size)]
    if outside.size:
        raise OutOfRangeError(
            f"index {outside.flat[0]} is out of range for axis {axis} of shape {x.shape}, which has size "
            f"{size}; use {-size} to {size - 1}."
        )
    return np.where(values < 0, values + size, values)
