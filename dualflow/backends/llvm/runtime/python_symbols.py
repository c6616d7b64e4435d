"""The functions of CPython that compiled code calls."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Mapping
from typing import Final

NAMES: Final = ("PyGILState_Ensure", "PyErr_CheckSignals", "PyGILState_Release")


@functools.cache
def addresses() -> Mapping[str, int]:
    """The addresses of the functions, by name."""
    pointers = {name: ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value for name in NAMES}
    return {name: address or 0 for name, address in pointers.items()}
