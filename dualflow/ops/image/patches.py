"""Parts of images: patches on a grid, and boxes resized to one size."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from dualflow.core.dtypes import float32, int32
from dualflow.core.errors import InvalidArgumentError
from dualflow.ops.arrangement import expand_dims, reshape
from dualflow.ops.clipping import clip_by_value
from dualflow.ops.comparison import logical_and
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.neural.windows import Geometry, windows
from dualflow.ops.positions import iota
from dualflow.ops.rounding import ceil, floor
from dualflow.ops.selection import where
from dualflow.ops.size_values import operand
from dualflow.ops.static import ints, static_int
from dualflow.ops.taking import gather
from dualflow.ops.tensor_sizes import reshape_sizes

if TYPE_CHECKING:
    from dualflow.core.argument_types import IntsLike, TensorLike
    from dualflow.ops.tensor import Tensor


def extract_patches(
    images: TensorLike,
    sizes: TensorLike,
    strides: IntsLike,
    rates: IntsLike,
    padding: str,
    name: str | None = None,
) -> Tensor:
    """Patches of images on a grid, each as one row of pixels and channels.

    Args:
        images: a tensor of shape ``(batch, height, width, channels)`` and any dtype.
        sizes: the size of a patch: ``[1, height, width, 1]``.
        strides: the distance between patches: ``[1, rows, columns, 1]``.
        rates: the distance between the pixels of a patch: ``[1, rows, columns, 1]``.
        padding: "VALID", or "SAME" for zeros around the images.

    Returns:
        A tensor of shape ``(batch, rows, columns, height * width * channels)`` with the dtype of ``images``.

    Raises:
        InvalidArgumentError: a shape or an option doesn't fit.

    >>> import dualflow as df
    >>> x = df.reshape(df.range(16), [1, 4, 4, 1])
    >>> df.image.extract_patches(x, [1, 2, 2, 1], [1, 2, 2, 1], [1, 1, 1, 1], "VALID")[0, 0].numpy()
    array([[0, 1, 4, 5],
           [2, 3, 6, 7]], dtype=int32)
    """
    images = convert_to_tensor(images)
    named = {"sizes": sizes, "strides": strides, "rates": rates}
    options = {what: ints(values, what) for what, values in named.items()}
    for what, values in options.items():
        if len(values) != 4 or values[0] != 1 or values[3] != 1 or min(values) < 1:
            raise InvalidArgumentError(f"{what} are [1, rows, columns, 1] of 1 or more, not {list(values)}.")
    if len(images.shape) != 4 or padding not in ("VALID", "SAME"):
        raise InvalidArgumentError(
            f"extract_patches takes [batch, height, width, channels] and padding 'VALID' or 'SAME', not "
            f"{images.shape} and {padding!r}."
        )
    size, step, rate = (values[1:3] for values in options.values())
    pairs = [(0, 0), (0, 0)]
    if padding == "SAME":
        have = [static_int(n, "the height and width of padded images") for n in images.shape[1:3]]
        pairs = [_same_padding(*axis) for axis in zip(have, size, step, rate, strict=True)]
    geometry = Geometry(size, step, rate, (pairs[0], pairs[1]))
    patches = windows(images, geometry)
    channels = static_int(images.shape[3], "the channels of images")
    return reshape(patches, reshape_sizes([*patches.shape[:3], math.prod(size) * channels], patches))


def _same_padding(have: int, size: int, step: int, rate: int) -> tuple[int, int]:
    """The zeros to add before and after an axis for patches at each multiple of ``step``."""
    beyond = max(0, (-(-have // step) - 1) * step + (size - 1) * rate + 1 - have)
    return beyond // 2, beyond - beyond // 2


def crop_and_resize(
    image: TensorLike,
    boxes: TensorLike,
    box_indices: TensorLike,
    crop_size: IntsLike,
    method: str = "bilinear",
    extrapolation_value: float = 0.0,
    name: str | None = None,
) -> Tensor:
    """Boxes of images, resized to one size.

    Args:
        image: numbers of shape ``(batch, height, width, channels)``, the last three known while tracing.
        boxes: floats of shape ``(boxes, 4)``: top, left, bottom and right, as fractions of the distance from
            the first to the last row or column. A box may be upside down, or extend beyond the image.
        box_indices: the index of each box's image in the batch, integers of shape ``(boxes,)``.
        crop_size: ``[height, width]`` of the result, known while tracing.
        method: "bilinear" or "nearest".
        extrapolation_value: the value outside of the image.

    Returns:
        A float32 tensor of shape ``(boxes, height, width, channels)``. It has a gradient with respect to the
        image, and if bilinear to the boxes.

    Raises:
        InvalidArgumentError: a shape or an option doesn't fit.
        OutOfRangeError: ``box_indices`` holds no index of an image.

    >>> import dualflow as df
    >>> x = df.reshape(df.range(9.0), [1, 3, 3, 1])
    >>> df.image.crop_and_resize(x, [[0.0, 0.0, 0.5, 0.5]], [0], [2, 2])[0, ..., 0].numpy()
    array([[0., 1.],
           [3., 4.]], dtype=float32)
    """
    image, boxes = convert_to_tensor(image), convert_to_tensor(boxes, dtype_hint=float32)
    size = ints(crop_size, "crop_size")
    if len(image.shape) != 4 or len(boxes.shape) != 2 or boxes.shape[1] != 4:
        raise InvalidArgumentError(
            f"crop_and_resize takes images [batch, height, width, channels] and boxes [boxes, 4], not "
            f"{image.shape} and {boxes.shape}."
        )
    if len(size) != 2 or min(size) < 1 or method not in ("bilinear", "nearest"):
        raise InvalidArgumentError(
            f"crop_and_resize takes a crop_size [height, width] of 1 or more and the method 'bilinear' or "
            f"'nearest', not {list(size)} and {method!r}."
        )
    height, width, channels = (
        static_int(n, "the height, width and channels of images") for n in image.shape[1:]
    )
    rows = expand_dims(_coordinates(boxes[:, 0], boxes[:, 2], height, size[0]), 2)
    columns = expand_dims(_coordinates(boxes[:, 1], boxes[:, 3], width, size[1]), 1)
    pixels = reshape(cast(image, float32), [-1, channels])
    first = reshape(convert_to_tensor(box_indices), [-1, 1, 1])

    def pixel(row: Any, column: Any) -> Any:
        row = cast(clip_by_value(row, 0.0, operand(height - 1, float32)), int32)
        column = cast(clip_by_value(column, 0.0, operand(width - 1, float32)), int32)
        return gather(pixels, (cast(first, int32) * operand(height) + row) * operand(width) + column)

    inside = logical_and(_is_inside(rows, height), _is_inside(columns, width))
    if method == "nearest":
        pixels_of_boxes = pixel(floor(rows + 0.5), floor(columns + 0.5))
    else:
        top, left = floor(rows), floor(columns)
        bottom, right = ceil(rows), ceil(columns)
        down, along = expand_dims(rows - top, 3), expand_dims(columns - left, 3)
        upper = pixel(top, left) + (pixel(top, right) - pixel(top, left)) * along
        lower = pixel(bottom, left) + (pixel(bottom, right) - pixel(bottom, left)) * along
        pixels_of_boxes = upper + (lower - upper) * down
    return where(expand_dims(inside, 3), pixels_of_boxes, float(extrapolation_value))


def _coordinates(start: Any, end: Any, have: int, size: int) -> Any:
    """The coordinates of ``size`` rows or columns in each box, of shape ``(boxes, size)``."""
    start, end = expand_dims(start, 1), expand_dims(end, 1)
    last = operand(have - 1, float32)
    if size == 1:
        return (start + end) * 0.5 * last
    step = (end - start) * last / float(size - 1)
    return start * last + iota([1, size], 1, float32) * step


def _is_inside(coordinates: Any, have: int) -> Any:
    return logical_and(coordinates >= 0.0, coordinates <= operand(have - 1, float32))
