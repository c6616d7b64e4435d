"""Rows and parts of ragged tensors: gathers of ranges of values, indexing, and masks."""

from __future__ import annotations

from typing import Any

from dualflow.core.dispatch import AbstractTensor, AbstractVariable
from dualflow.core.dtypes import int32, int64
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.ops.arithmetic import add, maximum, minimum
from dualflow.ops.arrangement import expand_dims, reshape
from dualflow.ops.checks import required
from dualflow.ops.comparison import less, logical_and
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.masking import boolean_mask
from dualflow.ops.positions import range as count_up
from dualflow.ops.ragged.ragged_rows import RaggedRows
from dualflow.ops.ragged.row_partitions import (
    number_of_rows,
    positions_in_rows,
    require_same_rows,
    row_ids,
    size_along,
    splits_of_lengths,
    splits_of_ranges,
)
from dualflow.ops.record import holds_tensors
from dualflow.ops.reduction import reduce_all
from dualflow.ops.segments.segments import unsorted_segment_sum
from dualflow.ops.selection import where
from dualflow.ops.static import static_int, static_value
from dualflow.ops.taking import gather
from dualflow.ops.tensor_sizes import axis_sizes


def rows_of(x: Any) -> Any:
    """The number of rows of a tensor or a ragged tensor, a scalar int64 tensor."""
    if isinstance(x, RaggedRows):
        return cast(number_of_rows(x.row_splits), int64)
    return size_along(x, 0)


def range_positions(starts: Any, splits: Any, deltas: Any) -> Any:
    """The concatenated integers of ranges that start at ``starts``, in steps of ``deltas``.

    ``splits`` partitions the integers into the ranges; ``deltas`` is a scalar or one for each range.
    """
    ids = row_ids(splits)
    steps = gather(deltas, ids) if len(deltas.shape) else deltas
    return gather(starts, ids) + positions_in_rows(splits, ids) * steps


def take_rows(x: Any, indices: Any) -> Any:
    """Rows of a tensor or a ragged tensor by a vector of integers."""
    if not isinstance(x, RaggedRows):
        return gather(x, indices)
    rows = _checked_rows(x, indices)
    return values_in_ranges(x, gather(x.row_starts(), rows), gather(x.row_limits(), rows))


def values_in_ranges(x: RaggedRows, starts: Any, limits: Any, step: int = 1) -> Any:
    """A ragged tensor of the values of ``x`` from each of ``starts`` to ``limits``."""
    delta = convert_to_tensor(step, starts.dtype)
    splits = splits_of_ranges(starts, limits, delta)
    return x.with_parts(take_rows(x.values, range_positions(starts, splits, delta)), splits)


def _checked_rows(x: RaggedRows, indices: Any) -> Any:
    """Indices of rows in the dtype of the row splits, checked to be in range."""
    rows = cast(indices, x.row_splits.dtype)
    in_range = logical_and(rows >= 0, less(rows, number_of_rows(x.row_splits)))
    return required(rows, reduce_all(in_range), f"row indices are in range of the rows of shape {x.shape}.")


def gather_rows(params: Any, indices: Any) -> Any:
    """``params[indices]``: rows by integers of any shape, which may be ragged themselves."""
    if isinstance(indices, RaggedRows):
        return indices.with_values(gather_rows(params, indices.values))
    indices = convert_to_tensor(indices, dtype_hint=int64)
    if not indices.dtype.is_integer:
        raise DTypeError(f"indices are integers, not {indices.dtype.name}; cast them with df.cast.")
    if not isinstance(params, RaggedRows):
        return gather(params, indices)
    rank = len(indices.shape)
    if rank == 0:
        return take_row(params, indices)
    if rank == 1:
        return take_rows(params, indices)
    return gather_rows(params, as_ragged(indices, params, rank - 1))


def as_ragged(x: Any, template: RaggedRows, ragged_rank: int) -> Any:
    """A tensor or a ragged tensor with ``ragged_rank`` ragged axes; all rows of a tensor have one length."""
    if not ragged_rank:
        return x
    dtype = template.row_splits.dtype
    if isinstance(x, RaggedRows):
        inner = as_ragged(x.values, template, ragged_rank - 1)
        return x.with_parts(inner, cast(x.row_splits, dtype), x._uniform_row_length)
    rows, columns = size_along(x, 0, dtype), size_along(x, 1, dtype)
    flat = reshape(x, [rows * columns, *axis_sizes(x, int64)[2:]])
    splits = count_up(rows + 1) * columns
    length = columns if x.shape[1] is None else x.shape[1]
    return template.with_parts(as_ragged(flat, template, ragged_rank - 1), splits, length)


def take_row(x: RaggedRows, index: Any) -> Any:
    """The row ``x[index]``; a negative index counts from the end."""
    at = cast(convert_to_tensor(index), x.row_splits.dtype)
    at = where(at < 0, add(at, number_of_rows(x.row_splits)), at)
    static = x.row_splits.static_value()
    position = static_value(at)
    if static is not None and position is not None and not 0 <= int(position) < len(static) - 1:
        raise InvalidArgumentError(
            f"index {index} is out of range for a ragged tensor of shape {x.shape}; check x.nrows()."
        )
    at = _checked_rows(x, at)
    return slice_rows(x.values, gather(x.row_splits, at), gather(x.row_splits, at + 1))


def slice_rows(x: Any, start: Any, limit: Any) -> Any:
    """The rows from ``start`` to ``limit``, scalar integer tensors, of a tensor or a ragged tensor."""
    if not isinstance(x, RaggedRows):
        return x[start:limit]
    splits = x.row_splits[start : limit + 1]
    first, last = splits[0], splits[-1]
    return x.with_parts(slice_rows(x.values, first, last), splits - first, x._uniform_row_length)


# Indexing


def getitem(x: RaggedRows, key: Any) -> Any:
    """``x[key]``: rows by an integer or a slice, then columns by slices."""
    items = _expanded(key if isinstance(key, tuple) else (key,), len(x.shape))
    return _rows_at(x, items)


def _expanded(items: tuple[Any, ...], rank: int) -> tuple[Any, ...]:
    """The items with full slices in place of ``...``."""
    dots = [i for i, item in enumerate(items) if item is Ellipsis]
    used = sum(item is not None and item is not Ellipsis for item in items)
    if len(dots) > 1 or used > rank:
        raise InvalidArgumentError(
            f"{used} indices and {len(dots)} ellipses do not fit a ragged tensor of {rank} axes; give at "
            "most one index an axis and one '...'."
        )
    at = dots[0] if dots else len(items)
    return (*items[:at], *[slice(None)] * (rank - used if dots else 0), *items[at + 1 :])


def _rows_at(x: Any, items: tuple[Any, ...]) -> Any:
    """The part of ``x`` at ``items``, of which the first is for its rows."""
    if not items:
        return x
    if not isinstance(x, RaggedRows):
        return x[items]
    first, inner = items[0], items[1:]
    if first is None:
        part = _rows_at(x, inner)
        return expand_rows(part, 0)
    if isinstance(first, slice):
        return _columns_at(_sliced(x, first), inner)
    if isinstance(first, bool | float | str) or not _is_integer(first):
        raise DTypeError(
            f"{first!r} is no index of a ragged tensor: use integers, slices, '...' and None, or df.gather."
        )
    return _rows_at(take_row(x, first), inner)


def _columns_at(x: Any, items: tuple[Any, ...]) -> Any:
    """``x`` indexed by ``items`` from axis 1, the columns, on."""
    if not items:
        return x
    if not isinstance(x, RaggedRows):
        return x[(slice(None), *items)]
    first, inner = items[0], items[1:]
    if first is None:
        return expand_rows(_columns_at(x, inner), 1)
    if not isinstance(first, slice):
        raise InvalidArgumentError(
            f"Cannot index into an inner ragged dimension: {first!r} may be outside of a row. Slice the "
            "rows, or pad them with x.to_tensor() first."
        )
    if first != slice(None):
        x = _sliced_columns(x, first)
    return x.with_values(_columns_at(x.values, inner)) if inner else x


def _sliced(x: RaggedRows, key: slice) -> Any:
    """The rows of a slice."""
    if key == slice(None):
        return x
    rows = number_of_rows(x.row_splits)
    return take_rows(x, count_up(rows)[key])


def _sliced_columns(x: RaggedRows, key: slice) -> Any:
    """A slice of each row."""
    step = 1 if key.step is None else static_int(key.step, "a slice's step")
    if not step:
        raise InvalidArgumentError("a slice's step can't be 0; leave it out for every element.")
    lengths = x.row_lengths()
    # the limits to which Python clamps the bounds of a slice, for either sign of step
    low, high = (lengths * 0, lengths) if step > 0 else (lengths * 0 - 1, lengths - 1)

    def bound(end: Any, default: Any) -> Any:
        if end is None:
            return default
        at = cast(convert_to_tensor(end), lengths.dtype)
        return minimum(maximum(where(at < 0, at + lengths, at), low), high)

    first, last = (low, high) if step > 0 else (high, low)
    begin, end = bound(key.start, first), bound(key.stop, last)
    starts = x.row_starts()
    return values_in_ranges(x, starts + begin, starts + end, step)


def _is_integer(item: Any) -> bool:
    if isinstance(item, AbstractTensor | AbstractVariable):
        return item.dtype.is_integer and not len(item.shape)
    return hasattr(item, "__index__")


def expand_rows(x: Any, axis: int) -> Any:
    """``x``, which may be ragged, with a new axis of size 1 at ``axis``; axis 0 is that of the rows."""
    if not isinstance(x, RaggedRows):
        return expand_dims(x, axis)
    if axis == 0:
        splits = x.row_splits
        count = number_of_rows(splits)
        outer = splits_of_lengths(reshape(count, [1]))
        return x.with_parts(x, outer, None if splits.shape[0] is None else splits.shape[0] - 1)
    if axis == 1:
        return x.with_parts(x, count_up(number_of_rows(x.row_splits) + 1), 1)
    return x.with_parts(expand_rows(x.values, axis - 1), x.row_splits, x._uniform_row_length)


# Masks


def masked_rows(x: Any, mask: Any) -> Any:
    """The rows of a tensor or a ragged tensor where a vector of bools holds."""
    if not isinstance(x, RaggedRows):
        return boolean_mask(x, mask)
    return take_rows(x, boolean_mask(count_up(number_of_rows(x.row_splits)), mask))


def masked_values(x: RaggedRows, mask: RaggedRows) -> Any:
    """The values in each row of ``x`` where the ragged ``mask`` of the same rows holds."""
    splits = require_same_rows(x.row_splits, mask.row_splits, "data and mask have the same row lengths.")
    if isinstance(mask.values, RaggedRows):
        return x.with_parts(masked_values(x.values, mask.values), splits)
    kept = unsorted_segment_sum(cast(mask.values, int32), row_ids(splits), number_of_rows(splits))
    return x.with_parts(masked_rows(x.values, mask.values), splits_of_lengths(cast(kept, splits.dtype)))


def as_index_list(indices: Any) -> Any:
    """Nested lists with tensors in them as one tensor; other values unchanged."""
    return convert_to_tensor(indices) if isinstance(indices, list) and holds_tensors(indices) else indices
