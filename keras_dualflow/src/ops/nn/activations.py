"""Activation functions."""

from __future__ import annotations

from typing import Any

import dualflow as df
from keras_dualflow.src.ops.core import cast, convert_to_tensor
from keras_dualflow.src.ops.promotion import floats, tensor


def relu(x: Any) -> Any:
    return df.nn.relu(tensor(x))


def relu6(x: Any) -> Any:
    return df.nn.relu6(tensor(x))


def sigmoid(x: Any) -> Any:
    return df.sigmoid(floats(x))


def sparse_sigmoid(x: Any) -> Any:
    x = floats(x)
    return df.where(x <= -1.0, 0.0, df.where(x >= 1.0, 1.0, 0.5 * (x + 1.0)))


def tanh(x: Any) -> Any:
    return df.tanh(floats(x))


def tanh_shrink(x: Any) -> Any:
    x = floats(x)
    return x - df.tanh(x)


def softplus(x: Any) -> Any:
    return df.softplus(floats(x))


def softsign(x: Any) -> Any:
    return df.nn.softsign(floats(x))


def soft_shrink(x: Any, threshold: float = 0.5) -> Any:
    x = floats(x)
    return df.where(x > threshold, x - threshold, df.where(x < -threshold, x + threshold, 0.0))


def sparse_plus(x: Any) -> Any:
    x = floats(x)
    return df.where(x <= -1.0, 0.0, df.where(x < 1.0, 0.25 * df.square(x + 1.0), x))


def silu(x: Any) -> Any:
    return df.nn.silu(floats(x))


def squareplus(x: Any, b: Any = 4) -> Any:
    x = floats(x)
    return (x + df.sqrt(df.square(x) + convert_to_tensor(b, x.dtype.name))) / 2.0


def log_sigmoid(x: Any) -> Any:
    return df.math.log_sigmoid(floats(x))


def leaky_relu(x: Any, negative_slope: float = 0.2) -> Any:
    return df.nn.leaky_relu(floats(x), alpha=negative_slope)


def hard_sigmoid(x: Any) -> Any:
    return df.nn.relu6(floats(x) + 3.0) / 6.0


def hard_silu(x: Any) -> Any:
    x = floats(x)
    return x * hard_sigmoid(x)


def elu(x: Any, alpha: float = 1.0) -> Any:
    x = floats(x)
    y = df.nn.elu(x)
    return y if alpha == 1 else df.where(x > 0.0, y, alpha * y)


def selu(x: Any) -> Any:
    return df.nn.selu(floats(x))


def gelu(x: Any, approximate: bool = True) -> Any:
    return df.nn.gelu(floats(x), approximate)


def celu(x: Any, alpha: float = 1.0) -> Any:
    x = floats(x)
    return df.maximum(x, 0.0) + alpha * df.math.expm1(df.minimum(x, 0.0) / alpha)


def glu(x: Any, axis: int = -1) -> Any:
    x = floats(x)
    size = x.shape[axis]
    if size is not None and size % 2:
        raise ValueError(f"axis size must be divisible by 2. Received: x.shape={x.shape} with axis={axis}")
    values, gates = df.split(x, 2, axis)
    return values * df.sigmoid(gates)


def hard_tanh(x: Any) -> Any:
    return df.clip_by_value(tensor(x), -1.0, 1.0)


def hard_shrink(x: Any, threshold: float = 0.5) -> Any:
    x = floats(x)
    return df.where(df.abs(x) > threshold, x, 0.0)


def threshold(x: Any, threshold: float, default_value: float) -> Any:
    x = tensor(x)
    return df.where(x > threshold, x, convert_to_tensor(default_value, x.dtype.name))


def softmax(x: Any, axis: Any = -1) -> Any:
    x = floats(x)
    if axis is None:
        return df.reshape(df.nn.softmax(df.reshape(x, (-1,))), df.shape(x))
    return df.nn.softmax(x, axis)


def log_softmax(x: Any, axis: Any = -1) -> Any:
    x = floats(x)
    if axis is None:
        return df.reshape(df.nn.log_softmax(df.reshape(x, (-1,))), df.shape(x))
    return df.nn.log_softmax(x, axis)


def sparsemax(x: Any, axis: int = -1) -> Any:
    """Sparsemax: the projection of ``x`` onto distributions over ``axis`` (Martins and Astudillo, 2016)."""
    x = floats(x)
    falling = df.sort(x, axis, "DESCENDING")
    sums = df.cumsum(falling, axis)
    counts = df.reshape(
        _places(x, axis), [-1 if i == axis % len(x.shape) else 1 for i in range(len(x.shape))]
    )
    inside = falling - (sums - 1.0) / counts > 0.0
    many = df.reduce_sum(cast(inside, x.dtype.name), axis, keepdims=True)
    total = df.reduce_sum(df.where(inside, falling, 0.0), axis, keepdims=True)
    return df.maximum(x - (total - 1.0) / many, 0.0)


def _places(x: Any, axis: int) -> Any:
    """The numbers 1, 2, ... up to the size of the axis."""
    return cast(df.range(1, df.shape(x)[axis] + 1), x.dtype.name)
