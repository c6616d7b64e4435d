"""Measures of images: differences between two, and changes from pixel to pixel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dualflow.core.dtypes import float32
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.tracebacks import entry, op_entry
from dualflow.ops.arithmetic import add_n, maximum, square, squared_difference
from dualflow.ops.arrangement import reshape
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.conversion import cast
from dualflow.ops.creation import constant, convert_to_tensor, zeros_like
from dualflow.ops.image.dtypes import convert_image_dtype
from dualflow.ops.joining import concat, stack, unstack
from dualflow.ops.neural.windows import Geometry, windows
from dualflow.ops.powers import log
from dualflow.ops.reduction import reduce_prod
from dualflow.ops.repetition import pad
from dualflow.ops.static import static_int
from dualflow.ops.statistics import reduce_mean

if TYPE_CHECKING:
    from dualflow.core.argument_types import IntLike, TensorLike
    from dualflow.ops.tensor import Tensor

_SCALE_WEIGHTS: Final = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)
"""The weights of scales in Wang, Simoncelli and Bovik, "Multiscale structural similarity" (2003)."""


def _comparable_images(first: Any, second: Any) -> tuple[Any, Any]:
    a, b = convert_to_tensor(first), convert_to_tensor(second)
    if min(len(a.shape), len(b.shape)) < 3 or not a.shape[-3:].is_compatible_with(b.shape[-3:]):
        raise InvalidArgumentError(
            f"images are [..., height, width, channels] of equal sizes, not {a.shape} and {b.shape}; use "
            "df.image.resize."
        )
    return a, b


def _in_floats(a: Any, b: Any, max_val: Any) -> tuple[Any, Any, Any]:
    peak = convert_image_dtype(cast(max_val, a.dtype), float32)
    return convert_image_dtype(a, float32), convert_image_dtype(b, float32), peak


def psnr(a: TensorLike, b: TensorLike, max_val: TensorLike, name: str | None = None) -> Tensor:
    """The peak signal-to-noise ratio of images, in decibels.

    Args:
        a: floats or integers of shape ``(..., height, width, channels)``.
        b: as ``a``.
        max_val: the largest possible value of a pixel, in the dtype of ``a``.

    Returns:
        A float32 tensor of shape ``(...)``; inf for equal images.

    Raises:
        InvalidArgumentError: the sizes differ, or there are fewer than three axes.

    >>> import dualflow as df
    >>> float(df.image.psnr(df.zeros([4, 4, 1]), df.ones([4, 4, 1]), 10.0))
    20.0
    """
    a, b, peak = _in_floats(*_comparable_images(a, b), max_val)
    error = reduce_mean(squared_difference(a, b), [-3, -2, -1])
    return 20.0 / math.log(10.0) * log(peak) - 10.0 / math.log(10.0) * log(error)


def _blurred(images: Any, weights: Any) -> Any:
    """Means of windows of a batch of known sizes, by weights of its heights and then of its widths.

    Channels and columns are one long axis, along which neighbouring pixels are ``channels`` elements apart.
    """
    height, width, channels = images.shape[1:]
    rows, columns = height - len(weights) + 1, width - len(weights) + 1
    flat = reshape(images, [-1, height, width * channels])
    flat = add_n([flat[:, i : i + rows] * weight for i, weight in enumerate(weights)])
    reach = columns * channels
    parts = [flat[:, :, i * channels : i * channels + reach] * weight for i, weight in enumerate(weights)]
    return reshape(add_n(parts), [-1, rows, columns, channels])


def _similarity(a: Any, b: Any, most: Any, size: Any, sigma: Any, k1: Any, k2: Any) -> tuple[Any, Any]:
    """The maps of luminance, and of contrast and structure, ``[..., rows, columns, channels]``."""
    width = static_int(size, "filter_size")
    shape = a.shape if len(a.shape) >= len(b.shape) else b.shape
    height, wide, channels = (static_int(n, "the height, width and channels of images") for n in shape[-3:])
    if min(height, wide) < width:
        raise InvalidArgumentError(
            f"images of {height} x {wide} pixels don't hold a filter of {width} x {width}; take a smaller "
            "filter_size."
        )
    distances = np.arange(width) - (width - 1) / 2
    weights = np.exp(-0.5 * (distances / float(sigma)) ** 2)
    if a.shape != b.shape:  # one of them is compared with all of a batch
        a, b = a + zeros_like(b), b + zeros_like(a)
    maps = stack([a, b, a * b, square(a) + square(b)])
    batch_sizes = [-1 if n is None else n for n in maps.shape[:-3]]
    means = _blurred(reshape(maps, [-1, height, wide, channels]), (weights / weights.sum()).tolist())
    of_a, of_b, both, power = unstack(reshape(means, [*batch_sizes, *means.shape[1:]]), 4)
    first, second = square(k1 * most), square(k2 * most)
    product, squares = of_a * of_b * 2.0, square(of_a) + square(of_b)
    luminance = (product + first) / (squares + first)
    return luminance, (both * 2.0 - product + second) / (power - squares + second)


@op_entry
def ssim(
    img1: TensorLike,
    img2: TensorLike,
    max_val: TensorLike,
    filter_size: IntLike = 11,
    filter_sigma: TensorLike = 1.5,
    k1: TensorLike = 0.01,
    k2: TensorLike = 0.03,
    return_index_map: bool = False,
) -> Tensor:
    """The structural similarity of images, 1 for equal ones.

    Wang, Bovik, Sheikh and Simoncelli, "Image quality assessment: from error visibility to structural
    similarity" (2004).

    Args:
        img1: floats or integers of shape ``(..., height, width, channels)``.
        img2: as ``img1``.
        max_val: the largest possible value of a pixel, in the dtype of ``img1``.
        filter_size: the size of the Gaussian windows, known while tracing.
        filter_sigma: their standard deviation, known while tracing.
        k1: keeps the divisor of the luminance from 0.
        k2: keeps the divisor of the contrast from 0.
        return_index_map: whether to return the similarity of each window.

    Returns:
        A float32 tensor of shape ``(...)``, or ``(..., rows, columns)``.

    Raises:
        InvalidArgumentError: the sizes differ, or are smaller than a window.

    >>> import dualflow as df
    >>> x = df.random.stateless_uniform([1, 16, 16, 3], seed=(1, 2))
    >>> df.image.ssim(x, x, 1.0).numpy()
    array([1.], dtype=float32)
    """
    a, b, peak = _in_floats(*_comparable_images(img1, img2), max_val)
    luminance, contrast = _similarity(a, b, peak, filter_size, filter_sigma, k1, k2)
    similarity = luminance * contrast
    return reduce_mean(similarity if return_index_map else reduce_mean(similarity, [-3, -2]), -1)


@op_entry
def ssim_multiscale(
    img1: TensorLike,
    img2: TensorLike,
    max_val: TensorLike,
    power_factors: Sequence[float] = _SCALE_WEIGHTS,
    filter_size: IntLike = 11,
    filter_sigma: TensorLike = 1.5,
    k1: TensorLike = 0.01,
    k2: TensorLike = 0.03,
) -> Tensor:
    """The structural similarity of images at several scales, each half of the one before.

    Wang, Simoncelli and Bovik, "Multiscale structural similarity for image quality assessment" (2003).

    Args:
        img1: floats or integers of shape ``(..., height, width, channels)``.
        img2: as ``img1``.
        max_val: the largest possible value of a pixel, in the dtype of ``img1``.
        power_factors: the weight of each scale.
        filter_size: the size of the Gaussian windows, known while tracing.
        filter_sigma: their standard deviation, known while tracing.
        k1: keeps the divisor of the luminance from 0.
        k2: keeps the divisor of the contrast from 0.

    Returns:
        A float32 tensor of shape ``(...)``.

    Raises:
        InvalidArgumentError: the sizes differ, or at a scale are smaller than a window.

    >>> import dualflow as df
    >>> x = df.random.stateless_uniform([1, 44, 44, 1], seed=(1, 2))
    >>> df.image.ssim_multiscale(x, x, 1.0, (0.5, 0.3, 0.2)).numpy()
    array([1.], dtype=float32)
    """
    a, b, peak = _in_floats(*_comparable_images(img1, img2), max_val)
    scores = []
    for scale in range(len(power_factors)):
        if scale:
            a, b = _halved(a), _halved(b)
        luminance, contrast = _similarity(a, b, peak, filter_size, filter_sigma, k1, k2)
        last = scale == len(power_factors) - 1
        scores.append(maximum(reduce_mean(luminance * contrast if last else contrast, [-3, -2]), 0.0))
    return reduce_mean(reduce_prod(stack(scores, -1) ** constant(list(power_factors), float32), -1), -1)


def _halved(images: Any) -> Any:
    """Means of 2 x 2 pixels; an odd last row or column counts twice."""
    height, width, channels = images.shape[-3:]
    batch_sizes = [-1 if n is None else n for n in images.shape[:-3]]
    flat = reshape(images, [-1, height, width, channels])
    if height % 2 or width % 2:
        flat = pad(flat, [[0, 0], [0, height % 2], [0, width % 2], [0, 0]], "SYMMETRIC")
    means = reduce_mean(windows(flat, Geometry((2, 2), (2, 2), (1, 1), ((0, 0), (0, 0)))), [3, 4])
    return reshape(means, [*batch_sizes, *means.shape[1:]])


def total_variation(images: TensorLike, name: str | None = None) -> Tensor:
    """The sum of the absolute differences between neighbouring pixels, for each image.

    Args:
        images: numbers of shape ``(batch, height, width, channels)`` or ``(height, width, channels)``.

    Returns:
        A tensor of shape ``(batch,)`` or a scalar, with the dtype of ``images``.

    Raises:
        InvalidArgumentError: ``images`` has another number of axes.
        DTypeError: ``images`` holds unsigned integers.

    >>> import dualflow as df
    >>> float(df.image.total_variation([[[1.0], [3.0]], [[1.0], [0.0]]]))
    6.0
    """
    images = convert_to_tensor(images)
    if len(images.shape) not in (3, 4):
        raise InvalidArgumentError(f"images have three or four axes, but the shape is {images.shape}.")
    if images.dtype.kind == "u":
        raise DTypeError(f"differences of {images.dtype.name} lose their sign; use df.cast.")
    down, right = _steps(images)
    axes = [-3, -2, -1]
    return reduce_sum(abs(down), axes) + reduce_sum(abs(right), axes)


def _steps(images: Any) -> tuple[Any, Any]:
    """The differences to the next row and column."""
    down = images[..., 1:, :, :] - images[..., :-1, :, :]
    return down, images[..., 1:, :] - images[..., :-1, :]


@entry
def image_gradients(image: TensorLike) -> tuple[Tensor, Tensor]:
    """The differences to the next row and to the next column, with zeros at the ends.

    Args:
        image: numbers of shape ``(batch, height, width, channels)``.

    Returns:
        Two tensors with the shape and dtype of ``image``.

    Raises:
        InvalidArgumentError: ``image`` has another number of axes.

    >>> import dualflow as df
    >>> rows, columns = df.image.image_gradients([[[[1], [4]], [[9], [9]]]])
    >>> rows.numpy().ravel().tolist(), columns.numpy().ravel().tolist()
    ([8, 5, 0, 0], [3, 0, 0, 0])
    """
    image = convert_to_tensor(image)
    if len(image.shape) != 4:
        raise InvalidArgumentError(
            f"image_gradients takes [batch, height, width, channels], not {image.shape}; use df.expand_dims."
        )
    down, right = _steps(image)
    return (
        concat([down, zeros_like(image[:, :1])], 1),
        concat([right, zeros_like(image[:, :, :1])], 2),
    )


@entry
def sobel_edges(image: TensorLike) -> Tensor:
    """Sobel's filter: smoothed differences of rows and of columns.

    Args:
        image: floats of shape ``(batch, height, width, channels)``; they are mirrored at the edges.

    Returns:
        A tensor of shape ``(batch, height, width, channels, 2)`` with the dtype of ``image``.

    Raises:
        InvalidArgumentError: ``image`` has another number of axes.
        DTypeError: ``image`` doesn't hold floats.

    >>> import dualflow as df
    >>> df.image.sobel_edges(df.reshape(df.range(9.0), [1, 3, 3, 1]))[0, 1, 1, 0].numpy()
    array([24.,  8.], dtype=float32)
    """
    image = convert_to_tensor(image)
    if len(image.shape) != 4:
        raise InvalidArgumentError(
            f"sobel_edges takes [batch, height, width, channels], not {image.shape}; use df.expand_dims."
        )
    if not image.dtype.is_floating:
        raise DTypeError(f"edges are floats, not {image.dtype.name}; use df.image.convert_image_dtype.")
    x = pad(image, [[0, 0], [1, 1], [1, 1], [0, 0]], "REFLECT")
    down, right = x[:, 2:] - x[:, :-2], x[:, :, 2:] - x[:, :, :-2]
    rows = down[:, :, :-2] + 2 * down[:, :, 1:-1] + down[:, :, 2:]
    columns = right[:, :-2] + 2 * right[:, 1:-1] + right[:, 2:]
    return stack([rows, columns], -1)
