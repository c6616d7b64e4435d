"""``unfold`` and ``fold`` of image windows, and conversions between depth and space."""

from __future__ import annotations

from typing import Any

import dualflow as df
from keras_dualflow.src.ops.nn.layouts import layout, per_axis
from keras_dualflow.src.ops.promotion import tensor


def unfold(input: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Any:
    """The windows of images ``(N, C, H, W)`` as columns of shape ``(N, C * height * width, windows)``."""
    images = tensor(input)
    kernel_size, dilation, padding, stride = (
        per_axis(v, 2) for v in (kernel_size, dilation, padding, stride)
    )
    channels = images.shape[1]
    if any(padding):
        images = df.pad(images, [[0, 0], [0, 0], *[[x, x] for x in padding]])
    patches = df.image.extract_patches(
        df.transpose(images, (0, 2, 3, 1)), (1, *kernel_size, 1), (1, *stride, 1), (1, *dilation, 1), "VALID"
    )
    rows, columns = patches.shape[1:3]
    patches = df.reshape(patches, (-1, rows * columns, kernel_size[0] * kernel_size[1], channels))
    return df.reshape(
        df.transpose(patches, (0, 3, 2, 1)), (-1, channels * kernel_size[0] * kernel_size[1], rows * columns)
    )


def fold(
    x: Any, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Any:
    """Images ``(N, C, H, W)`` whose windows are the columns ``x``; overlapping windows are added."""
    x = tensor(x)
    kernel_size, dilation, padding, stride = (
        per_axis(v, 2) for v in (kernel_size, dilation, padding, stride)
    )
    height, width = (a + 2 * b for a, b in zip(per_axis(output_size, 2), padding, strict=True))
    count = kernel_size[0] * kernel_size[1]
    channels = x.shape[1] // count
    rows, columns = (
        (length - gap * (window - 1) - 1) // step + 1
        for length, gap, window, step in zip((height, width), dilation, kernel_size, stride, strict=True)
    )
    # A transposed convolution adds windows; its filter for a position in the window is 1 there.
    windows = df.reshape(x, (-1, count, rows, columns))
    filters = df.reshape(df.eye(count, dtype=x.dtype), (*kernel_size, 1, count))
    images = df.nn.conv_transpose(
        df.transpose(windows, (0, 2, 3, 1)),
        filters,
        [-1, height, width, 1],
        stride,
        "VALID",
        "NHWC",
        dilation,
    )
    images = df.reshape(images, (-1, channels, height, width))
    return images[:, :, padding[0] : height - padding[0], padding[1] : width - padding[1]]


def depth_to_space(x: Any, block_size: int, data_format: str = "channels_last") -> Any:
    return df.nn.depth_to_space(tensor(x), block_size, layout(data_format, 4))


def space_to_depth(x: Any, block_size: int, data_format: str = "channels_last") -> Any:
    return df.nn.space_to_depth(tensor(x), block_size, layout(data_format, 4))
