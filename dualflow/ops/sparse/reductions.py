"""Sums and maxima over axes of a SparseTensor, softmax and indicators."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dualflow.core.dtypes import int32, int64
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import normalize_axes
from dualflow.ops.arrangement import expand_dims, reshape
from dualflow.ops.conversion import cast, stop_gradient
from dualflow.ops.creation import ones_like, zeros_like
from dualflow.ops.exponential import exp
from dualflow.ops.joining import concat
from dualflow.ops.masking import boolean_mask
from dualflow.ops.scattering import scatter_nd
from dualflow.ops.segments.segments import unsorted_segment_max, unsorted_segment_sum
from dualflow.ops.selection import where
from dualflow.ops.shapes import shape as shape_tensor
from dualflow.ops.shapes import size
from dualflow.ops.sparse.row_major import joined, row_major_positions, sparse
from dualflow.ops.sparse.sparse_tensor import SparseTensor
from dualflow.ops.static import int_or_symbolic, ints
from dualflow.ops.taking import gather

if TYPE_CHECKING:
    from dualflow.core.argument_types import AxisLike, IntLike
    from dualflow.ops.tensor import Tensor


def reduce_sum(
    sp_input: SparseTensor,
    axis: AxisLike | None = None,
    keepdims: bool | None = None,
    output_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor | SparseTensor:
    """The sum over ``axis``, by default over all axes.

    Args:
        sp_input: a SparseTensor of numbers.
        axis: an integer or a list; None for all axes.
        keepdims: whether the reduced axes stay, with size 1.
        output_is_sparse: whether the result is a SparseTensor, of the positions with elements to add.

    Returns:
        A tensor, or a SparseTensor, with the dtype of ``sp_input``.

    Raises:
        InvalidArgumentError: an axis is out of range.
        DTypeError: ``sp_input`` is not a SparseTensor.

    >>> import dualflow as df
    >>> df.sparse.reduce_sum(df.SparseTensor([[0, 1], [0, 2]], [1, 2], [2, 3]), axis=1).numpy()
    array([3, 0], dtype=int32)
    """
    return _reduced(sp_input, axis, keepdims, output_is_sparse, unsorted_segment_sum)


def reduce_max(
    sp_input: SparseTensor,
    axis: AxisLike | None = None,
    keepdims: bool | None = None,
    output_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor | SparseTensor:
    """The largest stored element over ``axis``, by default over all axes; 0 where none is stored.

    Args:
        sp_input: a SparseTensor of real numbers.
        axis: an integer or a list; None for all axes.
        keepdims: whether the reduced axes stay, with size 1.
        output_is_sparse: whether the result is a SparseTensor, of the positions with elements.

    Returns:
        A tensor, or a SparseTensor, with the dtype of ``sp_input``.

    Raises:
        InvalidArgumentError: an axis is out of range.
        DTypeError: ``sp_input`` is not a SparseTensor.

    >>> import dualflow as df
    >>> df.sparse.reduce_max(df.SparseTensor([[0, 1], [0, 2]], [-1, -2], [2, 3]), axis=1).numpy()
    array([-1,  0], dtype=int32)
    """
    return _reduced(sp_input, axis, keepdims, output_is_sparse, unsorted_segment_max)


def softmax(sp_input: SparseTensor, name: str | None = None) -> SparseTensor:
    """The softmax of the stored elements of each row, along the last axis.

    Args:
        sp_input: a SparseTensor of floats, of two axes or more.

    Returns:
        A SparseTensor with the shape and dtype of ``sp_input``.

    Raises:
        InvalidArgumentError: ``sp_input`` has fewer than two axes.
        DTypeError: ``sp_input`` is not a SparseTensor.

    >>> import dualflow as df
    >>> df.sparse.softmax(df.SparseTensor([[0, 1], [0, 2]], [0.0, 0.0], [2, 3])).values.numpy()
    array([0.5, 0.5], dtype=float32)
    """
    x = sparse(sp_input)
    if len(x.shape) < 2:
        raise InvalidArgumentError(
            f"softmax takes a SparseTensor of two axes or more, not of shape {x.shape}; "
            "df.sparse.expand_dims adds one."
        )
    rows = joined(row_major_positions(x.indices[:, :-1], x.sizes()[:-1]))
    row = scatter_nd(expand_dims(rows.order, 1), rows.segment, shape_tensor(rows.segment))
    count = size(row)
    values = exp(x.values - gather(unsorted_segment_max(stop_gradient(x.values), row, count), row))
    return x.with_values(values / gather(unsorted_segment_sum(values, row, count), row))


def to_indicator(sp_input: SparseTensor, vocab_size: IntLike, name: str | None = None) -> Tensor:
    """Whether a row stores a number, for each row and each number below ``vocab_size``.

    Args:
        sp_input: a SparseTensor of integers, whose last axis is reduced.
        vocab_size: the size of the last axis of the result, which may be known at run time only.

    Returns:
        A bool tensor of shape ``(*sp_input.shape[:-1], vocab_size)``.

    Raises:
        OutOfRangeError: a number is not below ``vocab_size``.
        DTypeError: ``sp_input`` is not a SparseTensor.

    >>> import dualflow as df
    >>> df.sparse.to_indicator(df.SparseTensor([[0, 0], [0, 1]], [2, 0], [1, 2]), 3).numpy().tolist()
    [[True, False, True]]
    """
    x = sparse(sp_input)
    indices = concat([x.indices[:, :-1], expand_dims(cast(x.values, int64), 1)], 1)
    shape = [*x.sizes()[:-1], int_or_symbolic(vocab_size, "vocab_size")]
    return scatter_nd(indices, ones_like(x.values, int32), shape) > 0


def _reduced(
    sp_input: SparseTensor,
    axis: Any,
    keepdims: Any,
    output_is_sparse: bool,
    segments: Callable[[Any, Any, Any], Any],
) -> Any:
    """The reduction of a SparseTensor: elements that differ only along ``axis`` are combined."""
    x = sparse(sp_input)
    rank = len(x.shape)
    reduced = normalize_axes(None if axis is None else ints(axis, "axis"), rank)
    remaining = [a for a in range(rank) if a not in reduced]
    shape = x.sizes()
    dense_shape = (
        [1 if a in reduced else shape[a] for a in range(rank)] if keepdims else [shape[a] for a in remaining]
    )
    indices = gather(x.indices, remaining, axis=1) if remaining else x.indices[:, :0]
    segment_ids = row_major_positions(indices, [shape[a] for a in remaining])
    if not output_is_sparse:
        count = math.prod(shape[a] for a in remaining)
        total = segments(x.values, segment_ids, count)
        stored = unsorted_segment_sum(ones_like(x.values, int32), segment_ids, count) > 0
        return reshape(where(stored, total, zeros_like(total)), dense_shape)
    index_list = joined(segment_ids)
    positions = index_list.at_first(indices)
    if keepdims:
        zero_column = (
            zeros_like(positions[:, :1]) if remaining else zeros_like(index_list.at_first(x.indices[:, :1]))
        )
        positions = concat(
            [zero_column if a in reduced else positions[:, remaining.index(a), None] for a in range(rank)], 1
        )
    ordered = segments(gather(x.values, index_list.order), index_list.segment, size(index_list.segment))
    return SparseTensor(
        positions, boolean_mask(gather(ordered, index_list.segment), index_list.first), dense_shape
    )
