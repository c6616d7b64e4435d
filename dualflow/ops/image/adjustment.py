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
from dualflow.ops.image.geometry import once_known
from dualflow.ops.static import static_value
from dualflow.ops.statistics import reduce_mean, reduce_std

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike
    from dualflow.ops.tensor import Tensor


@entry
def adjust_brightness(image: TensorLike, delta: TensorLike) -> Tensor:
    """Images with ``delta`` added, on a scale from 0 to 1.

    Integers are scaled as by :func:`convert_image_dtype`, and results outside of their dtype clipped.

    Args:
        image: numbers of any shape.
        delta: the number to add.

    Returns:
        A tensor with the shape and dtype of ``image``.

    Raises:
        DTypeError: ``image`` holds bools or complex numbers.

    >>> import dualflow as df
    >>> df.image.adjust_brightness(df.constant([0, 100, 250], df.uint8), 0.1).numpy()
    array([ 25, 125, 255], dtype=uint8)
    """
    return in_floats(image, lambda x: x + cast(delta, x.dtype))


@entry
def adjust_contrast(images: TensorLike, contrast_factor: TensorLike) -> Tensor:
    """Images with the distance of each pixel from its channel's mean multiplied by ``contrast_factor``.

    Integers are scaled as by :func:`convert_image_dtype`, and results outside of their dtype clipped.

    Args:
        images: numbers of shape ``(..., height, width, channels)``.
        contrast_factor: the factor.

    Returns:
        A tensor with the shape and dtype of ``images``.

    Raises:
        InvalidArgumentError: ``images`` has fewer than three axes.
        DTypeError: ``images`` holds bools or complex numbers.

    >>> import dualflow as df
    >>> df.image.adjust_contrast([[[1.0], [3.0]]], 2.0).numpy().ravel()
    array([0., 4.], dtype=float32)
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
def adjust_gamma(image: TensorLike, gamma: TensorLike = 1, gain: TensorLike = 1) -> Tensor:
    """``gain * image ** gamma``, on a scale from 0 to 1.

    Integers are scaled as by :func:`convert_image_dtype`, and results outside of their dtype clipped.

    Args:
        image: numbers of any shape.
        gamma: the exponent, 0 or more.
        gain: the factor.

    Returns:
        A tensor with the shape and dtype of ``image``.

    Raises:
        InvalidArgumentError: ``gamma`` is negative.
        DTypeError: ``gamma`` is not a number, or ``image`` holds bools or complex numbers.

    >>> import dualflow as df
    >>> df.image.adjust_gamma([0.5, 1.0], gamma=2.0).numpy()
    array([0.25, 1.  ], dtype=float32)
    """
    static = static_value(gamma)
    if static is not None and static.dtype.kind not in "iufV":  # V: bfloat16 and its like
        raise DTypeError(f"gamma is a number, not {gamma!r}.")
    if static is not None and (static < 0).any():
        raise InvalidArgumentError(f"gamma is not negative: {gamma}.")
    return in_floats(image, lambda x: gain * x**gamma)


@entry
def per_image_standardization(image: TensorLike) -> Tensor:
    """Images less their mean, divided by their standard deviation.

    The divisor is at least the inverse root of the number of elements, so that a constant image becomes
    zeros.

    Args:
        image: numbers of shape ``(..., height, width, channels)``.

    Returns:
        A float32 tensor with the shape of ``image``.

    Raises:
        InvalidArgumentError: ``image`` has fewer than three axes.

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
