"""Numbers from the bytes of strings, base64, and decompression."""

from __future__ import annotations

import base64
import re
import zlib
from typing import TYPE_CHECKING, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.convert import Array
from dualflow.core.dtypes import DType, as_dtype, int16, uint8
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.core.status_errors import DataLossError
from dualflow.ops.samples import Sample
from dualflow.ops.static import static_int
from dualflow.ops.text.mapping import of_strings, one_of, per_string, text_op, words

if TYPE_CHECKING:
    from dualflow.core.argument_types import DTypeLike, TensorLike
    from dualflow.ops.tensor import Tensor

_RAW: Final = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16"),
    *("bfloat16", "float16", "float32", "float64", "complex64", "complex128"),
)
_BASE64: Final = re.compile(rb"[A-Za-z0-9_-]*={0,2}")
_WINDOWS: Final = {"ZLIB": zlib.MAX_WBITS, "GZIP": zlib.MAX_WBITS | 16}


def _decoded(x: Array, dtype: DType, little: bool, length: int | None) -> Array:
    texts = x.ravel().tolist()
    if length is not None:
        texts = [t[:length].ljust(length, b"\0") for t in texts]
    size = len(texts[0]) if texts else 0
    for i, text in enumerate(texts):
        if len(text) != size:
            raise InvalidArgumentError(
                f"decode_raw takes strings of one length, but element 0 has {size} bytes and element {i} has "
                f"{len(text)}; give fixed_length, which cuts and pads them."
            )
    if size % dtype.size:
        raise InvalidArgumentError(
            f"decode_raw has {size} bytes, which is no multiple of {dtype.size}, the size of {dtype.name}."
        )
    flat = np.frombuffer(b"".join(texts), np.uint8)
    part = dtype.size // 2 if dtype.is_complex else dtype.size
    if not little and part > 1:
        flat = flat.reshape(-1, part)[:, ::-1].reshape(-1)
    if dtype.is_bool:
        flat = flat != 0
    return flat.copy().view(dtype.dtype).reshape(*x.shape, size // dtype.size)


def _decoded_spec(x: TensorSpec, dtype: DType, little: bool, length: int | None) -> TensorSpec:
    return TensorSpec.of(Shape([*x.shape, None if length is None else length // dtype.size]), dtype)


_DECODE: Final = text_op(
    "decode_raw",
    "The numbers whose bytes strings are; a length pads and cuts them first.",
    infer=_decoded_spec,
    kernel=_decoded,
    samples=[
        Sample((words("abcd", "efgh"),), {"dtype": uint8, "little": True, "length": None}),
        Sample((words("abc", "e"),), {"dtype": int16, "little": False, "length": 4}),
    ],
)


def _to_base64(text: bytes, pad: bool) -> bytes:
    encoded = base64.urlsafe_b64encode(text)
    return encoded if pad else encoded.rstrip(b"=")


def _from_base64(text: bytes) -> bytes:
    bare = text.rstrip(b"=")
    if not _BASE64.fullmatch(text) or len(bare) % 4 == 1 or (text != bare and len(text) % 4):
        raise InvalidArgumentError(
            f"{text!r} is not in base64 that is safe in the web: letters, digits, '-' and '_', and '=' at "
            "the end to a multiple of 4."
        )
    return base64.urlsafe_b64decode(bare + b"=" * (-len(bare) % 4))


def _inflated(text: bytes, compression: str) -> bytes:
    try:
        return zlib.decompress(text, _WINDOWS[compression])
    except zlib.error as error:
        raise DataLossError(f"decode_compressed found no whole {compression} data: {error}.") from None


_ENCODE_BASE64: Final = per_string(
    "encode_base64",
    "Strings in base64 that is safe in the web.",
    _to_base64,
    samples=[Sample((words("a", "hello?", b"\xff\xfe", ""),), {"pad": pad}) for pad in (True, False)],
)
_DECODE_BASE64: Final = per_string(
    "decode_base64",
    "Strings decoded from base64.",
    _from_base64,
    samples=[Sample((words("YQ==", "YQ", "__79", ""),))],
)
_INFLATE: Final = per_string(
    "decode_compressed",
    "Decompressed strings.",
    _inflated,
    samples=[Sample((words(zlib.compress(b"abc"), zlib.compress(b"")),), {"compression": "ZLIB"})],
)


def decode_raw(
    input_bytes: TensorLike,
    out_type: DTypeLike,
    little_endian: bool = True,
    fixed_length: int | None = None,
    name: str | None = None,
) -> Tensor:
    r"""The numbers whose bytes strings hold, along a new last axis.

    Args:
        input_bytes: strings of any shape, all of one length.
        out_type: the dtype of the numbers: any but uint32, uint64 and the floats of 8 bits.
        little_endian: whether the lowest byte comes first.
        fixed_length: the number of bytes to read of each string: longer ones are cut off, shorter ones padded
            with zeros. None for all.

    Returns:
        A tensor of shape ``(*input_bytes.shape, count)`` and dtype ``out_type``.

    Raises:
        InvalidArgumentError: strings have different lengths, or not a multiple of the size of a number; or
            ``fixed_length`` is not one.
        DTypeError: ``out_type`` is another.

    >>> import dualflow as df
    >>> df.io.decode_raw(b"\x01\x00\x02\x00", df.int16).numpy()
    array([1, 2], dtype=int16)
    """
    dtype = as_dtype(out_type)
    if dtype.name not in _RAW:
        raise DTypeError(f"decode_raw gives {', '.join(_RAW)}, not {dtype.name}.")
    length = None if fixed_length is None else static_int(fixed_length, "fixed_length")
    if length is not None and (length <= 0 or length % dtype.size):
        raise InvalidArgumentError(
            f"fixed_length is a positive multiple of {dtype.size}, the size of {dtype.name}, not {length}."
        )
    attrs = {"dtype": dtype, "little": bool(little_endian), "length": length}
    return dispatch.current().apply(_DECODE, (of_strings(input_bytes, "decode_raw"),), attrs)


def encode_base64(input: TensorLike, pad: bool = False, name: str | None = None) -> Tensor:
    """Strings in base64 with ``-`` and ``_``, which is safe in web addresses.

    Args:
        input: strings of any shape.
        pad: whether to pad with ``=`` to a multiple of 4 characters.

    Returns:
        A tensor of strings with the shape of ``input``.

    Raises:
        DTypeError: ``input`` holds numbers.

    >>> import dualflow as df
    >>> df.io.encode_base64("hi", pad=True).numpy()
    b'aGk='
    """
    encoded: Tensor = _ENCODE_BASE64(input, pad=bool(pad))
    return encoded


def decode_base64(input: TensorLike, name: str | None = None) -> Tensor:
    """Strings decoded from base64; see :func:`encode_base64`. They may be padded with ``=``.

    Args:
        input: strings of any shape.

    Returns:
        A tensor of strings with the shape of ``input``.

    Raises:
        InvalidArgumentError: a string is not base64.
        DTypeError: ``input`` holds numbers.

    >>> import dualflow as df
    >>> df.io.decode_base64("aGk").numpy()
    b'hi'
    """
    decoded: Tensor = _DECODE_BASE64(input)
    return decoded


def decode_compressed(bytes: TensorLike, compression_type: str = "", name: str | None = None) -> Tensor:
    """Compressed strings, decompressed.

    Args:
        bytes: strings of any shape.
        compression_type: "ZLIB", "GZIP", or "" for strings that are not compressed.

    Returns:
        A tensor of strings with the shape of ``bytes``.

    Raises:
        DataLossError: a string is incomplete or damaged.
        InvalidArgumentError: the compression is another.

    >>> import dualflow as df, zlib
    >>> df.io.decode_compressed(zlib.compress(b"Dear reader"), "ZLIB").numpy()
    b'Dear reader'
    """
    kind = one_of(compression_type, ("", *_WINDOWS), "compression_type")
    decompressed: Tensor = (
        _INFLATE(bytes, compression=kind) if kind else of_strings(bytes, "decode_compressed")
    )
    return decompressed
