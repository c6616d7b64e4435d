"""Resizing, cropping and padding of images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import dualflow as df
from keras_dualflow.src.ops.core import cast, convert_to_tensor, shape
from keras_dualflow.src.ops.image.layouts import check_choice, with_channels_last
from keras_dualflow.src.ops.promotion import promote, tensor

_INTERPOLATIONS = ("bilinear", "nearest", "lanczos3", "lanczos5", "bicubic")


def resize(
    images: Any,
    size: Sequence[int],
    interpolation: str = "bilinear",
    antialias: bool = False,
    crop_to_aspect_ratio: bool = False,
    pad_to_aspect_ratio: bool = False,
    fill_mode: str = "constant",
    fill_value: float = 0.0,
    data_format: str | None = None,
) -> Any:
    check_choice("interpolation", interpolation, _INTERPOLATIONS)
    if fill_mode != "constant":
        raise ValueError(
            "Invalid value for argument `fill_mode`. Only `'constant'` is supported. "
            f"Received: fill_mode={fill_mode}"
        )
    if pad_to_aspect_ratio and crop_to_aspect_ratio:
        raise ValueError("Only one of `pad_to_aspect_ratio` & `crop_to_aspect_ratio` can be `True`.")
    if len(size) != 2:
        raise ValueError(
            f"Argument `size` must be a tuple of two elements (height, width). Received: size={size}"
        )
    height, width = size

    def resize_batch(x: Any) -> Any:
        if crop_to_aspect_ratio:
            x = _crop(x, height, width)
        elif pad_to_aspect_ratio:
            x = _pad(x, height, width, fill_value)
        return _in_dtype(df.image.resize(x, (height, width), interpolation, antialias=antialias), x)

    return with_channels_last(images, data_format, resize_batch)


def _in_dtype(result: Any, images: Any) -> Any:
    """``result`` cast to the dtype of ``images``: rounded and clipped for integers."""
    dtype = images.dtype
    if dtype.is_integer:
        ends = np.iinfo(dtype.name)
        result = df.clip_by_value(df.round(cast(result, "float32")), float(ends.min), float(ends.max))
    return cast(result, dtype.name)


def _crop(x: Any, height: int, width: int) -> Any:
    """The central crop of images with the ratio of a height and a width."""
    rows, columns = shape(x)[-3:-1]
    crop_height = _largest(_smallest(rows, _scaled(columns, height, width)), 1)
    crop_width = _largest(_smallest(columns, _scaled(rows, width, height)), 1)
    top, left = (rows - crop_height) // 2, (columns - crop_width) // 2
    return x[..., top : top + crop_height, left : left + crop_width, :]


def _pad(x: Any, height: int, width: int, fill_value: float) -> Any:
    """Images padded to the ratio of a height and a width."""
    rows, columns = shape(x)[-3:-1]
    above = _largest(_scaled(columns, height, width) - rows, 0) // 2
    before = _largest(_scaled(rows, width, height) - columns, 0) // 2
    widths = [*[(0, 0)] * (len(x.shape) - 3), (above, above), (before, before), (0, 0)]
    return df.pad(x, widths, constant_values=convert_to_tensor(fill_value, x.dtype.name))


def _scaled(size: Any, numerator: int, denominator: int) -> Any:
    """A size, an int or a tensor, multiplied by a ratio and rounded down."""
    if isinstance(size, int):
        return int(size * numerator / denominator)
    return cast(cast(size * numerator, "float64") / denominator, "int32")


def _smallest(x: Any, y: Any) -> Any:
    return min(x, y) if isinstance(x, int) and isinstance(y, int) else df.minimum(x, y)


def _largest(x: Any, y: Any) -> Any:
    return max(x, y) if isinstance(x, int) and isinstance(y, int) else df.maximum(x, y)


def _triangle(x: Any) -> Any:
    return df.maximum(1.0 - x, 0.0)


def _cubic(x: Any) -> Any:
    """Keys's cubic kernel (1981), with a = -1/2."""
    near = ((1.5 * x - 2.5) * x) * x + 1.0
    far = ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0
    return df.where(x >= 2.0, 0.0, df.where(x >= 1.0, far, near))


def _lanczos(radius: float, x: Any) -> Any:
    safe = df.where(x > 1e-3, x, 1.0)
    wave = radius * df.sin(np.pi * safe) * df.sin(np.pi * safe / radius) / (np.pi**2 * df.square(safe))
    return df.where(x > radius, 0.0, df.where(x > 1e-3, wave, 1.0))


_KERNELS = {
    "linear": _triangle,
    "bilinear": _triangle,
    "trilinear": _triangle,
    "cubic": _cubic,
    "bicubic": _cubic,
    "tricubic": _cubic,
    "lanczos3": lambda x: _lanczos(3.0, x),
    "lanczos5": lambda x: _lanczos(5.0, x),
}


def scale_and_translate(
    images: Any,
    output_shape: Sequence[int],
    scale: Any,
    translation: Any,
    spatial_dims: Sequence[int],
    method: str,
    antialias: bool = True,
) -> Any:
    check_choice("method", method, tuple(_KERNELS))
    images = tensor(images)
    scale, translation = promote(scale, translation, also=(float,))
    result = cast(images, "float32") if images.dtype.is_integer else images
    for i, axis in enumerate(spatial_dims):
        axis %= len(images.shape)
        weights = _weights(
            images.shape[axis], output_shape[axis], scale[i], translation[i], _KERNELS[method], antialias
        )
        result = df.tensordot(result, cast(weights, result.dtype.name), axes=([axis], [0]))
        order = list(range(len(images.shape) - 1))
        order.insert(axis, len(images.shape) - 1)
        result = df.transpose(result, order)
    if images.dtype.is_integer:
        ends = [cast(end(images), "float32") for end in (df.reduce_min, df.reduce_max)]
        result = df.minimum(df.maximum(df.round(result), ends[0]), ends[1])
    return cast(result, images.dtype.name)


def _weights(old: int, new: int, scale: Any, translation: Any, kernel: Any, antialias: bool) -> Any:
    """The weight of each of ``old`` elements (rows) in each of ``new`` ones (columns)."""
    step = 1.0 / scale
    spread = df.maximum(step, 1.0) if antialias else 1.0
    coordinates = (cast(df.range(new), scale.dtype.name) + 0.5 - translation) * step - 0.5
    apart = df.abs(coordinates - df.expand_dims(cast(df.range(old), scale.dtype.name), 1)) / spread
    weights = kernel(apart)
    total = df.reduce_sum(weights, 0, keepdims=True)
    counts = df.abs(total) > 1000.0 * float(np.finfo(np.float32).eps)
    weights = df.where(counts, weights / df.where(counts, total, 1.0), 0.0)
    inside = df.logical_and(coordinates >= -0.5, coordinates <= old - 0.5)
    return df.where(inside, weights, 0.0)
