"""Scaling values to a range, a norm, or mean and variance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dualflow.core.dtypes import float16, float32
from dualflow.core.errors import InvalidArgumentError
from dualflow.ops.arithmetic import add, maximum, minimum, multiply, squared_difference
from dualflow.ops.arrangement import reshape
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.choice import where
from dualflow.ops.comparison import isfinite
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.joining import stack
from dualflow.ops.losses import l2_loss
from dualflow.ops.powers import rsqrt, sqrt
from dualflow.ops.record import agreed
from dualflow.ops.statistics import as_float, reduce_mean, squared_magnitude

if TYPE_CHECKING:
    from dualflow.ops.tensor import Tensor


def clip_by_value(t: Any, clip_value_min: Any, clip_value_max: Any, name: str | None = None) -> Tensor:
    """``t`` with values below ``clip_value_min`` or above ``clip_value_max`` replaced by those.

    The gradient is that of ``t`` within the range, its ends included, and 0 outside.

    >>> import dualflow as df
    >>> df.clip_by_value([-3, 2, 9], 0, 5).numpy()
    array([0, 2, 5], dtype=int32)
    """
    return maximum(minimum(t, clip_value_max), clip_value_min)


def clip_by_norm(t: Any, clip_norm: Any, axes: Any = None, name: str | None = None) -> Tensor:
    """``t`` scaled down to the norm ``clip_norm`` where its norm over ``axes``, by default all, is larger.

    >>> import dualflow as df
    >>> df.clip_by_norm([3.0, 4.0], 1.0).numpy()
    array([0.6, 0.8], dtype=float32)
    """
    x = as_float(t)
    total = reduce_sum(squared_magnitude(x), axes, keepdims=True)
    positive = total > 0
    length = where(positive, sqrt(where(positive, total, 1)), total)  # 0, or nan, which stays
    return x * clip_norm / maximum(length, clip_norm)


def global_norm(t_list: Sequence[Any], name: str | None = None) -> Tensor:
    """The Euclidean norm of all elements of all tensors of ``t_list``; None entries are left out.

    Raises:
        InvalidArgumentError: no tensors.
    """
    halves = [l2_loss(as_float(t)) for t in t_list if t is not None]
    if not halves:
        raise InvalidArgumentError("global_norm takes one tensor or more, but every entry is None.")
    return sqrt(reduce_sum(stack(halves)) * 2)


def clip_by_global_norm(
    t_list: Sequence[Any], clip_norm: Any, use_norm: Any = None, name: str | None = None
) -> tuple[list[Tensor | None], Tensor]:
    """The tensors of ``t_list`` scaled together so that their global norm is at most ``clip_norm``.

    Args:
        t_list: tensors; None entries stay None.
        clip_norm: the largest norm.
        use_norm: the global norm, if it is known.
        name: ignored; as in TensorFlow.

    Returns:
        The scaled tensors and the norm they had; nan where that norm is not finite.
    """
    norm = global_norm(t_list) if use_norm is None else convert_to_tensor(use_norm)
    scale = where(isfinite(norm), clip_norm / maximum(norm, clip_norm), float("nan"))
    return [None if t is None else multiply(t, scale) for t in t_list], norm


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
