"""Fused batch normalization by the name and the outputs of TensorFlow's kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualflow.core.records import NamedTuple
from dualflow.core.tracebacks import entry
from dualflow.ops.neural.normalization import fused_batch_norm

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike
    from dualflow.ops.tensor import Tensor


class FusedBatchNormOutputs(NamedTuple):
    """The outputs of a fused batch normalization: ``reserve_space_1`` and ``2`` are those of the gradient."""

    y: Tensor
    batch_mean: Tensor
    batch_variance: Tensor
    reserve_space_1: Tensor
    reserve_space_2: Tensor


@entry
def FusedBatchNormV2(
    *,
    x: TensorLike,
    scale: TensorLike,
    offset: TensorLike,
    mean: TensorLike,
    variance: TensorLike,
    epsilon: float = 0.0001,
    exponential_avg_factor: float = 1.0,
    data_format: str = "NHWC",
    is_training: bool = True,
    name: str | None = None,
) -> FusedBatchNormOutputs:
    """Batch normalization of images, as :func:`dualflow.compat.v1.nn.fused_batch_norm`.

    Args:
        x: floats of shape ``(batch, *axes, channels)``.
        scale, offset: ``[channels]``.
        mean, variance: ``[channels]``; not read if the batch's replace them.
        epsilon: added to the variance.
        exponential_avg_factor: the batch's share in the mean and variance that are returned.
        data_format: "NHWC" or "NCHW".
        is_training: whether to normalize by the batch's mean and variance.

    >>> import dualflow as df
    >>> x = df.constant([[[[1.0]], [[3.0]]]])
    >>> outputs = df.raw_ops.FusedBatchNormV2(x=x, scale=[1.0], offset=[0.0], mean=[], variance=[])
    >>> outputs.batch_mean.numpy()
    array([2.], dtype=float32)
    """
    replaced = is_training and exponential_avg_factor == 1.0
    y, new_mean, new_variance = fused_batch_norm(
        x,
        scale,
        offset,
        None if replaced else mean,
        None if replaced else variance,
        epsilon,
        data_format,
        is_training,
        exponential_avg_factor=exponential_avg_factor,
    )
    return FusedBatchNormOutputs(y, new_mean, new_variance, new_mean, new_variance)
