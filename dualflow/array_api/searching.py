"""Where elements are: picking, searching, sorting, and what is different."""

from __future__ import annotations

from typing import Any

from dualflow.array_api.array import Array, operands, tensor_of
from dualflow.array_api.axes import axes_of, axis_of
from dualflow.core.dtypes import int64
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import Shape, broadcast
from dualflow.core.tracebacks import make_entries
from dualflow.ops import reduction, sorting, statistics
from dualflow.ops.arithmetic import add
from dualflow.ops.arrangement import expand_dims, reshape
from dualflow.ops.broadcasting import broadcast_to
from dualflow.ops.comparison import not_equal
from dualflow.ops.conversion import cast
from dualflow.ops.indexing import getitem
from dualflow.ops.joining import unstack
from dualflow.ops.ordering.search import searchsorted as positions_in
from dualflow.ops.selection import where as choose
from dualflow.ops.tensor import Tensor

# Picking


def take(x: Any, indices: Any, /, *, axis: int | None = None) -> Array:
    """The slices of ``x`` along ``axis`` at the positions ``indices``.

    Args:
        x: an array of one axis or more.
        indices: integers of one axis; negative ones count from the end.
        axis: where to pick; an array of one axis needs none.

    Raises:
        OutOfRangeError: a position is outside the axis, or there is no such axis.
        InvalidArgumentError: no axis is given, and ``x`` has several.

    >>> import dualflow.array_api as xp
    >>> xp.take(xp.asarray([10, 20, 30]), xp.asarray([2, 0])).tolist()
    [30, 10]
    """
    tensor = tensor_of(x)
    rank = len(tensor.shape)
    if axis is None and rank != 1:
        raise InvalidArgumentError(
            f"take from an array of {rank} axes needs axis=...; only one axis needs none."
        )
    along = axis_of(0 if axis is None else axis, rank)
    return Array(getitem(tensor, (*[slice(None)] * along, tensor_of(indices))))


def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> Array:
    """For each row of ``x`` along ``axis``, the elements at that row's positions, such as argsort returns.

    Args:
        x: an array.
        indices: integers, as many axes as ``x`` has; the sizes of the others broadcast with those of ``x``.
            Negative ones count from the end.
        axis: along which the rows run.

    Raises:
        OutOfRangeError: a position is outside the axis, or there is no such axis.
        InvalidArgumentError: another number of axes, or sizes that do not broadcast.

    >>> import dualflow.array_api as xp
    >>> xp.take_along_axis(xp.asarray([[3, 1, 2]]), xp.asarray([[1, 2, 0]])).tolist()
    [[1, 2, 3]]
    """
    tensor, places = tensor_of(x), tensor_of(indices)
    rank = len(tensor.shape)
    along = axis_of(axis, rank)
    if len(places.shape) != rank:
        raise InvalidArgumentError(
            f"take_along_axis takes indices of as many axes as x has, {rank}, not of shape {places.shape}."
        )
    others = broadcast([_but(tensor.shape, along, 1), _but(places.shape, along, 1)])
    tensor = broadcast_to(tensor, _but(others, along, tensor.shape[along]))
    places = broadcast_to(places, _but(others, along, places.shape[along]))
    length = tensor.shape[along]
    from_start = choose(places < 0, add(places, length), places)
    return Array(sorting.take_along_axis(tensor, from_start, along))


def _but(shape: Shape, axis: int, size: Any) -> Shape:
    """A shape with another size on one axis."""
    return Shape((*shape[:axis], size, *shape[axis + 1 :]))


# Searching


def argmax(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """Where the first maximum is along ``axis``, or in the flattened array; a nan counts as one.

    Raises:
        InvalidArgumentError: an axis of no elements.
        OutOfRangeError: an axis that ``x`` doesn't have.

    >>> import dualflow.array_api as xp
    >>> xp.argmax(xp.asarray([1, 9, 9])).tolist()
    1
    """
    return _position(reduction.argmax, x, axis, keepdims)


def argmin(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """Where the first minimum is along ``axis``, or in the flattened array; a nan counts as one.

    Raises:
        InvalidArgumentError: an axis of no elements.
        OutOfRangeError: an axis that ``x`` doesn't have.

    >>> import dualflow.array_api as xp
    >>> xp.argmin(xp.asarray([4, 1, 1])).tolist()
    1
    """
    return _position(reduction.argmin, x, axis, keepdims)


def _position(function: Any, x: Any, axis: int | None, keepdims: bool) -> Array:
    tensor = tensor_of(x)
    rank = len(tensor.shape)
    if axis is None:
        found = function(reshape(tensor, [-1]), 0)
        return Array(reshape(found, [1] * rank) if keepdims else found)
    along = axis_of(axis, rank)
    found = function(tensor, along)
    return Array(expand_dims(found, along) if keepdims else found)


def count_nonzero(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Array:
    """How many elements are not 0, or hold, over ``axis``: one, several or all.

    Raises:
        OutOfRangeError: an axis that ``x`` doesn't have.
        InvalidArgumentError: an axis named twice.

    >>> import dualflow.array_api as xp
    >>> xp.count_nonzero(xp.asarray([0, 3, 5])).tolist()
    2
    """
    tensor = tensor_of(x)
    return Array(statistics.count_nonzero(tensor, axes_of(axis, len(tensor.shape)), keepdims))


def nonzero(x: Any, /) -> tuple[Array, ...]:
    """The positions of the elements that are not 0, or hold: an array of integers for each axis.

    Raises:
        InvalidArgumentError: ``x`` has no axes.
        DTypeError: ``x`` is no array.

    >>> import dualflow.array_api as xp
    >>> [i.tolist() for i in xp.nonzero(xp.asarray([[0, 1], [2, 0]]))]
    [[0, 1], [1, 0]]
    """
    tensor = tensor_of(x)
    if not tensor.shape:
        raise InvalidArgumentError("nonzero takes an array of one axis or more; reshape x to (1,) first.")
    places = choose(tensor if tensor.dtype.is_bool else not_equal(tensor, 0))
    return tuple(Array(place) for place in unstack(places, num=len(tensor.shape), axis=1))


def searchsorted(x1: Any, x2: Any, /, *, side: str = "left", sorter: Any = None) -> Array:
    """Where each element of ``x2`` would be put into ``x1`` so that it stays in order.

    Args:
        x1: real numbers of one axis, in ascending order, or in the order of ``sorter``.
        x2: the numbers to put in, of any shape.
        side: "left" of equal elements, or "right" of them.
        sorter: integers that put ``x1`` in order, as :func:`argsort` returns them.

    Raises:
        InvalidArgumentError: ``x1`` has not one axis, or another word for ``side``.
        DTypeError: complex numbers.

    >>> import dualflow.array_api as xp
    >>> xp.searchsorted(xp.asarray([1, 3, 5]), xp.asarray([3, 6])).tolist()
    [1, 3]
    """
    if side not in ("left", "right"):
        raise InvalidArgumentError(f"side is 'left' or 'right', not {side!r}.")
    ordered, values = operands(x1 if sorter is None else take(x1, sorter), x2)
    if len(ordered.shape) != 1:
        raise InvalidArgumentError(
            f"searchsorted looks into an array of one axis, not of shape {ordered.shape}."
        )
    found = positions_in(ordered, reshape(values, [-1]), side=side, out_type=int64)
    return Array(reshape(found, values.shape))


def where(condition: Any, x1: Any, x2: Any, /) -> Array:
    """The elements of ``x1`` where ``condition`` holds, of ``x2`` elsewhere; all three broadcast.

    Args:
        condition: bools.
        x1: what to take where it holds: an array, or a Python number.
        x2: what to take elsewhere, likewise.

    Raises:
        DTypeError: ``condition`` is not of bools, or neither ``x1`` nor ``x2`` is an array.
        InvalidArgumentError: shapes that do not broadcast.

    >>> import dualflow.array_api as xp
    >>> xp.where(xp.asarray([True, False]), xp.asarray([1, 2]), 0).tolist()
    [1, 0]
    """
    return Array(choose(tensor_of(condition), *operands(x1, x2)))


# Sorting


def argsort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """The positions along ``axis`` that put ``x`` in order; equal elements keep theirs, and nan is largest.

    Args:
        x: real numbers of one axis or more.
        axis: along which to sort.
        descending: from the largest to the smallest.
        stable: whether equal elements must keep their order; they always do.

    Raises:
        OutOfRangeError: an axis that ``x`` doesn't have.
        DTypeError: complex numbers.

    >>> import dualflow.array_api as xp
    >>> xp.argsort(xp.asarray([3, 1, 2])).tolist()
    [1, 2, 0]
    """
    return Array(order_of(tensor_of(x), axis, descending=descending))


def order_of(x: Tensor, axis: int, *, descending: bool) -> Any:
    """The positions along ``axis`` that put ``x`` in order, in int64."""
    along = axis_of(axis, len(x.shape))
    return cast(sorting.argsort(x, along, "DESCENDING" if descending else "ASCENDING", stable=True), int64)


def sort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """``x`` in order along ``axis``; arguments are those of :func:`argsort`.

    Raises:
        OutOfRangeError: an axis that ``x`` doesn't have.
        DTypeError: complex numbers.

    >>> import dualflow.array_api as xp
    >>> xp.sort(xp.asarray([3, 1, 2]), descending=True).tolist()
    [3, 2, 1]
    """
    tensor = tensor_of(x)
    along = axis_of(axis, len(tensor.shape))
    return Array(sorting.sort(tensor, along, "DESCENDING" if descending else "ASCENDING"))


make_entries(globals())
