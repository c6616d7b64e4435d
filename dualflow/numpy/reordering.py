"""Elements repeated, reversed, shifted and rotated."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING

import numpy as np

from dualflow.core.dtypes import int64
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import normalize_axes, normalize_axis
from dualflow.core.tracebacks import make_entries
from dualflow.numpy import operands
from dualflow.numpy.docstrings import complete_docstrings
from dualflow.numpy.manipulation import swapaxes
from dualflow.numpy.operands import flat, tensor, with_rank
from dualflow.ops import arrangement, repetition
from dualflow.ops.arithmetic import maximum, mod
from dualflow.ops.creation import zeros as tensor_zeros
from dualflow.ops.joining import concat
from dualflow.ops.positions import range as range_op
from dualflow.ops.static import ints, static_int, static_value
from dualflow.ops.taking import gather
from dualflow.ops.tensor import Tensor

if TYPE_CHECKING:
    from dualflow.core.argument_types import AxisLike, IntsLike, ShapeLike, TensorLike


def tile(A: TensorLike, reps: IntsLike) -> Tensor:
    """``A`` repeated as a whole along each axis.

    Args:
        A: numbers of any shape.
        reps: how often to repeat along each of the last axes, an integer or a list of them.

    Returns:
        A tensor whose sizes are those of ``A`` times ``reps``, and the dtype of ``A``.

    Raises:
        InvalidArgumentError: a number of ``reps`` is negative.
        DTypeError: ``A`` can't become a tensor, or ``reps`` is not of integers.

    >>> import dualflow as df
    >>> df.numpy.tile([1, 2], 2).numpy()
    array([1, 2, 1, 2])
    """
    x, counts = tensor(A), ints(reps, "reps")
    rank = builtins.max(len(x.shape), len(counts))
    if rank > len(x.shape):
        x = x[(None,) * (rank - len(x.shape))]
    return repetition.tile(x, (1,) * (rank - len(counts)) + counts)


def repeat(a: TensorLike, repeats: IntsLike, axis: AxisLike | None = None) -> Tensor:
    """Each element repeated along ``axis``.

    Args:
        repeats: how often, an integer or one for each element of the axis.
        axis: the axis; by default ``a`` is flattened.

    Returns:
        A tensor with the shape of ``a``, but ``sum(repeats)`` along ``axis``, and its dtype.

    Raises:
        InvalidArgumentError: a number of ``repeats`` is negative, or there is not one for each element.

    >>> import dualflow as df
    >>> df.numpy.repeat([1, 2], 2).numpy()
    array([1, 1, 2, 2])
    """
    x = flat(tensor(a)) if axis is None else tensor(a)
    counts = repeats if isinstance(repeats, int) else static_value(repeats)
    if isinstance(counts, np.ndarray) and counts.size == 1:
        counts = int(counts.reshape(-1)[0])
    return repetition.repeat(x, repeats if counts is None else counts, 0 if axis is None else axis)


def flip(m: TensorLike, axis: AxisLike | None = None) -> Tensor:
    """The elements in reverse order along axes.

    Args:
        axis: an axis or several; all by default.

    Returns:
        A tensor with the shape and dtype of ``m``.

    >>> import dualflow as df
    >>> df.numpy.flip([1, 2, 3]).numpy()
    array([3, 2, 1])
    """
    x = tensor(m)
    rank = len(x.shape)
    axes = range(rank) if axis is None else normalize_axes(ints(axis, "axis"), rank)
    return repetition.reverse(x, list(axes)) if len(axes) else x


def fliplr(m: TensorLike) -> Tensor:
    """The elements in reverse order along the second axis.

    Args:
        m: numbers of two axes or more.

    Returns:
        A tensor with the shape and dtype of ``m``.

    Raises:
        InvalidArgumentError: ``m`` has fewer than two axes.

    >>> import dualflow as df
    >>> df.numpy.fliplr([[1, 2], [3, 4]]).numpy().tolist()
    [[2, 1], [4, 3]]
    """
    return flip(with_rank(m, 2, "fliplr"), 1)


def flipud(m: TensorLike) -> Tensor:
    """The elements in reverse order along the first axis.

    Args:
        m: numbers of one axis or more.

    Returns:
        A tensor with the shape and dtype of ``m``.

    Raises:
        InvalidArgumentError: ``m`` has no axes.

    >>> import dualflow as df
    >>> df.numpy.flipud([[1, 2], [3, 4]]).numpy().tolist()
    [[3, 4], [1, 2]]
    """
    return flip(with_rank(m, 1, "flipud"), 0)


def roll(a: TensorLike, shift: IntsLike, axis: AxisLike | None = None) -> Tensor:
    """The elements shifted along axes; those that leave at one end enter at the other.

    Args:
        shift: by how many places to shift, an integer or one for each axis.
        axis: an axis or several; by default ``a`` is flattened, and reshaped afterwards.

    Returns:
        A tensor with the shape and dtype of ``a``.

    >>> import dualflow as df
    >>> df.numpy.roll([1, 2, 3], 1).numpy()
    array([3, 1, 2])
    """
    x = tensor(a)
    if axis is None:
        moved = repetition.roll(flat(x), builtins.sum(ints(shift, "shift")), 0)
        return arrangement.reshape(moved, operands.sizes(x))
    shifts, axes = np.broadcast_arrays(ints(shift, "shift"), ints(axis, "axis"))
    for indices, where in zip(shifts.tolist(), axes.tolist(), strict=True):
        x = repetition.roll(x, indices, normalize_axis(where, len(x.shape)))
    return x


def rot90(m: TensorLike, k: int = 1, axes: AxisLike = (0, 1)) -> Tensor:
    """The plane of two axes rotated by ``k`` times 90 degrees, from the first axis towards the second.

    Args:
        m: numbers of two axes or more.
        k: how often to rotate, an integer.
        axes: two axes.

    Returns:
        A tensor with the dtype of ``m`` and its shape; the sizes of ``axes`` are swapped for odd ``k``.

    Raises:
        InvalidArgumentError: there are not two axes, or one is out of range or occurs twice.

    >>> import dualflow as df
    >>> df.numpy.rot90([[1, 2], [3, 4]]).numpy().tolist()
    [[2, 4], [1, 3]]
    """
    x = tensor(m)
    plane = operands.axes_in_order(axes, len(x.shape), "axes")
    if len(plane) != 2:
        raise InvalidArgumentError(f"rot90 rotates the plane of two axes, not of {axes!r}.")
    i, j = plane
    quarters = static_int(k, "k") % 4
    if quarters == 0:
        return x
    if quarters == 2:
        return flip(x, (i, j))
    return swapaxes(flip(x, j), i, j) if quarters == 1 else flip(swapaxes(x, i, j), j)


def resize(a: TensorLike, new_shape: ShapeLike) -> Tensor:
    """The elements, repeated if necessary, under another shape.

    Args:
        new_shape: the shape, an integer or a list of them.

    Returns:
        A tensor with the shape, and the dtype of ``a``; zeros if ``a`` is empty.

    Raises:
        InvalidArgumentError: a size is negative.

    >>> import dualflow as df
    >>> df.numpy.resize([1, 2, 3], (2, 2)).numpy().tolist()
    [[1, 2], [3, 1]]
    """
    new_sizes = ints(new_shape, "new_shape")
    if builtins.min(new_sizes, default=0) < 0:
        raise InvalidArgumentError(f"Sizes are 0 or more, not {new_shape!r}.")
    x, count = flat(tensor(a)), int(np.prod(new_sizes))
    have = operands.length(x)
    if type(have) is not int:  # of no elements, all of the result is the zero
        positions = mod(range_op(0, count, dtype=int64), maximum(have, 1))
        return arrangement.reshape(gather(concat([x, tensor_zeros([1], x.dtype)], 0), positions), new_sizes)
    if not have or not count:
        return tensor_zeros(new_sizes, x.dtype)
    return arrangement.reshape(repetition.tile(x, [-(-count // have)])[:count], new_sizes)


complete_docstrings(globals())
make_entries(globals())
