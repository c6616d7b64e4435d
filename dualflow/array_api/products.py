"""Products of vectors and matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dualflow.array_api.array import Array, tensor_of
from dualflow.array_api.axes import axis_of
from dualflow.core.tracebacks import make_entries
from dualflow.numpy.docstrings import complete_docstrings
from dualflow.numpy.products import matrix_product, vector_product
from dualflow.ops import products

if TYPE_CHECKING:
    from dualflow.core.argument_types import AnyArray


def matmul(x1: AnyArray, x2: AnyArray, /) -> Array:
    """The matrix product; a vector ``x1`` counts as a row, a vector ``x2`` as a column.

    Returns:
        An array with the shape of the product, and the common dtype.

    Raises:
        InvalidArgumentError: an array without axes, or sizes that do not fit.
        DTypeError: bools.

    >>> import dualflow.array_api as xp
    >>> xp.matmul(xp.asarray([[1, 2], [3, 4]]), xp.asarray([1, 1])).tolist()
    [3, 7]
    """
    return Array(matrix_product(tensor_of(x1), tensor_of(x2)))


def matrix_transpose(x: AnyArray, /) -> Array:
    """The last two axes swapped.

    Returns:
        An array with the last two sizes of ``x`` exchanged, and its dtype.

    Raises:
        InvalidArgumentError: fewer than two axes.

    >>> import dualflow.array_api as xp
    >>> xp.matrix_transpose(xp.asarray([[1, 2], [3, 4]])).tolist()
    [[1, 3], [2, 4]]
    """
    return Array(tensor_of(x).mT)


def tensordot(x1: AnyArray, x2: AnyArray, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Array:
    """The sum of products over pairs of axes.

    Args:
        x1: numbers.
        x2: numbers.
        axes: how many last axes of ``x1`` meet the first ones of ``x2``, or two sequences of axes that meet.

    Returns:
        An array with the other axes of ``x1``, then those of ``x2``, and the common dtype.

    Raises:
        InvalidArgumentError: sizes that meet and differ.

    >>> import dualflow.array_api as xp
    >>> xp.tensordot(xp.asarray([1, 2, 3]), xp.asarray([4, 5, 6]), axes=1).tolist()
    32
    """
    pairs = axes if isinstance(axes, int) else tuple(tuple(side) for side in axes)
    return Array(products.tensordot(tensor_of(x1), tensor_of(x2), pairs))


def vecdot(x1: AnyArray, x2: AnyArray, /, *, axis: int = -1) -> Array:
    """The dot products of vectors along ``axis``: ``sum(conj(x1) * x2)``; the other axes broadcast.

    Args:
        axis: the axis, which is negative: it counts from the end.

    Returns:
        An array with the shape to which the inputs broadcast, without ``axis``, and the common dtype.

    Raises:
        InvalidArgumentError: sizes that differ along the axis, or do not broadcast.

    >>> import dualflow.array_api as xp
    >>> xp.vecdot(xp.asarray([1, 2, 3]), xp.asarray([4, 5, 6])).tolist()
    32
    """
    x, y = tensor_of(x1), tensor_of(x2)
    rank = min(len(x.shape), len(y.shape))
    return Array(vector_product(x, y, axis_of(axis, rank) - rank))


complete_docstrings(
    globals(),
    "is no array",
    x="an array of any shape.",
    x1="an array of one axis or more.",
    x2="an array of one axis or more.",
)
make_entries(globals())
