"""Sums, products, means and extremes of rows of the same segment, which integers number."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from dualflow.core.dtypes import float32
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.records import NamedTuple
from dualflow.ops.arithmetic import divide, maximum
from dualflow.ops.arrangement import expand_dims, reshape
from dualflow.ops.checks import required
from dualflow.ops.comparison import equal, less, less_equal, logical_and
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.docstrings import documented
from dualflow.ops.elementary.quotients import truncatediv
from dualflow.ops.powers import sqrt
from dualflow.ops.reduction import reduce_all, reduce_min
from dualflow.ops.segments.joins import join_at
from dualflow.ops.segments.rows import (
    Count,
    as_count,
    as_row_indices,
    check_leading,
    count_up_to,
    counted_rows,
    filled_rows,
    summed_rows,
)
from dualflow.ops.selection import where

if TYPE_CHECKING:
    from dualflow.core.argument_types import IntLike, TensorLike
    from dualflow.ops.tensor import Tensor


_IN_ORDER: Final = """Args:
    data: {takes}, of one axis or more.
    segment_ids: the number of the segment of each row: integers from 0 in ascending order, of shape
        ``(data.shape[0],)``.

Returns:
    A tensor of shape ``(last id + 1, *data.shape[1:])`` with the dtype of ``data``. In a trace the first size
    is unknown unless the ids are known.

Raises:
    InvalidArgumentError: the ids are not in order, are negative, or there isn't one for each row.
    DTypeError: ``segment_ids`` doesn't hold integers, or ``data`` doesn't hold {takes}.
"""
_ANY_ORDER: Final = """Args:
    data: {takes}, whose shape starts with that of ``segment_ids``.
    segment_ids: the number of the segment of each row: integers in any order; rows with negative ids are left
        out.
    num_segments: the number of segments; it may be a tensor.

Returns:
    A tensor of shape ``(num_segments, *data.shape[rank of segment_ids:])`` with {dtype}.

Raises:
    InvalidArgumentError: an id is ``num_segments`` or more, or the shapes don't fit.
    DTypeError: ``segment_ids`` doesn't hold integers, or ``data`` doesn't hold {takes}.
"""
_NUMBERS: Final = "numbers other than bools"
_REAL: Final = "real numbers other than bools"
_SAME: Final = "the dtype of ``data``"


class _Segments(NamedTuple):
    """The inputs of a segment reduction: rows, segment ids, the number of segments, and leading axes."""

    data: Any
    places: Any
    count: Count
    axes: int

    def total(self) -> Any:
        return summed_rows(self.places, self.data, self.count, self.axes)

    def joined(self, join: str, start: Any) -> Any:
        return join_at(filled_rows(self.count, self.data, self.axes, start), self.places, self.data, join)

    def sizes(self) -> Any:
        """The number of rows of each segment, in a shape that broadcasts with rows."""
        counts = counted_rows(self.places, self.count)
        return reshape(counts, [-1, *[1] * (len(self.data.shape) - self.axes)])


def _numbers(data: Any, kinds: str) -> Any:
    tensor = convert_to_tensor(data)
    if tensor.dtype.kind not in kinds:
        expected = "numbers" if "c" in kinds else "real numbers"
        raise DTypeError(f"segments are of {expected}, not {tensor.dtype.name}; convert them with df.cast.")
    return tensor


# Sorted


def _sorted(data: Any, segment_ids: Any, kinds: str = "iufc") -> _Segments:
    """Segments with ascending ids; their number follows from the last id."""
    data, ids = _numbers(data, kinds), as_row_indices(segment_ids, "segment_ids")
    if len(ids.shape) != 1 or not len(data.shape):
        raise InvalidArgumentError(
            f"segment_ids are one for each row of data, not of shape {ids.shape} for data of shape "
            f"{data.shape}; the unsorted_segment functions take ids of any shape."
        )
    check_leading(data, ids.shape, "segment_ids")
    in_order = logical_and(reduce_all(less_equal(ids[:-1], ids[1:])), reduce_min(ids) >= 0)
    ids = required(
        ids,
        in_order,
        "segment_ids are 0 or more and never decrease; use an unsorted_segment function, or sort them.",
    )
    return _Segments(data, expand_dims(ids, -1), count_up_to(ids), 1)


@documented(_IN_ORDER, takes=_NUMBERS)
def segment_sum(data: TensorLike, segment_ids: TensorLike, name: str | None = None) -> Tensor:
    """The sum of the rows of each segment; 0 for a segment without rows.

    >>> import dualflow as df
    >>> df.math.segment_sum([1, 2, 3, 4], [0, 0, 2, 2]).numpy()
    array([3, 0, 7], dtype=int32)
    """
    return _sorted(data, segment_ids).total()


@documented(_IN_ORDER, takes=_NUMBERS)
def segment_mean(data: TensorLike, segment_ids: TensorLike, name: str | None = None) -> Tensor:
    """The mean of the rows of each segment; 0 for a segment without rows.

    The mean of integers is an integer, rounded towards zero.

    >>> import dualflow as df
    >>> df.math.segment_mean([1.0, 2.0, 5.0], [0, 0, 2]).numpy()
    array([1.5, 0. , 5. ], dtype=float32)
    """
    segments = _sorted(data, segment_ids)
    sizes = cast(maximum(segments.sizes(), 1), segments.data.dtype)
    quotient = truncatediv if segments.data.dtype.is_integer else divide
    return quotient(segments.total(), sizes)


@documented(_IN_ORDER, takes=_NUMBERS)
def segment_prod(data: TensorLike, segment_ids: TensorLike, name: str | None = None) -> Tensor:
    """The product of the rows of each segment; 1 for a segment without rows.

    >>> import dualflow as df
    >>> df.math.segment_prod([1, 2, 3, 4], [0, 0, 2, 2]).numpy()
    array([ 2,  1, 12], dtype=int32)
    """
    return _sorted(data, segment_ids).joined("multiply", 1)


@documented(_IN_ORDER, takes=_REAL)
def segment_max(data: TensorLike, segment_ids: TensorLike, name: str | None = None) -> Tensor:
    """The elementwise maximum of the rows of each segment; 0 for a segment without rows.

    A nan is the largest. Equal maxima share the gradient.

    >>> import dualflow as df
    >>> df.math.segment_max([1, 2, 3, -4], [0, 0, 2, 2]).numpy()
    array([2, 0, 3], dtype=int32)
    """
    segments = _sorted(data, segment_ids, "iuf")
    return _or_zero(segments, segments.joined("maximum", segments.data.dtype.min))


@documented(_IN_ORDER, takes=_REAL)
def segment_min(data: TensorLike, segment_ids: TensorLike, name: str | None = None) -> Tensor:
    """The elementwise minimum of the rows of each segment; 0 for a segment without rows.

    A nan is the smallest. Equal minima share the gradient.

    >>> import dualflow as df
    >>> df.math.segment_min([1, 2, 3, -4], [0, 0, 2, 2]).numpy()
    array([ 1,  0, -4], dtype=int32)
    """
    segments = _sorted(data, segment_ids, "iuf")
    return _or_zero(segments, segments.joined("minimum", segments.data.dtype.max))


def _or_zero(segments: _Segments, extremes: Any) -> Any:
    return where(equal(segments.sizes(), 0), 0, extremes)


# In any order


def _unsorted(data: Any, segment_ids: Any, num_segments: Any, kinds: str) -> _Segments:
    """Segments with ids in any order; an additional first segment gets the rows with negative ids."""
    data, ids = _numbers(data, kinds), as_row_indices(segment_ids, "segment_ids")
    check_leading(data, ids.shape, "segment_ids")
    count = as_count(num_segments, "num_segments")
    shown = f" ({count})" if type(count) is int else ""
    ids = required(
        ids,
        reduce_all(less(ids, count)),
        f"segment_ids are below num_segments{shown}; rows whose id is negative are left out.",
    )
    return _Segments(data, expand_dims(maximum(ids, -1) + 1, -1), count + 1, len(ids.shape))


def _unsorted_with(
    compute: Callable[[_Segments], Any], data: Any, segment_ids: Any, count: Any, kinds: str = "iufc"
) -> Any:
    return compute(_unsorted(data, segment_ids, count, kinds))[1:]


@documented(_ANY_ORDER, takes=_NUMBERS, dtype=_SAME)
def unsorted_segment_sum(
    data: TensorLike, segment_ids: TensorLike, num_segments: IntLike, name: str | None = None
) -> Tensor:
    """The sum of the rows of each segment; 0 for a segment without rows.

    >>> import dualflow as df
    >>> df.math.unsorted_segment_sum([1, 2, 3, 4], [2, 0, -1, 2], 3).numpy()
    array([2, 0, 5], dtype=int32)
    """
    return _unsorted_with(_Segments.total, data, segment_ids, num_segments)


@documented(
    _ANY_ORDER,
    takes=_NUMBERS,
    dtype="the dtype of ``data``; float64 for integers, float32 for those of up to 16 bits",
)
def unsorted_segment_mean(
    data: TensorLike, segment_ids: TensorLike, num_segments: IntLike, name: str | None = None
) -> Tensor:
    """The mean of the rows of each segment; 0 for a segment without rows.

    >>> import dualflow as df
    >>> df.math.unsorted_segment_mean([1.0, 2.0, 3.0, 4.0], [2, 0, -1, 2], 3).numpy()
    array([2. , 0. , 2.5], dtype=float32)
    """

    def mean(segments: _Segments) -> Any:
        return segments.total() / cast(maximum(segments.sizes(), 1), segments.data.dtype)

    return _unsorted_with(mean, data, segment_ids, num_segments)


@documented(_ANY_ORDER, takes=_NUMBERS, dtype="the dtype of ``data``, a float dtype for integers")
def unsorted_segment_sqrt_n(
    data: TensorLike, segment_ids: TensorLike, num_segments: IntLike, name: str | None = None
) -> Tensor:
    """The sum of the rows of each segment, divided by the square root of their number.

    >>> import dualflow as df
    >>> df.math.unsorted_segment_sqrt_n([1.0, 2.0, 3.0, 4.0], [0, 0, 0, 0], 1).numpy()
    array([5.], dtype=float32)
    """

    def scaled(segments: _Segments) -> Any:
        dtype = segments.data.dtype if segments.data.dtype.is_inexact else float32
        return segments.total() / sqrt(cast(maximum(segments.sizes(), 1), dtype))

    return _unsorted_with(scaled, data, segment_ids, num_segments)


@documented(_ANY_ORDER, takes=_NUMBERS, dtype=_SAME)
def unsorted_segment_prod(
    data: TensorLike, segment_ids: TensorLike, num_segments: IntLike, name: str | None = None
) -> Tensor:
    """The product of the rows of each segment; 1 for a segment without rows.

    >>> import dualflow as df
    >>> df.math.unsorted_segment_prod([1, 2, 3, 4], [2, 0, -1, 2], 3).numpy()
    array([2, 1, 4], dtype=int32)
    """
    return _unsorted_with(lambda segments: segments.joined("multiply", 1), data, segment_ids, num_segments)


@documented(_ANY_ORDER, takes=_REAL, dtype=_SAME)
def unsorted_segment_max(
    data: TensorLike, segment_ids: TensorLike, num_segments: IntLike, name: str | None = None
) -> Tensor:
    """The elementwise maximum of the rows of each segment.

    A segment without rows has the lowest finite number of the dtype; a nan is the largest. Equal maxima share
    the gradient.

    >>> import dualflow as df
    >>> df.math.unsorted_segment_max([1, 2, 3, 4], [1, 0, -1, 1], 2).numpy()
    array([2, 4], dtype=int32)
    """
    return _unsorted_with(
        lambda segments: segments.joined("maximum", segments.data.dtype.min),
        data,
        segment_ids,
        num_segments,
        kinds="iuf",
    )


@documented(_ANY_ORDER, takes=_REAL, dtype=_SAME)
def unsorted_segment_min(
    data: TensorLike, segment_ids: TensorLike, num_segments: IntLike, name: str | None = None
) -> Tensor:
    """The elementwise minimum of the rows of each segment.

    A segment without rows has the highest finite number of the dtype; a nan is the smallest. Equal minima
    share the gradient.

    >>> import dualflow as df
    >>> df.math.unsorted_segment_min([1, 2, 3, 4], [1, 0, -1, 1], 2).numpy()
    array([2, 1], dtype=int32)
    """
    return _unsorted_with(
        lambda segments: segments.joined("minimum", segments.data.dtype.max),
        data,
        segment_ids,
        num_segments,
        kinds="iuf",
    )
