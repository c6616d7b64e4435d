"""The row-major positions of a SparseTensor's elements: sorting, joining, other shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core.dispatch import AbstractTensor
from dualflow.core.dtypes import int64
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.records import NamedTuple
from dualflow.core.shape import Shape, normalize_axis
from dualflow.core.tracebacks import entry
from dualflow.ops.arithmetic import maximum
from dualflow.ops.arrangement import expand_dims as dense_expand_dims
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.checks import required
from dualflow.ops.comparison import equal as is_equal
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor, zeros_like
from dualflow.ops.joining import concat, stack
from dualflow.ops.masking import boolean_mask
from dualflow.ops.reduction import reduce_max
from dualflow.ops.scans import cumsum
from dualflow.ops.scattering import tensor_scatter_nd_add
from dualflow.ops.sorting import argsort
from dualflow.ops.sparse.sparse_tensor import SparseTensor
from dualflow.ops.static import ints, ints_or_symbolic, shape_argument, static_int
from dualflow.ops.taking import gather

if TYPE_CHECKING:
    from dualflow.core.argument_types import AxisLike, ShapeLike, TensorLike


def sparse(value: Any) -> SparseTensor:
    """``value``, which must be a SparseTensor.

    Raises:
        DTypeError: it is something else.
    """
    if isinstance(value, SparseTensor):
        return value
    if all(hasattr(value, name) for name in ("indices", "values", "dense_shape")):
        return SparseTensor.from_value(value)
    raise DTypeError(
        f"A SparseTensor is required, not {value!r}; df.sparse.from_dense makes one of a tensor."
    )


def row_major_positions(indices: Any, shape: Sequence[Any]) -> Any:
    """The row-major position of each element in ``shape``: integers, or scalar tensors of them.

    Raises:
        InvalidArgumentError: there are more positions than int64 has numbers.
    """
    if math.prod(size for size in shape if isinstance(size, int)) >= 1 << 63:
        raise InvalidArgumentError(
            f"A SparseTensor of shape {tuple(shape)} has more places than int64 can number; make it smaller."
        )
    number = indices[:, 0] if len(shape) else reduce_sum(indices, 1)
    for axis, size in list(enumerate(shape))[1:]:
        number = number * size + indices[:, axis]
    return number


def indices_at(numbers: Any, shape: Sequence[Any]) -> Any:
    """The rows of indices from row-major positions."""
    columns: list[Any] = []
    for size in reversed(shape[1:]):
        size = max(size, 1) if isinstance(size, int) else maximum(size, 1)  # of size 0, there are no numbers
        columns.insert(0, numbers % size)
        numbers = numbers // size
    return stack([numbers, *columns], 1) if len(shape) else cast(dense_expand_dims(numbers, 1)[:, :0], int64)


class Joined(NamedTuple):
    """Elements sorted by their positions, several of which may be equal.

    Attributes:
        order: the indices that sort the elements.
        first: for each sorted element, whether it is the first at its position.
        segment: for each sorted element, the number of its position among the distinct ones.
    """

    order: Any
    first: Any
    segment: Any

    def at_first(self, x: Any) -> Any:
        """The rows of ``x``, one for each element, of the first element at each position."""
        return boolean_mask(gather(x, self.order), self.first)

    def sums(self, values: Any) -> Any:
        """The sum of the values at each position."""
        ordered = gather(values, self.order)
        totals = tensor_scatter_nd_add(zeros_like(ordered), dense_expand_dims(self.segment, 1), ordered)
        return boolean_mask(gather(totals, self.segment), self.first)


def joined(numbers: Any) -> Joined:
    """The sorted order of elements at row-major positions, and their groups."""
    order = argsort(numbers, stable=True)
    ordered = gather(numbers, order)
    before = concat([convert_to_tensor(np.array([-1])), ordered], 0)[:-1]
    first = ordered != before
    return Joined(order, first, cumsum(cast(first, int64)) - 1)


def reorder(sp_input: SparseTensor, name: str | None = None) -> SparseTensor:
    """The elements in row-major order; those at one position keep their order.

    Args:
        sp_input: a SparseTensor.

    Returns:
        A SparseTensor with the shape and dtype of ``sp_input``.

    Raises:
        DTypeError: ``sp_input`` is not a SparseTensor.

    >>> import dualflow as df
    >>> x = df.SparseTensor([[1, 0], [0, 2]], [1, 2], [2, 3])
    >>> df.sparse.reorder(x).values.numpy()
    array([2, 1], dtype=int32)
    """
    x = sparse(sp_input)
    order = argsort(row_major_positions(x.indices, x.sizes()), stable=True)
    return SparseTensor(gather(x.indices, order), gather(x.values, order), x.sizes())


@entry
def reset_shape(sp_input: SparseTensor, new_shape: ShapeLike | None = None) -> SparseTensor:
    """The same elements with another shape: a larger one, or the smallest that holds them.

    Args:
        sp_input: a SparseTensor.
        new_shape: as many sizes, none of which is smaller; None for one more than the largest index on each
            axis.

    Returns:
        A SparseTensor with the dtype of ``sp_input``.

    Raises:
        InvalidArgumentError: the rank is another, or a size smaller.
        DTypeError: ``sp_input`` is not a SparseTensor.

    >>> import dualflow as df
    >>> df.sparse.reset_shape(df.SparseTensor([[0, 1]], [1.0], [5, 5])).shape
    (1, 2)
    """
    x = sparse(sp_input)
    if new_shape is None:
        padded = concat([x.indices, np.full((1, len(x.shape)), -1)], 0)
        return SparseTensor(x.indices, x.values, reduce_max(padded, 0) + 1)
    target = Shape(shape_argument(new_shape))
    smaller = any(b is not None and a is not None and b < a for a, b in zip(x.shape, target, strict=False))
    if len(target) != len(x.shape) or smaller:
        raise InvalidArgumentError(
            f"reset_shape of a SparseTensor of shape {x.shape} can't make it {target}: as many sizes are "
            "required, none smaller; df.sparse.slice takes a part."
        )
    return SparseTensor(x.indices, x.values, new_shape)


def reshape(sp_input: SparseTensor, shape: ShapeLike, name: str | None = None) -> SparseTensor:
    """The same elements, in row-major order, with another shape.

    Args:
        sp_input: a SparseTensor.
        shape: the new sizes, of the same product, which may be known at run time only; one may be -1.

    Returns:
        A SparseTensor with the dtype of ``sp_input``.

    Raises:
        InvalidArgumentError: the shapes don't have the same number of positions.
        DTypeError: ``sp_input`` is not a SparseTensor.

    >>> import dualflow as df
    >>> x = df.SparseTensor([[0, 1], [1, 2]], [1, 2], [3, 4])
    >>> df.sparse.reshape(x, [4, -1]).indices.numpy().tolist()
    [[0, 1], [2, 0]]
    """
    x = sparse(sp_input)
    old = x.sizes()
    target = list(map(as_int64, ints_or_symbolic(shape, "shape")))
    negative = [axis for axis, size in enumerate(target) if isinstance(size, int) and size < 0]
    count, product = math.prod(old), math.prod([n for axis, n in enumerate(target) if axis not in negative])
    error = _other_count(x, target)
    if [target[axis] for axis in negative] not in ([], [-1]):
        raise error
    for axis in negative:
        target[axis] = count // (max(product, 1) if isinstance(product, int) else maximum(product, 1))
    equal = (count == math.prod(target)) & (product != 0 if negative else True)
    positions = row_major_positions(x.indices, old)
    if isinstance(equal, AbstractTensor):
        positions = required(positions, equal, str(error))
        target = [required(n, equal, str(error)) if isinstance(n, AbstractTensor) else n for n in target]
    elif not equal:
        raise error
    return SparseTensor(indices_at(positions, target), x.values, target)


def equal_sizes(sizes: Sequence[Any], message: str) -> Any:
    """The first of several sizes; an error with ``message`` unless all are equal.

    Raises:
        InvalidArgumentError: with ``message``, if two of them are static and differ.
    """
    static_sizes = {size for size in sizes if isinstance(size, int)}
    if len(static_sizes) > 1:
        raise InvalidArgumentError(message)
    first, *others = [as_int64(size) for size in sizes]
    for other in others:
        if not isinstance(first, int) or not isinstance(other, int):
            first = required(convert_to_tensor(first, int64), is_equal(first, other), message)
    return first


def as_int64(number: Any) -> Any:
    """An int unchanged, or a scalar tensor of integers as int64."""
    return number if isinstance(number, int) else cast(number, int64)


def _other_count(x: SparseTensor, target: Sequence[Any]) -> InvalidArgumentError:
    shape = tuple([size if isinstance(size, int) else None for size in target])
    return InvalidArgumentError(
        f"A SparseTensor of shape {x.shape} can't be reshaped to {shape}: the number of places must stay the "
        "same, and one size may be -1."
    )


def transpose(
    sp_input: SparseTensor, perm: TensorLike | None = None, name: str | None = None
) -> SparseTensor:
    """A SparseTensor with its axes in another order, and sorted indices.

    Args:
        sp_input: a SparseTensor.
        perm: for each axis of the result, the axis of ``sp_input`` that it is; None reverses the order.

    Returns:
        A SparseTensor with the dtype of ``sp_input``.

    Raises:
        InvalidArgumentError: ``perm`` does not contain each axis once.
        DTypeError: ``sp_input`` is not a SparseTensor.

    >>> import dualflow as df
    >>> df.sparse.transpose(df.SparseTensor([[0, 1]], [1.0], [2, 3])).indices.numpy().tolist()
    [[1, 0]]
    """
    x = sparse(sp_input)
    rank = len(x.shape)
    axes = list(range(rank))[::-1] if perm is None else [*ints(perm, "perm")]
    if sorted(axes) != list(range(rank)):
        raise InvalidArgumentError(f"perm {axes} does not name each of {rank} axes once.")
    shape = x.sizes()
    return reorder(SparseTensor(gather(x.indices, axes, axis=1), x.values, [shape[a] for a in axes]))


def expand_dims(
    sp_input: SparseTensor, axis: AxisLike | None = None, name: str | None = None
) -> SparseTensor:
    """A SparseTensor with an axis of size 1 inserted.

    Args:
        sp_input: a SparseTensor.
        axis: the position of the new axis; None for the last.

    Returns:
        A SparseTensor with the dtype of ``sp_input``.

    Raises:
        InvalidArgumentError: ``axis`` is out of range.
        DTypeError: ``sp_input`` is not a SparseTensor.

    >>> import dualflow as df
    >>> df.sparse.expand_dims(df.SparseTensor([[0, 1]], [1.0], [2, 3]), 0).shape
    (1, 2, 3)
    """
    x = sparse(sp_input)
    at = normalize_axis(static_int(-1 if axis is None else axis, "axis"), len(x.shape) + 1)
    shape, column = x.sizes(), zeros_like(reduce_sum(x.indices, 1, keepdims=True))
    indices = concat([x.indices[:, :at], column, x.indices[:, at:]], 1)
    return SparseTensor(indices, x.values, [*shape[:at], 1, *shape[at:]])
