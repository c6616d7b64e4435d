"""Places of a SparseTensor's elements as numbers in row-major order: sorting, joining, other shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dualflow.core.dtypes import int64
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.records import NamedTuple
from dualflow.core.shape import Shape, normalize_axis
from dualflow.core.tracebacks import entry
from dualflow.ops.arrangement import expand_dims as dense_expand_dims
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor, zeros_like
from dualflow.ops.joining import concat, stack
from dualflow.ops.masking import boolean_mask
from dualflow.ops.reduction import reduce_max
from dualflow.ops.scans import cumsum
from dualflow.ops.scattering import tensor_scatter_nd_add
from dualflow.ops.sorting import argsort
from dualflow.ops.sparse.sparse_tensor import SparseTensor
from dualflow.ops.static import ints, sizes, static_int
from dualflow.ops.taking import gather


def sparse(value: Any) -> SparseTensor:
    """``value``, which must be a SparseTensor.

    Raises:
        DTypeError: it is something else.
    """
    if isinstance(value, SparseTensor):
        return value
    if all(hasattr(value, name) for name in ("indices", "values", "dense_shape")):
        return SparseTensor.from_value(value)
    raise DTypeError(f"A SparseTensor is wanted, not {value!r}; df.sparse.from_dense makes one of a tensor.")


def place_numbers(indices: Any, shape: Sequence[Any]) -> Any:
    """The number of each place in row-major order, of ``shape``: integers, or scalars of them.

    Raises:
        InvalidArgumentError: there are more places than int64 has numbers.
    """
    if math.prod(size for size in shape if isinstance(size, int)) >= 1 << 63:
        raise InvalidArgumentError(
            f"A SparseTensor of shape {tuple(shape)} has more places than int64 can number; make it smaller."
        )
    number = indices[:, 0] if len(shape) else reduce_sum(indices, 1)
    for axis, size in list(enumerate(shape))[1:]:
        number = number * size + indices[:, axis]
    return number


def places_of(numbers: Any, shape: Sequence[Any]) -> Any:
    """The rows of indices for numbers of places."""
    columns: list[Any] = []
    for size in reversed(shape[1:]):
        columns.insert(0, numbers % size)
        numbers = numbers // size
    return stack([numbers, *columns], 1) if len(shape) else cast(dense_expand_dims(numbers, 1)[:, :0], int64)


class Joined(NamedTuple):
    """Elements sorted by the number of their place, of which several may be at one."""

    order: Any
    first: Any
    segment: Any

    def at_first(self, x: Any) -> Any:
        """What a row for each element has at the first element of each place."""
        return boolean_mask(gather(x, self.order), self.first)

    def sums(self, values: Any) -> Any:
        """The sum of the values at each place."""
        ordered = gather(values, self.order)
        totals = tensor_scatter_nd_add(zeros_like(ordered), dense_expand_dims(self.segment, 1), ordered)
        return boolean_mask(gather(totals, self.segment), self.first)


def joined(numbers: Any) -> Joined:
    """How elements at places of these numbers are sorted and joined."""
    order = argsort(numbers, stable=True)
    ordered = gather(numbers, order)
    before = concat([convert_to_tensor(np.array([-1])), ordered], 0)[:-1]
    first = ordered != before
    return Joined(order, first, cumsum(cast(first, int64)) - 1)


def reorder(sp_input: Any, name: str | None = None) -> SparseTensor:
    """The elements sorted by their places, row by row; those of one place keep their order.

    >>> import dualflow as df
    >>> x = df.SparseTensor([[1, 0], [0, 2]], [1, 2], [2, 3])
    >>> df.sparse.reorder(x).values.numpy()
    array([2, 1], dtype=int32)
    """
    x = sparse(sp_input)
    order = argsort(place_numbers(x.indices, x.sizes()), stable=True)
    return SparseTensor(gather(x.indices, order), gather(x.values, order), x.sizes())


@entry
def reset_shape(sp_input: Any, new_shape: Any = None) -> SparseTensor:
    """The same elements in a tensor of another shape: a larger one, or the smallest that holds them.

    Args:
        sp_input: a SparseTensor.
        new_shape: as many sizes, none of which is smaller; by default one more than the largest index of each
            axis.

    Raises:
        InvalidArgumentError: another rank, or a smaller size.

    >>> import dualflow as df
    >>> df.sparse.reset_shape(df.SparseTensor([[0, 1]], [1.0], [5, 5])).shape
    (1, 2)
    """
    x = sparse(sp_input)
    if new_shape is None:
        padded = concat([x.indices, np.full((1, len(x.shape)), -1)], 0)
        return SparseTensor(x.indices, x.values, reduce_max(padded, 0) + 1)
    wanted = Shape(sizes(new_shape))
    smaller = any(b is not None and a is not None and b < a for a, b in zip(x.shape, wanted, strict=False))
    if len(wanted) != len(x.shape) or smaller:
        raise InvalidArgumentError(
            f"reset_shape of a SparseTensor of shape {x.shape} can't make it {wanted}: as many sizes are "
            "wanted, none smaller; df.sparse.slice takes a part."
        )
    return SparseTensor(x.indices, x.values, new_shape)


def reshape(sp_input: Any, shape: Any, name: str | None = None) -> SparseTensor:
    """The same elements in row-major order in another shape, of which one size may be -1.

    Raises:
        InvalidArgumentError: the shapes don't have the same number of places.

    >>> import dualflow as df
    >>> x = df.SparseTensor([[0, 1], [1, 2]], [1, 2], [3, 4])
    >>> df.sparse.reshape(x, [4, -1]).indices.numpy().tolist()
    [[0, 1], [2, 0]]
    """
    x = sparse(sp_input)
    old, wanted = x.sizes(), list(ints(shape, "shape"))
    count = math.prod(old)
    rest = math.prod(size for size in wanted if size != -1)
    if wanted.count(-1) == 1 and rest and isinstance(count, int) and not count % rest:
        wanted[wanted.index(-1)] = count // rest
    if min(wanted, default=0) < 0 or (isinstance(count, int) and math.prod(wanted) != count):
        raise InvalidArgumentError(
            f"A SparseTensor of shape {x.shape} can't be reshaped to {tuple(ints(shape, 'shape'))}: the "
            "number of places must stay the same, and one size may be -1."
        )
    return SparseTensor(places_of(place_numbers(x.indices, old), wanted), x.values, wanted)


def transpose(sp_input: Any, perm: Any = None, name: str | None = None) -> SparseTensor:
    """The axes in the order ``perm``, by default reversed, and the elements sorted by their new places.

    Raises:
        InvalidArgumentError: ``perm`` does not name each axis once.

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


def expand_dims(sp_input: Any, axis: Any = None, name: str | None = None) -> SparseTensor:
    """A new axis of size 1 before ``axis``; -1, the default, puts it last.

    Raises:
        InvalidArgumentError: ``axis`` is outside of the axes that the result has.

    >>> import dualflow as df
    >>> df.sparse.expand_dims(df.SparseTensor([[0, 1]], [1.0], [2, 3]), 0).shape
    (1, 2, 3)
    """
    x = sparse(sp_input)
    at = normalize_axis(static_int(-1 if axis is None else axis, "axis"), len(x.shape) + 1)
    shape, column = x.sizes(), zeros_like(reduce_sum(x.indices, 1, keepdims=True))
    places = concat([x.indices[:, :at], column, x.indices[:, at:]], 1)
    return SparseTensor(places, x.values, [*shape[:at], 1, *shape[at:]])
