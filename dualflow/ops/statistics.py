"""Means, variances and counts, composed of sums and extremes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dualflow.core import dispatch
from dualflow.core.dtypes import DType, as_dtype, float16, float32, float_for, int64, uint64
from dualflow.core.shape import Shape
from dualflow.ops.arithmetic import abs, divide, maximum, square, truncatemod
from dualflow.ops.arrangement import squeeze
from dualflow.ops.broadcasting import REDUCE_SUM, axes_of_rank, reduce_sum, reduction_axes
from dualflow.ops.comparison import isfinite, not_equal
from dualflow.ops.complex_numbers import conj, real
from dualflow.ops.conversion import cast, stop_gradient
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.docstrings import REDUCTION, documented
from dualflow.ops.exponential import exp
from dualflow.ops.powers import log, sqrt
from dualflow.ops.reduction import reduce_max
from dualflow.ops.selection import masked
from dualflow.ops.shapes import shape
from dualflow.ops.size_values import operand
from dualflow.ops.static import dtype_of, shape_of

if TYPE_CHECKING:
    from dualflow.core.argument_types import AxisLike, DTypeLike, TensorLike
    from dualflow.ops.tensor import Tensor


def _count(x: Any, sizes: Shape, axes: tuple[int, ...], dtype: DType) -> Any:
    """The number of elements that a reduction of ``x``, of shape ``sizes``, joins.

    A tensor if it is known at run time only.
    """
    count: Any = 1
    for a in axes:
        size = sizes[a]
        if type(size) is int:
            count *= size
        else:
            count = count * (cast(shape(x)[a], dtype) if size is None else operand(size, dtype))
    return count


@documented(REDUCTION, input="input_tensor", takes="numbers other than bools", returns="the same dtype")
def reduce_mean(
    input_tensor: TensorLike, axis: AxisLike | None = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The mean over ``axis``, by default over all axes; means of integers are truncated towards zero.

    Integers are summed in 64 bits and float16 in float32, so that the sum doesn't overflow. The mean of no
    elements is nan, or 0 for integers.

    >>> import dualflow as df
    >>> df.reduce_mean([[1.0, 2.0], [3.0, 5.0]], axis=0).numpy()
    array([2. , 3.5], dtype=float32)
    """
    sizes = shape_of(input_tensor)
    axes = axes_of_rank(len(sizes), axis)
    dtype = dtype_of(input_tensor)
    if dtype.is_integer:
        return _integer_mean(input_tensor, axes, keepdims, dtype)
    if dtype is float16:
        return cast(reduce_mean(cast(input_tensor, float32), axes, keepdims), float16)
    total = dispatch.current().apply(REDUCE_SUM, (input_tensor,), {"axis": axes, "keepdims": bool(keepdims)})
    return divide(total, _count(input_tensor, sizes, axes, dtype))


def _integer_mean(x: Any, axes: tuple[int, ...], keepdims: bool, dtype: DType) -> Any:
    """The integer mean: the sum divided by the count, truncated towards zero; 0 without elements."""
    wide = uint64 if dtype.is_unsigned else int64
    total = reduce_sum(cast(x, wide), axes, keepdims)
    count = _count(x, shape_of(x), axes, wide)
    count = max(count, 1) if type(count) is int else maximum(count, 1)
    return cast((total - truncatemod(total, count)) // count, dtype)


@documented(
    REDUCTION,
    input="input_tensor",
    takes="numbers",
    returns="the same dtype; float32 for integers; that of the parts for complex numbers",
)
def reduce_variance(
    input_tensor: TensorLike, axis: AxisLike | None = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The variance over ``axis``, by default over all axes: the mean of ``abs(x - mean(x)) ** 2``.

    >>> import dualflow as df
    >>> df.math.reduce_variance([[1.0, 3.0], [2.0, 8.0]], axis=1).numpy()
    array([1., 9.], dtype=float32)
    """
    x = as_float(input_tensor)
    attrs = {"axes": reduction_axes(x, axis), "keepdims": bool(keepdims)}
    return dispatch.current().composite(_variance, x, attrs)


def _variance(x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    return reduce_mean(squared_magnitude(x - reduce_mean(x, axes, keepdims=True)), axes, keepdims)


@documented(
    REDUCTION,
    input="input_tensor",
    takes="numbers",
    returns="the same dtype; float32 for integers; that of the parts for complex numbers",
)
def reduce_std(
    input_tensor: TensorLike, axis: AxisLike | None = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The standard deviation over ``axis``, by default over all axes: ``sqrt(reduce_variance(x))``.

    >>> import dualflow as df
    >>> df.math.reduce_std([[1.0, 3.0], [2.0, 8.0]], axis=1).numpy()
    array([1., 3.], dtype=float32)
    """
    return sqrt(reduce_variance(input_tensor, axis, keepdims))


def squared_magnitude(x: Any) -> Any:
    """``abs(x) ** 2``: real, and with a gradient at 0."""
    return real(x * conj(x)) if x.dtype.is_complex else square(x)


def as_float(x: Any) -> Tensor:
    """``x`` as a tensor of floats: float32 for integers."""
    tensor = convert_to_tensor(x)
    target = float_for(tensor.dtype)
    return tensor if tensor.dtype is target else cast(tensor, target)


@documented(
    REDUCTION, input="input_tensor", takes="real numbers", returns="the same dtype; float32 for integers"
)
def reduce_logsumexp(
    input_tensor: TensorLike, axis: AxisLike | None = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """``log(sum(exp(x)))`` over ``axis``, by default over all axes, without overflow.

    The maximum is subtracted before the exponential, and added to the logarithm.

    >>> import dualflow as df
    >>> float(df.reduce_logsumexp([1000.0, 1000.0]))
    1000.6931...
    """
    x = as_float(input_tensor)
    attrs = {"axes": reduction_axes(x, axis), "keepdims": bool(keepdims)}
    return dispatch.current().composite(_logsumexp, x, attrs)


def _logsumexp(x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    high = reduce_max(x, axes, keepdims=True)
    high = stop_gradient(masked(isfinite(high), high))
    logarithm = log(reduce_sum(exp(x - high), axes, keepdims))
    return logarithm + (high if keepdims or not axes else squeeze(high, axes))


@documented(
    REDUCTION,
    input="input_tensor",
    takes="numbers",
    returns="the same dtype; float32 for integers; that of the parts for complex numbers",
)
def reduce_euclidean_norm(
    input_tensor: TensorLike, axis: AxisLike | None = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The Euclidean norm over ``axis``, by default over all axes: ``sqrt(sum(abs(x) ** 2))``.

    >>> import dualflow as df
    >>> float(df.math.reduce_euclidean_norm([3.0, 4.0]))
    5.0
    """
    x = convert_to_tensor(input_tensor)
    attrs = {"axes": reduction_axes(x, axis), "keepdims": bool(keepdims)}
    return dispatch.current().composite(_euclidean_norm, x, attrs)


def _euclidean_norm(x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    return sqrt(reduce_sum(square(abs(x)), axes, keepdims))


def count_nonzero(
    input: TensorLike,
    axis: AxisLike | None = None,
    keepdims: bool = False,
    dtype: DTypeLike = int64,
    name: str | None = None,
) -> Tensor:
    """The number of elements over ``axis`` that are not 0, True or not the empty string.

    Args:
        input: a tensor of any shape and dtype.
        axis: the axes to count over: an integer or a list; negative ones count from the end. None for all
            axes.
        keepdims: whether the counted axes stay, with size 1.
        dtype: the dtype of the counts; int64 by default.

    Returns:
        A tensor with the shape of ``input`` without the counted axes, and dtype ``dtype``.

    Raises:
        InvalidArgumentError: an axis is out of range or occurs twice.

    >>> import dualflow as df
    >>> df.math.count_nonzero([[0, 3, 5], [0, 0, 1]], axis=1).numpy()
    array([2, 1])
    """
    x = convert_to_tensor(input)
    holds = x if x.dtype.is_bool else not_equal(x, "" if x.dtype.is_string else 0)
    return reduce_sum(cast(holds, as_dtype(dtype)), axis, keepdims)
