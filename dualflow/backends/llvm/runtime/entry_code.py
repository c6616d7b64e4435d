"""The machine code of the C fast call."""

from __future__ import annotations

import ctypes
import functools

import numpy as np

from dualflow.backends.llvm.runtime import jit
from dualflow.core.library_functions import function_address

_C_API = (
    "PyType_GenericAlloc",
    "PyTuple_New",
    "PyLong_FromLongLong",
    "PyLong_FromUnsignedLong",
    "PyObject_Vectorcall",
    "PyObject_CallOneArg",
    "PyErr_Fetch",
    "PyErr_Clear",
    "PyErr_Restore",
    "PyMem_RawMalloc",
    "PyMem_RawFree",
    "Py_IncRef",
    "Py_DecRef",
    "PyEval_SaveThread",
    "PyEval_RestoreThread",
    "PyThread_get_thread_ident",
)


@functools.cache
def library(tuple_items: int, array_empty: int) -> jit.Library:
    """The code, which exports ``df_entry``; compiled, or loaded from the disk.

    Args:
        tuple_items: the offset of the first item of a tuple.
        array_empty: the address of ``PyArray_Empty``.
    """
    symbols = {name: function_address(ctypes.pythonapi, name) for name in _C_API}
    symbols |= {
        "PyArray_Empty": array_empty,
        "PyArray_Type": id(np.ndarray),
        "_Py_NoneStruct": id(None),
    }
    return jit.compile_text(_text(tuple_items), ["df_entry"], symbols)


def _text(tuple_items: int) -> str:
    parameters = _PARAMETERS.format(tuple_items=tuple_items)
    return jit.shipped_text("entry.ll") + jit.shipped_text("match.ll") + parameters


_PARAMETERS = """
define internal i64 @tuple_items() alwaysinline {{ ret i64 {tuple_items} }}
"""
