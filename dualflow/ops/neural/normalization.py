"""Scaling values to a norm, or to mean and variance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dualflow.core.dtypes import float16, float32
from dualflow.core.errors import InvalidArgumentError
from dualflow.ops.arithmetic import add, maximum, multiply, squared_difference
from dualflow.ops.arrangement import reshape
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.conversion import cast
from dualflow.ops.powers import rsqrt
from dualflow.ops.record import agreed
from dualflow.ops.statistics import as_float, reduce_mean, squared_magnitude

if TYPE_CHECKING:
    from dualflow.ops.tensor import Tensor


def l2_normalize(
    x: Any, axis: Any = None, epsilon: float = 1e-12, name: str | None = None, dim: Any = None
) -> Tensor:
    """``x`` divided by its norm over ``axis``, by default all; ``epsilon`` bounds the norm's square.

    ``dim`` is the earlier name of ``axis``.
    """
    x, over = as_float(x), dim if axis is None else axis
    return x * rsqrt(maximum(reduce_sum(squared_magnitude(x), over, keepdims=True), epsilon))


def moments(
    x: Any, axes: Any, shift: Any = None, keepdims: bool = False, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """The mean and the variance of ``x`` over ``axes``; ``shift`` is ignored, as in TensorFlow.

    Those of float16 are computed in float32.
    """
    x = as_float(x)
    if x.dtype is float16:
        mean, variance = moments(cast(x, float32), axes, None, keepdims)
        return cast(mean, float16), cast(variance, float16)
    mean = reduce_mean(x, axes, keepdims=True)
    variance = reduce_mean(squared_difference(x, mean), axes, keepdims)
    return (mean if keepdims else reshape(mean, variance.shape)), variance


def batch_normalization(
    x: Any,
    mean: Any,
    variance: Any,
    offset: Any,
    scale: Any,
    variance_epsilon: float,
    name: str | None = None,
) -> Tensor:
    """``(x - mean) / sqrt(variance + epsilon) * scale + offset``; ``offset`` and ``scale`` may be None."""
    x, mean, variance = agreed(x, mean, variance)
    factor = rsqrt(add(variance, variance_epsilon))
    if scale is not None:
        factor = factor * scale
    found = multiply(x, factor) - multiply(mean, factor)
    return found if offset is None else found + offset


def bias_add(value: Any, bias: Any, data_format: str | None = None, name: str | None = None) -> Tensor:
    """``value + bias``, a vector along the channels: the last axis, or the second for "NC..." formats.

    Raises:
        InvalidArgumentError: ``bias`` is not a vector as long as that axis.
    """
    value, bias = agreed(value, bias)
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
