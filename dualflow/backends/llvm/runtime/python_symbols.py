"""The functions of CPython that compiled code calls."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Mapping
from typing import Final

from dualflow.core.library_functions import function_address

NAMES: Final = ("PyGILState_Ensure", "PyErr_CheckSignals", "PyGILState_Release")


@functools.cache
def addresses() -> Mapping[str, int]:
    """The addresses of the functions, by name."""
    return {name: function_address(ctypes.pythonapi, name) for name in NAMES}
