"""Colour spaces: grey, YIQ, YUV, and hue, saturation and value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dualflow.core.dtypes import float32
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.tracebacks import entry
from dualflow.ops.arithmetic import divide_no_nan, maximum, minimum, mod
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.clipping import clip_by_value
from dualflow.ops.creation import constant, convert_to_tensor
from dualflow.ops.docstrings import documented
from dualflow.ops.image.dtypes import convert_image_dtype, in_floats
from dualflow.ops.joining import concat, stack, unstack
from dualflow.ops.products import tensordot
from dualflow.ops.selection import where

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike
    from dualflow.ops.tensor import Tensor

_GREY: Final = np.array([0.2989, 0.5870, 0.1140], np.float32)
_YIQ: Final = np.array(
    [[0.299, 0.59590059, 0.2115], [0.587, -0.27455667, -0.52273617], [0.114, -0.32134392, 0.31119955]]
)
_FROM_YIQ: Final = np.array(
    [[1, 1, 1], [0.95598634, -0.27201283, -1.10674021], [0.6208248, -0.64720424, 1.70423049]]
)
_YUV: Final = np.array(
    [[0.299, -0.14714119, 0.61497538], [0.587, -0.28886916, -0.51496512], [0.114, 0.43601035, -0.10001026]]
)
_OF_YUV: Final = np.array([[1, 1, 1], [0, -0.394642334, 2.03206185], [1.13988303, -0.58062185, 0]])


_COLOURS: Final = """Args:
    images: {takes} of shape ``(..., {channels})``.

Returns:
    A tensor of shape ``(..., {returned})`` with the dtype of ``images``.

Raises:
    InvalidArgumentError: ``images`` has another number of channels.
"""
_THREE: Final = {"takes": "floats", "channels": "3", "returned": "3"}


def _three_channels(images: Any) -> Tensor:
    images = convert_to_tensor(images)
    if not images.shape or images.shape[-1] not in (3, None):
        raise InvalidArgumentError(f"colours have three channels, but the shape is {images.shape}.")
    return images


@documented(_COLOURS, takes="floats or integers", channels="3", returned="1")
def rgb_to_grayscale(images: TensorLike, name: str | None = None) -> Tensor:
    """The brightness of colours in one channel: ``0.2989 r + 0.587 g + 0.114 b``.

    >>> import dualflow as df
    >>> df.image.rgb_to_grayscale([[255, 255, 255]]).numpy()
    array([[254]], dtype=int32)
    """
    images = _three_channels(images)
    grey = reduce_sum(convert_image_dtype(images, float32) * constant(_GREY), -1, keepdims=True)
    return convert_image_dtype(grey, images.dtype)


@documented(_COLOURS, takes="a tensor", channels="1", returned="3")
def grayscale_to_rgb(images: TensorLike, name: str | None = None) -> Tensor:
    """One channel repeated three times.

    >>> import dualflow as df
    >>> df.image.grayscale_to_rgb([[7]]).numpy()
    array([[7, 7, 7]], dtype=int32)
    """
    images = convert_to_tensor(images)
    if not images.shape or images.shape[-1] not in (1, None):
        raise InvalidArgumentError(f"grey images have one channel, but the shape is {images.shape}.")
    return concat([images] * 3, -1)


def _mix_channels(images: Any, matrix: Any) -> Tensor:
    images = _three_channels(images)
    return tensordot(images, constant(matrix.astype(images.dtype.dtype)), 1)


@documented(_COLOURS, **_THREE)
@entry
def rgb_to_yiq(images: TensorLike) -> Tensor:
    """Colours as brightness and the two chroma axes of NTSC.

    >>> import dualflow as df
    >>> df.abs(df.image.rgb_to_yiq([[1.0, 1.0, 1.0]])).numpy().round(3).tolist()
    [[1.0, 0.0, 0.0]]
    """
    return _mix_channels(images, _YIQ)


@documented(_COLOURS, **_THREE)
@entry
def yiq_to_rgb(images: TensorLike) -> Tensor:
    """The inverse of :func:`rgb_to_yiq`.

    >>> import dualflow as df
    >>> df.image.yiq_to_rgb([[1.0, 0.0, 0.0]]).numpy().tolist()
    [[1.0, 1.0, 1.0]]
    """
    return _mix_channels(images, _FROM_YIQ)


@documented(_COLOURS, **_THREE)
@entry
def rgb_to_yuv(images: TensorLike) -> Tensor:
    """Colours as brightness and the two chroma axes of PAL.

    >>> import dualflow as df
    >>> df.abs(df.image.rgb_to_yuv([[1.0, 1.0, 1.0]])).numpy().round(3).tolist()
    [[1.0, 0.0, 0.0]]
    """
    return _mix_channels(images, _YUV)


@documented(_COLOURS, **_THREE)
@entry
def yuv_to_rgb(images: TensorLike) -> Tensor:
    """The inverse of :func:`rgb_to_yuv`.

    >>> import dualflow as df
    >>> df.image.yuv_to_rgb([[1.0, 0.0, 0.0]]).numpy().tolist()
    [[1.0, 1.0, 1.0]]
    """
    return _mix_channels(images, _OF_YUV)


@documented(_COLOURS, **_THREE)
def rgb_to_hsv(images: TensorLike, name: str | None = None) -> Tensor:
    """Colours as hue, saturation and value, all from 0 to 1, as the colours are.

    Smith, "Color gamut transform pairs" (1978). A grey has the hue 0, and black also the saturation 0.

    >>> import dualflow as df
    >>> df.image.rgb_to_hsv([[0.0, 1.0, 0.0]]).numpy().round(3)
    array([[0.333, 1.   , 1.   ]], dtype=float32)
    """
    red, green, blue = unstack(_three_channels(images), 3, axis=-1)
    value = maximum(maximum(red, green), blue)
    spread = value - minimum(minimum(red, green), blue)
    from_red = divide_no_nan(green - blue, 6.0 * spread)
    from_green = divide_no_nan(blue - red, 6.0 * spread) + 2 / 6
    from_blue = divide_no_nan(red - green, 6.0 * spread) + 4 / 6
    hue = where(red >= value, from_red, where(green >= value, from_green, from_blue))
    hue = where(spread > 0, where(hue < 0, hue + 1.0, hue), 0.0)
    return stack([hue, divide_no_nan(spread, value), value], -1)


@documented(_COLOURS, **_THREE)
def hsv_to_rgb(images: TensorLike, name: str | None = None) -> Tensor:
    """The inverse of :func:`rgb_to_hsv`.

    >>> import dualflow as df
    >>> df.image.hsv_to_rgb([[0.5, 1.0, 1.0]]).numpy()
    array([[0., 1., 1.]], dtype=float32)
    """
    hue, saturation, value = unstack(_three_channels(images), 3, axis=-1)
    sixth = hue * 6.0
    shares = abs(sixth - 3.0) - 1.0, 2.0 - abs(sixth - 2.0), 2.0 - abs(sixth - 4.0)
    channels = [((clip_by_value(share, 0.0, 1.0) - 1.0) * saturation + 1.0) * value for share in shares]
    return stack(channels, -1)


def adjust_hue(image: TensorLike, delta: TensorLike, name: str | None = None) -> Tensor:
    """Colours with ``delta``, a fraction of the circle, added to the hue.

    Integers are scaled as by :func:`convert_image_dtype`.

    Args:
        image: numbers of shape ``(..., 3)``.
        delta: the number to add.

    Returns:
        A tensor with the shape and dtype of ``image``.

    Raises:
        InvalidArgumentError: ``image`` has another number of channels.
        DTypeError: ``image`` holds bools or complex numbers.

    >>> import dualflow as df
    >>> df.image.adjust_hue([[1.0, 0.0, 0.0]], 1 / 3).numpy().round(3)
    array([[0., 1., 0.]], dtype=float32)
    """

    def shift_hue(colours: Any) -> Any:
        hue, saturation, value = unstack(rgb_to_hsv(colours), 3, axis=-1)
        return hsv_to_rgb(stack([mod(hue + _in_dtype_of(delta, hue), 1.0), saturation, value], -1))

    return in_floats(image, shift_hue)


def adjust_saturation(image: TensorLike, saturation_factor: TensorLike, name: str | None = None) -> Tensor:
    """Colours with the saturation multiplied by ``saturation_factor``, up to 1.

    Integers are scaled as by :func:`convert_image_dtype`.

    Args:
        image: numbers of shape ``(..., 3)``.
        saturation_factor: the factor.

    Returns:
        A tensor with the shape and dtype of ``image``.

    Raises:
        InvalidArgumentError: ``image`` has another number of channels.
        DTypeError: ``image`` holds bools or complex numbers.

    >>> import dualflow as df
    >>> df.image.adjust_saturation([[1.0, 0.5, 0.5]], 0.0).numpy()
    array([[1., 1., 1.]], dtype=float32)
    """

    def changed(colours: Any) -> Any:
        hue, saturation, value = unstack(rgb_to_hsv(colours), 3, axis=-1)
        return hsv_to_rgb(
            stack(
                [hue, clip_by_value(saturation * _in_dtype_of(saturation_factor, hue), 0.0, 1.0), value], -1
            )
        )

    return in_floats(image, changed)


def _in_dtype_of(number: Any, like: Any) -> Any:
    return convert_to_tensor(number, dtype_hint=like.dtype)
