"""Sums of gathered rows by segments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dualflow.core.dtypes import int64
from dualflow.core.errors import InvalidArgumentError
from dualflow.ops.checks import required
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.reduction import reduce_all
from dualflow.ops.segments.rows import count_up_to
from dualflow.ops.segments.segments import (
    unsorted_segment_mean,
    unsorted_segment_sqrt_n,
    unsorted_segment_sum,
)
from dualflow.ops.taking import gather

if TYPE_CHECKING:
    from dualflow.core.argument_types import IntLike, TensorLike
    from dualflow.ops.tensor import Tensor


def segment_sum(
    data: TensorLike,
    indices: TensorLike,
    segment_ids: TensorLike,
    num_segments: IntLike | None = None,
    name: str | None = None,
    sparse_gradient: bool = False,
) -> Tensor:
    """The sum of the rows gathered by ``indices``, for each segment; 0 for a segment without rows.

    Args:
        data: numbers of one axis or more.
        indices: the rows to gather, integers of shape ``(n,)``.
        segment_ids: the segment of each of them, integers of shape ``(n,)`` in ascending order.
        num_segments: the number of segments; None for one more than the last id.
        sparse_gradient: ignored: gradients are dense.

    Returns:
        A tensor of shape ``(num_segments, *data.shape[1:])`` with the dtype of ``data``.

    Raises:
        InvalidArgumentError: the ids are not in order, or there isn't one for each index.
        OutOfRangeError: an index is outside of ``data``.

    >>> import dualflow as df
    >>> df.sparse.segment_sum([[1, 2], [3, 4], [5, 6]], [0, 0, 2], [0, 0, 2]).numpy().tolist()
    [[2, 4], [0, 0], [5, 6]]
    """
    return unsorted_segment_sum(*_gather_rows(data, indices, segment_ids, num_segments))


def segment_mean(
    data: TensorLike,
    indices: TensorLike,
    segment_ids: TensorLike,
    num_segments: IntLike | None = None,
    name: str | None = None,
    sparse_gradient: bool = False,
) -> Tensor:
    """The mean of the rows gathered by ``indices``, for each segment; 0 for a segment without rows.

    Args:
        data: numbers of one axis or more.
        indices: the rows to gather, integers of shape ``(n,)``.
        segment_ids: the segment of each of them, integers of shape ``(n,)`` in ascending order.
        num_segments: the number of segments; None for one more than the last id.
        sparse_gradient: ignored: gradients are dense.

    Returns:
        A tensor of shape ``(num_segments, *data.shape[1:])`` with the dtype of ``data``; a float dtype for
        integers.

    Raises:
        InvalidArgumentError: the ids are not in order, or there isn't one for each index.
        OutOfRangeError: an index is outside of ``data``.

    >>> import dualflow as df
    >>> df.sparse.segment_mean([[1.0], [3.0]], [0, 1], [0, 0]).numpy().tolist()
    [[2.0]]
    """
    return unsorted_segment_mean(*_gather_rows(data, indices, segment_ids, num_segments))


def segment_sqrt_n(
    data: TensorLike,
    indices: TensorLike,
    segment_ids: TensorLike,
    num_segments: IntLike | None = None,
    name: str | None = None,
    sparse_gradient: bool = False,
) -> Tensor:
    """The sum of the gathered rows of each segment, divided by the square root of their number.

    Args:
        data: numbers of one axis or more.
        indices: the rows to gather, integers of shape ``(n,)``.
        segment_ids: the segment of each of them, integers of shape ``(n,)`` in ascending order.
        num_segments: the number of segments; None for one more than the last id.
        sparse_gradient: ignored: gradients are dense.

    Returns:
        A tensor of shape ``(num_segments, *data.shape[1:])`` with the dtype of ``data``; a float dtype for
        integers.

    Raises:
        InvalidArgumentError: the ids are not in order, or there isn't one for each index.
        OutOfRangeError: an index is outside of ``data``.

    >>> import dualflow as df
    >>> df.sparse.segment_sqrt_n([[1.0], [3.0]], [0, 1, 1, 0], [0, 0, 0, 0]).numpy().tolist()
    [[4.0]]
    """
    return unsorted_segment_sqrt_n(*_gather_rows(data, indices, segment_ids, num_segments))


def _gather_rows(data: Any, indices: Any, segment_ids: Any, num_segments: Any) -> tuple[Any, Any, Any]:
    ids = convert_to_tensor(segment_ids, dtype_hint=int64)
    rows = convert_to_tensor(indices, dtype_hint=int64)
    if len(ids.shape) != 1 or not ids.shape.is_compatible_with(rows.shape):
        raise InvalidArgumentError(
            f"segment_ids are one for each index, but their shape is {ids.shape} and that of the indices "
            f"{rows.shape}."
        )
    ids = required(
        ids, reduce_all(ids[1:] >= ids[:-1]), "segment_ids must be in ascending order; sort them first."
    )
    return gather(data, rows), ids, count_up_to(ids) if num_segments is None else num_segments
