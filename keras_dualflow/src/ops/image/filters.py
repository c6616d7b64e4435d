"""Filters of images with small kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keras.src.backend import standardize_data_format

import dualflow as df
from keras_dualflow.src.ops.core import cast, convert_to_tensor
from keras_dualflow.src.ops.image.layouts import on_batch, with_channels_last
from keras_dualflow.src.ops.nn import depthwise_conv
from keras_dualflow.src.ops.promotion import floats, tensor


def gaussian_blur(
    images: Any,
    kernel_size: Sequence[int] = (3, 3),
    sigma: Any = (1.0, 1.0),
    data_format: str | None = None,
) -> Any:
    sigma = floats(convert_to_tensor(sigma))

    def blur(x: Any) -> Any:
        horizontal, vertical = (_gaussian_kernel(kernel_size[i], sigma[i], x.dtype.name) for i in range(2))
        kernel = df.reshape(
            df.expand_dims(vertical, 1) * horizontal, (vertical.shape[0], horizontal.shape[0], 1, 1)
        )
        return depthwise_conv(x, df.tile(kernel, (1, 1, x.shape[-1], 1)), 1, "same", "channels_last")

    return with_channels_last(images, data_format, lambda x: on_batch(x, blur))


def _gaussian_kernel(size: int, sigma: Any, dtype: str) -> Any:
    """The weights of a Gaussian kernel, with sum 1."""
    distances = (cast(df.range(int(size)), sigma.dtype.name) - (int(size) - 1) / 2.0) / sigma
    weights = df.exp(-0.5 * df.square(distances))
    return cast(weights / df.reduce_sum(weights), dtype)


def sobel_edges(images: Any, data_format: str | None = None) -> Any:
    images = tensor(images)
    if standardize_data_format(data_format) == "channels_last":
        return df.image.sobel_edges(images)
    return df.transpose(df.image.sobel_edges(df.transpose(images, (0, 2, 3, 1))), (0, 3, 1, 2, 4))
