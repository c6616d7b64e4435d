"""Shapes as values, row-major positions, and functions of several tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core.dtypes import int32
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import UNKNOWN_RANK, Shape, as_shape, broadcast
from dualflow.core.tracebacks import op_entry
from dualflow.ops.arithmetic import floordiv, maximum, mod
from dualflow.ops.checks import required
from dualflow.ops.comparison import equal, less, logical_and, logical_or
from dualflow.ops.conversion import identity
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.joining import stack, unstack
from dualflow.ops.record import promote_together
from dualflow.ops.reduction import reduce_all, reduce_prod
from dualflow.ops.repetition import pad
from dualflow.ops.segments.rows import as_row_indices
from dualflow.ops.selection import where
from dualflow.ops.shapes import shape
from dualflow.ops.static import static_value, tensor_list

if TYPE_CHECKING:
    from dualflow.core.argument_types import AxisLike, DTypeLike, TensorLike
    from dualflow.ops.tensor import Tensor


@op_entry
def broadcast_static_shape(shape_x: TensorLike, shape_y: TensorLike) -> Shape:
    """The shape to which tensors of two shapes broadcast.

    Args:
        shape_x: a shape; sizes may be None.
        shape_y: likewise.

    Returns:
        A :class:`dualflow.TensorShape`, of unknown rank if the rank of one is.

    Raises:
        InvalidArgumentError: the shapes do not broadcast.

    >>> import dualflow as df
    >>> df.broadcast_static_shape([2, 1], [3])
    (2, 3)
    """
    shapes = [as_shape(shape_x), as_shape(shape_y)]
    return UNKNOWN_RANK if UNKNOWN_RANK in shapes else broadcast(shapes)


@op_entry
def broadcast_dynamic_shape(shape_x: TensorLike, shape_y: TensorLike) -> Tensor:
    """The shape to which two shapes, which are tensors of integers, broadcast.

    Args:
        shape_x: a vector of integers.
        shape_y: likewise.

    Returns:
        A tensor of one axis with the common dtype.

    Raises:
        InvalidArgumentError: the shapes do not broadcast, or are not vectors.
        DTypeError: the shapes don't hold integers.

    >>> import dualflow as df
    >>> df.broadcast_dynamic_shape([2, 1], df.constant([3])).numpy()
    array([2, 3], dtype=int32)
    """
    x, y = promote_together(
        as_row_indices(shape_x, "the sizes of a shape"), as_row_indices(shape_y, "the sizes of a shape")
    )
    if len(x.shape) != 1 or len(y.shape) != 1 or None in (*x.shape, *y.shape):
        raise InvalidArgumentError(
            f"a shape is a vector of known size, not of shape {x.shape} and {y.shape}."
        )
    first, second = static_value(x), static_value(y)
    if first is not None and second is not None:
        result_shape = broadcast([Shape(first.tolist()), Shape(second.tolist())])
        return convert_to_tensor(np.array(result_shape, first.dtype))
    counts = [size for s in (x, y) for size in s.shape if size is not None]
    rank = max(counts)
    x, y = (pad(s, [[rank - n, 0]], constant_values=1) for s, n in zip((x, y), counts, strict=True))
    fit = reduce_all(logical_or(equal(x, y), logical_or(equal(x, 1), equal(y, 1))))
    return required(where(equal(x, 1), y, x), fit, "shapes do not broadcast: sizes must be equal or 1.")


def shape_n(input: Sequence[Any], out_type: DTypeLike = int32, name: str | None = None) -> list[Tensor]:
    """The shape of each of several tensors, as tensors of one axis.

    Args:
        input: a list of tensors.
        out_type: an integer dtype; int32 by default.

    Returns:
        A list of tensors of dtype ``out_type``.

    Raises:
        DTypeError: ``input`` is not a list of tensors.

    >>> import dualflow as df
    >>> [s.numpy().tolist() for s in df.shape_n([[1, 2], [[3]]])]
    [[2], [1, 1]]
    """
    return [shape(x, out_type) for x in tensor_list(input, "input")]


def identity_n(input: Sequence[Any], name: str | None = None) -> list[Tensor]:
    """A copy of each of several tensors.

    Args:
        input: a list of tensors.

    Returns:
        A list of tensors with the same shapes and dtypes.

    Raises:
        DTypeError: ``input`` is not a list of tensors.

    >>> import dualflow as df
    >>> [x.numpy().tolist() for x in df.identity_n([1, [2.0, 3.0]])]
    [1, [2.0, 3.0]]
    """
    return [identity(x) for x in tensor_list(input, "input")]


def unravel_index(indices: TensorLike, dims: AxisLike, name: str | None = None) -> Tensor:
    """Row-major (flat) indices as indices along each axis of a shape.

    Args:
        indices: integers, a scalar or a vector.
        dims: the sizes of the shape.

    Returns:
        A row for each axis: of shape ``[len(dims), *indices.shape]``.

    Raises:
        InvalidArgumentError: an index that the shape does not have, or shapes that do not fit.
        DTypeError: an argument is not of integers.

    >>> import dualflow as df
    >>> df.unravel_index([22, 41, 37], [7, 6]).numpy().tolist()
    [[3, 6, 6], [4, 5, 1]]
    """
    at, sizes = promote_together(as_row_indices(indices, "indices"), as_row_indices(dims, "dims"))
    if len(at.shape) > 1 or len(sizes.shape) != 1 or not sizes.shape[0]:
        raise InvalidArgumentError(
            f"unravel_index takes a scalar or a vector and the sizes of a shape, not shapes {at.shape} and "
            f"{sizes.shape}."
        )
    inside = reduce_all(logical_and(at >= 0, less(at, reduce_prod(sizes))))
    quotient = required(at, inside, "indices are 0 or more, and below the product of dims.")
    rows: list[Any] = []
    for size in reversed(unstack(sizes)):
        rows.append(mod(quotient, maximum(size, 1)))
        quotient = floordiv(quotient, maximum(size, 1))
    return stack(rows[::-1], 0)
