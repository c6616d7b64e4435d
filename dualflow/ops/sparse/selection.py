"""Parts of SparseTensors and of IndexedSlices: slicing, joining, selecting and filling."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import normalize_axis
from dualflow.core.tracebacks import entry
from dualflow.ops.arithmetic import maximum, minimum
from dualflow.ops.checks import required
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor, zeros_like
from dualflow.ops.joining import concat as join
from dualflow.ops.joining import stack
from dualflow.ops.masking import boolean_mask
from dualflow.ops.reduction import reduce_all, reduce_any
from dualflow.ops.scattering import scatter_nd
from dualflow.ops.selection import where
from dualflow.ops.sparse.indexed_slices import IndexedSlices
from dualflow.ops.sparse.row_major import as_int64, equal_sizes, reorder, sparse
from dualflow.ops.sparse.sparse_tensor import SparseTensor
from dualflow.ops.static import ints_or_symbolic, static_int

if TYPE_CHECKING:
    from dualflow.core.argument_types import AxisLike, IntLike, IntsLike, ShapeLike, TensorLike
    from dualflow.ops.tensor import Tensor


@entry
def retain(sp_input: SparseTensor, to_retain: TensorLike) -> SparseTensor:
    """The elements for which ``to_retain`` is true.

    Args:
        sp_input: a SparseTensor.
        to_retain: a bool for each stored element.

    Returns:
        A SparseTensor with the shape and dtype of ``sp_input``.

    Raises:
        InvalidArgumentError: there are more or fewer bools than elements.
        DTypeError: ``sp_input`` is not a SparseTensor.

    >>> import dualflow as df
    >>> x = df.SparseTensor([[0], [2]], [5, 6], [3])
    >>> df.sparse.retain(x, [False, True]).indices.numpy().tolist()
    [[2]]
    """
    x, mask = sparse(sp_input), convert_to_tensor(to_retain)
    if not mask.shape.is_compatible_with(x.values.shape):
        raise InvalidArgumentError(
            f"retain requires a bool for each of {x.values.shape[0]} elements, not the shape {mask.shape}."
        )
    return SparseTensor(boolean_mask(x.indices, mask), boolean_mask(x.values, mask), x.sizes())


def slice(sp_input: SparseTensor, start: IntsLike, size: ShapeLike, name: str | None = None) -> SparseTensor:
    """The part that begins at ``start`` and has at most the shape ``size``; it ends where the tensor ends.

    Args:
        sp_input: a SparseTensor.
        start: the first index on each axis, which may be known at run time only.
        size: the size on each axis, likewise.

    Returns:
        A SparseTensor with the dtype of ``sp_input``.

    Raises:
        InvalidArgumentError: ``start`` or ``size`` doesn't have one entry for each axis.
        DTypeError: ``sp_input`` is not a SparseTensor.

    >>> import dualflow as df
    >>> x = df.SparseTensor([[0, 1], [1, 2]], [1, 2], [3, 4])
    >>> part = df.sparse.slice(x, [1, 1], [9, 2])
    >>> part.shape, part.indices.numpy().tolist()
    ((2, 2), [[0, 1]])
    """
    x = sparse(sp_input)
    first, sizes = ints_or_symbolic(start, "start"), ints_or_symbolic(size, "size")
    if not len(first) == len(sizes) == len(x.shape):
        raise InvalidArgumentError(
            f"start and size have an entry for each of {len(x.shape)} axes, not {len(first)} and "
            f"{len(sizes)}."
        )
    shape = [_within(n, a, b) for n, a, b in zip(x.sizes(), first, sizes, strict=True)]
    indices = x.indices - _vector(first)
    inside = reduce_all((indices >= 0) & (indices < _vector(sizes)), 1)
    return SparseTensor(boolean_mask(indices, inside), boolean_mask(x.values, inside), shape)


def _within(axis_size: Any, start: Any, length: Any) -> Any:
    """The number of elements of ``start : start + length`` that the axis has."""
    if all(isinstance(x, int) for x in (axis_size, start, length)):
        return max(0, min(length, axis_size - max(start, 0)))
    remaining = as_int64(axis_size) - maximum(as_int64(start), 0)
    return maximum(minimum(as_int64(length), remaining), 0)


def _vector(numbers: Sequence[Any]) -> Any:
    """Integers, some of which may be scalar tensors, as one tensor or array of int64."""
    if all(isinstance(x, int) for x in numbers):
        return np.array(numbers, np.int64)
    return stack([as_int64(x) for x in numbers])


def split(
    sp_input: SparseTensor | None = None,
    num_split: IntLike | None = None,
    axis: AxisLike | None = None,
    name: str | None = None,
) -> list[SparseTensor]:
    """``num_split`` parts along ``axis``; the first ones are larger by one if sizes can't be equal.

    Args:
        sp_input: a SparseTensor.
        num_split: the number of parts.
        axis: the axis to split.

    Returns:
        A list of SparseTensors.

    Raises:
        InvalidArgumentError: ``num_split`` is not between 1 and the size of the axis.
        DTypeError: ``sp_input`` is not a SparseTensor.

    >>> import dualflow as df
    >>> [part.shape for part in df.sparse.split(df.sparse.eye(3), 2, axis=0)]
    [(2, 3), (1, 3)]
    """
    x = sparse(sp_input)
    at, count = normalize_axis(static_int(axis, "axis"), len(x.shape)), static_int(num_split, "num_split")
    length = x.sizes()[at]
    if not count > 0 or (isinstance(length, int) and count > length):
        raise InvalidArgumentError(
            f"split makes between 1 and {length} parts along axis {at} of shape {x.shape}, not {count}."
        )
    if not isinstance(length, int):
        length = required(
            length, length >= count, f"split makes {count} parts of an axis with fewer elements"
        )
    ends = [i * (length // count) + _least(i, length % count) for i in range(count + 1)]
    whole = x.sizes()
    return [
        slice(x, [*[0] * at, a, *[0] * (len(whole) - at - 1)], [*whole[:at], b - a, *whole[at + 1 :]])
        for a, b in pairwise(ends)
    ]


def _least(x: int, y: Any) -> Any:
    return min(x, y) if isinstance(y, int) else minimum(x, y)


def concat(
    axis: AxisLike, sp_inputs: Sequence[Any], expand_nonconcat_dims: bool = False, name: str | None = None
) -> SparseTensor:
    """SparseTensors joined along ``axis``, with sorted indices.

    Args:
        axis: the axis along which to join.
        sp_inputs: a list of SparseTensors of one rank.
        expand_nonconcat_dims: whether sizes on other axes may differ; then the largest is taken.

    Returns:
        A SparseTensor.

    Raises:
        InvalidArgumentError: the list is empty, or ranks or sizes on other axes differ.
        DTypeError: an entry is not a SparseTensor.

    >>> import dualflow as df
    >>> df.sparse.concat(0, [df.sparse.eye(2), df.sparse.eye(2)]).indices.numpy().tolist()
    [[0, 0], [1, 1], [2, 0], [3, 1]]
    """
    tensors = [sparse(x) for x in (sp_inputs if isinstance(sp_inputs, list | tuple) else [sp_inputs])]
    if not tensors or len({len(x.shape) for x in tensors}) != 1:
        raise InvalidArgumentError(
            f"concat takes SparseTensors of one rank, not of shapes {[tuple(x.shape) for x in tensors]}."
        )
    at = normalize_axis(static_int(axis, "axis"), len(tensors[0].shape))
    rank = len(tensors[0].shape)
    shape = [
        _joint(a, [x.sizes()[a] for x in tensors], expand_nonconcat_dims or a == at) for a in range(rank)
    ]
    indices, offset = [], 0
    for x in tensors:
        step = [offset if a == at else 0 for a in range(rank)]
        indices.append(x.indices + (np.array(step) if isinstance(offset, int) else stack(step)))
        offset = offset + x.sizes()[at]
    shape[at] = offset
    return reorder(SparseTensor(join(indices, 0), join([x.values for x in tensors], 0), shape))


def _joint(axis: int, all_sizes: list[Any], expand: bool) -> Any:
    """The size of an axis other than the one along which tensors are joined."""
    if expand:
        static_sizes = [size for size in all_sizes if isinstance(size, int)]
        others = [as_int64(size) for size in all_sizes if not isinstance(size, int)]
        largest: Any = max(static_sizes, default=0)
        for size in others:
            largest = maximum(size, largest)
        return largest
    static_sizes = sorted({size for size in all_sizes if isinstance(size, int)})
    shown = f"sizes {static_sizes}" if len(static_sizes) > 1 else "different sizes"
    return equal_sizes(
        all_sizes,
        f"SparseTensors have {shown} on axis {axis}, which is not joined; sizes must be equal there, or "
        "expand_nonconcat_dims=True takes the largest.",
    )


def mask(a: TensorLike, mask_indices: TensorLike, name: str | None = None) -> IndexedSlices:
    """The slices of ``a`` whose index is not among ``mask_indices``.

    Args:
        a: IndexedSlices.
        mask_indices: a vector of integers.

    Returns:
        IndexedSlices with the shape and dtype of ``a``.

    Raises:
        DTypeError: ``a`` is not an IndexedSlices.

    >>> import dualflow as df
    >>> rows = df.IndexedSlices([[1, 2], [3, 4]], [0, 5], [6, 2])
    >>> df.sparse.mask(rows, [5]).values.numpy().tolist()
    [[1, 2]]
    """
    if not isinstance(a, IndexedSlices):
        raise DTypeError(f"mask takes IndexedSlices, not {a!r}; df.boolean_mask picks rows of a tensor.")
    out = convert_to_tensor(mask_indices, dtype_hint=a.indices.dtype)
    remaining = ~reduce_any(a.indices[:, None] == out, 1)
    return IndexedSlices(boolean_mask(a.values, remaining), boolean_mask(a.indices, remaining), a.dense_shape)


def fill_empty_rows(
    sp_input: SparseTensor, default_value: TensorLike, name: str | None = None
) -> tuple[SparseTensor, Tensor]:
    """A SparseTensor with ``default_value`` in the first column of each row that has no element.

    Args:
        sp_input: a SparseTensor of two axes or more.
        default_value: a scalar.

    Returns:
        The SparseTensor, with sorted indices, and a bool for each row: whether it was empty.

    Raises:
        InvalidArgumentError: ``sp_input`` has fewer than two axes.
        DTypeError: ``sp_input`` is not a SparseTensor.

    >>> import dualflow as df
    >>> x, empty = df.sparse.fill_empty_rows(df.SparseTensor([[0, 1]], [5], [2, 3]), 0)
    >>> x.indices.numpy().tolist(), empty.numpy().tolist()
    ([[0, 1], [1, 0]], [False, True])
    """
    x = sparse(sp_input)
    if len(x.shape) < 2:
        raise InvalidArgumentError(
            f"A SparseTensor of shape {x.shape} has no rows; df.sparse.expand_dims it."
        )
    ones = zeros_like(x.indices[:, 0]) + 1
    empty = scatter_nd(x.indices[:, :1], ones, x.sizes()[:1]) == 0
    rows = where(empty)
    indices = join([x.indices, join([rows, zeros_like(join([rows] * (len(x.shape) - 1), 1))], 1)], 0)
    number = cast(convert_to_tensor(default_value, dtype_hint=x.dtype), x.dtype)
    values = join([x.values, zeros_like(rows[:, 0], x.dtype) + number], 0)
    return reorder(SparseTensor(indices, values, x.sizes())), empty
