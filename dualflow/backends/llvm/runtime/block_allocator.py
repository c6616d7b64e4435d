"""An allocator for large outputs that caches freed blocks, so that the system need not zero new pages.

``blocks.ll`` is a memory handler of NumPy (NEP 49). An array stores the handler that it was allocated with,
and NumPy returns its memory to that handler. The cache has at most ``MAX_CACHED_BYTES``, which the system may
reclaim when it is short of memory.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import math
import struct
import sys
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from dualflow.backends.llvm.runtime import immortal, jit, numpy_api
from dualflow.backends.llvm.runtime.ir_source import QUICKLY_COMPILED
from dualflow.backends.runtime import switches
from dualflow.core.library_functions import function_address
from dualflow.core.locks import unforkable
from dualflow.core.numpy_warnings import quiet, set_for_kernels

LARGE: Final = 64 << 10
"""The size in bytes from which an array uses the allocator: smaller ones cause few page faults."""
MAX_CACHED_BYTES: Final = 256 << 20
"""The maximum size of the cache, which has 32 blocks at most."""

MIN_ARRAYS: Final = 50
"""The number of large arrays after which :func:`empty` compiles the allocator's code, in some 10 ms."""

_C = ("posix_memalign", "madvise", "malloc", "calloc", "realloc", "free")
_NUMPY = ("PyArray_Empty", "PyDataMem_GetHandler", "PyDataMem_SetHandler")
_HANDLER_FUNCTIONS = ("df_block_malloc", "df_block_calloc", "df_block_realloc", "df_block_free")
_BLOCKS_BYTES, _HANDLER_BYTES = 552, 168
_BLOCKS = "<iiqq512xQQ"
_HANDLER = "<127sB5Q"
_CAPSULE_NAME = ctypes.c_char_p(b"mem_handler")

_new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)
_make_immortal = ctypes.PYFUNCTYPE(None, ctypes.py_object)(("Py_IncRef", ctypes.pythonapi))
_libraries: list[jit.Library] = []
_arrays = itertools.count(1)


def allocator() -> int:
    """The address of a function like PyArray_Empty that uses the allocator; 0 if it is unavailable."""
    return 0 if unavailable_reason() else library().address("df_block_empty")


def empty(shape: Sequence[int], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """An uninitialized array, which uses the allocator if it is large and the allocator's code is compiled.

    Large arrays make that pay after :data:`MIN_ARRAYS` of them.
    """
    if math.prod(shape) * dtype.itemsize < LARGE:
        return np.empty(shape, dtype)
    if not _libraries and (next(_arrays) <= MIN_ARRAYS or not allocator()):
        return np.empty(shape, dtype)
    return quiet().run(np.empty, shape, dtype)


def library() -> jit.Library:
    """The code of the memory handler. It is never freed, since arrays refer to it."""
    with unforkable():
        if not _libraries:
            _libraries.append(_install())
        return _libraries[0]


@functools.cache
def unavailable_reason() -> str:
    """The reason that freed blocks are not cached; the empty string if they are."""
    if switched_off := switches.off("blocks"):
        return switched_off
    if sys.platform != "linux":
        return "it requires Linux"
    if not numpy_api.table() or not all(map(jit.process_symbol, _C)):
        return "NumPy or C lack functions that it calls"
    return ""


def _install() -> jit.Library:
    functions = numpy_api.table()
    state_address = immortal.zeroed(_BLOCKS_BYTES, 64)
    handler = immortal.zeroed(_HANDLER_BYTES, 64)
    symbols = {name: jit.process_symbol(name) for name in _C} | {"df_blocks": state_address}
    symbols |= {name: functions[name] for name in _NUMPY}
    symbols["Py_DecRef"] = function_address(ctypes.pythonapi, "Py_DecRef")
    text = QUICKLY_COMPILED + jit.shipped_text("blocks.ll")
    code = jit.compile_text(text, ["df_block_empty", *_HANDLER_FUNCTIONS], symbols)
    handler_record = struct.pack(
        _HANDLER, b"dualflow", 1, state_address, *map(code.address, _HANDLER_FUNCTIONS)
    )
    ctypes.memmove(handler, handler_record, len(handler_record))
    capsule = _new_capsule(handler, _CAPSULE_NAME, None)
    _make_immortal(capsule)
    default = ctypes.c_size_t.from_address(functions["PyDataMem_DefaultHandler"]).value
    initial = struct.pack(_BLOCKS, 0, 0, 0, MAX_CACHED_BYTES, id(capsule), default)
    ctypes.memmove(state_address, initial, len(initial))
    set_handler = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(functions["PyDataMem_SetHandler"])
    set_for_kernels(set_handler, capsule)
    return code
