"""Conversions between text, bytes and paths, sizes of shapes, and groups of Python's and NumPy's types.

Helpers for code that supports Python 2 and 3, or TensorFlow 1 and 2: ``df.compat``.
"""

from __future__ import annotations

import numbers
import os
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dualflow.compat.v1.dimension import Dimension
from dualflow.core.errors import DTypeError
from dualflow.core.shape import UNKNOWN_RANK, as_shape
from dualflow.core.tracebacks import entry

if TYPE_CHECKING:
    from dualflow.core.argument_types import ShapeLike

integral_types: Final = (numbers.Integral, np.integer)
real_types: Final = (numbers.Real, np.integer, np.floating)
complex_types: Final = (numbers.Complex, np.number)
bytes_or_text_types: Final = (bytes, str)


@entry
def as_bytes(bytes_or_text: bytes | bytearray | str, encoding: str = "utf-8") -> bytes:
    """Text as bytes; bytes as they are.

    Args:
        bytes_or_text: a str, bytes or bytearray.
        encoding: the encoding of text, "utf-8" by default.

    Returns:
        The bytes.

    Raises:
        DTypeError: an object has an unsupported type.

    >>> import dualflow as df
    >>> df.compat.as_bytes("é")
    b'\\xc3\\xa9'
    """
    if isinstance(bytes_or_text, str):
        return bytes_or_text.encode(encoding)
    return bytes(_require_type(bytes_or_text, bytes | bytearray))


@entry
def as_text(bytes_or_text: bytes | str, encoding: str = "utf-8") -> str:
    """Bytes as text; text as it is.

    Args:
        bytes_or_text: a str or bytes.
        encoding: the encoding of bytes, "utf-8" by default.

    Returns:
        The str.

    Raises:
        DTypeError: an object has an unsupported type.

    >>> import dualflow as df
    >>> df.compat.as_text(b"abc"), df.compat.as_str("abc")
    ('abc', 'abc')
    """
    if isinstance(bytes_or_text, str):
        return bytes_or_text
    text: str = _require_type(bytes_or_text, bytes).decode(encoding)
    return text


as_str = as_text


def _require_type(value: Any, types: Any) -> Any:
    if not isinstance(value, types):
        raise DTypeError(
            f"Expected binary or unicode string, got {value!r}; take str(x), or the .numpy() of a tensor of "
            "strings."
        )
    return value


@entry
def as_str_any(value: object, encoding: str = "utf-8") -> str:
    """Bytes as text, and ``str(value)`` of any other object.

    Args:
        value: any object.
        encoding: the encoding of bytes, "utf-8" by default.

    Returns:
        The str.

    Raises:
        UnicodeDecodeError: bytes that are not of the encoding.

    >>> import dualflow as df
    >>> df.compat.as_str_any(b"abc"), df.compat.as_str_any(5)
    ('abc', '5')
    """
    return as_text(value, encoding) if isinstance(value, bytes) else str(value)


@entry
def path_to_str(path: os.PathLike[str] | str | bytes) -> str:
    """A path as text, as ``os.fspath``; objects that are no paths by :func:`as_str_any`.

    Args:
        path: a str, bytes, or an object with ``__fspath__``.

    Returns:
        The str.

    Raises:
        UnicodeDecodeError: bytes that are not UTF-8.

    >>> import dualflow as df
    >>> from pathlib import PurePosixPath
    >>> df.compat.path_to_str(PurePosixPath("a") / "b")
    'a/b'
    """
    return as_str_any(os.fspath(path) if hasattr(path, "__fspath__") else path)


@entry
def path_to_bytes(path: os.PathLike[str] | str | bytes) -> bytes:
    """A path as bytes.

    Args:
        path: a str, bytes, or an object with ``__fspath__``.

    Returns:
        The bytes, in UTF-8.

    Raises:
        DTypeError: an object that is no path.

    >>> import dualflow as df
    >>> df.compat.path_to_bytes("a/b")
    b'a/b'
    """
    return as_bytes(os.fspath(path) if hasattr(path, "__fspath__") else path)


def dimension_value(dimension: int | Dimension | None) -> int | None:
    """A size of a shape as an int or None; TensorFlow 1's ``Dimension`` is converted to its value.

    Args:
        dimension: a size.

    Returns:
        An int, or None for a dynamic size.

    Raises nothing.

    >>> import dualflow as df
    >>> df.compat.dimension_value(df.TensorShape([3, None])[0])
    3
    """
    return dimension.value if isinstance(dimension, Dimension) else dimension


@entry
def dimension_at_index(shape: ShapeLike, index: int) -> Any:
    """The size of one axis as TensorFlow 1's ``Dimension``, which is unknown if the rank is.

    Args:
        shape: a shape.
        index: the number of the axis.

    Returns:
        A :class:`dualflow.compat.v1.Dimension`.

    Raises:
        IndexError: the shape has fewer axes.

    >>> import dualflow as df
    >>> df.compat.dimension_at_index(df.TensorShape([3, None]), 0)
    Dimension(3)
    """
    sizes = as_shape(shape)
    return Dimension(None if sizes is UNKNOWN_RANK else sizes[index])


def forward_compatible(year: int, month: int, day: int) -> bool:
    """True: graphs are read by the version that writes them.

    >>> import dualflow as df
    >>> df.compat.forward_compatible(2030, 1, 1)
    True
    """
    return True
