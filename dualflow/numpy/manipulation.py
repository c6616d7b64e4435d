"""Changes of the shape, and moving, swapping and rolling of axes."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import normalize_axes, normalize_axis
from dualflow.core.tracebacks import make_entries
from dualflow.numpy import operands
from dualflow.numpy.docstrings import complete_docstrings
from dualflow.numpy.operands import has_axes, tensor
from dualflow.ops import arrangement, broadcasting
from dualflow.ops.static import ints
from dualflow.ops.tensor import Tensor

if TYPE_CHECKING:
    from dualflow.core.argument_types import AxisLike, IntsLike, ShapeLike, TensorLike


def shape(a: TensorLike) -> tuple[Any, ...]:
    """The sizes of the axes, as a tuple.

    Returns:
        A tuple of Python ints; scalar tensors for sizes that are known at run time only.

    >>> import dualflow as df
    >>> df.numpy.shape([[1, 2, 3]])
    (1, 3)
    """
    return operands.sizes(tensor(a))


def ndim(a: TensorLike) -> int:
    """The number of axes.

    Returns:
        A Python int.

    >>> import dualflow as df
    >>> df.numpy.ndim([[1, 2, 3]])
    2
    """
    return len(tensor(a).shape)


def size(a: TensorLike, axis: AxisLike | None = None) -> Any:
    """The number of elements, or the product of the sizes of some axes.

    Args:
        axis: an axis or several; all by default.

    Returns:
        A Python int; a scalar tensor if it is known at run time only.

    >>> import dualflow as df
    >>> df.numpy.size([[1, 2, 3]], axis=1)
    3
    """
    x = tensor(a)
    if axis is None:
        return operands.length(x)
    sizes = operands.sizes(x)
    return reduce(lambda m, n: m * n, [sizes[i] for i in normalize_axes(axis, len(sizes))], 1)


def reshape(a: TensorLike, /, shape: ShapeLike, order: str = "C", *, copy: bool | None = None) -> Tensor:
    """The elements under another shape.

    Args:
        shape: an integer or a list of them, of which one may be -1: it follows from the number of elements.
        order: "C", where the last index varies fastest; "F", where the first one does; "A", the same as "C".

    Returns:
        A tensor with the shape, and the dtype of ``a``.

    Raises:
        InvalidArgumentError: the shape has another number of elements, or ``order`` is another letter.

    >>> import dualflow as df
    >>> df.numpy.reshape([1, 2, 3, 4], (2, -1), order="F").numpy().tolist()
    [[1, 3], [2, 4]]
    """
    x = tensor(a)
    if order in ("C", "A"):
        return arrangement.reshape(x, shape if isinstance(shape, list | tuple) else _as_list(shape))
    if order != "F":
        raise InvalidArgumentError(f"reshape's order is 'C', 'F' or 'A', not {order!r}.")
    new_shape = tuple(shape) if isinstance(shape, list | tuple) else tuple(_as_list(shape))
    return arrangement.transpose(arrangement.reshape(arrangement.transpose(x), new_shape[::-1]))


def _as_list(shape: Any) -> Any:
    """``shape`` as a list: one integer is the shape of a vector."""
    return shape if has_axes(shape) else [shape]


def ravel(a: TensorLike, order: str = "C") -> Tensor:
    """The elements as a vector.

    Args:
        order: "C", where the last index varies fastest; "F", where the first one does; "A" or "K", the same
            as "C".

    Returns:
        A vector of the dtype of ``a``.

    Raises:
        InvalidArgumentError: ``order`` is another letter.

    >>> import dualflow as df
    >>> df.numpy.ravel([[1, 2], [3, 4]], "F").numpy()
    array([1, 3, 2, 4])
    """
    return reshape(a, -1, "C" if order == "K" else order)


def transpose(a: TensorLike, axes: AxisLike | None = None) -> Tensor:
    """The axes in another order, reversed by default.

    Args:
        axes: all axes in their new order; reversed by default.

    Returns:
        A tensor with the sizes of ``a`` in that order, and its dtype.

    Raises:
        InvalidArgumentError: ``axes`` is not a permutation of the axes.

    >>> import dualflow as df
    >>> df.numpy.transpose([[1, 2], [3, 4]]).numpy().tolist()
    [[1, 3], [2, 4]]
    """
    x = tensor(a)
    if axes is None:
        return arrangement.transpose(x)
    return arrangement.transpose(x, operands.axes_in_order(axes, len(x.shape), "axes"))


permute_dims = transpose


def matrix_transpose(x: TensorLike, /) -> Tensor:
    """The last two axes swapped.

    Args:
        x: numbers of two axes or more.

    Returns:
        A tensor with the shape of ``x``, the last two sizes swapped, and its dtype.

    Raises:
        InvalidArgumentError: ``x`` has fewer than two axes.

    >>> import dualflow as df
    >>> df.numpy.matrix_transpose([[1, 2], [3, 4]]).numpy().tolist()
    [[1, 3], [2, 4]]
    """
    return tensor(x).mT


def moveaxis(a: TensorLike, source: IntsLike, destination: IntsLike) -> Tensor:
    """Axes moved to other positions; the others keep their order.

    Args:
        source: an axis or several.
        destination: their positions in the result.

    Returns:
        A tensor with the sizes of ``a`` in the new order, and its dtype.

    Raises:
        InvalidArgumentError: an axis is out of range or occurs twice, or there are more of one kind.

    >>> import dualflow as df
    >>> df.numpy.moveaxis(df.numpy.zeros((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    x = tensor(a)
    rank = len(x.shape)
    sources = operands.axes_in_order(source, rank, "source")
    return move_axes(x, sources, operands.axes_in_order(destination, rank, "destination"))


def move_axes(x: Any, sources: tuple[int, ...], destinations: tuple[int, ...]) -> Tensor:
    """``x`` with the axes ``sources`` at the positions ``destinations``, and the others in their order.

    Raises:
        InvalidArgumentError: the numbers of sources and destinations differ.
    """
    if len(sources) != len(destinations):
        raise InvalidArgumentError(
            f"moveaxis needs a destination for each source, not {len(destinations)} for {len(sources)}."
        )
    order = [axis for axis in range(len(x.shape)) if axis not in sources]
    for position, axis in sorted(zip(destinations, sources, strict=True)):
        order.insert(position, axis)
    return arrangement.transpose(x, order)


def rollaxis(a: TensorLike, axis: int, start: int = 0) -> Tensor:
    """``axis`` moved before the axis ``start``.

    Args:
        axis: the axis to move.
        start: the axis before which it is moved; the number of axes for the end.

    Returns:
        A tensor with the sizes of ``a`` in the new order, and its dtype.

    Raises:
        InvalidArgumentError: ``start`` is out of range.

    >>> import dualflow as df
    >>> df.numpy.rollaxis(df.numpy.zeros((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    x = tensor(a)
    rank = len(x.shape)
    positive_axis = normalize_axis(axis, rank)
    to_place = start + rank if start < 0 else start
    if not 0 <= to_place <= rank:
        raise InvalidArgumentError(f"rollaxis's start is in [{-rank}, {rank}], not {start}.")
    return moveaxis(x, positive_axis, to_place - 1 if positive_axis < to_place else to_place)


def swapaxes(a: TensorLike, axis1: int, axis2: int) -> Tensor:
    """Two axes exchanged.

    Args:
        axis1: an axis.
        axis2: another one.

    Returns:
        A tensor with the sizes of ``a``, two of them exchanged, and its dtype.

    Raises:
        InvalidArgumentError: an axis is out of range.

    >>> import dualflow as df
    >>> df.numpy.swapaxes([[1, 2], [3, 4]], 0, 1).numpy().tolist()
    [[1, 3], [2, 4]]
    """
    x = tensor(a)
    order = list(range(len(x.shape)))
    i, j = normalize_axis(axis1, len(order)), normalize_axis(axis2, len(order))
    order[i], order[j] = order[j], order[i]
    return arrangement.transpose(x, order)


def expand_dims(a: TensorLike, axis: AxisLike) -> Tensor:
    """New axes of size 1.

    Args:
        axis: the position of the new axis in the result, or several.

    Returns:
        A tensor with the shape of ``a`` and the new axes, and its dtype.

    >>> import dualflow as df
    >>> df.numpy.expand_dims([1, 2], 0).shape
    (1, 2)
    """
    x = tensor(a)
    new_axes = ints(axis, "axis")
    return arrangement.expand_dims(x, normalize_axes(new_axes, len(x.shape) + len(new_axes)))


def squeeze(a: TensorLike, axis: AxisLike | None = None) -> Tensor:
    """``a`` without axes of size 1.

    Args:
        axis: an axis or several to remove; all of size 1 by default.

    Returns:
        A tensor with the shape of ``a`` without these axes, and its dtype.

    Raises:
        InvalidArgumentError: an axis is not of size 1.

    >>> import dualflow as df
    >>> df.numpy.squeeze([[1, 2]]).shape
    (2,)
    """
    return arrangement.squeeze(tensor(a), axis)


def at_least(x: Any, rank: int) -> Tensor:
    """``x`` with new axes of size 1, so that it has ``rank`` axes or more; ``rank`` is at most 3.

    As in NumPy's ``atleast_3d``, a vector becomes the middle axis of three, and a matrix the first two.
    """
    x = tensor(x)
    missing = rank - len(x.shape)
    if missing <= 0:
        return x
    if rank == 3 and len(x.shape) > 0:
        return x[None, :, None] if missing == 2 else x[..., None]
    return x[(None,) * missing]


def _each(arrays: tuple[Any, ...], rank: int) -> Any:
    """Each array by :func:`at_least`; one alone as a tensor, several as a tuple."""
    tensors = tuple(at_least(x, rank) for x in arrays)
    return tensors[0] if len(tensors) == 1 else tensors


def atleast_1d(*arys: Any) -> Any:
    """The arguments with one axis or more: a number becomes a vector of size 1.

    Args:
        *arys: numbers of any shape.

    Returns:
        A tensor, or a tuple of them for several arguments; the dtypes stay.

    Raises:
        DTypeError: an argument can't become a tensor.

    >>> import dualflow as df
    >>> df.numpy.atleast_1d(5).shape
    (1,)
    """
    return _each(arys, 1)


def atleast_2d(*arys: Any) -> Any:
    """The arguments with two axes or more: new axes of size 1 come first.

    Args:
        *arys: numbers of any shape.

    Returns:
        A tensor, or a tuple of them for several arguments; the dtypes stay.

    Raises:
        DTypeError: an argument can't become a tensor.

    >>> import dualflow as df
    >>> df.numpy.atleast_2d([1, 2]).shape
    (1, 2)
    """
    return _each(arys, 2)


def atleast_3d(*arys: Any) -> Any:
    """The arguments with three axes or more: a vector becomes (1, n, 1), a matrix (m, n, 1).

    Args:
        *arys: numbers of any shape.

    Returns:
        A tensor, or a tuple of them for several arguments; the dtypes stay.

    Raises:
        DTypeError: an argument can't become a tensor.

    >>> import dualflow as df
    >>> df.numpy.atleast_3d([1, 2]).shape
    (1, 2, 1)
    """
    return _each(arys, 3)


# Broadcasting


def broadcast_to(array: TensorLike, shape: ShapeLike, subok: bool = False) -> Tensor:
    """``array`` broadcast to ``shape``: repeated along new leading axes and axes of size 1.

    Args:
        array: a tensor, an array, a number or nested lists of them.
        shape: an integer or a list of them.

    Returns:
        A tensor with the shape, and the dtype of ``array``.

    Raises:
        InvalidArgumentError: ``array`` doesn't broadcast to the shape.
        DTypeError: ``array`` can't become a tensor.

    >>> import dualflow as df
    >>> df.numpy.broadcast_to([1, 2], (2, 2)).numpy().tolist()
    [[1, 2], [1, 2]]
    """
    return broadcasting.broadcast_to(
        tensor(array), shape if isinstance(shape, list | tuple) else _as_list(shape)
    )


def broadcast_arrays(*args: Any, subok: bool = False) -> tuple[Tensor, ...]:
    """The arguments broadcast to their common shape.

    Args:
        *args: numbers of shapes that broadcast.

    Returns:
        A tuple of tensors of one shape; the dtypes stay.

    Raises:
        InvalidArgumentError: the shapes do not broadcast.
        DTypeError: an argument can't become a tensor.

    >>> import dualflow as df
    >>> [x.numpy().tolist() for x in df.numpy.broadcast_arrays([1, 2], 3)]
    [[1, 2], [3, 3]]
    """
    return tuple(operands.broadcast_together(*[tensor(x) for x in args]))


def broadcast_shapes(*args: Any) -> tuple[int, ...]:
    """The shape to which several shapes broadcast.

    Args:
        *args: shapes: integers or lists of them.

    Returns:
        A tuple of Python ints.

    Raises:
        ValueError: the shapes do not broadcast.

    >>> import dualflow as df
    >>> df.numpy.broadcast_shapes((3, 1), (4,))
    (3, 4)
    """
    return np.broadcast_shapes(*[tuple(s) if isinstance(s, tuple | list) else s for s in args])


complete_docstrings(globals())
make_entries(globals())
