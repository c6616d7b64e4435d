"""The addresses of functions of C libraries, for machine code to call."""

from __future__ import annotations

import ctypes


def function_address(library: ctypes.CDLL, name: str) -> int:
    """The address of a function of a loaded library; 0 if the library has none of this name.

    >>> function_address(ctypes.pythonapi, "PyErr_CheckSignals") > 0
    True
    >>> function_address(ctypes.pythonapi, "no_such_function")
    0
    """
    try:
        return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
    except AttributeError:
        return 0
