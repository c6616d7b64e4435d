"""Images of other dtypes: integers range up to their largest number, floats up to 1."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dualflow.core.dtypes import as_dtype, float32
from dualflow.core.errors import DTypeError
from dualflow.ops.conversion import cast, identity
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.elementary.values import saturate_cast

if TYPE_CHECKING:
    from dualflow.core.argument_types import DTypeLike, TensorLike
    from dualflow.ops.tensor import Tensor


def convert_image_dtype(
    image: TensorLike, dtype: DTypeLike, saturate: bool = False, name: str | None = None
) -> Tensor:
    """Images in another dtype, scaled: integers from 0 to their largest number are floats from 0 to 1.

    Args:
        image: floats or integers of any shape.
        dtype: a float or integer dtype.
        saturate: whether integers outside of the new dtype are clipped rather than wrapped; floats are always
            clipped.

    Returns:
        A tensor with the shape of ``image`` and dtype ``dtype``.

    Raises:
        DTypeError: ``image`` or ``dtype`` is of bools or complex numbers.

    >>> import dualflow as df
    >>> df.image.convert_image_dtype([0.0, 0.5, 1.0], df.uint8).numpy()
    array([  0, 127, 255], dtype=uint8)
    """
    image, target = convert_to_tensor(image), as_dtype(dtype)
    source = image.dtype
    for kind in (source, target):
        if not (kind.is_floating or kind.is_integer):
            raise DTypeError(f"images are floats or integers, not {kind.name}; use df.cast.")
    if source is target:
        return identity(image)
    if source.is_floating and target.is_floating:
        return cast(image, target)
    if source.is_floating:
        wide = cast(image, float32) if target.max > float(source.max) else image  # float16 ends at 65504
        return cast(wide * (target.max + 0.5), target)
    if target.is_floating:
        return cast(image, target) * (1.0 / source.max)
    into = saturate_cast if saturate else cast
    if source.max > target.max:
        return into(image // ((source.max + 1) // (target.max + 1)), target)
    return into(image, target) * ((target.max + 1) // (source.max + 1))


def in_floats(image: Any, change: Callable[[Any], Any]) -> Tensor:
    """Apply ``change`` to an image as floats; returns the result in the image's dtype, clipped."""
    image = convert_to_tensor(image)
    narrow = image.dtype.is_floating and image.dtype.size <= 4
    floats = image if narrow else convert_image_dtype(image, float32)
    return convert_image_dtype(change(floats), image.dtype, saturate=True)
