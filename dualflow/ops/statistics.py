"""Means, spreads and counts: compositions of sums and extremes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dualflow.core import dispatch
from dualflow.core.dtypes import DType, as_dtype, float16, float32, float_for, int64, uint64
from dualflow.ops.arithmetic import abs, divide, maximum, square, truncatemod
from dualflow.ops.arrangement import squeeze
from dualflow.ops.broadcasting import REDUCE_SUM, reduce_sum, reduction_axes
from dualflow.ops.choice import masked
from dualflow.ops.comparison import isfinite, not_equal
from dualflow.ops.complex_numbers import conj, real
from dualflow.ops.conversion import cast, stop_gradient
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.exponential import exp
from dualflow.ops.powers import log, sqrt
from dualflow.ops.reduction import reduce_max
from dualflow.ops.shapes import shape
from dualflow.ops.static import dtype_of, shape_of

if TYPE_CHECKING:
    from dualflow.ops.tensor import Tensor


def _count(x: Any, axes: tuple[int, ...], dtype: DType) -> Any:
    """How many elements a reduction of ``x`` joins: a number, or a tensor if only the run will tell."""
    count: Any = 1
    for a, size in enumerate(shape_of(x)):
        if a in axes:
            count = count * (cast(shape(x)[a], dtype) if size is None else size)
    return count


def reduce_mean(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The mean over ``axis`` (all axes by default), in the input's dtype: that of integers is cut off.

    Integers are summed in 64 bits and float16 in float32, so that sums larger than these hold do no harm.

    Args:
        input_tensor: numbers of any shape.
        axis: an axis or several; all by default.
        keepdims: keep the reduced axes, as size 1.
        name: ignored; as in TensorFlow.

    Returns:
        Where there are no elements, nan for floats and 0 for integers.

    Raises:
        InvalidArgumentError: an axis is out of range or named twice.

    >>> import dualflow as df
    >>> df.reduce_mean([[1.0, 2.0], [3.0, 5.0]], axis=0).numpy()
    array([2. , 3.5], dtype=float32)
    """
    axes = reduction_axes(input_tensor, axis)
    dtype = dtype_of(input_tensor)
    if dtype.is_integer:
        return _integer_mean(input_tensor, axes, keepdims, dtype)
    if dtype is float16:
        return cast(reduce_mean(cast(input_tensor, float32), axes, keepdims), float16)
    total = dispatch.current().apply(REDUCE_SUM, (input_tensor,), {"axis": axes, "keepdims": bool(keepdims)})
    return divide(total, _count(input_tensor, axes, dtype))


def _integer_mean(x: Any, axes: tuple[int, ...], keepdims: bool, dtype: DType) -> Any:
    """The quotient of sum and count, cut off towards zero; of no elements 0."""
    wide = uint64 if dtype.is_unsigned else int64
    total = reduce_sum(cast(x, wide), axes, keepdims)
    count = _count(x, axes, wide)
    count = max(count, 1) if type(count) is int else maximum(count, 1)
    return cast((total - truncatemod(total, count)) // count, dtype)


def reduce_variance(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The mean squared distance from the mean over ``axis``, by default all; integers become float32.

    Of complex numbers it is real.
    """
    x = as_float(input_tensor)
    attrs = {"axes": reduction_axes(x, axis), "keepdims": bool(keepdims)}
    return dispatch.current().composite(_variance, x, attrs)


def _variance(x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    return reduce_mean(squared_magnitude(x - reduce_mean(x, axes, keepdims=True)), axes, keepdims)


def reduce_std(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The square root of :func:`reduce_variance`."""
    return sqrt(reduce_variance(input_tensor, axis, keepdims))


def squared_magnitude(x: Any) -> Any:
    """``abs(x) ** 2``: real, and with a gradient at 0."""
    return real(x * conj(x)) if x.dtype.is_complex else square(x)


def as_float(x: Any) -> Any:
    """``x`` as a tensor of floats: float32 for integers."""
    tensor = convert_to_tensor(x)
    target = float_for(tensor.dtype)
    return tensor if tensor.dtype is target else cast(tensor, target)


def reduce_logsumexp(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """``log(sum(exp(x)))`` over ``axis`` (all axes by default), without overflow.

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
    found = log(reduce_sum(exp(x - high), axes, keepdims))
    return found + (high if keepdims or not axes else squeeze(high, axes))


def reduce_euclidean_norm(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The square root of the sum of squares over ``axis`` (all axes by default)."""
    x = convert_to_tensor(input_tensor)
    attrs = {"axes": reduction_axes(x, axis), "keepdims": bool(keepdims)}
    return dispatch.current().composite(_euclidean_norm, x, attrs)


def _euclidean_norm(x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    return sqrt(reduce_sum(square(abs(x)), axes, keepdims))


def count_nonzero(
    input: Any, axis: Any = None, keepdims: bool = False, dtype: Any = int64, name: str | None = None
) -> Tensor:
    """How many elements are not 0 (or hold, or are no empty strings), over ``axis`` (all axes by default)."""
    x = convert_to_tensor(input)
    holds = x if x.dtype.is_bool else not_equal(x, "" if x.dtype.is_string else 0)
    return reduce_sum(cast(holds, as_dtype(dtype)), axis, keepdims)
