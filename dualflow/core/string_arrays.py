"""Arrays of strings: NumPy arrays of objects, which are Python ``bytes``.

Strings are bytes, as in TensorFlow, so that they can have the contents of any file; text is encoded as UTF-8.
NumPy's StringDType holds only valid UTF-8, and its fixed-width strings drop trailing zeros.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dualflow.core.convert import short_repr
from dualflow.core.dtypes import DType, late_dtype
from dualflow.core.errors import DTypeError, InvalidArgumentError

Array = np.ndarray[Any, Any]
string: Final[DType] = late_dtype("string")


def from_numpy(array: Array) -> Array:
    """An array of NumPy's strings, or of objects that are strings, as one of bytes.

    Raises:
        DTypeError: an object that is no string.
        InvalidArgumentError: text that UTF-8 can't hold.
    """
    elements = array.astype(object).ravel().tolist()
    if elements and not any(isinstance(x, str | bytes) for x in elements):
        raise DTypeError(
            f"A NumPy array of Python objects can't make a tensor: it holds {short_repr(elements[0])}. Give "
            "it a dtype of numbers with astype; join arrays of equal shapes with np.stack, and rows of "
            "different lengths with df.ragged.constant."
        )
    encoded = np.empty(array.shape, object)
    encoded.ravel()[...] = [_encoded(x) for x in elements]
    return encoded


def from_list(value: Any) -> Array:
    """A string, or nested lists of strings, as an array of bytes.

    Raises:
        DTypeError: an element that is no string, in a place where one could be.
        InvalidArgumentError: rows of different lengths, or text that UTF-8 can't hold.
    """
    try:
        array = np.array(value, object)
    except ValueError:
        array = None
    if array is None or any(isinstance(x, list | tuple | np.ndarray) for x in array.ravel().tolist()):
        raise InvalidArgumentError(f"Rows of different lengths can't make one tensor: {short_repr(value)}.")
    return from_numpy(array)


def _encoded(x: Any) -> bytes:
    if type(x) is bytes:
        return x
    if isinstance(x, bytes):
        return bytes(x)
    if not isinstance(x, str):
        raise DTypeError(
            f"Strings and objects of type {type(x).__name__} can't make one tensor: {short_repr(x)} stands "
            "among strings; give str or bytes everywhere."
        )
    try:
        return x.encode()
    except UnicodeEncodeError:
        raise InvalidArgumentError(
            f"{short_repr(x)} has half of a surrogate pair, which UTF-8 can't hold; give bytes, such as "
            "os.fsencode(name) of a file's name."
        ) from None
