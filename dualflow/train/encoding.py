"""How arrays lie in a safetensors file: most as they are, some as an array of another dtype.

================  ==============================================================
dtype             in the file
================  ==============================================================
complex128        float64, with a last axis of two: real and imaginary part
float8_e5m2       uint8, the bits
float8_e4m3fn     uint8, the bits
every other       the dtype itself
================  ==============================================================

The index beside the file has each array's own dtype and shape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

Array = np.ndarray[Any, Any]
_AS_BITS: Final = {"float8_e5m2", "float8_e4m3fn"}


def encoded(name: str, array: Array) -> dict[str, Array]:
    """What the file holds for an array, by name; C-contiguous, which safetensors takes for granted."""
    array = np.ascontiguousarray(array).reshape(array.shape)
    kind = array.dtype.name
    if kind == "complex128":
        return {name: array.reshape(-1).view(np.float64).reshape(*array.shape, 2)}
    if kind in _AS_BITS:
        return {name: array.view(np.uint8)}
    return {name: array}


def decoded(get: Callable[[str], Array], name: str, dtype: np.dtype[Any]) -> Array:
    """The array ``name`` from what ``get`` finds in the file under a name."""
    stored = get(name)
    if dtype.name == "complex128" and stored.dtype == np.float64 and stored.shape[-1:] == (2,):
        return stored.reshape(-1).view(np.complex128).reshape(stored.shape[:-1])
    if dtype.name in _AS_BITS and stored.dtype == np.uint8:
        return stored.view(dtype)
    return stored


def bytes_of(parts: Mapping[str, Array]) -> list[memoryview]:
    """The bytes of encoded arrays, in the order of their names."""
    return [parts[name].reshape(-1).view(np.uint8).data for name in sorted(parts)]
