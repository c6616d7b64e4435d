"""Partitions of values into rows: row splits, computed from lengths, starts, limits and row ids, and back.

``row_splits`` has one integer more than there are rows: row i is ``values[row_splits[i]:row_splits[i + 1]]``.
"""

from __future__ import annotations

from typing import Any

from dualflow.core.dtypes import DType, int32, int64
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.ops.arithmetic import floordiv, maximum
from dualflow.ops.arrangement import reshape
from dualflow.ops.checks import required
from dualflow.ops.comparison import equal, less_equal, logical_and
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.equal_sizes import with_rows_of
from dualflow.ops.joining import concat
from dualflow.ops.positions import range as count_up
from dualflow.ops.reduction import reduce_all, reduce_max
from dualflow.ops.repetition import repeat
from dualflow.ops.scans import cumsum
from dualflow.ops.segments.rows import count_up_to, counted_rows
from dualflow.ops.taking import gather
from dualflow.ops.tensor_sizes import sizes_of


def as_partition(x: Any, what: str, dtype: DType | None = None) -> Any:
    """A vector of int32 or int64 that describes a partition; ``what`` names it in errors.

    Args:
        x: the integers; those that are no tensor or array become int64.
        what: the name of the argument.
        dtype: int32 or int64 to cast to; None to keep the dtype of a tensor.

    Raises:
        DTypeError: other numbers.
        InvalidArgumentError: an input is not a vector.
    """
    tensor = convert_to_tensor(x, dtype_hint=int64)
    if tensor.dtype.is_integer and not hasattr(x, "dtype"):
        tensor = cast(tensor, int64)
    if tensor.dtype not in (int32, int64):
        raise DTypeError(f"{what} holds int32 or int64, not {tensor.dtype.name}; cast it with df.cast.")
    if len(tensor.shape) != 1:
        raise InvalidArgumentError(f"{what} is a vector, not of shape {tensor.shape}; reshape it.")
    return tensor if dtype is None else cast(tensor, dtype)


def size_along(x: Any, axis: int, dtype: DType = int64) -> Any:
    """The size of an axis of a tensor, as a scalar tensor of ``dtype``."""
    return sizes_of(x, dtype)[axis]


def splits_of_lengths(lengths: Any) -> Any:
    """The row splits of rows of these lengths."""
    return concat([convert_to_tensor([0], lengths.dtype), cumsum(lengths)], 0)


def lengths_of_splits(splits: Any) -> Any:
    """The length of each row."""
    return splits[1:] - splits[:-1]


def longest(lengths: Any, axis: int | None = None) -> Any:
    """The length of the longest row; 0 if there is none."""
    return maximum(reduce_max(lengths, axis), 0)


def number_of_rows(splits: Any) -> Any:
    """The number of rows, a scalar tensor of the dtype of the splits."""
    return size_along(splits, 0, splits.dtype) - 1


def row_ids(splits: Any) -> Any:
    """The row of each value, in order."""
    return cast(repeat(count_up(number_of_rows(splits)), lengths_of_splits(splits), axis=0), splits.dtype)


def positions_in_rows(splits: Any, ids: Any) -> Any:
    """The position of each value in its row; ``ids`` are the row ids."""
    return count_up(size_along(ids, 0, splits.dtype)) - gather(splits, ids)


def splits_of_row_ids(ids: Any, rows: Any) -> Any:
    """The row splits of values with these row ids, in ascending order, for a number of rows."""
    count = count_up_to(ids) if rows is None else rows
    return splits_of_lengths(cast(counted_rows(reshape(ids, [-1, 1]), count), ids.dtype))


def splits_of_ranges(starts: Any, limits: Any, deltas: Any) -> Any:
    """The row splits of the ranges from ``starts`` to ``limits`` in steps of ``deltas``, integers."""
    # ceil((limit - start) / delta) in integers, for either sign of delta
    counts = floordiv(limits - starts + deltas - sign(deltas), deltas)
    return splits_of_lengths(maximum(counts, 0))


def sign(deltas: Any) -> Any:
    """1 for positive, -1 for negative integers."""
    return cast(deltas > 0, deltas.dtype) - cast(deltas < 0, deltas.dtype)


def checked_splits(splits: Any, count: Any) -> Any:
    """Row splits that begin with 0, never decrease, and end with the number of values; else an error."""
    in_order = logical_and(equal(splits[0], 0), reduce_all(less_equal(splits[:-1], splits[1:])))
    splits = required(splits, in_order, "row_splits begin with 0, and never decrease.")
    return required(splits, equal(splits[-1], count), "the last of row_splits is the number of values.")


def require_same_rows(splits: Any, other: Any, message: str) -> Any:
    """``splits``; an error with ``message`` unless the partition ``other`` is the same."""
    return splits if splits is other else required(splits, have_same_rows(splits, other, message), message)


def have_same_rows(splits: Any, other: Any, message: str) -> Any:
    """Whether two partitions are the same, as a bool tensor.

    Raises:
        InvalidArgumentError: with ``message``, if their numbers of rows differ; dynamic ones at run time.
    """
    if not splits.shape.is_compatible_with(other.shape):
        raise InvalidArgumentError(message)
    return reduce_all(equal(splits, with_rows_of(cast(other, splits.dtype), splits, message)))
