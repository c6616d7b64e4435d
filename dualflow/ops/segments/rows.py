"""Sums of rows by integer indices; the number of rows of the result may be a tensor."""

from __future__ import annotations

from typing import Any

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dtypes import DType, int32, int64
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import Shape
from dualflow.ops.arithmetic import maximum, minimum
from dualflow.ops.broadcasting import broadcast_like
from dualflow.ops.checks import required_size
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor, fill
from dualflow.ops.joining import unstack
from dualflow.ops.reduction import reduce_max
from dualflow.ops.scattering import scatter_nd, tensor_scatter_nd_add
from dualflow.ops.static import static_value
from dualflow.ops.tensor_sizes import sizes_of

Count = Any
"""A number: a Python int, or a scalar tensor whose value is known at run time only."""


def as_count(x: Any, what: str) -> Count:
    """``x`` as a number of rows or columns, checked not to be negative; ``what`` names it in errors.

    Raises:
        DTypeError: the value is not an integer.
        InvalidArgumentError: not one number, or a negative one.
    """
    if type(x) is not int:
        tensor = convert_to_tensor(x)
        if not tensor.dtype.is_integer:
            raise DTypeError(f"{what} is an integer, not {tensor.dtype.name}; cast it with df.cast.")
        if len(tensor.shape):
            raise InvalidArgumentError(f"{what} is one number, not a tensor of shape {tensor.shape}.")
        value = static_value(tensor)
        if value is None:
            return required_size(tensor, f"{what} is 0 or more.")
        x = int(value)
    if x < 0:
        raise InvalidArgumentError(f"{what} is 0 or more, not {x}.")
    return x


def count_up_to(indices: Any) -> Count:
    """The number of rows that indices refer to: one more than the largest, 0 for none.

    It has the dtype of symbolic indices, whose largest value it is for that value, too.
    """
    static = static_value(indices)
    if static is not None:
        return int(static.max(initial=-1)) + 1
    return maximum(minimum(reduce_max(indices), indices.dtype.max - 1) + 1, 0)


def filled_rows(count: Count, like: Any, axes: int, value: Any) -> Any:
    """``count`` rows of ``value``, each with the shape of ``like`` after its first ``axes`` axes."""
    row = like.shape[axes:]
    sizes: Any = row if row.is_static else unstack(sizes_of(like)[axes:], len(row))
    return fill([count, *sizes], dispatch.current().constant(np.array(value, like.dtype.dtype)))


def summed_rows(indices: Any, rows: Any, count: Count, axes: int) -> Any:
    """``count`` rows: the sums of ``rows``, which have ``axes`` leading axes, by ``indices``."""
    row = rows.shape[axes:]
    if type(count) is int and row.is_static:
        return scatter_nd(indices, rows, [count, *row])
    return tensor_scatter_nd_add(filled_rows(count, rows, axes, 0), indices, rows)


def counted_rows(indices: Any, count: Count, dtype: DType = int32) -> Any:
    """How often each of ``count`` rows occurs in ``indices``, whose last axis has size 1."""
    ones = ones_for_indices(indices, dtype)
    return summed_rows(indices, ones, count, len(ones.shape))


def ones_for_indices(indices: Any, dtype: DType) -> Any:
    """A tensor of ones with the shape of ``indices`` without its last axis."""
    shape = indices.shape[:-1]
    one = dispatch.current().constant(np.array(1, dtype.dtype))
    return fill(shape, one) if shape.is_static else broadcast_like(one, indices[..., 0])


def as_row_indices(x: Any, what: str) -> Any:
    """Row indices as signed integers of at least 32 bits; an empty list has int32, too.

    Raises:
        DTypeError: an input does not hold integers.
    """
    indices = convert_to_tensor(x, int32 if isinstance(x, list | tuple) and not x else None)
    if not indices.dtype.is_integer:
        raise DTypeError(f"{what} are integers, not {indices.dtype.name}; cast them with df.cast.")
    return indices if indices.dtype in (int32, int64) else cast(indices, int64)


def check_leading(data: Any, shape: Shape, what: str) -> None:
    """Raises unless the shape of ``data`` starts with that of the integers that ``what`` names."""
    leading = data.shape[: len(shape)]
    if len(leading) < len(shape) or any(
        a != b for a, b in zip(leading, shape, strict=True) if a is not None and b is not None
    ):
        raise InvalidArgumentError(
            f"data of shape {data.shape} does not start with the shape of the {what}, {shape}: one integer "
            "is the index of each row's group."
        )
