"""Images written in the formats PNG and JPEG."""

from __future__ import annotations

import io
import struct
import zlib
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.convert import Array
from dualflow.core.dtypes import uint8, uint16
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.core.string_arrays import string
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.files.images import pillow
from dualflow.ops.samples import Domain, Sample
from dualflow.ops.static import static_int
from dualflow.ops.text.mapping import filled, one_of, text_op

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike
    from dualflow.ops.tensor import Tensor

_COLOUR_TYPES: Final = {1: 0, 2: 4, 3: 2, 4: 6}
"""PNG's numbers of the kinds of images, by the number of channels."""
_CENTIMETRES: Final = 2.54


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _as_png(image: Array, level: int) -> bytes:
    """An image as PNG (https://www.w3.org/TR/png), with filter type 0 (none) for each row."""
    height, width, channels = image.shape
    bits = 8 * image.itemsize
    rows = np.ascontiguousarray(image.astype(image.dtype.newbyteorder(">"))).reshape(height, -1)
    lines = b"".join([b"\0" + row.tobytes() for row in rows])
    header = struct.pack(">IIBBBBB", width, height, bits, _COLOUR_TYPES[channels], 0, 0, 0)
    return b"".join(
        [
            b"\x89PNG\r\n\x1a\n",
            _chunk(b"IHDR", header),
            _chunk(b"IDAT", zlib.compress(lines, level)),
            _chunk(b"IEND", b""),
        ]
    )


def _as_pngs(images: Array, level: int) -> Array:
    shape = images.shape[:-3]
    return filled([_as_png(image, level) for image in images.reshape(-1, *images.shape[-3:])], shape)


def _png_spec(images: TensorSpec, level: int) -> TensorSpec:
    if images.dtype not in (uint8, uint16):
        raise DTypeError(f"takes uint8 or uint16, not {images.dtype.name}; see df.image.convert_image_dtype.")
    if len(images.shape) < 3 or images.shape[-1] not in _COLOUR_TYPES:
        raise InvalidArgumentError(
            f"takes images of shape (height, width, channels) with 1 to 4 channels, not {images.shape}."
        )
    return TensorSpec.of(Shape(images.shape[:-3]), string)


_PNG: Final = text_op(
    "encode_png",
    "Images in the format PNG.",
    infer=_png_spec,
    kernel=_as_pngs,
    samples=[Sample((Domain(0, 255, "u", (2, 3, 3)),), {"level": -1})],
)


def _as_jpeg(image: Array, options: tuple[tuple[str, Any], ...]) -> Array:
    flat = image[..., 0] if image.shape[-1] == 1 else image
    written = io.BytesIO()
    pillow().fromarray(np.ascontiguousarray(flat)).save(written, "JPEG", **dict(options))
    return np.array(written.getvalue(), object)


def _jpeg_spec(image: TensorSpec, options: tuple[tuple[str, Any], ...]) -> TensorSpec:
    if image.dtype is not uint8:
        raise DTypeError(f"takes uint8, not {image.dtype.name}; see df.image.convert_image_dtype.")
    if len(image.shape) != 3 or image.shape[-1] not in (1, 3):
        raise InvalidArgumentError(
            f"takes an image of shape (height, width, channels) with 1 or 3 channels, not {image.shape}."
        )
    return TensorSpec.of(Shape(), string)


_JPEG: Final = text_op(
    "encode_jpeg",
    "An image in the format JPEG.",
    infer=_jpeg_spec,
    kernel=_as_jpeg,
    samples=[Sample((Domain(0, 255, "u", (2, 3, 3)),), {"options": (("quality", 95),)})],
)


def encode_png(image: TensorLike, compression: int = -1, name: str | None = None) -> Tensor:
    """Images in the format PNG, which loses nothing.

    Args:
        image: uint8 or uint16, of shape (..., height, width, channels): 1 channel is grey, 2 are grey and
            opacity, 3 are red, green and blue, 4 these and opacity.
        compression: from 0, none, to 9, the smallest file; -1 for the usual.

    Returns:
        One string for each image.

    Raises:
        InvalidArgumentError: another shape, or another compression.
        DTypeError: the dtype is not supported.

    >>> import dualflow as df
    >>> df.io.encode_png(df.zeros([2, 3, 1], df.uint8)).numpy()[:4]
    b'\\x89PNG'
    """
    level = static_int(compression, "compression")
    if not -1 <= level <= 9:
        raise InvalidArgumentError(f"compression is from 0 to 9, or -1, not {level}.")
    images = convert_to_tensor(image)
    _png_spec(images.spec, level)
    return dispatch.current().apply(_PNG, (images,), {"level": level})


def encode_jpeg(
    image: TensorLike,
    format: str = "",
    quality: int = 95,
    progressive: bool = False,
    optimize_size: bool = False,
    chroma_downsampling: bool = True,
    density_unit: str = "in",
    x_density: int = 300,
    y_density: int = 300,
    xmp_metadata: str = "",
    name: str | None = None,
) -> Tensor:
    """An image in the JPEG format, which is small and loses details.

    Args:
        image: uint8 of shape ``(height, width, channels)``: 1 channel is grey, 3 are red, green and blue.
        format: "" to derive it from the number of channels, or "grayscale" or "rgb" to require it.
        quality: from 0 to 100, the best.
        progressive: whether a reader can show the whole image before it has read all of it.
        optimize_size: whether to spend time on a smaller file.
        chroma_downsampling: whether colours have half the resolution.
        density_unit: the unit of the densities, "in" or "cm".
        x_density: the number of columns per unit on paper.
        y_density: the number of rows per unit.
        xmp_metadata: text to put into the file.

    Returns:
        A scalar string.

    Raises:
        InvalidArgumentError: the shape, format, quality or unit is another.
        DTypeError: ``image`` has another dtype.
        MissingNameError: Pillow is not installed.

    >>> import dualflow as df
    >>> contents = df.io.encode_jpeg(df.zeros([8, 6, 3], df.uint8))
    >>> df.io.decode_jpeg(contents).shape
    (8, 6, 3)
    """
    channels = {"": (1, 3), "grayscale": (1,), "rgb": (3,)}[
        one_of(format, ("", "grayscale", "rgb"), "format")
    ]
    tensor = convert_to_tensor(image)
    if not 0 <= static_int(quality, "quality") <= 100:
        raise InvalidArgumentError(f"quality is from 0 to 100, not {quality}.")
    scale = 1.0 if one_of(density_unit, ("in", "cm"), "density_unit") == "in" else _CENTIMETRES
    options: dict[str, Any] = {
        "quality": int(quality),
        "progressive": bool(progressive),
        "optimize": bool(optimize_size),
        "subsampling": 2 if chroma_downsampling else 0,
        "dpi": (round(x_density * scale), round(y_density * scale)),
    }
    if xmp_metadata:
        options["xmp"] = xmp_metadata.encode()
    attrs = {"options": tuple(options.items())}
    _jpeg_spec(tensor.spec, **attrs)
    if tensor.shape[-1] is not None and tensor.shape[-1] not in channels:
        raise InvalidArgumentError(f"{format!r} has not {tensor.shape[-1]} channels.")
    return dispatch.current().apply(_JPEG, (tensor,), attrs)
