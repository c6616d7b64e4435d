"""Images flipped, rotated, cropped and padded; pixels keep their values."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from dualflow.core.dispatch import AbstractTensor
from dualflow.core.dtypes import float64, int64
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.core.tracebacks import entry
from dualflow.ops.arrangement import expand_dims, squeeze
from dualflow.ops.arrangement import transpose as transposed
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.docstrings import documented
from dualflow.ops.joining import stack
from dualflow.ops.late_sizes import as_size, once_sized
from dualflow.ops.repetition import pad, reverse
from dualflow.ops.static import static_float, static_int, static_value
from dualflow.ops.tensor_sizes import size_as_tensor

if TYPE_CHECKING:
    from dualflow.core.argument_types import IntLike, TensorLike
    from dualflow.ops.tensor import Tensor


_IMAGES: Final = """Args:
    image: a tensor of shape ``(batch, height, width, channels)``, or without the batch, of any dtype.{more}

Returns:
    A tensor with the dtype of ``image``{shape}.

Raises:
    InvalidArgumentError: {invalid}.
    DTypeError: an argument is not an integer that is known while tracing.
"""
_PLACED: Final = """
    offset_height: {offset_height}.
    offset_width: {offset_width}.
    target_height: the height of the result.
    target_width: the width of the result."""


def as_batch(images: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Images as ``(batch, height, width, channels)``, and the function that removes an added batch axis.

    Raises:
        InvalidArgumentError: neither one image nor a batch.
    """
    images = convert_to_tensor(images)
    rank = len(images.shape)
    if rank not in (3, 4):
        raise InvalidArgumentError(
            f"an image is [height, width, channels], with a batch before it or not, but the shape is "
            f"{images.shape}; use df.reshape."
        )
    return (images, lambda x: x) if rank == 4 else (expand_dims(images, 0), lambda x: squeeze(x, 0))


def size_of(images: Any) -> tuple[int, int]:
    """The height and width of a batch."""
    height, width = (static_int(n, "the height and width of an image") for n in images.shape[1:3])
    return height, width


def once_known(
    change: Callable[[Any], Any], images: Any, height: int | None, width: int | None, dtype: Any = None
) -> Any:
    """``change(images)``, deferred until the sizes of the images, which it requires, are known.

    Args:
        change: computes the result, of the same rank.
        images: one image, or a batch.
        height: the height of the result; None if it follows from the sizes.
        width: likewise.
        dtype: the dtype of the result; None for that of the images.
    """
    images = convert_to_tensor(images)
    if None not in images.shape[-3:]:
        return change(images)

    def result(x: TensorSpec) -> TensorSpec:
        return TensorSpec.of(Shape([*x.shape[:-3], height, width, *x.shape[-1:]]), dtype or x.dtype)

    return once_sized(change, result, images)


@documented(_IMAGES, more="", shape=" and its shape", invalid="``image`` has another number of axes")
@entry
def flip_left_right(image: TensorLike) -> Tensor:
    """Images mirrored left to right.

    >>> import dualflow as df
    >>> df.image.flip_left_right([[[1], [2]]]).numpy().ravel()
    array([2, 1], dtype=int32)
    """
    images, single = as_batch(image)
    return single(reverse(images, [2]))


@documented(_IMAGES, more="", shape=" and its shape", invalid="``image`` has another number of axes")
@entry
def flip_up_down(image: TensorLike) -> Tensor:
    """Images turned upside down by reversing their rows.

    >>> import dualflow as df
    >>> df.image.flip_up_down([[[1]], [[2]]]).numpy().ravel()
    array([2, 1], dtype=int32)
    """
    images, single = as_batch(image)
    return single(reverse(images, [1]))


@documented(
    _IMAGES, more="", shape=", its height and width swapped", invalid="``image`` has another number of axes"
)
def transpose(image: TensorLike, name: str | None = None) -> Tensor:
    """Images mirrored at the main diagonal.

    >>> import dualflow as df
    >>> df.image.transpose(df.ones([4, 6, 3])).shape
    (6, 4, 3)
    """
    images, single = as_batch(image)
    return single(transposed(images, [0, 2, 1, 3]))


@documented(
    _IMAGES,
    more="\n    k: the number of rotations by 90 degrees, an integer.",
    shape=", its height and width swapped if ``k`` is odd",
    invalid="``image`` has another number of axes",
)
def rot90(image: TensorLike, k: IntLike = 1, name: str | None = None) -> Tensor:
    """Images rotated counter-clockwise by ``k`` times 90 degrees.

    >>> import dualflow as df
    >>> df.image.rot90([[[1], [2]]]).numpy().ravel()
    array([2, 1], dtype=int32)
    """
    images, single = as_batch(image)
    turns = static_int(k, "k") % 4
    if turns == 2:
        return single(reverse(images, [1, 2]))
    if turns:
        images = transposed(reverse(images, [2 if turns == 1 else 1]), [0, 2, 1, 3])
    return single(images)


@documented(
    _IMAGES,
    more=_PLACED.format(offset_height="the first row of the part", offset_width="its first column"),
    shape="",
    invalid="the part is empty or not inside of the images",
)
@entry
def crop_to_bounding_box(
    image: TensorLike,
    offset_height: IntLike,
    offset_width: IntLike,
    target_height: IntLike,
    target_width: IntLike,
) -> Tensor:
    """The part of images at an offset, of a given size.

    >>> import dualflow as df
    >>> df.image.crop_to_bounding_box([[[1], [2], [3]]], 0, 1, 1, 2).numpy().ravel()
    array([2, 3], dtype=int32)
    """
    return _in_box(_part, image, offset_height, offset_width, target_height, target_width)


def _part(image: Any, top: int, left: int, height: int, width: int) -> Any:
    images, single = as_batch(image)
    have = size_of(images)
    if min(top, left) < 0 or min(height, width) < 1 or top + height > have[0] or left + width > have[1]:
        raise InvalidArgumentError(
            f"{height} x {width} pixels from ({top}, {left}) on are not inside of images of {have[0]} x "
            f"{have[1]}."
        )
    return single(images[:, top : top + height, left : left + width])


def _box(*numbers: Any) -> tuple[int, ...]:
    return tuple(static_int(n, "an offset or a size") for n in numbers)


def _in_box(change: Callable[..., Any], image: Any, *box: Any) -> Any:
    """``change(image, *box)``, deferred until the sizes of the images and of the box are known.

    The box is the first row and column, the height, and the width; each an int or a scalar tensor.
    """
    if not any(_is_dynamic(n) for n in box):
        top, left, height, width = _box(*box)
        return once_known(lambda x: change(x, top, left, height, width), image, height, width)
    target = [None if _is_dynamic(n) else static_int(n, "a size") for n in box[2:]]

    def result(x: TensorSpec, *numbers: TensorSpec) -> TensorSpec:
        return TensorSpec.of(Shape([*x.shape[:-3], *target, *x.shape[-1:]]), x.dtype)

    numbers = stack([cast(convert_to_tensor(n), int64) for n in box])
    return once_sized(lambda x, values: change(x, *values), result, image, integers=(numbers,))


def _is_dynamic(number: Any) -> bool:
    """Whether ``number`` is an integer scalar tensor that is known at run time only."""
    is_scalar = isinstance(number, AbstractTensor) and not number.shape and number.dtype.is_integer
    return is_scalar and static_value(number) is None


@documented(
    _IMAGES,
    more=_PLACED.format(
        offset_height="the number of rows of zeros above",
        offset_width="the number of columns of zeros on the left",
    ),
    shape="",
    invalid="an offset is negative, or the target smaller than the images",
)
@entry
def pad_to_bounding_box(
    image: TensorLike,
    offset_height: IntLike,
    offset_width: IntLike,
    target_height: IntLike,
    target_width: IntLike,
) -> Tensor:
    """Images with zeros around them, at an offset in a larger size.

    >>> import dualflow as df
    >>> df.image.pad_to_bounding_box([[[7]]], 0, 1, 1, 3).numpy().ravel()
    array([0, 7, 0], dtype=int32)
    """
    return _in_box(_pad_to_box, image, offset_height, offset_width, target_height, target_width)


def _pad_to_box(image: Any, top: int, left: int, height: int, width: int) -> Any:
    images, single = as_batch(image)
    have = size_of(images)
    below, right = height - top - have[0], width - left - have[1]
    if min(top, left, below, right) < 0:
        raise InvalidArgumentError(
            f"images of {have[0]} x {have[1]} at ({top}, {left}) don't fit into {height} x {width} pixels."
        )
    return single(pad(images, [[0, 0], [top, below], [left, right], [0, 0]]))


@documented(
    _IMAGES,
    more="\n    target_height: the height of the result.\n    target_width: its width.",
    shape="",
    invalid="the target is below 1",
)
@entry
def resize_with_crop_or_pad(image: TensorLike, target_height: IntLike, target_width: IntLike) -> Tensor:
    """The centre of images, padded with zeros where they are smaller than the target.

    >>> import dualflow as df
    >>> df.image.resize_with_crop_or_pad([[[1], [2], [3]]], 3, 1).numpy().ravel()
    array([0, 2, 0], dtype=int32)
    """
    height, width = _box(target_height, target_width)
    if min(height, width) < 1:
        raise InvalidArgumentError(f"the target is 1 x 1 or more, not {height} x {width}.")
    return once_known(lambda x: _middle(x, height, width), image, height, width)


def _middle(image: Any, height: int, width: int) -> Any:
    images, single = as_batch(image)
    have = size_of(images)
    cut = [max(0, (n - t) // 2) for n, t in zip(have, (height, width), strict=True)]
    inner = images[:, cut[0] : cut[0] + height, cut[1] : cut[1] + width]
    offsets = [max(0, (t - n) // 2) for n, t in zip(have, (height, width), strict=True)]
    return single(pad_to_bounding_box(inner, offsets[0], offsets[1], height, width))


@documented(
    _IMAGES,
    more="\n    central_fraction: the fraction of the height and width to keep, in (0, 1].",
    shape="",
    invalid="the fraction is out of range",
)
@entry
def central_crop(image: TensorLike, central_fraction: TensorLike) -> Tensor:
    """The centre of images, a fraction of their height and width.

    >>> import dualflow as df
    >>> df.image.central_crop(df.ones([4, 6, 3]), 0.5).shape.as_list()
    [2, 4, 3]
    """
    fraction = static_float(central_fraction, "central_fraction")
    if not 0 < fraction <= 1:
        raise InvalidArgumentError(f"central_fraction is in (0, 1], not {central_fraction}.")
    return once_known(lambda x: _fraction(x, fraction), image, None, None)


def _fraction(image: Any, fraction: float) -> Any:
    images, single = as_batch(image)
    have = size_of(images)
    top, left = (_margin(n, fraction) for n in have)
    return single(images[:, top : have[0] - top, left : have[1] - left])


def _margin(size: int, fraction: float) -> int:
    """The pixels on each side of the centre that is a ``fraction`` of ``size`` pixels."""
    if type(size) is int:
        return int((size - size * fraction) / 2)
    number = cast(size_as_tensor(size), float64)
    return as_size(cast((number - number * fraction) / 2, int64))
