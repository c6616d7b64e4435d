"""The standard's indexing, searching and sorting functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dualflow.array_api.array import Array, operands, tensor_of
from dualflow.array_api.axes import axes_of, axis_of, only_axis
from dualflow.array_api.data_types import promote_all
from dualflow.core.dtypes import int64
from dualflow.core.tracebacks import make_entries
from dualflow.numpy import indexing
from dualflow.numpy import sorting as ordering
from dualflow.numpy.axis_reductions import position
from dualflow.numpy.docstrings import complete_docstrings
from dualflow.ops import sorting, statistics
from dualflow.ops.conversion import cast
from dualflow.ops.selection import where as where_op

if TYPE_CHECKING:
    from dualflow.core.argument_types import AnyArray, AxisLike

# Picking


def take(x: AnyArray, indices: AnyArray, /, *, axis: int | None = None) -> Array:
    """The slices of ``x`` along ``axis`` at ``indices``.

    Args:
        x: an array of one axis or more.
        indices: integers of one axis; negative ones count from the end.
        axis: where to pick; an array of one axis needs none.

    Returns:
        An array with the shape of ``x``, but the size of ``indices`` along ``axis``, and its dtype.

    Raises:
        OutOfRangeError: a position is outside the axis.
        InvalidArgumentError: no axis is named, and ``x`` has several.

    >>> import dualflow.array_api as xp
    >>> xp.take(xp.asarray([10, 20, 30]), xp.asarray([2, 0])).tolist()
    [30, 10]
    """
    tensor = tensor_of(x)
    return Array(indexing.take(tensor, tensor_of(indices), only_axis(axis, len(tensor.shape), "take")))


def take_along_axis(x: AnyArray, indices: AnyArray, /, *, axis: int = -1) -> Array:
    """The elements at the indices of each row along ``axis``, such as :func:`argsort` returns them.

    Args:
        x: an array.
        indices: integers, as many axes as ``x`` has; the sizes of the others broadcast with those of ``x``.
            Negative ones count from the end.
        axis: along which the rows run.

    Returns:
        An array with the shape to which ``x`` and ``indices`` broadcast, but that of ``indices`` along
        ``axis``.

    Raises:
        OutOfRangeError: a position is outside the axis.
        InvalidArgumentError: the ranks differ, or sizes don't broadcast.

    >>> import dualflow.array_api as xp
    >>> xp.take_along_axis(xp.asarray([[3, 1, 2]]), xp.asarray([[1, 2, 0]])).tolist()
    [[1, 2, 3]]
    """
    tensor = tensor_of(x)
    along = axis_of(axis, len(tensor.shape))
    return Array(indexing.take_along_axis(tensor, tensor_of(indices), along))


# Searching


def argmax(x: AnyArray, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """The index of the largest element along ``axis``, the first of several; nan counts as the largest.

    Args:
        axis: the axis; by default ``x`` is flattened.

    Returns:
        An int64 array with the shape of ``x`` without ``axis``.

    Raises:
        InvalidArgumentError: there are no elements.

    >>> import dualflow.array_api as xp
    >>> xp.argmax(xp.asarray([1, 9, 9])).tolist()
    1
    """
    return _position(x, axis, keepdims, largest=True)


def argmin(x: AnyArray, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """The index of the smallest element along ``axis``, the first of several; nan counts as the smallest.

    Args:
        axis: the axis; by default ``x`` is flattened.

    Returns:
        An int64 array with the shape of ``x`` without ``axis``.

    Raises:
        InvalidArgumentError: there are no elements.

    >>> import dualflow.array_api as xp
    >>> xp.argmin(xp.asarray([4, 1, 1])).tolist()
    1
    """
    return _position(x, axis, keepdims, largest=False)


def _position(x: Any, axis: int | None, keepdims: bool, *, largest: bool) -> Array:
    tensor = tensor_of(x)
    along = None if axis is None else axis_of(axis, len(tensor.shape))
    return Array(position(tensor, along, keepdims, largest=largest))


def count_nonzero(x: AnyArray, /, *, axis: AxisLike | None = None, keepdims: bool = False) -> Array:
    """The number of elements over ``axis`` that are not 0.

    Args:
        axis: the axes to reduce, an integer or a tuple; all by default.

    Returns:
        An int64 array with the shape of ``x`` without the reduced axes.

    >>> import dualflow.array_api as xp
    >>> xp.count_nonzero(xp.asarray([0, 3, 5])).tolist()
    2
    """
    tensor = tensor_of(x)
    return Array(statistics.count_nonzero(tensor, axes_of(axis, len(tensor.shape)), keepdims))


def nonzero(x: AnyArray, /) -> tuple[Array, ...]:
    """The indices of the elements that are not 0, a vector for each axis.

    Args:
        x: an array of one axis or more.

    Returns:
        A tuple of int64 vectors, one for each axis; their size depends on the elements.

    Raises:
        InvalidArgumentError: ``x`` has no axes.

    >>> import dualflow.array_api as xp
    >>> [i.tolist() for i in xp.nonzero(xp.asarray([[0, 1], [2, 0]]))]
    [[0, 1], [1, 0]]
    """
    return tuple(map(Array, indexing.nonzero(tensor_of(x))))


def searchsorted(
    x1: AnyArray, x2: AnyArray, /, *, side: str = "left", sorter: AnyArray | None = None
) -> Array:
    """The indices at which to insert ``x2`` into the sorted vector ``x1``, by binary search.

    Args:
        x1: real numbers of one axis, in ascending order, or in the order of ``sorter``.
        x2: the numbers to put in, of any shape.
        side: "left" of equal elements, or "right" of them.
        sorter: integers that put ``x1`` in order, as :func:`argsort` returns them.

    Returns:
        An int64 array with the shape of ``x2``.

    Raises:
        InvalidArgumentError: ``x1`` is not a vector, or ``side`` is unknown.
        DTypeError: an input holds complex numbers.

    >>> import dualflow.array_api as xp
    >>> xp.searchsorted(xp.asarray([1, 3, 5]), xp.asarray([3, 6])).tolist()
    [1, 3]
    """
    row, values = promote_all(x1, x2)
    return Array(ordering.searchsorted(row, values, side, None if sorter is None else tensor_of(sorter)))


def where(condition: AnyArray, x1: AnyArray | complex, x2: AnyArray | complex, /) -> Array:
    """The elements of ``x1`` where ``condition`` holds, of ``x2`` elsewhere.

    Args:
        condition: bools.
        x1: what to take where it holds: an array, or a Python number.
        x2: what to take elsewhere, likewise.

    Returns:
        An array with the shape to which all broadcast, and the common dtype of ``x1`` and ``x2``.

    Raises:
        DTypeError: ``condition`` is not of bools, or neither ``x1`` nor ``x2`` is an array.
        InvalidArgumentError: shapes that do not broadcast.

    >>> import dualflow.array_api as xp
    >>> xp.where(xp.asarray([True, False]), xp.asarray([1, 2]), 0).tolist()
    [1, 0]
    """
    return Array(where_op(tensor_of(condition), *operands(x1, x2)))


# Sorting


def argsort(x: AnyArray, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """The indices that sort ``x`` along ``axis``; nan counts as the largest.

    Args:
        x: real numbers of one axis or more.
        axis: along which to sort.
        descending: from the largest to the smallest.
        stable: whether equal elements must keep their order; they always do.

    Returns:
        An int64 array with the shape of ``x``.

    Raises:
        DTypeError: an input holds complex numbers.

    >>> import dualflow.array_api as xp
    >>> xp.argsort(xp.asarray([3, 1, 2])).tolist()
    [1, 2, 0]
    """
    tensor = tensor_of(x)
    order = sorting.argsort(tensor, axis_of(axis, len(tensor.shape)), _direction(descending), stable=True)
    return Array(cast(order, int64))


def sort(x: AnyArray, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """``x`` sorted along ``axis``; nan counts as the largest.

    Args:
        descending: whether to sort from the largest to the smallest.
        stable: ignored: equal elements always keep their order.

    Returns:
        An array with the shape and dtype of ``x``.

    Raises:
        DTypeError: an input holds complex numbers.

    >>> import dualflow.array_api as xp
    >>> xp.sort(xp.asarray([3, 1, 2]), descending=True).tolist()
    [3, 2, 1]
    """
    tensor = tensor_of(x)
    return Array(sorting.sort(tensor, axis_of(axis, len(tensor.shape)), _direction(descending)))


def _direction(descending: bool) -> str:
    return "DESCENDING" if descending else "ASCENDING"


complete_docstrings(
    globals(),
    "is no array",
    x="an array of any shape.",
    x1="an array, or a number if ``x2`` is an array.",
    x2="an array, or a number if ``x1`` is an array.",
)
make_entries(globals())
