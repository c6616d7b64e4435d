"""Reductions and running sums and products, in the standard's dtypes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualflow.array_api.array import Array, as_floating_tensor, tensor_of
from dualflow.array_api.axes import axes_of, only_axis
from dualflow.core.tracebacks import make_entries
from dualflow.numpy.axis_reductions import accumulate_axis, as_accumulation_dtype, extreme, variance
from dualflow.numpy.docstrings import complete_docstrings
from dualflow.ops import statistics
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.powers import sqrt
from dualflow.ops.reduction import reduce_prod

if TYPE_CHECKING:
    from dualflow.core.argument_types import AnyArray, AxisLike, DTypeLike


def sum(
    x: AnyArray, /, *, axis: AxisLike | None = None, dtype: DTypeLike | None = None, keepdims: bool = False
) -> Array:
    """The sum over ``axis``.

    Args:
        x: numbers.
        axis: one axis or several; all by default.
        dtype: of the result: by default that of ``x``, for integers int64 or uint64.
        keepdims: keep the reduced axes, as size 1.

    Returns:
        An array with the shape of ``x`` without the reduced axes, and the dtype.

    >>> import dualflow.array_api as xp
    >>> xp.sum(xp.asarray([[1, 2], [3, 4]]), axis=0).tolist()
    [4, 6]
    """
    tensor = as_accumulation_dtype(tensor_of(x), dtype)
    return Array(reduce_sum(tensor, axes_of(axis, len(tensor.shape)), keepdims))


def prod(
    x: AnyArray, /, *, axis: AxisLike | None = None, dtype: DTypeLike | None = None, keepdims: bool = False
) -> Array:
    """The product over ``axis``; dtypes are those of :func:`sum`.

    Args:
        dtype: the dtype to multiply in; by default that of ``x``, 64 bits for integers.

    Returns:
        An array with the shape of ``x`` without the reduced axes, and the dtype.

    >>> import dualflow.array_api as xp
    >>> xp.prod(xp.asarray([2, 3, 4])).tolist()
    24
    """
    tensor = as_accumulation_dtype(tensor_of(x), dtype)
    return Array(reduce_prod(tensor, axes_of(axis, len(tensor.shape)), keepdims))


def max(x: AnyArray, /, *, axis: AxisLike | None = None, keepdims: bool = False) -> Array:
    """The largest element over ``axis``; nan if one is nan.

    Returns:
        An array with the shape of ``x`` without the reduced axes, and its dtype.

    Raises:
        InvalidArgumentError: there are no elements.

    >>> import dualflow.array_api as xp
    >>> xp.max(xp.asarray([[1, 5], [7, 3]]), axis=1).tolist()
    [5, 7]
    """
    tensor = tensor_of(x)
    return Array(extreme(tensor, axes_of(axis, len(tensor.shape)), keepdims, largest=True))


def min(x: AnyArray, /, *, axis: AxisLike | None = None, keepdims: bool = False) -> Array:
    """The smallest element over ``axis``; nan if one is nan.

    Returns:
        An array with the shape of ``x`` without the reduced axes, and its dtype.

    Raises:
        InvalidArgumentError: there are no elements.

    >>> import dualflow.array_api as xp
    >>> xp.min(xp.asarray([[1, 5], [7, 3]]), axis=1).tolist()
    [1, 3]
    """
    tensor = tensor_of(x)
    return Array(extreme(tensor, axes_of(axis, len(tensor.shape)), keepdims, largest=False))


def mean(x: AnyArray, /, *, axis: AxisLike | None = None, keepdims: bool = False) -> Array:
    """The mean over ``axis``; nan for no elements.

    Returns:
        An array with the shape of ``x`` without the reduced axes, and its dtype, float64 for integers.

    >>> import dualflow.array_api as xp
    >>> xp.mean(xp.asarray([1.0, 2.0, 6.0])).tolist()
    3.0
    """
    tensor = as_floating_tensor(x)
    return Array(statistics.reduce_mean(tensor, axes_of(axis, len(tensor.shape)), keepdims))


def var(
    x: AnyArray, /, *, axis: AxisLike | None = None, correction: float = 0.0, keepdims: bool = False
) -> Array:
    """The variance over ``axis``: the sum of squared distances from the mean, divided by ``N - correction``.

    Args:
        x: numbers; integers count as float64.
        axis: one axis or several; all by default.
        correction: subtracted from the number of elements; 1 for the unbiased variance of a sample.
        keepdims: keep the reduced axes, as size 1.

    Returns:
        Real numbers; where ``N - correction`` is not above 0, nan or inf.

    >>> import dualflow.array_api as xp
    >>> xp.var(xp.asarray([1.0, 2.0, 3.0]), correction=1).tolist()
    1.0
    """
    tensor = as_floating_tensor(x)
    return Array(variance(tensor, axes_of(axis, len(tensor.shape)), keepdims, correction))


def std(
    x: AnyArray, /, *, axis: AxisLike | None = None, correction: float = 0.0, keepdims: bool = False
) -> Array:
    """The standard deviation over ``axis``: the square root of :func:`var`.

    Args:
        correction: what to subtract from the number of elements in the divisor.

    Returns:
        An array with the shape of ``x`` without the reduced axes, and its dtype, float64 for integers.

    >>> import dualflow.array_api as xp
    >>> xp.std(xp.asarray([1.0, 3.0])).tolist()
    1.0
    """
    tensor = as_floating_tensor(x)
    return Array(sqrt(variance(tensor, axes_of(axis, len(tensor.shape)), keepdims, correction)))


def cumulative_sum(
    x: AnyArray, /, *, axis: int | None = None, dtype: DTypeLike | None = None, include_initial: bool = False
) -> Array:
    """The cumulative sums along ``axis``.

    Args:
        x: numbers of one axis or more.
        axis: along which to add up; an array of one axis needs none.
        dtype: of the result: by default that of ``x``, for integers int64 or uint64.
        include_initial: whether the first sum is 0, and there is one more.

    Returns:
        An array with the shape of ``x``, one larger along ``axis`` with ``include_initial``, and the dtype.

    Raises:
        InvalidArgumentError: no axis is named, and ``x`` has several or none.

    >>> import dualflow.array_api as xp
    >>> xp.cumulative_sum(xp.asarray([1, 2, 3]), include_initial=True).tolist()
    [0, 1, 3, 6]
    """
    tensor = as_accumulation_dtype(tensor_of(x), dtype)
    along = only_axis(axis, len(tensor.shape), "cumulative_sum")
    return Array(accumulate_axis(tensor, along, "sum", include_initial))


def cumulative_prod(
    x: AnyArray, /, *, axis: int | None = None, dtype: DTypeLike | None = None, include_initial: bool = False
) -> Array:
    """The cumulative products along ``axis``; dtypes are those of :func:`cumulative_sum`.

    Args:
        axis: the axis; by default the only one.
        dtype: the dtype to multiply in; by default that of ``x``, 64 bits for integers.
        include_initial: whether to put 1 before the products.

    Returns:
        An array with the shape of ``x``, one larger along ``axis`` with ``include_initial``, and the dtype.

    Raises:
        InvalidArgumentError: ``axis`` is None, and ``x`` is not a vector.

    >>> import dualflow.array_api as xp
    >>> xp.cumulative_prod(xp.asarray([2, 3, 4]), include_initial=True).tolist()
    [1, 2, 6, 24]
    """
    tensor = as_accumulation_dtype(tensor_of(x), dtype)
    along = only_axis(axis, len(tensor.shape), "cumulative_prod")
    return Array(accumulate_axis(tensor, along, "prod", include_initial))


complete_docstrings(
    globals(),
    "is no array",
    x="an array of any shape.",
    axis="the axes to reduce, an integer or a tuple; all by default.",
)
make_entries(globals())
