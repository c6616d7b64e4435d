"""The standard's manipulation functions: joining, splitting, moving, repeating, broadcasting."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from dualflow.array_api.array import Array, tensor_of
from dualflow.array_api.axes import axes_of, axis_of, ints_of
from dualflow.array_api.data_types import promote_all
from dualflow.core.tracebacks import make_entries
from dualflow.numpy import manipulation, reordering
from dualflow.numpy.docstrings import complete_docstrings
from dualflow.numpy.operands import broadcast_together, flat
from dualflow.ops import arrangement, broadcasting, joining, repetition

if TYPE_CHECKING:
    from dualflow.core.argument_types import AnyArray, AxisLike, IntsLike


def broadcast_to(x: AnyArray, /, shape: Sequence[int]) -> Array:
    """``x`` broadcast to ``shape``: repeated along new leading axes and axes of size 1.

    Args:
        shape: the sizes, a tuple of integers.

    Returns:
        An array with the shape, and the dtype of ``x``.

    Raises:
        InvalidArgumentError: ``x`` does not broadcast to ``shape``.

    >>> import dualflow.array_api as xp
    >>> xp.broadcast_to(xp.asarray([1, 2]), (2, 2)).tolist()
    [[1, 2], [1, 2]]
    """
    return Array(broadcasting.broadcast_to(tensor_of(x), shape))


def broadcast_arrays(*arrays: Any) -> list[Array]:
    """The arrays broadcast to their common shape.

    Args:
        *arrays: arrays of shapes that broadcast.

    Returns:
        A list of arrays of one shape; the dtypes stay.

    Raises:
        InvalidArgumentError: shapes that do not broadcast.

    >>> import dualflow.array_api as xp
    >>> [x.tolist() for x in xp.broadcast_arrays(xp.asarray([1, 2]), xp.asarray([[3]]))]
    [[[1, 2]], [[3, 3]]]
    """
    return [Array(x) for x in broadcast_together(*map(tensor_of, arrays))]


def concat(arrays: Sequence[AnyArray], /, *, axis: int | None = 0) -> Array:
    """The arrays joined along ``axis``.

    Args:
        arrays: a tuple or list of arrays, whose sizes differ along ``axis`` only.
        axis: the axis; None to flatten the arrays first.

    Returns:
        An array whose size along ``axis`` is the sum of the sizes, and the common dtype.

    Raises:
        InvalidArgumentError: there are no arrays, or sizes differ on another axis.

    >>> import dualflow.array_api as xp
    >>> xp.concat([xp.asarray([1, 2]), xp.asarray([3])]).tolist()
    [1, 2, 3]
    """
    tensors = promote_all(*arrays)
    if axis is None:
        tensors, axis = [flat(x) for x in tensors], 0
    return Array(joining.concat(tensors, axis_of(axis, len(tensors[0].shape))))


def stack(arrays: Sequence[AnyArray], /, *, axis: int = 0) -> Array:
    """The arrays, of one shape, joined along a new axis.

    Args:
        arrays: a tuple or list of arrays of one shape.
        axis: the position of the new axis in the result.

    Returns:
        An array with the shape of each and the new axis, and the common dtype.

    Raises:
        InvalidArgumentError: no arrays, or shapes that differ.

    >>> import dualflow.array_api as xp
    >>> xp.stack([xp.asarray([1, 2]), xp.asarray([3, 4])], axis=1).tolist()
    [[1, 3], [2, 4]]
    """
    tensors = promote_all(*arrays)
    return Array(joining.stack(tensors, axis_of(axis, len(tensors[0].shape) + 1)))


def unstack(x: AnyArray, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The slices of ``x`` along ``axis``, without it.

    Returns:
        A tuple of as many arrays as the size of ``axis``, in the dtype of ``x``.

    >>> import dualflow.array_api as xp
    >>> [row.tolist() for row in xp.unstack(xp.asarray([[1, 2], [3, 4]]))]
    [[1, 2], [3, 4]]
    """
    tensor = tensor_of(x)
    return tuple(Array(row) for row in joining.unstack(tensor, axis=axis_of(axis, len(tensor.shape))))


def expand_dims(x: AnyArray, /, axis: int | tuple[int, ...]) -> Array:
    """``x`` with new axes of size 1.

    Args:
        axis: the position of the new axis in the result, or several.

    Returns:
        An array with the shape of ``x`` and the new axes, and its dtype.

    Raises:
        InvalidArgumentError: a position occurs twice.

    >>> import dualflow.array_api as xp
    >>> xp.expand_dims(xp.ones(3), 0).shape
    (1, 3)
    """
    tensor = tensor_of(x)
    count = len(tuple(axis)) if isinstance(axis, Iterable) else 1
    positions = axes_of(axis, len(tensor.shape) + count)
    return Array(arrangement.expand_dims(tensor, tuple(sorted(positions))) if positions else tensor)


def squeeze(x: AnyArray, /, axis: int | tuple[int, ...]) -> Array:
    """``x`` without axes of size 1.

    Args:
        axis: the axis to remove, or several.

    Returns:
        An array with the shape of ``x`` without these axes, and its dtype.

    Raises:
        InvalidArgumentError: an axis has another size, or is named twice.

    >>> import dualflow.array_api as xp
    >>> xp.squeeze(xp.ones((1, 3)), 0).shape
    (3,)
    """
    tensor = tensor_of(x)
    axes = axes_of(axis, len(tensor.shape))
    return Array(arrangement.squeeze(tensor, tuple(sorted(axes))) if axes else tensor)


def reshape(x: AnyArray, /, shape: Sequence[int], *, copy: bool | None = None) -> Array:
    """The elements of ``x`` in their order, under another shape.

    Args:
        x: an array.
        shape: the sizes; one of them may be -1, for the size that the number of elements requires.
        copy: whether assignments to the result must not be seen in ``x``; they never are, and the elements
            are only copied where they have to be.

    Returns:
        An array with the shape, and the dtype of ``x``.

    Raises:
        InvalidArgumentError: the number of elements differs.

    >>> import dualflow.array_api as xp
    >>> xp.reshape(xp.arange(4), (2, -1)).tolist()
    [[0, 1], [2, 3]]
    """
    return Array(arrangement.reshape(tensor_of(x), shape))


def permute_dims(x: AnyArray, /, axes: Sequence[int]) -> Array:
    """``x`` with its axes in another order.

    Args:
        axes: all axes in their new order.

    Returns:
        An array with the sizes of ``x`` in that order, and its dtype.

    Raises:
        InvalidArgumentError: ``axes`` does not name each axis once.

    >>> import dualflow.array_api as xp
    >>> xp.permute_dims(xp.ones((2, 3)), (1, 0)).shape
    (3, 2)
    """
    tensor = tensor_of(x)
    return Array(arrangement.transpose(tensor, axes_of(axes, len(tensor.shape))))


def moveaxis(x: AnyArray, source: AxisLike, destination: AxisLike, /) -> Array:
    """``x`` with some axes moved to other positions; the others keep their order.

    Args:
        source: an axis or several.
        destination: their positions in the result.

    Returns:
        An array with the sizes of ``x`` in the new order, and its dtype.

    Raises:
        InvalidArgumentError: the numbers of sources and destinations differ, or an axis occurs twice.

    >>> import dualflow.array_api as xp
    >>> xp.moveaxis(xp.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    tensor = tensor_of(x)
    rank = len(tensor.shape)
    return Array(manipulation.move_axes(tensor, axes_of(source, rank), axes_of(destination, rank)))


def flip(x: AnyArray, /, *, axis: AxisLike | None = None) -> Array:
    """The elements in reverse order along axes.

    Args:
        axis: an axis or several; all by default.

    Returns:
        An array with the shape and dtype of ``x``.

    >>> import dualflow.array_api as xp
    >>> xp.flip(xp.asarray([1, 2, 3])).tolist()
    [3, 2, 1]
    """
    tensor = tensor_of(x)
    axes = axes_of(axis, len(tensor.shape))
    return Array(repetition.reverse(tensor, axes) if axes else tensor)


def roll(x: AnyArray, /, shift: IntsLike, *, axis: AxisLike | None = None) -> Array:
    """``x`` shifted along axes; elements that leave at one end enter at the other.

    Args:
        x: an array.
        shift: how many places, or one number for each axis.
        axis: one axis or several, also several times; the flattened array is rolled where it is None.

    Returns:
        An array with the shape and dtype of ``x``.

    Raises:
        InvalidArgumentError: the numbers of shifts and axes differ.

    >>> import dualflow.array_api as xp
    >>> xp.roll(xp.asarray([1, 2, 3, 4]), 1).tolist()
    [4, 1, 2, 3]
    """
    tensor = tensor_of(x)
    if axis is None:
        return Array(reordering.roll(tensor, shift))
    axes = [axis_of(a, len(tensor.shape)) for a in (axis if isinstance(axis, Iterable) else (axis,))]
    return Array(repetition.roll(tensor, ints_of(shift, len(axes), "shift"), axes))


def repeat(x: AnyArray, repeats: AnyArray | int, /, *, axis: int | None = None) -> Array:
    """``x`` with each element, or each slice along ``axis``, repeated.

    Args:
        x: an array, which is flattened where ``axis`` is None.
        repeats: how often, or an array of integers, one for each slice.
        axis: whose slices to repeat.

    Returns:
        An array with the shape of ``x``, but the sum of ``repeats`` along ``axis``, and its dtype.

    Raises:
        InvalidArgumentError: a number is negative, or the numbers of these and of slices differ.

    >>> import dualflow.array_api as xp
    >>> xp.repeat(xp.asarray([1, 2]), xp.asarray([3, 1])).tolist()
    [1, 1, 1, 2]
    """
    tensor = tensor_of(x)
    counts = repeats if isinstance(repeats, int) else tensor_of(repeats)
    along = None if axis is None else axis_of(axis, len(tensor.shape))
    return Array(reordering.repeat(tensor, counts, along))


def tile(x: AnyArray, repetitions: Sequence[int], /) -> Array:
    """``x`` repeated as a whole along each axis.

    Args:
        x: an array.
        repetitions: how often along each axis, the last ones where they are fewer. Where they are more, ``x``
            has axes of size 1 in front.

    Returns:
        An array whose sizes are those of ``x`` times ``repetitions``, and its dtype.

    Raises:
        InvalidArgumentError: a negative number.

    >>> import dualflow.array_api as xp
    >>> xp.tile(xp.asarray([1, 2]), (2, 1)).tolist()
    [[1, 2], [1, 2]]
    """
    return Array(reordering.tile(tensor_of(x), tuple(repetitions)))


complete_docstrings(
    globals(),
    "is no array",
    x="an array of any shape.",
)
make_entries(globals())
