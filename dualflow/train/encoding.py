"""The encoding of arrays in a safetensors file, which lacks some dtypes.

================  ==============================================================
dtype             in the file
================  ==============================================================
complex128        float64, with a last axis of two: real and imaginary part
float8_e5m2       uint8, the bits
float8_e4m3fn     uint8, the bits
string            ``NAME``: uint8, the bytes of all strings one after another;
                  ``NAME:lengths``: int64, the number of bytes of each, in the array's shape
every other       unchanged
================  ==============================================================

The checkpoint's index has each array's own dtype and shape.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

Array = np.ndarray[Any, Any]
_AS_BITS: Final = {"float8_e5m2", "float8_e4m3fn"}


def encoded(name: str, array: Array) -> dict[str, Array]:
    """The arrays that encode one array, by name; C-contiguous, as safetensors requires."""
    if array.dtype.hasobject:
        lengths = np.array([len(text) for text in array.flat], np.int64).reshape(array.shape)
        return {name: np.frombuffer(b"".join(array.flat), np.uint8), f"{name}:lengths": lengths}
    array = np.ascontiguousarray(array).reshape(array.shape)
    dtype_name = array.dtype.name
    if dtype_name == "complex128":
        return {name: array.reshape(-1).view(np.float64).reshape(*array.shape, 2)}
    if dtype_name in _AS_BITS:
        return {name: array.view(np.uint8)}
    return {name: array}


def decoded(get: Callable[[str], Array], name: str, dtype: np.dtype[Any]) -> Array:
    """The array ``name``, decoded from the stored arrays that ``get`` returns by name."""
    stored = get(name)
    if dtype.hasobject:
        return _strings(stored.tobytes(), get(f"{name}:lengths"))
    if dtype.name == "complex128" and stored.dtype == np.float64 and stored.shape[-1:] == (2,):
        return stored.reshape(-1).view(np.complex128).reshape(stored.shape[:-1])
    if dtype.name in _AS_BITS and stored.dtype == np.uint8:
        return stored.view(dtype)
    return stored


def _strings(content: bytes, lengths: Array) -> Array:
    ends = np.cumsum(lengths.reshape(-1)).tolist()
    strings = np.empty(len(ends), object)
    for i, (start, end) in enumerate(itertools.pairwise([0, *ends])):
        strings[i] = content[start:end]
    return strings.reshape(lengths.shape)


def bytes_of(parts: Mapping[str, Array]) -> list[memoryview]:
    """The bytes of encoded arrays, in the order of their names."""
    return [parts[name].reshape(-1).view(np.uint8).data for name in sorted(parts)]
