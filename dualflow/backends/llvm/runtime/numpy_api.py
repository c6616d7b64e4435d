"""The addresses of functions of NumPy's C API."""

from __future__ import annotations

import ctypes
import functools
import sys
from typing import Final

import numpy as np

# Indices into NumPy's C API table, which its ABI fixes, and the ABI's number.
_API_VERSION, _API_ARRAY_TYPE = 0, 2
_FUNCTIONS: Final = {
    "PyArray_Empty": 184,
    "PyDataMem_SetHandler": 304,
    "PyDataMem_GetHandler": 305,
    "PyDataMem_DefaultHandler": 306,
}
_NUMPY_ABI = 0x2000000

_capsule_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


@functools.cache
def table() -> dict[str, int]:
    """The addresses of the functions that are used, and of the variable with the default memory handler.

    It is empty if NumPy's C API has another version.
    """
    capsule = getattr(sys.modules.get("numpy._core._multiarray_umath"), "_ARRAY_API", None)
    if capsule is None:
        return {}
    entries = (ctypes.c_void_p * (max(_FUNCTIONS.values()) + 1)).from_address(_capsule_pointer(capsule, None))
    version = entries[_API_VERSION] or 0
    if entries[_API_ARRAY_TYPE] != id(np.ndarray) or ctypes.CFUNCTYPE(ctypes.c_uint)(version)() != _NUMPY_ABI:
        return {}
    return {name: entries[i] or 0 for name, i in _FUNCTIONS.items()}
