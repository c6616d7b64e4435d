"""Reductions of ragged tensors: over all rows, in each row, and along inner axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from dualflow.core.dtypes import int32
from dualflow.core.records import NamedTuple
from dualflow.core.shape import normalize_axes
from dualflow.ops.arithmetic import divide, maximum
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.comparison import equal, logical_not
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor, ones_like
from dualflow.ops.ragged.ragged_rows import RaggedRows
from dualflow.ops.ragged.row_gathering import expand_rows, range_positions
from dualflow.ops.ragged.row_partitions import (
    longest,
    number_of_rows,
    positions_in_rows,
    row_ids,
    splits_of_lengths,
)
from dualflow.ops.reduction import reduce_all, reduce_any, reduce_max, reduce_min, reduce_prod
from dualflow.ops.segments import segments
from dualflow.ops.static import ints
from dualflow.ops.taking import gather

Segments = Callable[[Any, Any, Any], Any]
"""Combines the rows of each segment: ``(data, segment_ids, num_segments)``."""


class RowReduction(NamedTuple):
    """A reduction as two functions.

    Attributes:
        over_axes: reduces a tensor over axes, by default over all.
        over_segments: reduces the rows of each segment.
    """

    over_axes: Callable[..., Any]
    over_segments: Segments


def _any_of_segments(data: Any, ids: Any, count: Any) -> Any:
    """Whether a bool of each segment holds."""
    return segments.unsorted_segment_sum(cast(data, int32), ids, count) > 0


def _all_of_segments(data: Any, ids: Any, count: Any) -> Any:
    """Whether all bools of each segment hold."""
    return equal(segments.unsorted_segment_sum(cast(logical_not(data), int32), ids, count), 0)


def reduced(x: RaggedRows, reduction: RowReduction, axis: Any, keepdims: bool) -> Any:
    """The reduction of ``x`` over axes; over all axes for None."""
    if axis is None:
        return _whole(x, reduction, keepdims)
    rank = len(x.shape)
    axes = sorted(normalize_axes(ints(axis, "axis"), rank), reverse=True)
    if len(axes) == rank:
        return _whole(x, reduction, keepdims)
    result: Any = x
    for reduced_axis in axes:
        result = _along(result, reduction, reduced_axis)
        if keepdims:
            result = expand_rows(result, reduced_axis)
    return result


def _whole(x: RaggedRows, reduction: RowReduction, keepdims: bool) -> Any:
    total = reduction.over_axes(x.flat_values)
    if not keepdims:
        return total
    for _ in x.shape:
        total = expand_rows(total, 0)
    return total


def _along(x: Any, reduction: RowReduction, axis: int) -> Any:
    """The reduction over one axis."""
    if not isinstance(x, RaggedRows):
        return reduction.over_axes(x, axis)
    splits = x.row_splits
    if axis == 0:
        ids = row_ids(splits)
        width = longest(x.row_lengths())
        return reduce_over_rows(reduction.over_segments, x.values, positions_in_rows(splits, ids), width)
    if axis == 1:
        return reduce_over_rows(reduction.over_segments, x.values, row_ids(splits), number_of_rows(splits))
    return x.with_parts(_along(x.values, reduction, axis - 1), splits, x._uniform_row_length)


def reduce_over_rows(combine: Segments, data: Any, ids: Any, count: Any) -> Any:
    """One row for each segment: its rows, combined position by position.

    The ragged rows ``[1, 2, 3]`` and ``[10, 20]`` of a segment have the sum ``[11, 22, 3]``.
    """
    if not isinstance(data, RaggedRows):
        return combine(data, ids, count)
    lengths = segments.unsorted_segment_max(data.row_lengths(), ids, count)
    splits = splits_of_lengths(maximum(lengths, 0))
    positions = range_positions(gather(splits, ids), data.row_splits, convert_to_tensor(1, splits.dtype))
    return data.with_parts(reduce_over_rows(combine, data.values, positions, splits[-1]), splits)


SUM: Final = RowReduction(reduce_sum, segments.unsorted_segment_sum)
PROD: Final = RowReduction(reduce_prod, segments.unsorted_segment_prod)
MAX: Final = RowReduction(reduce_max, segments.unsorted_segment_max)
MIN: Final = RowReduction(reduce_min, segments.unsorted_segment_min)
ANY: Final = RowReduction(reduce_any, _any_of_segments)
ALL: Final = RowReduction(reduce_all, _all_of_segments)


def mean(x: RaggedRows, axis: Any, keepdims: bool) -> Any:
    """The mean: the sum divided by the number of elements; nan of no elements, and a float of integers."""
    ones = x.with_flat_values(ones_like(x.flat_values))
    return divide(reduced(x, SUM, axis, keepdims), reduced(ones, SUM, axis, keepdims))
