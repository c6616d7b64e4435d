"""Scaling values to a norm, or to mean and variance."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dualflow.core.dtypes import float16, float32
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import Shape
from dualflow.ops.arithmetic import add, maximum, multiply, square
from dualflow.ops.arrangement import reshape
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor, ones_like
from dualflow.ops.neural.moments import moments
from dualflow.ops.neural.window_options import has_channels_first
from dualflow.ops.neural.window_reductions import sums
from dualflow.ops.neural.windows import Geometry
from dualflow.ops.powers import pow, rsqrt
from dualflow.ops.record import promote_together
from dualflow.ops.static import require_static_sizes, static_int
from dualflow.ops.statistics import as_float, squared_magnitude
from dualflow.ops.tensor_sizes import reshape_sizes

if TYPE_CHECKING:
    from dualflow.core.argument_types import AxisLike, TensorLike
    from dualflow.ops.tensor import Tensor


def l2_normalize(
    x: TensorLike,
    axis: AxisLike | None = None,
    epsilon: float = 1e-12,
    name: str | None = None,
    dim: AxisLike | None = None,
) -> Tensor:
    """``x`` divided by its Euclidean norm over ``axis``.

    Args:
        x: numbers of any shape; integers become float32.
        axis: the axes of the norm: an integer or a list; None for all axes.
        epsilon: a lower bound of the squared norm.
        dim: the earlier name of ``axis``.

    Returns:
        A tensor with the shape and dtype of ``x``.

    Raises:
        InvalidArgumentError: an axis is out of range or occurs twice.

    >>> import dualflow as df
    >>> df.nn.l2_normalize([3.0, 4.0]).numpy()
    array([0.6, 0.8], dtype=float32)
    """
    x, over = as_float(x), dim if axis is None else axis
    return x * rsqrt(maximum(reduce_sum(squared_magnitude(x), over, keepdims=True), epsilon))


def batch_normalization(
    x: TensorLike,
    mean: TensorLike,
    variance: TensorLike,
    offset: TensorLike | None,
    scale: TensorLike | None,
    variance_epsilon: float,
    name: str | None = None,
) -> Tensor:
    """``(x - mean) / sqrt(variance + epsilon) * scale + offset``.

    Ioffe and Szegedy, "Batch Normalization: Accelerating Deep Network Training by Reducing Internal Covariate
    Shift" (2015).

    Args:
        x: floats of any shape.
        mean: numbers that broadcast with ``x``.
        variance: likewise, 0 or more.
        offset: likewise; None for 0.
        scale: likewise; None for 1.
        variance_epsilon: a small number that keeps the divisor from 0.

    Returns:
        A tensor of the broadcast shape with the common dtype.

    Raises:
        InvalidArgumentError: the shapes do not broadcast.

    >>> import dualflow as df
    >>> df.nn.batch_normalization([1.0, 3.0], 2.0, 1.0, 10.0, 5.0, 0.0).numpy()
    array([ 5., 15.], dtype=float32)
    """
    x, mean, variance = promote_together(x, mean, variance)
    factor = rsqrt(add(variance, variance_epsilon))
    if scale is not None:
        factor = factor * scale
    normalized = multiply(x, factor) - multiply(mean, factor)
    return normalized if offset is None else normalized + offset


def batch_norm_with_global_normalization(
    input: TensorLike,
    mean: TensorLike,
    variance: TensorLike,
    beta: TensorLike | None,
    gamma: TensorLike,
    variance_epsilon: float,
    scale_after_normalization: bool,
    name: str | None = None,
) -> Tensor:
    """:func:`batch_normalization` with ``beta`` as offset, and optionally ``gamma`` as scale.

    Args:
        input: floats of any shape.
        mean: numbers that broadcast with ``input``.
        variance: likewise, 0 or more.
        beta: the offset; None for 0.
        gamma: the scale.
        variance_epsilon: a small number that keeps the divisor from 0.
        scale_after_normalization: whether to multiply by ``gamma``.

    Returns:
        A tensor of the broadcast shape with the common dtype.

    Raises:
        InvalidArgumentError: the shapes do not broadcast.

    >>> import dualflow as df
    >>> x = df.constant([[1.0], [3.0]])
    >>> f = df.nn.batch_norm_with_global_normalization
    >>> f(x, [2.0], [1.0], [10.0], [5.0], 0.0, True).numpy().ravel()
    array([ 5., 15.], dtype=float32)
    """
    scale = gamma if scale_after_normalization else None
    return batch_normalization(input, mean, variance, beta, scale, variance_epsilon)


def fused_batch_norm(
    x: Any,
    scale: Any,
    offset: Any,
    mean: Any = None,
    variance: Any = None,
    epsilon: float = 0.001,
    data_format: str = "NHWC",
    is_training: bool = True,
    name: str | None = None,
    exponential_avg_factor: float = 1.0,
) -> tuple[Tensor, Tensor, Tensor]:
    """Batch normalization of the channels of images, with the means and variances that it used.

    Args:
        x: floats of shape ``(batch, *axes, channels)``.
        scale: ``[channels]``, a factor of the result.
        offset: ``[channels]``, added to the result.
        mean: ``[channels]``, the running mean; not needed where the batch's replaces it.
        variance: ``[channels]``, the running variance.
        epsilon: added to the variance.
        data_format: "N...C", or "NC..." if the channels come second.
        is_training: whether to normalize by the batch's mean and variance, and not by those given.
        exponential_avg_factor: the batch's share in the running mean and variance that are returned.

    Returns:
        The normalized tensor, and the running mean and variance: of float32 for float16.

    Raises:
        InvalidArgumentError: a mean or variance that is needed and missing.

    >>> import dualflow as df
    >>> y, mean, variance = df.compat.v1.nn.fused_batch_norm(df.constant([[[[1.0]], [[3.0]]]]), [1.0], [0.0])
    >>> float(mean[0]), float(variance[0])
    (2.0, 2.0)
    """
    x = as_float(x)
    if len(x.shape) < 3:
        raise InvalidArgumentError(
            f"fused_batch_norm takes (batch, *axes, channels), not shape {x.shape}; "
            "df.nn.batch_normalization "
            "takes any."
        )
    channels_first = has_channels_first(data_format, len(x.shape))
    if (mean is None or variance is None) and (not is_training or exponential_avg_factor != 1.0):
        raise InvalidArgumentError(
            "fused_batch_norm needs mean and variance where is_training is False or "
            "exponential_avg_factor is "
            "not 1.0; give both."
        )
    wide = cast(x, float32) if x.dtype is float16 else x
    shaped = _along(wide, channels_first)
    if not is_training:
        normalized = batch_normalization(
            wide, shaped(mean), shaped(variance), shaped(offset), shaped(scale), epsilon
        )
        return cast(normalized, x.dtype), convert_to_tensor(mean), convert_to_tensor(variance)
    axes = [a for a in range(len(x.shape)) if a != (1 if channels_first else len(x.shape) - 1)]
    of_batch, spread = moments(wide, axes)
    normalized = batch_normalization(
        wide, shaped(of_batch), shaped(spread), shaped(offset), shaped(scale), epsilon
    )
    count = reduce_sum(ones_like(wide), axes)
    unbiased = spread * (count / maximum(count - 1, 1))
    if exponential_avg_factor != 1.0:
        share = exponential_avg_factor
        of_batch = of_batch * share + convert_to_tensor(mean) * (1 - share)
        unbiased = unbiased * share + convert_to_tensor(variance) * (1 - share)
    return cast(normalized, x.dtype), of_batch, unbiased


def _along(x: Any, channels_first: bool) -> Callable[[Any], Any]:
    """A function that reshapes a vector of channels to the rank of ``x``."""
    shape = [-1, *[1] * (len(x.shape) - 2)] if channels_first else [-1]
    return lambda vector: reshape(convert_to_tensor(vector, dtype_hint=x.dtype), shape)


def local_response_normalization(
    input: TensorLike,
    depth_radius: int = 5,
    bias: float = 1,
    alpha: float = 1,
    beta: float = 0.5,
    name: str | None = None,
) -> Tensor:
    """Each element divided by a power of the sum of squares of its neighbours along the channels.

    It is ``input / (bias + alpha * s) ** beta``, where ``s`` is over the channels up to ``depth_radius`` away
    (Krizhevsky, Sutskever and Hinton, "ImageNet Classification with Deep Convolutional Neural Networks",
    2012).

    Args:
        input: numbers of shape ``(batch, height, width, channels)``; integers become float32.
        depth_radius: the largest distance of a neighbour, an integer.
        bias: a number that keeps the divisor from 0.
        alpha: the weight of the squares.
        beta: the exponent.

    Returns:
        A tensor with the shape and dtype of ``input``.

    Raises:
        InvalidArgumentError: ``input`` doesn't have four axes, or ``depth_radius`` is negative.

    >>> import dualflow as df
    >>> df.nn.lrn(df.constant([[[[1.0, 2.0, 2.0]]]]), depth_radius=1, bias=0.0, beta=1.0).numpy().ravel()
    array([0.2       , 0.2222..., 0.25      ], dtype=float32)
    """
    x = as_float(input)
    if len(x.shape) != 4:
        raise InvalidArgumentError(
            f"local_response_normalization takes (batch, height, width, channels), not shape {x.shape}; "
            "df.reshape it first."
        )
    radius = static_int(depth_radius, "depth_radius")
    if radius < 0:
        raise InvalidArgumentError(f"depth_radius is 0 or more, not {radius}.")
    (channels,) = require_static_sizes(x.shape, "local_response_normalization", [3])
    layout = Geometry((2 * radius + 1,), (1,), (1,), ((radius, radius),))
    count = Shape(x.shape[:-1]).num_elements()
    rows = reshape(square(x), [-1 if count is None else count, channels, 1])
    total = reshape(sums(rows, layout), reshape_sizes(x.shape, x))
    return x / pow(bias + alpha * total, beta)


def bias_add(
    value: TensorLike, bias: TensorLike, data_format: str | None = None, name: str | None = None
) -> Tensor:
    """``value + bias``, where ``bias`` is a vector along the channels.

    Args:
        value: numbers of two axes or more.
        bias: a vector; its size is the number of channels.
        data_format: None or "N...C" if the channels are last; "NC..." if they are the second axis.

    Returns:
        A tensor with the shape of ``value`` and the common dtype.

    Raises:
        InvalidArgumentError: ``bias`` is not a vector of that size.
        DTypeError: the inputs have no common dtype.

    >>> import dualflow as df
    >>> df.nn.bias_add([[1.0, 2.0], [3.0, 4.0]], [10.0, 20.0]).numpy().tolist()
    [[11.0, 22.0], [13.0, 24.0]]
    """
    value, bias = promote_together(value, bias)
    if data_format is not None and not isinstance(data_format, str):
        raise InvalidArgumentError(f"data_format is a string such as 'NHWC' or 'NCHW', not {data_format!r}.")
    channel_first = data_format is not None and data_format.startswith("NC")
    axis = 1 if channel_first else len(value.shape) - 1
    if len(bias.shape) != 1 or len(value.shape) < 2 or value.shape[axis] != bias.shape[0]:
        raise InvalidArgumentError(
            f"a bias of shape {bias.shape} does not fit axis {axis} of shape {value.shape}: it is a "
            "vector of that size."
        )
    if channel_first:
        bias = reshape(bias, [-1] + [1] * (len(value.shape) - 2))
    return value + bias
