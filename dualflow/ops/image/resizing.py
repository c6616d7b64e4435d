"""Resizing of images: each axis is a weighted sum of gathered pixels, so it compiles and has a gradient."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dualflow.core.dtypes import float32, int64
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import Dim
from dualflow.core.tracebacks import entry
from dualflow.ops.arithmetic import add_n, maximum, minimum
from dualflow.ops.arrangement import reshape
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.checks import required
from dualflow.ops.contraction import matmul
from dualflow.ops.conversion import cast
from dualflow.ops.creation import constant
from dualflow.ops.image.geometry import as_batch, once_known, size_of
from dualflow.ops.image.resizing_weights import METHODS, Taps, taps
from dualflow.ops.late_sizes import as_size
from dualflow.ops.repetition import pad
from dualflow.ops.rounding import floor
from dualflow.ops.rounding import round as rint
from dualflow.ops.static import ints, static_int, static_value
from dualflow.ops.taking import gather
from dualflow.ops.tensor_sizes import reshape_sizes, size_as_tensor
from dualflow.sizes.symbolic_sizes import SymInt, is_static

if TYPE_CHECKING:
    from dualflow.core.argument_types import IntLike, IntsLike, TensorLike
    from dualflow.ops.tensor import Tensor


_SIZE: Final = "size is [height, width] of 1 or more"
_MAX_PICKED: Final = 16
"""The largest number of source pixels per pixel that are gathered; more are a matrix product."""


class ResizeMethod:
    """The names of the methods of :func:`resize`.

    >>> import dualflow as df
    >>> df.image.ResizeMethod.NEAREST_NEIGHBOR
    'nearest'
    """

    AREA: Final = "area"
    BICUBIC: Final = "bicubic"
    BILINEAR: Final = "bilinear"
    GAUSSIAN: Final = "gaussian"
    LANCZOS3: Final = "lanczos3"
    LANCZOS5: Final = "lanczos5"
    MITCHELLCUBIC: Final = "mitchellcubic"
    NEAREST_NEIGHBOR: Final = "nearest"


def resize(
    images: TensorLike,
    size: IntsLike,
    method: str = "bilinear",
    preserve_aspect_ratio: bool = False,
    antialias: bool = False,
    name: str | None = None,
) -> Tensor:
    """Images of another size.

    Args:
        images: real numbers of shape ``(batch, height, width, channels)`` or ``(height, width, channels)``.
        size: ``[height, width]`` of the result, known while tracing.
        method: "bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5", "gaussian" or
            "mitchellcubic"; see :class:`ResizeMethod`.
        preserve_aspect_ratio: whether to keep the ratio of height and width: the result has the largest size
            within ``size`` that does.
        antialias: whether images that shrink are blurred; it makes no difference for "nearest" and "area".

    Returns:
        A tensor with the given height and width: float32, or for "nearest" the dtype of ``images``.

    Raises:
        InvalidArgumentError: ``images`` has another number of axes, ``size`` is not positive, or the method
            unknown.

    >>> import dualflow as df
    >>> df.image.resize([[[1.0], [3.0]]], [1, 4]).numpy().ravel()
    array([1. , 1.5, 2.5, 3. ], dtype=float32)
    """
    _check_method(method)
    target = _checked(ints(size, "an entry of size"))
    same_ratio, smooth = bool(static_value(preserve_aspect_ratio)), bool(static_value(antialias))
    height, width = (None, None) if same_ratio else target
    dtype = None if method == "nearest" else float32
    return once_known(lambda x: _resized(x, target, method, same_ratio, smooth), images, height, width, dtype)


def _check_method(method: str) -> None:
    if method not in METHODS:
        raise InvalidArgumentError(f"resize's method is one of {', '.join(METHODS)}, not {method!r}.")


def _resized(images: Any, size: tuple[int, ...], method: str, same_ratio: bool, smooth: bool) -> Any:
    images, single = as_batch(images)
    old = size_of(images)
    _require_pixels(old)
    new = _within(size, old) if same_ratio else size
    # the columns of the fewer rows are resized, which takes longer
    return single(_scaled(images, new, method, smooth, rows_first=same_ratio or new[0] <= old[0]))


def _scaled(images: Any, new: tuple[int, ...], method: str, smooth: bool, *, rows_first: bool) -> Any:
    """A batch of images, which have pixels, of the size ``new``."""
    old = size_of(images)
    rows, columns = (taps(method, before, after, smooth) for before, after in zip(old, new, strict=True))
    if rows_first:
        return _columns_resized(_rows_resized(images, rows, method), columns, method)
    return _rows_resized(_columns_resized(images, columns, method), rows, method)


def _require_pixels(size: tuple[int, ...]) -> None:
    if 0 in size:
        raise InvalidArgumentError(f"images without pixels, of size {size}, can't be resized.")


def _checked(size: tuple[int, ...]) -> tuple[int, ...]:
    if len(size) != 2 or min(size) < 1:
        raise InvalidArgumentError(f"{_SIZE}, not {list(size)}.")
    return size


def _within(size: tuple[int, ...], old: tuple[int, ...]) -> tuple[int, ...]:
    """The largest size within ``size`` that has the aspect ratio of ``old``."""
    if is_static(old):
        scale = min(np.float32(n) / np.float32(max(o, 1)) for n, o in zip(size, old, strict=True))
        return _checked(tuple(int(np.rint(scale * np.float32(o))) for o in old))
    height, width = (cast(size_as_tensor(o), float32) for o in old)
    least = minimum(size[0] / maximum(height, 1.0), size[1] / maximum(width, 1.0))
    return _positive_size(rint(least * height)), _positive_size(rint(least * width))


def _positive_size(x: Any) -> int:
    """The float scalar ``x`` as a symbolic size; the program checks that it is positive."""
    return as_size(cast(required(x, x >= 1.0, f"{_SIZE}; the images are too narrow."), int64))


def _rows_resized(images: Any, of: Taps, method: str) -> Any:
    """A batch with its height resized by the taps ``of``: weighted sums of whole rows."""
    batch, height, width, channels = _sizes(images)
    flat = reshape(images, reshape_sizes([batch, height, width * channels], images))
    shape = [batch, of.places.shape[0], width, channels]
    return reshape(_summed(flat, 1, of, method), reshape_sizes(shape, images))


def _columns_resized(images: Any, of: Taps, method: str) -> Any:
    """A batch with its width resized by the taps ``of``: channel by channel, so that rows are long."""
    batch, height, width, channels = _sizes(images)
    new, taps_of_each = of.places.shape
    if not isinstance(of.places, np.ndarray) or taps_of_each > _MAX_PICKED:
        return _summed(images, 2, of, method)
    indices = (of.places[:, None, :] * channels + np.arange(channels)[:, None]).reshape(-1, taps_of_each)
    wide = Taps(indices, np.repeat(of.weights, channels, axis=0))
    flat = reshape(images, reshape_sizes([batch, height, width * channels], images))
    shape = [batch, height, new, channels]
    return reshape(_summed(flat, 2, wide, method), reshape_sizes(shape, images))


def _sizes(images: Any) -> tuple[Dim, int, int, int]:
    """The sizes of a batch of images, of which the first may be unknown."""
    batch, *others = images.shape
    height, width, channels = (static_int(n, "the height, width and channels of images") for n in others)
    return batch, height, width, channels


def _summed(x: Any, axis: int, of: Taps, method: str) -> Any:
    """An axis resized by the taps ``of``: few pixels are gathered and added, many are a matrix product."""
    count = of.places.shape[1]
    if method == "nearest":
        return gather(x, of.places[:, 0], axis=axis)
    x = cast(x, float32)
    if isinstance(count, SymInt):
        return _all_summed(x, axis, of)
    if count > _MAX_PICKED:
        matrix = np.zeros((len(of.places), x.shape[axis]))
        np.add.at(matrix, (np.arange(len(of.places))[:, None], of.places), of.weights)
        return matmul(constant(matrix.astype(np.float32)), x)
    along = [-1 if a == axis else 1 for a in range(len(x.shape))]
    parts = [
        gather(x, of.places[:, k], axis=axis) * _in_float32(of.weights[:, k], along) for k in range(count)
    ]
    return add_n(parts)


def _all_summed(x: Any, axis: int, of: Taps) -> Any:
    """An axis resized by a symbolic number of taps for each pixel."""
    along = [*[1] * axis, *of.weights.shape, *[1] * (len(x.shape) - axis - 1)]
    pixels = gather(x, of.places, axis=axis)
    return reduce_sum(pixels * _in_float32(of.weights, along), axis + 1)


def _in_float32(weights: Any, shape: Sequence[int]) -> Any:
    """``weights``, an array or a tensor, as a float32 tensor of ``shape``."""
    if isinstance(weights, np.ndarray):
        return constant(weights.astype(np.float32).reshape(shape))
    return reshape(cast(weights, float32), shape)


@entry
def resize_with_pad(
    image: TensorLike,
    target_height: IntLike,
    target_width: IntLike,
    method: str = "bilinear",
    antialias: bool = False,
) -> Tensor:
    """Images resized to the largest size that keeps their ratio and fits, padded with zeros.

    Args:
        image: as in :func:`resize`.
        target_height: the height of the result, with the zeros.
        target_width: the width of the result, with the zeros.
        method: as in :func:`resize`.
        antialias: as in :func:`resize`.

    Returns:
        A tensor with the target height and width: float32, or for "nearest" the dtype of ``image``.

    Raises:
        InvalidArgumentError: the target is below 1, or an argument doesn't fit :func:`resize`.

    >>> import dualflow as df
    >>> df.image.resize_with_pad(df.ones([2, 4, 1]), 4, 4).numpy()[..., 0].sum(1)
    array([0., 4., 4., 0.], dtype=float32)
    """
    target = static_int(target_height, "target_height"), static_int(target_width, "target_width")
    if min(target) < 1:
        raise InvalidArgumentError(f"the target is 1 x 1 or more, not {target[0]} x {target[1]}.")
    _check_method(method)
    dtype = None if method == "nearest" else float32
    smooth = bool(static_value(antialias))
    return once_known(lambda x: _resize_to_fit(x, target, method, smooth), image, *target, dtype)


def _resize_to_fit(image: Any, target: tuple[int, int], method: str, smooth: bool) -> Any:
    images, single = as_batch(image)
    old = size_of(images)
    _require_pixels(old)
    new, offsets = _fitted(old, target) if is_static(old) else _symbolically_fitted(old, target)
    smaller = _scaled(images, new, method, smooth, rows_first=True)
    # after symbolic images come zeros of the size of the target: no difference of sizes is negative then
    pads = [
        [before, size - before - n if is_static((n,)) else size]
        for before, n, size in zip(offsets, new, target, strict=True)
    ]
    return single(pad(smaller, [[0, 0], *pads, [0, 0]])[:, : target[0], : target[1]])


def _fitted(old: tuple[int, ...], target: tuple[int, int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The largest size within ``target`` that has the aspect ratio of ``old``, and the pixels before it."""
    ratio = max(np.float32(o) / np.float32(t) for o, t in zip(old, target, strict=True))
    exact = [np.float32(o) / ratio for o in old]
    offsets = [max(0, int(np.floor((t - e) / 2))) for t, e in zip(target, exact, strict=True)]
    return _checked(tuple(int(np.floor(e)) for e in exact)), tuple(offsets)


def _symbolically_fitted(
    old: tuple[int, ...], target: tuple[int, int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """:func:`_fitted` for symbolic sizes."""
    height, width = (cast(size_as_tensor(o), float32) for o in old)
    ratio = maximum(height / target[0], width / target[1])
    exact = height / ratio, width / ratio
    margins = [floor(maximum(t - e, 0.0) / 2) for t, e in zip(target, exact, strict=True)]
    offsets = [as_size(cast(margin, int64)) for margin in margins]
    return tuple([_positive_size(floor(e)) for e in exact]), tuple(offsets)
