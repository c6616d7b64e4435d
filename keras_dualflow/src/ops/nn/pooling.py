"""Pooling with windows of one size, and adaptive pooling."""

from __future__ import annotations

from typing import Any

from keras.src.backend import standardize_data_format
from keras.src.backend.common.backend_utils import compute_adaptive_pooling_window_sizes

import dualflow as df
from keras_dualflow.src.ops.core import shape
from keras_dualflow.src.ops.nn.layouts import dimensions, layout, per_axis
from keras_dualflow.src.ops.promotion import tensor


def max_pool(
    inputs: Any, pool_size: Any, strides: Any = None, padding: str = "valid", data_format: str | None = None
) -> Any:
    return _pool(df.nn.max_pool, inputs, pool_size, strides, padding, data_format)


def average_pool(
    inputs: Any, pool_size: Any, strides: Any = None, padding: str = "valid", data_format: str | None = None
) -> Any:
    return _pool(df.nn.avg_pool, inputs, pool_size, strides, padding, data_format)


def _pool(pool: Any, inputs: Any, size: Any, strides: Any, padding: str, data_format: str | None) -> Any:
    if padding not in ("valid", "same"):
        raise ValueError(f"Invalid padding '{padding}', must be 'same' or 'valid'.")
    inputs = tensor(inputs)
    axes = dimensions(inputs, "pool")
    name = layout(standardize_data_format(data_format), len(inputs.shape))
    strides = size if strides is None else strides
    return pool(inputs, per_axis(size, axes), per_axis(strides, axes), padding.upper(), name)


def adaptive_average_pool(inputs: Any, output_size: Any, data_format: str | None = None) -> Any:
    return _adaptive_pool("AVG", inputs, output_size, data_format)


def adaptive_max_pool(inputs: Any, output_size: Any, data_format: str | None = None) -> Any:
    return _adaptive_pool("MAX", inputs, output_size, data_format)


def _adaptive_pool(kind: str, inputs: Any, output_size: Any, data_format: str | None) -> Any:
    inputs = tensor(inputs)
    axes = dimensions(inputs, "adaptive_pool")
    first = 2 if standardize_data_format(data_format) == "channels_first" else 1
    for axis, count in enumerate(per_axis(output_size, axes), first):
        inputs = _adaptive_pool_axis(kind, inputs, axis, count)
    return inputs


def _adaptive_pool_axis(kind: str, x: Any, axis: int, count: int) -> Any:
    """Adaptive pooling along one axis: ``count`` windows, whose sizes differ by at most one."""
    size = x.shape[axis]
    if size is None:
        return _adaptive_pool_dynamic_axis(kind, x, axis, count)
    if count == size:
        return x
    small, large = compute_adaptive_pooling_window_sizes(size, count)
    starts = [i * size // count for i in range(count)]
    ends = [-(-(i + 1) * size // count) for i in range(count)]  # ceil((i + 1) * size / count)
    # `windows` holds first all windows of size `small` (size - small + 1 of them), then those of size `large`
    indices = [
        start if end - start == small else size - small + 1 + start
        for start, end in zip(starts, ends, strict=True)
    ]
    windows = df.concat([_windows(kind, x, axis, width) for width in (small, large)], axis)
    return df.gather(windows, indices, axis=axis)


def _adaptive_pool_dynamic_axis(kind: str, x: Any, axis: int, count: int) -> Any:
    """Adaptive pooling along an axis of dynamic size: each window by itself."""
    size, reduce = shape(x)[axis], df.reduce_mean if kind == "AVG" else df.reduce_max
    windows = [
        x[(*[slice(None)] * axis, slice(i * size // count, -(-(i + 1) * size // count)))]
        for i in range(count)
    ]
    return df.stack([reduce(window, axis) for window in windows], axis)


def _windows(kind: str, x: Any, axis: int, width: int) -> Any:
    """The maximum or mean of each window of ``width`` along an axis."""
    order = [*[i for i in range(len(x.shape)) if i != axis], axis]
    transposed = df.transpose(x, order)
    sizes = df.shape(transposed)
    pooled = df.nn.pool(df.reshape(transposed, (-1, x.shape[axis], 1)), [width], kind)
    pooled = df.reshape(pooled, df.concat([sizes[:-1], [x.shape[axis] - width + 1]], 0))
    return df.transpose(pooled, [order.index(i) for i in range(len(order))])
