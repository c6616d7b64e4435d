"""Products of vectors and matrices, and their diagonals."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from dualflow.array_api.array import Array, tensor_of
from dualflow.array_api.axes import axis_of
from dualflow.array_api.products import matrix_product
from dualflow.array_api.statistical import summed_in
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.tracebacks import make_entries
from dualflow.ops import products
from dualflow.ops.arithmetic import multiply, subtract
from dualflow.ops.arrangement import expand_dims
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.complex_numbers import conj
from dualflow.ops.indexing import getitem
from dualflow.ops.joining import stack, unstack
from dualflow.ops.tensor import Tensor


def matmul(x1: Any, x2: Any, /) -> Array:
    """The matrix product; a vector ``x1`` counts as a row, a vector ``x2`` as a column.

    Raises:
        InvalidArgumentError: an array without axes, or sizes that do not fit.
        DTypeError: bools, or what is no array.

    >>> import dualflow.array_api as xp
    >>> xp.matmul(xp.asarray([[1, 2], [3, 4]]), xp.asarray([1, 1])).tolist()
    [3, 7]
    """
    return Array(matrix_product(tensor_of(x1), tensor_of(x2)))


def matrix_transpose(x: Any, /) -> Array:
    """The last two axes swapped.

    Raises:
        InvalidArgumentError: fewer than two axes.

    >>> import dualflow.array_api as xp
    >>> xp.matrix_transpose(xp.asarray([[1, 2], [3, 4]])).tolist()
    [[1, 3], [2, 4]]
    """
    return Array(tensor_of(x).mT)


def tensordot(x1: Any, x2: Any, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Array:
    """The sum of products over pairs of axes.

    Args:
        x1: numbers.
        x2: numbers.
        axes: how many last axes of ``x1`` meet the first ones of ``x2``, or two sequences of axes that meet.

    Returns:
        The other axes of ``x1``, then those of ``x2``.

    Raises:
        InvalidArgumentError: sizes that meet and differ.

    >>> import dualflow.array_api as xp
    >>> xp.tensordot(xp.asarray([1, 2, 3]), xp.asarray([4, 5, 6]), axes=1).tolist()
    32
    """
    x, y = tensor_of(x1), tensor_of(x2)
    pairs = axes if isinstance(axes, int) else tuple(tuple(side) for side in axes)
    return Array(products.tensordot(x, y, pairs))


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Array:
    """The sum of ``conj(x1) * x2`` along ``axis``, which counts from the end; the other axes broadcast.

    Raises:
        InvalidArgumentError: sizes that differ along the axis, or do not broadcast.
        OutOfRangeError: an axis that one of them doesn't have.

    >>> import dualflow.array_api as xp
    >>> xp.vecdot(xp.asarray([1, 2, 3]), xp.asarray([4, 5, 6])).tolist()
    32
    """
    x, y = tensor_of(x1), tensor_of(x2)
    from_end = axis_of(axis, min(len(x.shape), len(y.shape))) - min(len(x.shape), len(y.shape))
    if x.shape[from_end] != y.shape[from_end]:
        raise InvalidArgumentError(
            f"vecdot adds up along an axis of one size, not {x.shape[from_end]} and {y.shape[from_end]}."
        )
    product = multiply(conj(x), y)
    return Array(reduce_sum(product, len(product.shape) + from_end))


def outer(x1: Any, x2: Any, /) -> Array:
    """The products of each element of a vector with each of another.

    Raises:
        InvalidArgumentError: arrays of other than one axis.

    >>> import dualflow.array_api as xp
    >>> xp.linalg.outer(xp.asarray([1, 2]), xp.asarray([3, 4])).tolist()
    [[3, 4], [6, 8]]
    """
    x, y = tensor_of(x1), tensor_of(x2)
    if len(x.shape) != 1 or len(y.shape) != 1:
        raise InvalidArgumentError(f"outer takes two vectors, not arrays of shapes {x.shape} and {y.shape}.")
    return Array(multiply(expand_dims(x, 1), expand_dims(y, 0)))


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Array:
    """The cross product of vectors of three elements along ``axis``; the other axes broadcast.

    Raises:
        InvalidArgumentError: another number of elements, or sizes that do not broadcast.
        OutOfRangeError: an axis that one of them doesn't have.

    >>> import dualflow.array_api as xp
    >>> xp.linalg.cross(xp.asarray([1, 0, 0]), xp.asarray([0, 1, 0])).tolist()
    [0, 0, 1]
    """
    x, y = tensor_of(x1), tensor_of(x2)
    rank = min(len(x.shape), len(y.shape))
    from_end = axis_of(axis, rank) - rank
    if x.shape[from_end] != 3 or y.shape[from_end] != 3:
        raise InvalidArgumentError(
            f"cross takes vectors of 3 elements, not of {x.shape[from_end]} and {y.shape[from_end]}."
        )
    a, b = (unstack(z, axis=len(z.shape) + from_end) for z in (x, y))
    found = [subtract(multiply(a[i], b[j]), multiply(a[j], b[i])) for i, j in ((1, 2), (2, 0), (0, 1))]
    return Array(stack(found, axis=len(found[0].shape) + 1 + from_end))


def diagonal(x: Any, /, *, offset: int = 0) -> Array:
    """The diagonals of matrices.

    Args:
        x: an array of two axes or more.
        offset: which diagonal: 0 for the main one, above it positive.

    Raises:
        InvalidArgumentError: fewer than two axes, or sizes that are not known.

    >>> import dualflow.array_api as xp
    >>> xp.linalg.diagonal(xp.asarray([[1, 2], [3, 4]])).tolist()
    [1, 4]
    """
    return Array(_diagonal(tensor_of(x), operator.index(offset)))


def _diagonal(x: Tensor, offset: int) -> Any:
    if len(x.shape) < 2 or None in x.shape[-2:]:
        raise InvalidArgumentError(
            f"A diagonal is of matrices whose sizes are known, not of shape {x.shape}."
        )
    rows, columns = (n or 0 for n in x.shape[-2:])
    count = max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
    first = np.arange(count)
    return getitem(x, (..., first + max(-offset, 0), first + max(offset, 0)))


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Array:
    """The sums of the diagonals of matrices.

    Args:
        x: numbers of two axes or more.
        offset: which diagonal: 0 for the main one, above it positive.
        dtype: of the result: by default that of ``x``, for integers int64 or uint64.

    Raises:
        InvalidArgumentError: fewer than two axes, or sizes that are not known.

    >>> import dualflow.array_api as xp
    >>> xp.linalg.trace(xp.asarray([[1, 2], [3, 4]])).tolist()
    5
    """
    return Array(reduce_sum(_diagonal(summed_in(x, dtype), operator.index(offset)), -1))


make_entries(globals())
