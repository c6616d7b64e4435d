"""Diagonals and triangles of matrices."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core.dtypes import int64
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import normalize_axis
from dualflow.core.tracebacks import make_entries
from dualflow.numpy import operands
from dualflow.numpy.docstrings import complete_docstrings
from dualflow.numpy.operands import flat, reject_unsupported, tensor
from dualflow.numpy.reductions import sum
from dualflow.ops.arithmetic import maximum, minimum
from dualflow.ops.arrangement import reshape, transpose
from dualflow.ops.broadcasting import broadcast_to
from dualflow.ops.creation import convert_to_tensor, zeros_like
from dualflow.ops.linear_algebra import diagonals
from dualflow.ops.positions import range as range_op
from dualflow.ops.selection import where as where_op
from dualflow.ops.static import static_int
from dualflow.ops.taking import gather
from dualflow.ops.tensor import Tensor

if TYPE_CHECKING:
    from dualflow.core.argument_types import DTypeLike, TensorLike


def diagonal(a: TensorLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """The diagonals of the matrices of two axes, along the last axis.

    Args:
        a: numbers of two axes or more.
        offset: the diagonal: 0 is the main one, positive ones are above it.
        axis1: the axis of the rows.
        axis2: the axis of the columns.

    Returns:
        A tensor with the other axes of ``a``, then one for the diagonal, and the dtype of ``a``.

    Raises:
        InvalidArgumentError: ``a`` has fewer than two axes, or ``axis1`` and ``axis2`` are one axis or out of
            range.

    >>> import dualflow as df
    >>> df.numpy.diagonal([[1, 2], [3, 4]], offset=1).numpy()
    array([2])
    """
    x = tensor(a)
    rank = len(x.shape)
    if rank < 2:
        raise InvalidArgumentError(
            f"diagonal takes a tensor of two axes or more, not of shape {x.shape}; reshape it."
        )
    i, j = normalize_axis(axis1, rank), normalize_axis(axis2, rank)
    if i == j:
        raise InvalidArgumentError(f"The axes of diagonal must differ, but both are axis {i}.")
    other_axes = [axis for axis in range(rank) if axis not in (i, j)]
    x = transpose(x, [*other_axes, i, j])
    *batch, rows, columns = operands.sizes(x)
    flattened = reshape(x, [*batch, rows * columns])
    start = offset if offset >= 0 else -offset * columns
    height, width = (rows, columns - offset) if offset >= 0 else (rows + offset, columns)
    if type(rows) is type(columns) is int:
        count = builtins.max(0, builtins.min(height, width))
        return flattened[..., start : start + count * (columns + 1) : columns + 1][..., :count]
    positions = range_op(0, maximum(minimum(height, width), 0), dtype=int64)
    return gather(flattened, start + positions * (columns + 1), axis=-1)


def diag(v: TensorLike, k: int = 0) -> Tensor:
    """A matrix with a vector on its diagonal ``k`` and zeros elsewhere; of a matrix, its diagonal ``k``.

    Args:
        v: a vector or a matrix.
        k: the diagonal: 0 is the main one, positive ones are above it.

    Returns:
        A matrix or a vector of the dtype of ``v``.

    Raises:
        InvalidArgumentError: ``v`` is neither a vector nor a matrix.
        DTypeError: ``v`` can't become a tensor.

    >>> import dualflow as df
    >>> df.numpy.diag([1, 2]).numpy().tolist(), df.numpy.diag([[1, 2], [3, 4]]).numpy().tolist()
    ([[1, 0], [0, 2]], [1, 4])
    """
    x = tensor(v)
    if len(x.shape) == 2:
        return diagonal(x, k)
    if len(x.shape) != 1:
        raise InvalidArgumentError(f"diag takes a vector or a matrix, not shape {x.shape}.")
    return diagonals.diag(x, k=static_int(k, "k"))


def diagflat(v: TensorLike, k: int = 0) -> Tensor:
    """A matrix with the elements of ``v``, flattened, on its diagonal ``k`` and zeros elsewhere.

    Args:
        v: numbers of any shape.
        k: the diagonal: 0 is the main one, positive ones are above it.

    Returns:
        A square matrix of the dtype of ``v``.

    Raises:
        DTypeError: ``v`` can't become a tensor.

    >>> import dualflow as df
    >>> df.numpy.diagflat([[1], [2]]).numpy().tolist()
    [[1, 0], [0, 2]]
    """
    return diag(flat(tensor(v)), k)


def _triangle(m: Any, keep: Callable[[Any, Any], Any]) -> Tensor:
    """``m`` with 0 where ``keep`` is false of an element's row and column."""
    x = tensor(m)
    if not x.shape:
        raise InvalidArgumentError("tril and triu take a tensor of one axis or more, not a number.")
    if len(x.shape) == 1:
        x = broadcast_to(x, [x.shape[0], x.shape[0]])
    rows, columns = operands.sizes(x)[-2:]
    return where_op(keep(_indices(rows)[:, None], _indices(columns)), x, zeros_like(x))


def _indices(size: Any) -> Any:
    """The integers from 0 below ``size``, an int or a scalar tensor."""
    return convert_to_tensor(np.arange(size)) if isinstance(size, int) else range_op(0, size, 1, size.dtype)


def tril(m: TensorLike, k: int = 0) -> Tensor:
    """Matrices with the elements above the diagonal ``k`` set to 0; a vector is repeated as the rows.

    Args:
        m: numbers of one axis or more.
        k: the diagonal: 0 is the main one, positive ones are above it.

    Returns:
        A tensor with the shape and dtype of ``m``.

    Raises:
        InvalidArgumentError: ``m`` has no axes.

    >>> import dualflow as df
    >>> df.numpy.tril([[1, 2], [3, 4]]).numpy().tolist()
    [[1, 0], [3, 4]]
    """
    return _triangle(m, lambda row, column: column - row <= k)


def triu(m: TensorLike, k: int = 0) -> Tensor:
    """Matrices with the elements below the diagonal ``k`` set to 0; a vector is repeated as the rows.

    Args:
        m: numbers of one axis or more.
        k: the diagonal: 0 is the main one, positive ones are above it.

    Returns:
        A tensor with the shape and dtype of ``m``.

    Raises:
        InvalidArgumentError: ``m`` has no axes.

    >>> import dualflow as df
    >>> df.numpy.triu([[1, 2], [3, 4]]).numpy().tolist()
    [[1, 2], [0, 4]]
    """
    return _triangle(m, lambda row, column: column - row >= k)


def trace(
    a: TensorLike,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: DTypeLike | None = None,
    out: None = None,
) -> Tensor:
    """The sums of the diagonals of the matrices of two axes.

    Args:
        a: numbers of two axes or more.
        offset: the diagonal: 0 is the main one, positive ones are above it.
        axis1: the axis of the rows.
        axis2: the axis of the columns.
        dtype: the dtype to add in; by default that of ``a``, 64 bits for integers.

    Returns:
        A tensor with the other axes of ``a``, in ``dtype``.

    Raises:
        InvalidArgumentError: ``a`` has fewer than two axes, or ``axis1`` and ``axis2`` are one axis or out of
            range.

    >>> import dualflow as df
    >>> int(df.numpy.trace([[1, 2], [3, 4]]))
    5
    """
    reject_unsupported("trace", out=out)
    return sum(diagonal(a, offset, axis1, axis2), -1, dtype)


complete_docstrings(globals())
make_entries(globals())
