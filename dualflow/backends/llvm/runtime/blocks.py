"""Memory of large outputs, kept when they are freed: the system need not zero its pages again.

``blocks.ll`` is a policy of memory in NumPy's sense (NEP 49). Arrays that are made with it remember it, so
NumPy gives their memory back to it whenever they end. What is kept stays within ``MOST_KEPT`` bytes, and the
system may take it where memory is short.
"""

from __future__ import annotations

import ctypes
import functools
import struct
import sys
from typing import Final

from dualflow.backends.llvm.runtime import immortal, jit, numpy_api
from dualflow.backends.runtime import switches
from dualflow.core.locks import unforkable

LARGE: Final = 64 << 10
"""Arrays of as many bytes have kept memory: for smaller ones faults are few."""
MOST_KEPT: Final = 256 << 20
"""So many bytes are kept at most, of 32 blocks."""

_C = ("posix_memalign", "madvise", "malloc", "calloc", "realloc", "free")
_NUMPY = ("PyArray_Empty", "PyDataMem_GetHandler", "PyDataMem_SetHandler")
_POLICY = ("df_block_malloc", "df_block_calloc", "df_block_realloc", "df_block_free")
_BLOCKS_BYTES, _HANDLER_BYTES = 552, 168
_BLOCKS = "<iiqq512xQQ"
_HANDLER = "<127sB5Q"
_CAPSULE_NAME = ctypes.c_char_p(b"mem_handler")

_new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)
_keep_for_good = ctypes.PYFUNCTYPE(None, ctypes.py_object)(("Py_IncRef", ctypes.pythonapi))
_made: list[jit.Library] = []


def maker() -> int:
    """The address of what makes arrays in kept memory, called as PyArray_Empty is; 0 where none is kept."""
    return 0 if unavailable_reason() else library().address("df_block_empty")


def library() -> jit.Library:
    """The code of the policy, which lasts as long as the process: arrays may."""
    with unforkable():
        if not _made:
            _made.append(_make())
        return _made[0]


@functools.cache
def unavailable_reason() -> str:
    """Why memory is not kept in this process; the empty string where it is."""
    if switched_off := switches.off("blocks"):
        return switched_off
    if sys.platform != "linux":
        return "it is for Linux"
    if not numpy_api.table() or not all(map(jit.process_symbol, _C)):
        return "NumPy or C have no such functions"
    return ""


def _make() -> jit.Library:
    functions = numpy_api.table()
    blocks = immortal.zeroed(_BLOCKS_BYTES, 64)
    handler = immortal.zeroed(_HANDLER_BYTES, 64)
    symbols = {name: jit.process_symbol(name) for name in _C} | {"df_blocks": blocks}
    symbols |= {
        name: functions[name] for name in ("PyArray_Empty", "PyDataMem_GetHandler", "PyDataMem_SetHandler")
    }
    symbols["Py_DecRef"] = ctypes.cast(ctypes.pythonapi.Py_DecRef, ctypes.c_void_p).value or 0
    code = jit.compile_text(jit.shipped_text("blocks.ll"), ["df_block_empty", *_POLICY], symbols)
    policy = struct.pack(_HANDLER, b"dualflow", 1, blocks, *map(code.address, _POLICY))
    ctypes.memmove(handler, policy, len(policy))
    capsule = _new_capsule(handler, _CAPSULE_NAME, None)
    _keep_for_good(capsule)
    usual = ctypes.c_size_t.from_address(functions["PyDataMem_DefaultHandler"]).value
    state = struct.pack(_BLOCKS, 0, 0, 0, MOST_KEPT, id(capsule), usual)
    ctypes.memmove(blocks, state, len(state))
    return code
