"""The number of values in each bin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dualflow.core.dtypes import as_dtype, float64, int32, int64
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.ops.arithmetic import maximum, minimum
from dualflow.ops.arrangement import expand_dims, reshape, transpose
from dualflow.ops.broadcasting import broadcast_like
from dualflow.ops.checks import required
from dualflow.ops.comparison import equal, greater, less, logical_and
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor, ones_like
from dualflow.ops.joining import stack
from dualflow.ops.positions import range as counting
from dualflow.ops.record import promote_together
from dualflow.ops.reduction import reduce_all
from dualflow.ops.rounding import floor
from dualflow.ops.scattering import tensor_scatter_nd_add
from dualflow.ops.segments.rows import (
    Count,
    as_count,
    as_row_indices,
    count_up_to,
    counted_rows,
    filled_rows,
    summed_rows,
)
from dualflow.ops.selection import where
from dualflow.ops.shapes import shape

if TYPE_CHECKING:
    from dualflow.core.argument_types import DTypeLike, IntLike, TensorLike
    from dualflow.ops.tensor import Tensor


def bincount(
    arr: TensorLike,
    weights: TensorLike | None = None,
    minlength: IntLike | None = None,
    maxlength: IntLike | None = None,
    dtype: DTypeLike = int32,
    name: str | None = None,
    axis: int | None = None,
    binary_output: bool = False,
) -> Tensor:
    """The number of occurrences of each integer in ``arr``, or the sum of their weights.

    Args:
        arr: integers of 0 or more, of any shape.
        weights: what each counts for, of the shape of ``arr``; 1 by default.
        minlength: the least number of counts.
        maxlength: the largest number of counts: integers from there on are left out.
        dtype: of the counts; with ``weights``, theirs.
        axis: None or 0 counts all of ``arr``; -1 counts each row of a matrix by itself.
        binary_output: 1 where an integer occurs at all, instead of how often.

    Returns:
        A tensor of shape ``[largest integer + 1]``, after the rows for ``axis=-1``. In a trace this size is
        dynamic unless ``arr`` is static.

    Raises:
        InvalidArgumentError: a negative integer, another axis, weights of another shape or together with
            ``binary_output``, or ``axis=-1`` of more than two axes.
        DTypeError: ``arr`` is not of integers.

    >>> import dualflow as df
    >>> df.math.bincount([1, 1, 2, 5]).numpy()
    array([0, 2, 1, 0, 0, 1], dtype=int32)
    >>> df.math.bincount([[1, 1], [0, 1]], weights=[[0.5, 1.0], [2.0, 3.0]], axis=-1).numpy()
    array([[0. , 1.5],
           [2. , 3. ]], dtype=float32)
    """
    if axis not in (None, 0, -1):
        raise InvalidArgumentError(f"bincount counts along axis 0 or -1, not {axis}.")
    if binary_output and weights is not None:
        raise InvalidArgumentError("bincount takes weights or binary_output, not both.")
    integers = as_row_indices(arr, "the integers that bincount counts")
    weights_of_integers = (
        ones_like(integers, as_dtype(dtype)) if weights is None else convert_to_tensor(weights)
    )
    if weights is not None and len(weights_of_integers.shape) != len(integers.shape):
        raise InvalidArgumentError(
            f"weights of shape {weights_of_integers.shape} are not one for each of the integers of shape "
            f"{integers.shape}."
        )
    indices = required(
        integers, reduce_all(integers >= 0), "the integers that bincount counts are 0 or more."
    )
    size = length(indices, minlength, maxlength)
    num_bins = size
    if maxlength is not None:  # integers that are left out are counted in an additional bin
        indices, num_bins = minimum(indices, cast(size, indices.dtype)), size + 1
    totals = (_counts_by_row if axis == -1 and len(indices.shape) > 1 else _total_counts)(
        indices, weights_of_integers, num_bins
    )
    totals = totals if maxlength is None else totals[..., :-1]
    return minimum(totals, 1) if binary_output else totals


def length(indices: Any, minlength: Any, maxlength: Any) -> Count:
    """The size of the result: the largest index + 1, clamped to [minlength, maxlength]."""
    size = count_up_to(indices)
    if minlength is not None:
        size = _static_or_symbolic(max, maximum, size, as_count(minlength, "minlength"))
    if maxlength is not None:
        size = _static_or_symbolic(min, minimum, size, as_count(maxlength, "maxlength"))
    return size


def _static_or_symbolic(static_function: Any, op: Any, x: Count, y: Count) -> Count:
    """``static_function(x, y)`` for two Python ints, else ``op`` on tensors."""
    if type(x) is int and type(y) is int:
        return static_function(x, y)
    return op(cast(x, int64), cast(y, int64))


def _total_counts(indices: Any, weights: Any, size: Count) -> Any:
    """The sums of ``weights`` for each of ``size`` bins, over all axes."""
    return summed_rows(expand_dims(reshape(indices, [-1]), -1), reshape(weights, [-1]), size, 1)


def _counts_by_row(positions: Any, weights: Any, size: Count) -> Any:
    """The sums of ``weights`` for each of ``size`` bins, by rows; the scatter adds along its first axis."""
    if len(positions.shape) != 2:
        raise InvalidArgumentError(
            f"bincount along axis -1 counts the rows of a matrix, not of shape {positions.shape}; reshape it."
        )
    numbers = cast(counting(shape(positions)[0]), positions.dtype)
    indices = stack([positions, broadcast_like(expand_dims(numbers, 1), positions)], -1)
    zeros = filled_rows(size, transpose(weights), 1, 0)
    return transpose(tensor_scatter_nd_add(zeros, indices, weights))


def histogram_fixed_width(
    values: TensorLike,
    value_range: TensorLike,
    nbins: IntLike = 100,
    dtype: DTypeLike = int32,
    name: str | None = None,
) -> Tensor:
    """The number of ``values`` in each of ``nbins`` equal parts of an interval.

    Args:
        values: real numbers of any shape; those outside of the interval count in its first or last part.
        value_range: the two ends of the interval, the lower one first.
        nbins: the number of parts, 1 or more.
        dtype: the dtype of the counts.

    Returns:
        A tensor of shape ``(nbins,)`` and dtype ``dtype``.

    Raises:
        InvalidArgumentError: a value is nan, the ends are not two numbers in order, or ``nbins`` is below 1.
        DTypeError: ``values`` doesn't hold real numbers.

    >>> import dualflow as df
    >>> df.histogram_fixed_width([-1.0, 0.0, 1.5, 2.0, 5.0, 15.0], [0.0, 5.0], nbins=5).numpy()
    array([2, 1, 1, 0, 2], dtype=int32)
    """
    x, low, high, count = _interval(values, value_range, nbins)
    ok = logical_and(reduce_all(equal(x, x)), less(low, high))
    x = required(x, ok, "values are not nan, and value_range is two numbers, the lower one first.")
    step = cast(high - low, float64) / cast(count, float64)
    index = cast(cast(maximum(x, low) - low, float64) / step, int32)
    index = expand_dims(reshape(minimum(index, cast(count, int32) - 1), [-1]), -1)
    return counted_rows(index, count, as_dtype(dtype))


def histogram_fixed_width_bins(
    values: TensorLike,
    value_range: TensorLike,
    nbins: IntLike = 100,
    dtype: DTypeLike = int32,
    name: str | None = None,
) -> Tensor:
    """The index of the bin of each of ``values``, for ``nbins`` equal bins of an interval.

    The index of nan is 0.

    Args:
        values: real numbers of any shape; those outside of the interval are in its first or last part.
        value_range: the two ends of the interval, the lower one first.
        nbins: the number of parts, 1 or more.
        dtype: the integer dtype of the indices.

    Returns:
        A tensor with the shape of ``values`` and dtype ``dtype``.

    Raises:
        InvalidArgumentError: the ends are not two numbers, or ``nbins`` is below 1.
        DTypeError: ``values`` doesn't hold real numbers.

    >>> import dualflow as df
    >>> df.histogram_fixed_width_bins([-1.0, 0.0, 1.5, 2.0, 5.0, 15.0], [0.0, 5.0], nbins=5).numpy()
    array([0, 0, 1, 2, 4, 4], dtype=int32)
    """
    x, low, high, count = _interval(values, value_range, nbins)
    index = floor(cast(count, x.dtype) * ((x - low) / (high - low)))
    last = cast(count, x.dtype) - 1
    return cast(minimum(maximum(where(equal(index, index), index, 0), 0), last), dtype)


def _interval(values: Any, value_range: Any, nbins: Any) -> tuple[Any, Any, Any, Count]:
    """The values and the ends of the interval, floats of one dtype, and the number of parts."""
    x, ends = promote_together(values, value_range)
    if x.dtype.kind not in "iuf":
        raise DTypeError(f"a histogram is of real numbers, not of {x.dtype.name}; convert them with df.cast.")
    if tuple(ends.shape) not in ((2,), (None,)):
        raise InvalidArgumentError(
            f"value_range is the two ends of an interval, not of shape {ends.shape}; give [low, high]."
        )
    count = as_count(nbins, "nbins")
    if type(count) is int and not count:
        raise InvalidArgumentError("a histogram has 1 part or more; nbins is 0.")
    if type(count) is not int:
        x = required(x, greater(count, 0), "a histogram has 1 part or more; nbins is above 0.")
    if x.dtype.is_integer:
        x, ends = cast(x, float64), cast(ends, float64)
    return x, ends[0], ends[1], count
