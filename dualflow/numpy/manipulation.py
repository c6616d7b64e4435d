"""Tensors under other shapes, joined, split, repeated and reordered."""

from __future__ import annotations

import builtins
import itertools
from functools import reduce
from typing import Any

import numpy as np

from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import normalize_axes, normalize_axis
from dualflow.core.tracebacks import make_entries
from dualflow.numpy import operands
from dualflow.numpy.operands import agreed, flat, has_axes, refuse, tensor
from dualflow.ops import arrangement, broadcasting, joining, repetition
from dualflow.ops.creation import zeros as filled_with_zeros
from dualflow.ops.static import ints, known_sizes, known_value, static_int
from dualflow.ops.tensor import Tensor


def shape(a: Any) -> tuple[Any, ...]:
    """The sizes: Python ints, or scalar tensors where they are known at run time only."""
    return operands.sizes(tensor(a))


def ndim(a: Any) -> int:
    """The number of axes."""
    return len(tensor(a).shape)


def size(a: Any, axis: Any = None) -> Any:
    """The number of elements, or of those along ``axis``."""
    x = tensor(a)
    if axis is None:
        return operands.length(x)
    sizes = operands.sizes(x)
    return reduce(lambda m, n: m * n, [sizes[i] for i in normalize_axes(axis, len(sizes))], 1)


def reshape(a: Any, /, shape: Any, order: str = "C", *, copy: bool | None = None) -> Tensor:
    """The elements under another shape; ``order`` "F" reads and writes them column by column.

    Raises:
        InvalidArgumentError: another number of elements, or another ``order``.

    >>> import dualflow as df
    >>> df.numpy.reshape([1, 2, 3, 4], (2, -1), order="F").numpy().tolist()
    [[1, 3], [2, 4]]
    """
    x = tensor(a)
    if order in ("C", "A"):
        return arrangement.reshape(x, shape if isinstance(shape, list | tuple) else _listed(shape))
    if order != "F":
        raise InvalidArgumentError(f"reshape's order is 'C', 'F' or 'A', not {order!r}.")
    new_shape = tuple(shape) if isinstance(shape, list | tuple) else tuple(_listed(shape))
    return arrangement.transpose(arrangement.reshape(arrangement.transpose(x), new_shape[::-1]))


def _listed(shape: Any) -> Any:
    """A size alone is a shape of one axis."""
    return shape if has_axes(shape) else [shape]


def ravel(a: Any, order: str = "C") -> Tensor:
    """The elements in one axis."""
    return reshape(a, -1, "C" if order == "K" else order)


def transpose(a: Any, axes: Any = None) -> Tensor:
    """The axes in another order, by default backwards."""
    x = tensor(a)
    if axes is None:
        return arrangement.transpose(x)
    return arrangement.transpose(x, operands.axes_in_order(axes, len(x.shape), "axes"))


def permute_dims(a: Any, axes: Any = None) -> Tensor:
    """The axes in another order, by default backwards."""
    return transpose(a, axes)


def matrix_transpose(x: Any, /) -> Tensor:
    """The last two axes swapped."""
    return tensor(x).mT


def moveaxis(a: Any, source: Any, destination: Any) -> Tensor:
    """Axes moved to other places; the others keep their order.

    >>> import dualflow as df
    >>> df.numpy.moveaxis(df.numpy.zeros((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    x = tensor(a)
    rank = len(x.shape)
    sources = operands.axes_in_order(source, rank, "source")
    return move_axes(x, sources, operands.axes_in_order(destination, rank, "destination"))


def move_axes(x: Any, sources: tuple[int, ...], destinations: tuple[int, ...]) -> Tensor:
    """``x`` with the axes ``sources`` at the places ``destinations``, and the others in their order.

    Raises:
        InvalidArgumentError: another number of places than of axes.
    """
    if len(sources) != len(destinations):
        raise InvalidArgumentError(
            "moveaxis moves as many axes as there are places: a destination for each source, not "
            f"{len(destinations)} for {len(sources)}."
        )
    order = [axis for axis in range(len(x.shape)) if axis not in sources]
    for place, axis in sorted(zip(destinations, sources, strict=True)):
        order.insert(place, axis)
    return arrangement.transpose(x, order)


def rollaxis(a: Any, axis: int, start: int = 0) -> Tensor:
    """``axis`` moved to stand before the axis ``start``."""
    x = tensor(a)
    rank = len(x.shape)
    where = normalize_axis(axis, rank)
    to_place = start + rank if start < 0 else start
    if not 0 <= to_place <= rank:
        raise InvalidArgumentError(f"rollaxis's start is in [{-rank}, {rank}], not {start}.")
    return moveaxis(x, where, to_place - 1 if where < to_place else to_place)


def swapaxes(a: Any, axis1: int, axis2: int) -> Tensor:
    """Two axes exchanged."""
    x = tensor(a)
    order = list(range(len(x.shape)))
    i, j = normalize_axis(axis1, len(order)), normalize_axis(axis2, len(order))
    order[i], order[j] = order[j], order[i]
    return arrangement.transpose(x, order)


def expand_dims(a: Any, axis: Any) -> Tensor:
    """New axes of size 1, at these places of the result."""
    x = tensor(a)
    new_axes = ints(axis, "axis")
    return arrangement.expand_dims(x, normalize_axes(new_axes, len(x.shape) + len(new_axes)))


def squeeze(a: Any, axis: Any = None) -> Tensor:
    """Without axes of size 1: all, or those named."""
    return arrangement.squeeze(tensor(a), axis)


def at_least(x: Any, rank: int) -> Tensor:
    v = tensor(x)
    if len(v.shape) >= rank:
        return v
    if rank < 3:
        return v[(None,) * (rank - len(v.shape))]
    return {0: v, 1: v[..., None], 2: v}[len(v.shape)][_FRONTS[len(v.shape)]]


_FRONTS: dict[int, Any] = {0: (None, None, None), 1: (None,), 2: (..., None)}


def _each(arrays: tuple[Any, ...], rank: int) -> Any:
    tensors = tuple(at_least(x, rank) for x in arrays)
    return tensors[0] if len(tensors) == 1 else tensors


def atleast_1d(*arys: Any) -> Any:
    """Each as a tensor of one axis or more."""
    return _each(arys, 1)


def atleast_2d(*arys: Any) -> Any:
    """Each as a tensor of two axes or more; new ones stand first."""
    return _each(arys, 2)


def atleast_3d(*arys: Any) -> Any:
    """Each as a tensor of three axes or more; of a matrix the new one stands last."""
    return _each(arys, 3)


# Broadcasting


def broadcast_to(array: Any, shape: Any, subok: bool = False) -> Tensor:
    """``array`` repeated along axes of size 1, and new leading axes, up to ``shape``."""
    return broadcasting.broadcast_to(
        tensor(array), shape if isinstance(shape, list | tuple) else _listed(shape)
    )


def broadcast_arrays(*args: Any, subok: bool = False) -> tuple[Tensor, ...]:
    """The tensors repeated up to their common shape."""
    return tuple(operands.broadcast_together(*[tensor(x) for x in args]))


def broadcast_shapes(*args: Any) -> tuple[int, ...]:
    """The shape that tensors of these shapes broadcast to."""
    return np.broadcast_shapes(*[tuple(s) if isinstance(s, tuple | list) else s for s in args])


# Joining


def _all(arrays: Any) -> list[Any]:
    """The tensors of a sequence, or the rows of a tensor."""
    if isinstance(arrays, list | tuple):
        return list(arrays)
    x = tensor(arrays)
    if not x.shape:
        raise DTypeError("A sequence of tensors is required, not one number.")
    return list(joining.unstack(x))


def concatenate(
    arrays: Any,
    /,
    axis: Any = 0,
    out: Any = None,
    *,
    dtype: Any = None,
    casting: Any = "same_kind",
) -> Tensor:
    """Tensors joined along an axis that they have; with ``axis`` None, all their elements in one axis.

    Raises:
        InvalidArgumentError: no tensors, or sizes that differ along another axis.

    >>> import dualflow as df
    >>> df.numpy.concatenate([[1, 2], [3.0]]).numpy()
    array([1., 2., 3.])
    """
    refuse("concatenate", out=out)
    parts = agreed(*[tensor(x) for x in _all(arrays)], dtype=dtype)
    if axis is None:
        return joining.concat([flat(x) for x in parts], 0)
    return joining.concat(parts, axis)


concat = concatenate


def stack(
    arrays: Any, axis: int = 0, out: Any = None, *, dtype: Any = None, casting: Any = "same_kind"
) -> Tensor:
    """Tensors of one shape joined along a new axis."""
    refuse("stack", out=out)
    return joining.stack(agreed(*[tensor(x) for x in _all(arrays)], dtype=dtype), axis)


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The parts of ``x`` along ``axis``, without it."""
    return tuple(joining.unstack(tensor(x), axis=axis))


def vstack(tup: Any, *, dtype: Any = None, casting: Any = "same_kind") -> Tensor:
    """Tensors joined along the first axis; a vector is a row."""
    return concatenate([at_least(x, 2) for x in _all(tup)], 0, dtype=dtype)


def hstack(tup: Any, *, dtype: Any = None, casting: Any = "same_kind") -> Tensor:
    """Tensors joined along the second axis, vectors along the first."""
    parts = [at_least(x, 1) for x in _all(tup)]
    return concatenate(parts, 0 if parts and len(parts[0].shape) == 1 else 1, dtype=dtype)


def dstack(tup: Any) -> Tensor:
    """Tensors joined along the third axis."""
    return concatenate([at_least(x, 3) for x in _all(tup)], 2)


def column_stack(tup: Any) -> Tensor:
    """Vectors as the columns of a matrix; matrices stay as they are."""
    parts = [at_least(x, 1) for x in _all(tup)]
    return concatenate([x[:, None] if len(x.shape) == 1 else x for x in parts], 1)


def append(arr: Any, values: Any, axis: Any = None) -> Tensor:
    """``arr`` and ``values`` joined along ``axis``; without one, all elements in one axis."""
    return concatenate([arr, values], axis)


def block(arrays: Any) -> Tensor:
    """Nested lists of blocks put together: the innermost along the last axis, and so on outwards.

    >>> import dualflow as df
    >>> df.numpy.block([[df.numpy.eye(2), df.numpy.ones((2, 1))]]).shape
    (2, 3)
    """

    def depth(value: Any) -> int:
        return 1 + builtins.max(map(depth, value), default=0) if isinstance(value, list) else 0

    def leaves(value: Any) -> list[Any]:
        return [x for v in value for x in leaves(v)] if isinstance(value, list) else [value]

    levels = depth(arrays)
    rank = builtins.max([levels, *[len(tensor(x).shape) for x in leaves(arrays)]])

    def joined(value: Any, level: int) -> Any:
        if isinstance(value, list):
            return concatenate([joined(v, level + 1) for v in value], level - levels)
        x = tensor(value)
        return x[(None,) * (rank - len(x.shape))]

    return joined(arrays, 0)


# Cutting


def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    """The parts of ``ary`` along ``axis``: a number of parts, the first ones longer, or split at indices."""
    x = tensor(ary)
    where = normalize_axis(axis, len(x.shape))
    (size,) = known_sizes(x.shape, "array_split", [where])
    if isinstance(indices_or_sections, list | tuple) or has_axes(indices_or_sections):
        places = list(ints(indices_or_sections, "indices"))
    else:
        parts = static_int(indices_or_sections, "sections")
        if parts < 1:
            raise InvalidArgumentError(f"There are 1 or more parts, not {parts}.")
        places = [i * (size // parts) + builtins.min(i, size % parts) for i in range(1, parts)]
    front = (slice(None),) * where
    ends = [None, *places, None]
    return [x[(*front, slice(a, b))] for a, b in itertools.pairwise(ends)]


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    """The parts of ``ary`` along ``axis``: a number of equal parts, or split at indices.

    Raises:
        InvalidArgumentError: the parts can't be equal.

    >>> import dualflow as df
    >>> [part.numpy().tolist() for part in df.numpy.split([1, 2, 3, 4], 2)]
    [[1, 2], [3, 4]]
    """
    x = tensor(ary)
    size = x.shape[normalize_axis(axis, len(x.shape))]
    single = not isinstance(indices_or_sections, list | tuple) and not getattr(
        indices_or_sections, "shape", ()
    )
    if single and size is not None and size % static_int(indices_or_sections, "sections"):
        raise InvalidArgumentError(
            f"Axis {axis} of size {size} has no {indices_or_sections} equal parts; use array_split."
        )
    return array_split(x, indices_or_sections, axis)


def hsplit(ary: Any, indices_or_sections: Any) -> list[Tensor]:
    """``ary`` cut along its second axis, a vector along its first."""
    x = _ranked(ary, 1, "hsplit")
    return split(x, indices_or_sections, 1 if len(x.shape) > 1 else 0)


def vsplit(ary: Any, indices_or_sections: Any) -> list[Tensor]:
    """``ary``, of two axes or more, cut along the first."""
    return split(_ranked(ary, 2, "vsplit"), indices_or_sections, 0)


def dsplit(ary: Any, indices_or_sections: Any) -> list[Tensor]:
    """``ary``, of three axes or more, cut along the third."""
    return split(_ranked(ary, 3, "dsplit"), indices_or_sections, 2)


def _ranked(ary: Any, rank: int, name: str) -> Tensor:
    x = tensor(ary)
    if len(x.shape) < rank:
        raise InvalidArgumentError(f"{name} takes {rank} axes or more, not shape {x.shape}.")
    return x


# Repeating and reordering


def tile(A: Any, reps: Any) -> Tensor:
    """``A`` repeated as a whole, ``reps`` times along each axis."""
    x, counts = tensor(A), ints(reps, "reps")
    rank = builtins.max(len(x.shape), len(counts))
    if rank > len(x.shape):
        x = x[(None,) * (rank - len(x.shape))]
    return repetition.tile(x, (1,) * (rank - len(counts)) + counts)


def repeat(a: Any, repeats: Any, axis: Any = None) -> Tensor:
    """Each element repeated, along ``axis``; without one, all elements in one axis."""
    x = flat(tensor(a)) if axis is None else tensor(a)
    counts = repeats if isinstance(repeats, int) else known_value(repeats)
    if isinstance(counts, np.ndarray) and counts.size == 1:
        counts = int(counts.reshape(-1)[0])
    return repetition.repeat(x, repeats if counts is None else counts, 0 if axis is None else axis)


def flip(m: Any, axis: Any = None) -> Tensor:
    """The elements in opposite order along all axes, or those named."""
    x = tensor(m)
    rank = len(x.shape)
    axes = range(rank) if axis is None else normalize_axes(ints(axis, "axis"), rank)
    return repetition.reverse(x, list(axes)) if len(axes) else x


def fliplr(m: Any) -> Tensor:
    """The columns in opposite order."""
    return flip(_ranked(m, 2, "fliplr"), 1)


def flipud(m: Any) -> Tensor:
    """The rows in opposite order."""
    return flip(_ranked(m, 1, "flipud"), 0)


def roll(a: Any, shift: Any, axis: Any = None) -> Tensor:
    """The elements moved along axes, those that leave at one end coming in at the other."""
    x = tensor(a)
    if axis is None:
        moved = repetition.roll(flat(x), builtins.sum(ints(shift, "shift")), 0)
        return arrangement.reshape(moved, operands.sizes(x))
    shifts, axes = np.broadcast_arrays(ints(shift, "shift"), ints(axis, "axis"))
    for by, where in zip(shifts.tolist(), axes.tolist(), strict=True):
        x = repetition.roll(x, by, normalize_axis(where, len(x.shape)))
    return x


def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Tensor:
    """The plane of two axes turned by ``k`` quarters, from the first axis towards the second.

    >>> import dualflow as df
    >>> df.numpy.rot90([[1, 2], [3, 4]]).numpy().tolist()
    [[2, 4], [1, 3]]
    """
    x = tensor(m)
    i, j = operands.axes_in_order(axes, len(x.shape), "axes")
    quarters = static_int(k, "k") % 4
    if quarters == 0:
        return x
    if quarters == 2:
        return flip(x, (i, j))
    return swapaxes(flip(x, j), i, j) if quarters == 1 else flip(swapaxes(x, i, j), j)


def resize(a: Any, new_shape: Any) -> Tensor:
    """The elements, repeated as often as it takes, under another shape."""
    new_sizes = ints(new_shape, "new_shape")
    if builtins.min(new_sizes, default=0) < 0:
        raise InvalidArgumentError(f"Sizes are 0 or more, not {new_shape!r}.")
    x, count = flat(tensor(a)), int(np.prod(new_sizes))
    have = static_int(operands.length(x), "the number of elements")
    if not have or not count:
        return filled_with_zeros(new_sizes, x.dtype)
    return arrangement.reshape(repetition.tile(x, [-(-count // have)])[:count], new_sizes)


make_entries(globals())
