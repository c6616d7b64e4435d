"""Brightness, contrast and gamma of images."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from dualflow.core.dtypes import float32
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.tracebacks import entry
from dualflow.ops.arithmetic import maximum
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.image.dtypes import in_floats
from dualflow.ops.image.placement import once_known
from dualflow.ops.static import known_value
from dualflow.ops.statistics import reduce_mean, reduce_std

if TYPE_CHECKING:
    from dualflow.ops.tensor import Tensor


@entry
def adjust_brightness(image: Any, delta: Any) -> Tensor:
    """Images with ``delta`` added, as floats of which 1 is the brightest.

    Integers are scaled as by :func:`convert_image_dtype`, and end where their dtype does.

    >>> import dualflow as df
    >>> df.image.adjust_brightness(df.constant([0, 100, 250], df.uint8), 0.1).numpy()
    array([ 25, 125, 255], dtype=uint8)
    """
    return in_floats(image, lambda x: x + cast(delta, x.dtype))


@entry
def adjust_contrast(images: Any, contrast_factor: Any) -> Tensor:
    """Images ``[..., height, width, channels]`` whose distance from each channel's mean is multiplied.

    Integers are scaled as by :func:`convert_image_dtype`, and end where their dtype does.

    Raises:
        InvalidArgumentError: less than three axes.
    """
    images = convert_to_tensor(images)
    if len(images.shape) < 3:
        raise InvalidArgumentError(
            f"images are [..., height, width, channels], but the shape is {images.shape}; use df.reshape."
        )

    def stretched(x: Any) -> Any:
        wide = cast(x, float32)
        mean = reduce_mean(wide, [-3, -2], keepdims=True)
        return cast((wide - mean) * cast(contrast_factor, float32) + mean, x.dtype)

    return in_floats(images, stretched)


@entry
def adjust_gamma(image: Any, gamma: Any = 1, gain: Any = 1) -> Tensor:
    """``gain * image ** gamma`` of images as floats of which 1 is the brightest.

    Integers are scaled as by :func:`convert_image_dtype`, and end where their dtype does.

    Raises:
        InvalidArgumentError: a negative ``gamma``.
    """
    known = known_value(gamma)
    if known is not None and known.dtype.kind not in "iufV":  # V: bfloat16 and its like
        raise DTypeError(f"gamma is a number, not {gamma!r}.")
    if known is not None and (known < 0).any():
        raise InvalidArgumentError(f"gamma is not negative: {gamma}.")
    return in_floats(image, lambda x: gain * x**gamma)


@entry
def per_image_standardization(image: Any) -> Tensor:
    """Images ``[..., height, width, channels]`` less their mean, divided by their standard deviation.

    Where that is less than the inverse root of the number of numbers, it is divided by that, so that an even
    image gives zeros.

    Returns:
        float32.

    >>> import dualflow as df
    >>> df.image.per_image_standardization(df.ones([2, 2, 1])).numpy().ravel()
    array([0., 0., 0., 0.], dtype=float32)
    """
    x = cast(convert_to_tensor(image), float32)
    if len(x.shape) < 3:
        raise InvalidArgumentError(
            f"images are [..., height, width, channels], but the shape is {x.shape}; use df.reshape."
        )
    return once_known(_standardized, x, *x.shape[-3:-1])


def _standardized(x: Any) -> Any:
    axes = [-1, -2, -3]
    least = 1 / math.sqrt(max(1, math.prod(x.shape[-3:])))
    return (x - reduce_mean(x, axes, keepdims=True)) / maximum(reduce_std(x, axes, keepdims=True), least)
