"""``x[key]`` and ``x[key] = value`` for arrays: assignment computes a new tensor."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from dualflow.core.dispatch import AbstractComposite, AbstractTensor
from dualflow.core.dtypes import DType, int64
from dualflow.core.errors import DTypeError, InvalidArgumentError, OutOfRangeError
from dualflow.core.shape import Shape
from dualflow.ops.arrangement import expand_dims, reshape
from dualflow.ops.broadcasting import broadcast_like
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.indexing import getitem, replace
from dualflow.ops.positions import iota
from dualflow.ops.scattering import tensor_scatter_nd_update
from dualflow.ops.selection import where
from dualflow.ops.static import static_value
from dualflow.ops.tensor import Tensor

_PLAIN: Final = (int, slice, type(None), type(Ellipsis))
_KINDS: Final = "buifc"
_MIN_KIND: Final[dict[type, str]] = {bool: "b", int: "u", float: "f", complex: "c"}


def read_item(x: Tensor, key: Any) -> Tensor:
    """``x[key]``, where ``key`` may hold arrays.

    Raises:
        OutOfRangeError: an index is outside its axis, or a mask has other sizes than its axes.
    """
    tensor_key = _key_of_tensors(key)
    if not _is_mask(tensor_key):
        return getitem(x, tensor_key)
    _check_mask(tensor_key, x)
    if 0 not in tensor_key.shape:
        return getitem(x, tensor_key)
    # the standard lets an axis of size 0 of a mask match any size; nothing is selected
    rank = len(tensor_key.shape)
    return reshape(getitem(x, (slice(0, 0),) * rank), [0, *x.shape[rank:]])


def assign_item(x: Tensor, key: Any, value: Any) -> Any:
    """A tensor like ``x``, but with ``value``, broadcast to the shape of ``x[key]``, at ``key``.

    Raises:
        OutOfRangeError: an index is outside its axis, or a mask has other sizes than its axes.
        InvalidArgumentError: ``value`` does not broadcast to ``x[key]``.
        DTypeError: ``value`` is of a kind of numbers that the array can't hold, or an index of no integers.
    """
    tensor_key = _key_of_tensors(key)
    converted = _in_array_dtype(value, x.dtype)
    if _is_mask(tensor_key):
        _check_mask(tensor_key, x)
        if len(converted.shape) <= len(x.shape) - len(tensor_key.shape):
            return _assign_where(x, tensor_key, converted)
    elif all(_is_plain(item) for item in (tensor_key if isinstance(tensor_key, tuple) else (tensor_key,))):
        return replace(x, tensor_key, converted)
    return _assign_at_positions(x, tensor_key, converted)


def _assign_where(x: Tensor, mask: Tensor, value: Tensor) -> Tensor:
    """``x`` with ``value``, which has none of the axes of ``mask``, where ``mask`` is true."""
    inner_shape = x.shape[len(mask.shape) :]
    _check_fits(value, inner_shape)
    if 0 in mask.shape:
        return x
    for _ in inner_shape:
        mask = expand_dims(mask, -1)
    return where(mask, value, x)


def _assign_at_positions(x: Tensor, key: Any, value: Tensor) -> Tensor:
    """``x`` with ``value`` at ``key``, which has arrays of integers or masks among its indices."""
    if not x.shape.is_static:
        raise DTypeError(
            f"Arrays of integers as indices assign to parts of arrays whose sizes are known, not {x.shape}; "
            "use where(), or df.tensor_scatter_nd_update."
        )
    count = math.prod(n for n in x.shape if n is not None)
    position = read_item(reshape(iota((count,), 0, int64), x.shape), key)
    _check_fits(value, position.shape)
    values = broadcast_like(value, position)
    flat = tensor_scatter_nd_update(reshape(x, [count]), reshape(position, [-1, 1]), reshape(values, [-1]))
    return reshape(flat, x.shape)


def _check_fits(value: Tensor, target: Shape) -> None:
    """Raise an error if ``value`` does not broadcast to ``target``, the shape of ``x[key]``."""
    rank = len(value.shape)
    fits = rank <= len(target) and all(
        v in (1, n) or None in (v, n) for v, n in zip(value.shape, target[len(target) - rank :], strict=True)
    )
    if not fits:
        raise InvalidArgumentError(
            f"A value of shape {value.shape} does not broadcast to the part's shape {target}; reshape it."
        )


def _key_of_tensors(key: Any) -> Any:
    """``key`` with tensors in place of arrays and masks."""
    if isinstance(key, tuple):
        return tuple(_key_of_tensors(item) for item in key)
    if isinstance(key, slice):
        return slice(*[_key_of_tensors(bound) for bound in (key.start, key.stop, key.step)])
    if isinstance(key, AbstractComposite):
        return key.__as_tensor__()
    return convert_to_tensor(key) if isinstance(key, bool | np.bool_ | np.ndarray | list) else key


def _is_mask(key: Any) -> bool:
    return isinstance(key, AbstractTensor) and key.dtype.is_bool


def _is_plain(item: Any) -> bool:
    """Whether an index is a static integer, a slice, ``...`` or None."""
    if isinstance(item, AbstractTensor):
        return not item.shape and item.dtype.is_integer and static_value(item) is not None
    return isinstance(item, (*_PLAIN, np.integer))


def _check_mask(mask: Any, x: Tensor) -> None:
    sizes = x.shape[: len(mask.shape)]
    fits = len(mask.shape) <= len(x.shape) and all(  # an axis of size 0 of a mask matches any size
        mask_size in (size, 0, None) or size is None
        for mask_size, size in zip(mask.shape, sizes, strict=True)
    )
    if not fits:
        raise OutOfRangeError(
            f"A mask of shape {mask.shape} does not fit an array of shape {x.shape}; its sizes must be those "
            "of the first axes."
        )


def _in_array_dtype(value: Any, dtype: DType) -> Tensor:
    """``value`` as a tensor of the dtype of the array that it is assigned to.

    Raises:
        DTypeError: ``value`` is of a higher kind, as a float is for integers.
    """
    number_kind = _MIN_KIND.get(type(value))
    if number_kind is None:
        x = value.__as_tensor__() if isinstance(value, AbstractComposite) else convert_to_tensor(value)
        kind = x.dtype.kind
    else:
        x, kind = value, number_kind
    if _KINDS.index(kind) > _KINDS.index(dtype.kind) and (kind, dtype.kind) != ("i", "u"):
        raise DTypeError(
            f"An array of {dtype.name} can't hold {value!r}, which is of a higher kind of numbers; convert "
            "one of them with astype."
        )
    return convert_to_tensor(x, dtype) if number_kind is not None else cast(x, dtype)
