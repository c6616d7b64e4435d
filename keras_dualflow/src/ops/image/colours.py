"""Conversions between colour spaces."""

from __future__ import annotations

from typing import Any

from keras.src.backend import standardize_data_format

import dualflow as df
from keras_dualflow.src.ops.core import cast, convert_to_tensor
from keras_dualflow.src.ops.image.layouts import images_of, with_channels_last
from keras_dualflow.src.ops.promotion import result_type

_GREY = (0.2989, 0.5870, 0.1140)


def rgb_to_grayscale(images: Any, data_format: str | None = None) -> Any:
    images = images_of(images)
    axis = -3 if standardize_data_format(data_format) == "channels_first" else -1
    if images.shape[axis] not in (1, 3):
        raise ValueError(
            "Invalid channel size: expected 3 (RGB) or 1 (Grayscale). "
            f"Received input with shape: images.shape={images.shape}"
        )
    if images.shape[axis] == 1:
        return images
    inner = result_type(images.dtype, float)
    weights = convert_to_tensor(_GREY, inner)
    if axis == -3:
        weights = df.reshape(weights, (3, 1, 1))
    return cast(df.reduce_sum(cast(images, inner) * weights, axis, keepdims=True), images.dtype.name)


def rgb_to_hsv(images: Any, data_format: str | None = None) -> Any:
    return with_channels_last(_float_images(images), data_format, df.image.rgb_to_hsv)


def hsv_to_rgb(images: Any, data_format: str | None = None) -> Any:
    return with_channels_last(_float_images(images), data_format, df.image.hsv_to_rgb)


def _float_images(images: Any) -> Any:
    images = images_of(images)
    if not images.dtype.is_floating:
        raise ValueError(
            f"Invalid images dtype: expected float dtype. Received: images.dtype={images.dtype.name}"
        )
    return images
