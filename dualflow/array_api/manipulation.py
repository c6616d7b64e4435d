"""Shapes and places of elements: joining, splitting, moving, repeating, broadcasting."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from dualflow.array_api.array import Array, tensor_of
from dualflow.array_api.axes import axes_of, axis_of, ints_of
from dualflow.array_api.data_types import of_one_dtype
from dualflow.core.tracebacks import make_entries
from dualflow.numpy import manipulation, reordering
from dualflow.numpy.operands import broadcast_together, flat
from dualflow.ops import arrangement, broadcasting, joining, repetition


def broadcast_to(x: Any, /, shape: Sequence[int]) -> Array:
    """``x`` with its axes of size 1 stretched, and more axes in front, so that it has ``shape``.

    Raises:
        InvalidArgumentError: ``x`` does not broadcast to ``shape``.

    >>> import dualflow.array_api as xp
    >>> xp.broadcast_to(xp.asarray([1, 2]), (2, 2)).tolist()
    [[1, 2], [1, 2]]
    """
    return Array(broadcasting.broadcast_to(tensor_of(x), shape))


def broadcast_arrays(*arrays: Any) -> list[Array]:
    """The arrays, each broadcast to the shape of all together.

    Raises:
        InvalidArgumentError: shapes that do not broadcast.

    >>> import dualflow.array_api as xp
    >>> [x.tolist() for x in xp.broadcast_arrays(xp.asarray([1, 2]), xp.asarray([[3]]))]
    [[[1, 2]], [[3, 3]]]
    """
    return [Array(x) for x in broadcast_together(*map(tensor_of, arrays))]


def concat(arrays: Any, /, *, axis: int | None = 0) -> Array:
    """The arrays one after the other along ``axis``; flattened first where it is None.

    Raises:
        InvalidArgumentError: no arrays, or sizes that differ on another axis.

    >>> import dualflow.array_api as xp
    >>> xp.concat([xp.asarray([1, 2]), xp.asarray([3])]).tolist()
    [1, 2, 3]
    """
    tensors = of_one_dtype(*arrays)
    if axis is None:
        tensors, axis = [flat(x) for x in tensors], 0
    return Array(joining.concat(tensors, axis_of(axis, len(tensors[0].shape))))


def stack(arrays: Any, /, *, axis: int = 0) -> Array:
    """The arrays, of one shape, joined along a new axis.

    Raises:
        InvalidArgumentError: no arrays, or shapes that differ.

    >>> import dualflow.array_api as xp
    >>> xp.stack([xp.asarray([1, 2]), xp.asarray([3, 4])], axis=1).tolist()
    [[1, 3], [2, 4]]
    """
    tensors = of_one_dtype(*arrays)
    return Array(joining.stack(tensors, axis_of(axis, len(tensors[0].shape) + 1)))


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The slices of ``x`` along ``axis``, whose size is known, which they don't have any more.

    >>> import dualflow.array_api as xp
    >>> [row.tolist() for row in xp.unstack(xp.asarray([[1, 2], [3, 4]]))]
    [[1, 2], [3, 4]]
    """
    tensor = tensor_of(x)
    return tuple(Array(row) for row in joining.unstack(tensor, axis=axis_of(axis, len(tensor.shape))))


def expand_dims(x: Any, /, axis: int | tuple[int, ...]) -> Array:
    """``x`` with axes of size 1, at the places ``axis`` of the result.

    Raises:
        InvalidArgumentError: a place is named twice.

    >>> import dualflow.array_api as xp
    >>> xp.expand_dims(xp.ones(3), 0).shape
    (1, 3)
    """
    tensor = tensor_of(x)
    count = len(tuple(axis)) if isinstance(axis, Iterable) else 1
    places = axes_of(axis, len(tensor.shape) + count)
    return Array(arrangement.expand_dims(tensor, tuple(sorted(places))) if places else tensor)


def squeeze(x: Any, /, axis: int | tuple[int, ...]) -> Array:
    """``x`` without the axes ``axis``, which have size 1.

    Raises:
        InvalidArgumentError: an axis of another size, or one named twice.

    >>> import dualflow.array_api as xp
    >>> xp.squeeze(xp.ones((1, 3)), 0).shape
    (3,)
    """
    tensor = tensor_of(x)
    axes = axes_of(axis, len(tensor.shape))
    return Array(arrangement.squeeze(tensor, tuple(sorted(axes))) if axes else tensor)


def reshape(x: Any, /, shape: Sequence[int], *, copy: bool | None = None) -> Array:
    """The elements of ``x`` in their order, under another shape.

    Args:
        x: an array.
        shape: the sizes; one of them may be -1, which is what is left.
        copy: whether assignments to the result must not be seen in ``x``; they never are, and the elements
            are only copied where they have to be.

    Raises:
        InvalidArgumentError: another number of elements.

    >>> import dualflow.array_api as xp
    >>> xp.reshape(xp.arange(4), (2, -1)).tolist()
    [[0, 1], [2, 3]]
    """
    return Array(arrangement.reshape(tensor_of(x), shape))


def permute_dims(x: Any, /, axes: Sequence[int]) -> Array:
    """``x`` with its axes in another order.

    Raises:
        InvalidArgumentError: ``axes`` does not name each axis once.

    >>> import dualflow.array_api as xp
    >>> xp.permute_dims(xp.ones((2, 3)), (1, 0)).shape
    (3, 2)
    """
    tensor = tensor_of(x)
    return Array(arrangement.transpose(tensor, axes_of(axes, len(tensor.shape))))


def moveaxis(x: Any, source: Any, destination: Any, /) -> Array:
    """``x`` with some axes at other places, and the others in their order.

    Raises:
        InvalidArgumentError: as many sources as destinations are needed, each once.

    >>> import dualflow.array_api as xp
    >>> xp.moveaxis(xp.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    tensor = tensor_of(x)
    rank = len(tensor.shape)
    return Array(manipulation.move_axes(tensor, axes_of(source, rank), axes_of(destination, rank)))


def flip(x: Any, /, *, axis: Any = None) -> Array:
    """``x`` backwards along one axis, several, or all.

    >>> import dualflow.array_api as xp
    >>> xp.flip(xp.asarray([1, 2, 3])).tolist()
    [3, 2, 1]
    """
    tensor = tensor_of(x)
    axes = axes_of(axis, len(tensor.shape))
    return Array(repetition.reverse(tensor, axes) if axes else tensor)


def roll(x: Any, /, shift: Any, *, axis: Any = None) -> Array:
    """``x`` moved by ``shift`` places along ``axis``; what leaves at one end comes in at the other.

    Args:
        x: an array.
        shift: how many places, or one number for each axis.
        axis: one axis or several, also several times; the flattened array is rolled where it is None.

    Raises:
        InvalidArgumentError: another number of shifts than axes.

    >>> import dualflow.array_api as xp
    >>> xp.roll(xp.asarray([1, 2, 3, 4]), 1).tolist()
    [4, 1, 2, 3]
    """
    tensor = tensor_of(x)
    if axis is None:
        return Array(reordering.roll(tensor, shift))
    axes = [axis_of(a, len(tensor.shape)) for a in (axis if isinstance(axis, Iterable) else (axis,))]
    return Array(repetition.roll(tensor, ints_of(shift, len(axes), "shift"), axes))


def repeat(x: Any, repeats: Any, /, *, axis: int | None = None) -> Array:
    """``x`` with each element, or each slice along ``axis``, several times.

    Args:
        x: an array, which is flattened where ``axis`` is None.
        repeats: how often, or an array of integers, one for each slice.
        axis: whose slices to repeat.

    Raises:
        InvalidArgumentError: a negative number, or another number of them than slices.

    >>> import dualflow.array_api as xp
    >>> xp.repeat(xp.asarray([1, 2]), xp.asarray([3, 1])).tolist()
    [1, 1, 1, 2]
    """
    tensor = tensor_of(x)
    counts = repeats if isinstance(repeats, int) else tensor_of(repeats)
    along = None if axis is None else axis_of(axis, len(tensor.shape))
    return Array(reordering.repeat(tensor, counts, along))


def tile(x: Any, repetitions: Sequence[int], /) -> Array:
    """``x`` repeated along each axis.

    Args:
        x: an array.
        repetitions: how often along each axis, the last ones where they are fewer. Where they are more, ``x``
            has axes of size 1 in front.

    Raises:
        InvalidArgumentError: a negative number.

    >>> import dualflow.array_api as xp
    >>> xp.tile(xp.asarray([1, 2]), (2, 1)).tolist()
    [[1, 2], [1, 2]]
    """
    return Array(reordering.tile(tensor_of(x), tuple(repetitions)))


make_entries(globals())
