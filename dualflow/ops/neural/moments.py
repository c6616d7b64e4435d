"""Mean and variance over axes: direct, weighted, and from sums over batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualflow.core.dtypes import float16, float32
from dualflow.core.shape import Shape
from dualflow.ops.arithmetic import add, multiply, square, squared_difference, subtract
from dualflow.ops.arrangement import reshape, squeeze
from dualflow.ops.broadcasting import reduce_sum, reduction_axes
from dualflow.ops.conversion import cast
from dualflow.ops.creation import constant, convert_to_tensor, zeros_like
from dualflow.ops.powers import reciprocal
from dualflow.ops.reduction import reduce_prod
from dualflow.ops.shapes import shape as shape_tensor
from dualflow.ops.statistics import as_float, reduce_mean
from dualflow.ops.taking import gather

if TYPE_CHECKING:
    from dualflow.core.argument_types import AxisLike, TensorLike
    from dualflow.ops.tensor import Tensor


def moments(
    x: TensorLike,
    axes: AxisLike,
    shift: TensorLike | None = None,
    keepdims: bool = False,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """The mean and the variance of ``x`` over ``axes``; those of float16 are computed in float32.

    Args:
        x: numbers of any shape; integers become float32.
        axes: the axes to reduce: an integer or a list.
        shift: ignored, as in TensorFlow.
        keepdims: whether the reduced axes stay, with size 1.

    Returns:
        Two tensors with the shape of ``x`` without the reduced axes, and its dtype.

    Raises:
        InvalidArgumentError: an axis is out of range or occurs twice.

    >>> import dualflow as df
    >>> mean, variance = df.nn.moments(df.constant([[1.0, 5.0], [3.0, 5.0]]), axes=[0])
    >>> mean.numpy().tolist(), variance.numpy().tolist()
    ([2.0, 5.0], [1.0, 0.0])
    """
    x = as_float(x)
    if x.dtype is float16:
        mean, variance = moments(cast(x, float32), axes, None, keepdims)
        return cast(mean, float16), cast(variance, float16)
    mean = reduce_mean(x, axes, keepdims=True)
    variance = reduce_mean(squared_difference(x, mean), axes, keepdims)
    return (mean if keepdims else reshape(mean, variance.shape)), variance


def weighted_moments(
    x: TensorLike,
    axes: AxisLike,
    frequency_weights: TensorLike,
    keepdims: bool = False,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """The weighted mean and variance of ``x`` over ``axes``.

    Args:
        x: numbers of any shape; integers become float32.
        axes: the axes to reduce: an integer or a list.
        frequency_weights: numbers that broadcast with ``x``: the weight of each element.
        keepdims: whether the reduced axes stay, with size 1.

    Returns:
        Two tensors with the shape of ``x`` without the reduced axes, and its dtype.

    Raises:
        InvalidArgumentError: the shapes do not broadcast, or an axis is out of range.

    >>> import dualflow as df
    >>> mean, variance = df.nn.weighted_moments([1.0, 4.0], [0], [2.0, 1.0])
    >>> float(mean), float(variance)
    (2.0, 2.0)
    """
    x = as_float(x)
    if x.dtype is float16:
        mean, variance = weighted_moments(cast(x, float32), axes, frequency_weights, keepdims)
        return cast(mean, float16), cast(variance, float16)
    weights = cast(convert_to_tensor(frequency_weights, dtype_hint=x.dtype), x.dtype)
    weights = weights + zeros_like(x)
    share = 1 / reduce_sum(weights, axes, keepdims=True)
    mean = reduce_sum(weights * x, axes, keepdims=True) * share
    variance = reduce_sum(weights * squared_difference(x, mean), axes, keepdims=True) * share
    if keepdims:
        return mean, variance
    over = reduction_axes(weights, axes)
    return squeeze(mean, over) if over else mean, squeeze(variance, over) if over else variance


def sufficient_statistics(
    x: TensorLike,
    axes: AxisLike,
    shift: TensorLike | None = None,
    keepdims: bool = False,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """The sums from which :func:`normalize_moments` computes mean and variance; they add up over batches.

    Args:
        x: numbers of any shape; integers become float32.
        axes: the axes to sum over: an integer or a list.
        shift: a number near the mean, which is subtracted first for a more exact variance; None for 0.
        keepdims: whether the reduced axes stay, with size 1.

    Returns:
        The number of elements, a scalar; the sum and the sum of squares, less the shift; and the shift or
        None. All have the dtype of ``x``.

    Raises:
        InvalidArgumentError: an axis is out of range or occurs twice.

    >>> import dualflow as df
    >>> count, total, squares, shift = df.nn.sufficient_statistics([1.0, 2.0, 3.0], [0])
    >>> float(count), float(total), float(squares), shift
    (3.0, 6.0, 14.0, None)
    """
    x = as_float(x)
    over = reduction_axes(x, axes)
    static_count = Shape([x.shape[a] for a in over]).num_elements()
    if static_count is None:
        count = cast(reduce_prod(gather(shape_tensor(x), list(over))), x.dtype)
    else:
        count = constant(static_count, x.dtype)
    if shift is None:
        return count, reduce_sum(x, over, keepdims), reduce_sum(square(x), over, keepdims), None
    shift = convert_to_tensor(shift, dtype_hint=x.dtype)
    total = reduce_sum(subtract(x, shift), over, keepdims)
    return count, total, reduce_sum(squared_difference(x, shift), over, keepdims), shift


def normalize_moments(
    counts: TensorLike,
    mean_ss: TensorLike,
    variance_ss: TensorLike,
    shift: TensorLike | None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """The mean and the variance from the sums of :func:`sufficient_statistics`.

    Args:
        counts: the number of elements.
        mean_ss: their sum, each less the shift.
        variance_ss: their sum of squares, each less the shift.
        shift: the shift, or None.

    Returns:
        Two tensors with the shape and dtype of ``mean_ss``.

    Raises:
        InvalidArgumentError: the shapes do not broadcast.

    >>> import dualflow as df
    >>> sums = df.nn.sufficient_statistics([1.0, 2.0, 3.0], [0], shift=2.0)
    >>> mean, variance = df.nn.normalize_moments(*sums)
    >>> float(mean), float(variance)
    (2.0, 0.6666...)
    """
    share = reciprocal(as_float(counts))
    mean = share * mean_ss
    variance = multiply(variance_ss, share) - square(mean)
    return (mean if shift is None else add(mean, shift)), variance
