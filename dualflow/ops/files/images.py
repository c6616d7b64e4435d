"""Images in files of the usual formats, through the package Pillow."""

from __future__ import annotations

import io
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.convert import Array
from dualflow.core.dtypes import DType, as_dtype, float32, int32, int64, uint8, uint16
from dualflow.core.errors import DTypeError, InvalidArgumentError, MissingNameError
from dualflow.core.locks import imported
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.ops.comparison import equal
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.samples import Domain, Sample
from dualflow.ops.static import static_int, static_value
from dualflow.ops.text.mapping import of_strings, one_word, text_op
from dualflow.ops.text.substrings import substr

if TYPE_CHECKING:
    from dualflow.core.argument_types import DTypeLike, TensorLike
    from dualflow.ops.tensor import Tensor

_FORMATS: Final = ("PNG", "JPEG", "GIF", "BMP", "WEBP")
_MODES: Final = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}
_START_OF_JPEG: Final = b"\xff\xd8\xff"
_STARTS: Final = (b"\x89PNG\r\n\x1a\n", _START_OF_JPEG, b"GIF8", b"BM", b"RIFF")
"""The first bytes of files of these formats."""


def pillow() -> ModuleType:
    """The module PIL.Image, imported at its first use.

    Raises:
        MissingNameError: it is not installed.
    """
    try:
        return imported("PIL.Image")
    except ImportError:
        raise MissingNameError(
            "Images are read and written by the package Pillow, which is not installed: run pip install "
            "'dualflow[images]'."
        ) from None


def _opened(contents: bytes) -> Any:
    """The image of some bytes, of which only the header has been read."""
    reader = pillow()
    if not contents:
        raise InvalidArgumentError("There is no image in an empty string; was the file read?")
    try:
        return reader.open(io.BytesIO(contents), formats=_FORMATS)
    except reader.DecompressionBombError as error:
        raise InvalidArgumentError(
            f"{error} That is Pillow's limit: if the image is from a source that you trust, set "
            "PIL.Image.MAX_IMAGE_PIXELS to None."
        ) from None
    except (OSError, SyntaxError):
        if contents.startswith(_STARTS):
            raise InvalidArgumentError(
                f"The image is damaged or cut off: its header can't be read in {len(contents)} bytes."
            ) from None
        raise InvalidArgumentError(
            f"Unknown image file format. One of {', '.join(_FORMATS)} required; these bytes begin with "
            f"{contents[:8]!r}."
        ) from None


def _pixels(image: Any, channels: int) -> Array:
    """An image's elements, of shape (height, width, channels), in 8 or 16 bits."""
    try:
        image.load()
    except (OSError, SyntaxError, ValueError) as error:
        raise InvalidArgumentError(f"The image is damaged or cut off: {error}.") from None
    if image.mode.startswith("I") and channels <= 1:
        return np.asarray(image).astype(np.uint16)[..., None]
    if image.mode.startswith("I"):
        image = pillow().fromarray((np.asarray(image).astype(np.uint16) >> 8).astype(np.uint8))
    mode = _MODES[channels or _own_channels(image)]
    pixels = np.array(image if image.mode == mode else image.convert(mode))
    return pixels[..., None] if pixels.ndim == 2 else pixels


def _own_channels(image: Any) -> int:
    """The number of channels of the image; an image with a palette has those of its colours."""
    if image.mode in ("L", "1"):
        return 1
    if image.mode == "LA":
        return 2
    return 4 if image.mode == "RGBA" or (image.mode == "P" and "transparency" in image.info) else 3


def _in_dtype(pixels: Array, dtype: DType) -> Array:
    """Pixels in another dtype, scaled so that white is its largest value, or 1 for floats."""
    wide = pixels.dtype == np.uint16
    if dtype.is_floating:
        return (pixels * np.float32(1 / (65535 if wide else 255))).astype(dtype.dtype)
    if dtype is uint16:
        return pixels if wide else pixels.astype(np.uint16) * np.uint16(257)
    return (pixels >> 8).astype(np.uint8) if wide else pixels


def _frames(image: Any) -> Array:
    """All images of an animation."""
    frames = []
    for i in range(getattr(image, "n_frames", 1)):
        image.seek(i)
        frames.append(_pixels(image, 3))
    return np.stack(frames)


def _decoded(contents: Array, channels: int, dtype: DType, ratio: int, animated: bool | None) -> Array:
    text = contents.item()
    image = _opened(text)
    if image.format == "GIF" and animated is None:
        raise InvalidArgumentError(
            "A GIF has frames, which would give the image a fourth axis inside of a traced function; give "
            "expand_animations=False for the first of them, or use df.io.decode_gif."
        )
    if image.format == "GIF" and animated:
        return _in_dtype(_frames(image), dtype)
    if image.format == "PNG" and text[24:25] == b"\x10" and dtype is not uint8 and image.mode[:1] != "I":
        raise InvalidArgumentError(
            "Pillow reads PNG images of 16 bits in colour as 8 bits; decode this one with dtype=df.uint8."
        )
    if image.format == "JPEG":
        size = (max(image.width // ratio, 1), max(image.height // ratio, 1))
        image.draft("L" if channels == 1 else "RGB" if channels == 3 else image.mode, size)
    pixels = _in_dtype(_pixels(image, channels), dtype)
    return pixels[None] if animated else pixels


def _decoded_spec(
    contents: TensorSpec, channels: int, dtype: DType, ratio: int, animated: bool | None
) -> TensorSpec:
    return TensorSpec.of(Shape([*([None] if animated else []), None, None, channels or None]), dtype)


def _size(contents: Array, dtype: DType) -> Array:
    image = _opened(contents.item())
    return np.array([image.height, image.width, _own_channels(image)], dtype.dtype)


def _cropped(image: Array, window: Array) -> Array:
    y, x, height, width = (int(n) for n in window)
    if min(y, x) < 0 or min(height, width) < 1 or y + height > image.shape[0] or x + width > image.shape[1]:
        raise InvalidArgumentError(
            f"The window {window.tolist()} is not inside of an image of {image.shape[0]} x {image.shape[1]}; "
            "give y, x, height and width."
        )
    return image[y : y + height, x : x + width]


SMALL: Final = (
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x02\x00\x00\x00\x01\x08\x02\x00\x00\x00{@\xe8\xdd"
    b"\x00\x00\x00\x0fIDATx\xdac`dbfae\x03\x00\x00?\x00\x16\x98\xc1h\x13\x00\x00\x00\x00IEND\xaeB`\x82"
)
"""An image of two pixels, for samples."""
_DECODE: Final = text_op(
    "decode_image",
    "The elements of an image in a format of files.",
    infer=_decoded_spec,
    kernel=_decoded,
    samples=[
        Sample((one_word(SMALL),), {"channels": n, "dtype": uint8, "ratio": 1, "animated": False})
        for n in (0, 1, 4)
    ],
)

_CROP: Final = text_op(
    "crop_image",
    "The window of an image at a position, of a size.",
    infer=lambda image, window: TensorSpec.of(Shape([None, None, image.shape[2]]), image.dtype),
    kernel=_cropped,
    samples=[
        Sample((Domain(0, 255, "u", (3, 4, 3)), Domain(0, 4, "i", (4,), values=np.array([1, 0, 2, 3]))))
    ],
)
_SHAPE: Final = text_op(
    "image_shape",
    "The height, width and number of channels of an image in a format of files.",
    infer=lambda contents, dtype: TensorSpec.of(Shape([3]), dtype),
    kernel=_size,
    samples=[Sample((one_word(SMALL),), {"dtype": int32})],
)


def decode_image(
    contents: TensorLike,
    channels: int | None = None,
    dtype: DTypeLike = uint8,
    name: str | None = None,
    expand_animations: bool = True,
) -> Tensor:
    """An image in the bytes of a file in one of the formats PNG, JPEG, GIF, BMP and WebP.

    Args:
        contents: one string.
        channels: 1 for grey, 3 for colour, 4 with opacity; by default as many as the image has.
        dtype: uint8, or uint16 or float32, whose range up to 65535 or 1 the elements then have.
        expand_animations: whether a GIF gives all its frames, along a new first axis. Inside of a traced
            function, whose results have a static number of axes, pass False.

    Returns:
        Of shape (height, width, channels).

    Raises:
        InvalidArgumentError: bytes that are no image, or a damaged one; another number of channels.
        DTypeError: the dtype is not supported.
        MissingNameError: Pillow is not installed.

    >>> import dualflow as df
    >>> png = df.io.encode_png(df.zeros([2, 3, 1], df.uint8))
    >>> df.io.decode_image(png, channels=3).shape
    (2, 3, 3)
    """
    target = as_dtype(dtype)
    if target not in (uint8, uint16, float32):
        raise DTypeError(f"decode_image gives uint8, uint16 or float32, not {target.name}; use df.cast.")
    contents = convert_to_tensor(contents)
    if not contents.dtype.is_string:
        raise DTypeError(f"takes the bytes of a file as a string, not {contents.dtype.name}.")
    engine_runs = dispatch.current().eager
    animated = None if expand_animations and not engine_runs else bool(expand_animations)
    if animated and not _is_gif(contents):
        animated = False
    return _decode(contents, channels or 0, target, animated=animated)


def decode_png(
    contents: TensorLike, channels: int = 0, dtype: DTypeLike = uint8, name: str | None = None
) -> Tensor:
    """An image in the PNG format, or in another that :func:`decode_image` reads; the first frame of a GIF.

    Args:
        contents: a scalar string.
        channels: 0 for the image's own number, or 1 to 4.
        dtype: uint8 or uint16.

    Returns:
        A tensor of shape ``(height, width, channels)`` and dtype ``dtype``.

    Raises:
        DTypeError: ``dtype`` is another.
        InvalidArgumentError: ``contents`` is not an image, or damaged.

    >>> import dualflow as df
    >>> contents = df.io.encode_png(df.constant([[[7], [9]]], df.uint8))
    >>> df.io.decode_png(contents).numpy().tolist()
    [[[7], [9]]]
    """
    target = as_dtype(dtype)
    if target not in (uint8, uint16):
        raise DTypeError(f"decode_png gives uint8 or uint16, not {target.name}; use df.cast.")
    return _decode(contents, channels, target)


def decode_jpeg(
    contents: TensorLike,
    channels: int = 0,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    acceptable_fraction: float = 1,
    dct_method: str = "",
    name: str | None = None,
) -> Tensor:
    """An image in the JPEG format, or in another that :func:`decode_image` reads.

    Elements may differ by a few units from those of other readers, as the format leaves rounding open.

    Args:
        contents: a scalar string.
        channels: 0 for the image's own number, 1 or 3.
        ratio: 1, 2, 4 or 8: the image is read at this fraction of its size.
        fancy_upscaling: ignored: the reader decides.
        try_recover_truncated: ignored: an image that is cut off is an error.
        acceptable_fraction: ignored.
        dct_method: ignored: the slow, accurate one is used.

    Returns:
        A uint8 tensor of shape ``(height, width, channels)``.

    Raises:
        InvalidArgumentError: ``contents`` is not an image, or damaged; or ``ratio`` is another.

    >>> import dualflow as df
    >>> contents = df.io.encode_jpeg(df.zeros([8, 6, 3], df.uint8))
    >>> df.io.decode_jpeg(contents, ratio=2).shape
    (4, 3, 3)
    """
    if ratio not in (1, 2, 4, 8):
        raise InvalidArgumentError(f"ratio is 1, 2, 4 or 8, not {ratio!r}.")
    return _decode(contents, channels, uint8, ratio=ratio)


def decode_bmp(contents: TensorLike, channels: int = 0, name: str | None = None) -> Tensor:
    """An image in the BMP format, or in another that :func:`decode_image` reads.

    Args:
        contents: a scalar string.
        channels: 0 for the image's own number, 1, 3 or 4.

    Returns:
        A uint8 tensor of shape ``(height, width, channels)``.

    Raises:
        InvalidArgumentError: ``contents`` is not an image, or damaged.

    >>> import dualflow as df
    >>> contents = df.io.encode_png(df.constant([[[7], [9]]], df.uint8))
    >>> df.io.decode_bmp(contents).numpy().tolist()
    [[[7], [9]]]
    """
    return _decode(contents, channels, uint8)


def decode_gif(contents: TensorLike, name: str | None = None) -> Tensor:
    """The frames of an animation in the GIF format, in colour; an image of another format is one frame.

    Args:
        contents: a scalar string.

    Returns:
        A uint8 tensor of shape ``(frames, height, width, 3)``.

    Raises:
        InvalidArgumentError: ``contents`` is not an image, or damaged.

    >>> import dualflow as df
    >>> contents = df.io.encode_png(df.constant([[[7], [9]]], df.uint8))
    >>> df.io.decode_gif(contents).shape
    (1, 1, 2, 3)
    """
    return _decode(contents, 3, uint8, animated=True)


def decode_and_crop_jpeg(
    contents: TensorLike,
    crop_window: TensorLike,
    channels: int = 0,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    acceptable_fraction: float = 1,
    dct_method: str = "",
    name: str | None = None,
) -> Tensor:
    """A window of an image; see :func:`decode_jpeg`.

    Args:
        contents: a scalar string.
        crop_window: the position and size of the window: ``[y, x, height, width]``.
        channels: 0 for the image's own number, 1 or 3.
        ratio: 1, 2, 4 or 8: the image is read at this fraction of its size.
        fancy_upscaling: ignored: the reader decides.
        try_recover_truncated: ignored: an image that is cut off is an error.
        acceptable_fraction: ignored.
        dct_method: ignored: the slow, accurate one is used.

    Returns:
        A uint8 tensor of shape ``(height, width, channels)``.

    Raises:
        InvalidArgumentError: the window is not inside of the image, or ``contents`` is not an image.

    >>> import dualflow as df
    >>> contents = df.io.encode_jpeg(df.zeros([8, 6, 3], df.uint8))
    >>> df.io.decode_and_crop_jpeg(contents, [1, 2, 3, 4]).shape
    (3, 4, 3)
    """
    image, window = decode_jpeg(contents, channels, ratio), convert_to_tensor(crop_window)
    if not window.dtype.is_integer or tuple(window.shape) != (4,):
        raise InvalidArgumentError(
            f"crop_window is [y, x, height, width], integers, not {window.spec}; see df.cast."
        )
    return dispatch.current().apply(_CROP, (image, window), {})


def extract_jpeg_shape(
    contents: TensorLike, output_type: DTypeLike = int32, name: str | None = None
) -> Tensor:
    """The height, width and number of channels of an image, from its header.

    Args:
        contents: a scalar string.
        output_type: int32 or int64.

    Returns:
        A tensor of shape ``(3,)`` and dtype ``output_type``.

    Raises:
        InvalidArgumentError: ``contents`` is not an image.
        DTypeError: ``output_type`` is another.

    >>> import dualflow as df
    >>> df.io.extract_jpeg_shape(df.io.encode_jpeg(df.zeros([8, 6, 3], df.uint8))).numpy()
    array([8, 6, 3], dtype=int32)
    """
    dtype = as_dtype(output_type)
    if dtype not in (int32, int64):
        raise DTypeError(f"extract_jpeg_shape gives int32 or int64, not {dtype.name}.")
    return dispatch.current().apply(_SHAPE, (_lone(contents, "extract_jpeg_shape"),), {"dtype": dtype})


def is_jpeg(contents: TensorLike, name: str | None = None) -> Tensor:
    """Whether strings begin as JPEG files do.

    Args:
        contents: strings of any shape.

    Returns:
        A bool tensor with the shape of ``contents``.

    Raises:
        DTypeError: ``contents`` holds numbers.

    >>> import dualflow as df
    >>> df.io.is_jpeg("letter").numpy()
    np.False_
    """
    is_start: Tensor = equal(substr(contents, 0, len(_START_OF_JPEG)), _START_OF_JPEG)
    return is_start


def _is_gif(contents: Any) -> bool:
    value = static_value(contents)
    return value is not None and value.ndim == 0 and value.item()[:3] == b"GIF"


def _decode(
    contents: Any, channels: Any, dtype: DType, *, ratio: int = 1, animated: bool | None = False
) -> Any:
    count = static_int(channels, "channels")
    if count not in (0, 1, 3, 4):
        raise InvalidArgumentError(f"channels must be 0, 1, 3 or 4, not {count}.")
    attrs = {"channels": count, "dtype": dtype, "ratio": ratio, "animated": animated}
    return dispatch.current().apply(_DECODE, (_lone(contents, "an image's decoder"),), attrs)


def _lone(x: Any, name: str) -> Any:
    """``x`` as a scalar string tensor.

    Raises:
        InvalidArgumentError: a tensor with axes.
        DTypeError: numbers.
    """
    tensor = of_strings(x, name)
    if len(tensor.shape):
        raise InvalidArgumentError(
            f"{name} takes the bytes of one file, not shape {tensor.shape}: images may differ in size. Take "
            "them one by one, as in [df.io.decode_image(file) for file in x]."
        )
    return tensor
