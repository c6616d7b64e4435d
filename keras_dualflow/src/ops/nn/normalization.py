"""Moments, batch normalization, and one-hot and multi-hot encodings."""

from __future__ import annotations

from typing import Any

import dualflow as df
from keras_dualflow.replicas import in_replicas
from keras_dualflow.src.ops.core import cast
from keras_dualflow.src.ops.promotion import tensor


def moments(x: Any, axes: Any, keepdims: bool = False, synchronized: bool = False) -> tuple[Any, Any]:
    x = tensor(x)
    compute = _moments_of_all if synchronized and in_replicas() else df.nn.moments
    if x.dtype.name not in ("float16", "bfloat16"):
        mean, variance = compute(x, axes, keepdims=keepdims)
        return mean, variance
    mean, variance = compute(cast(x, "float32"), axes, keepdims=keepdims)
    return _cast_saturating(mean, x.dtype), _cast_saturating(variance, x.dtype)


def _moments_of_all(x: Any, axes: Any, keepdims: bool) -> tuple[Any, Any]:
    """Mean and variance over the elements of all replicas, which may have unequal numbers of them."""
    context = df.distribute.get_replica_context()
    if context is None:
        return df.nn.moments(x, axes, keepdims=keepdims)
    total = df.reduce_sum(x, axes, keepdims=True)
    count = cast(df.size(x), x.dtype.name) / cast(df.size(total), x.dtype.name)
    total, count = context.all_reduce("SUM", [total, count])
    mean = total / count
    squares = context.all_reduce("SUM", df.reduce_sum(df.square(x - mean), axes, keepdims=True))
    variance = squares / count
    return (mean, variance) if keepdims else (df.squeeze(mean, axes), df.squeeze(variance, axes))


def _cast_saturating(x: Any, dtype: Any) -> Any:
    """``x`` cast to a 16-bit dtype, clipped to the range of float16."""
    return cast(df.clip_by_value(x, -65504.0, 65504.0), dtype.name)


def batch_normalization(
    x: Any,
    mean: Any,
    variance: Any,
    axis: int,
    offset: Any = None,
    scale: Any = None,
    epsilon: float = 1e-3,
) -> Any:
    x, mean, variance = tensor(x), tensor(mean), tensor(variance)
    parts = [mean, variance, offset, scale]
    if axis % len(x.shape) != len(x.shape) - 1:
        shape = [1] * len(x.shape)
        shape[axis] = -1
        parts = [part if part is None else df.reshape(tensor(part), shape) for part in parts]
    mean, variance, offset, scale = [part if part is None else cast(part, x.dtype.name) for part in parts]
    return df.nn.batch_normalization(x, mean, variance, offset, scale, epsilon)


def one_hot(x: Any, num_classes: int, axis: int = -1, dtype: Any = None, sparse: bool = False) -> Any:
    if sparse:
        raise ValueError("Unsupported value `sparse=True` with dualflow backend")
    encoded = df.one_hot(cast(x, "int32"), num_classes, axis=axis)
    return cast(encoded, "float32" if dtype is None else dtype)


def multi_hot(x: Any, num_classes: int, axis: int = -1, dtype: Any = None, sparse: bool = False) -> Any:
    if sparse:
        raise ValueError("Unsupported value `sparse=True` with dualflow backend")
    x = tensor(x)
    return df.reduce_max(one_hot(x, num_classes, axis, dtype), 1 if len(x.shape) > 1 else 0)
