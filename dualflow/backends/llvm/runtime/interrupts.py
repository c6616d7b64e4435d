"""Ctrl-C in a long loop: from time to time native code asks Python whether a signal has come.

A signal's handler runs in the interpreter, so a loop that never enters it could not be stopped. Asking takes
the GIL, so it is done by the clock: after some 50 ms, which a loop looks at every few iterations.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Mapping
from typing import Final

from dualflow.backends.llvm.text import I32, I64, PTR, VOID, Builder, EmittedValue, LlvmModule

ROUTINE: Final = "ask_python"
_CYCLES = 1 << 27
_CALLS = {
    "PyGILState_Ensure": (I32, ()),
    "PyErr_CheckSignals": (I32, ()),
    "PyGILState_Release": (VOID, (I32,)),
}


@functools.cache
def addresses() -> Mapping[str, int]:
    """Where the functions of CPython are that the code calls."""
    found = {name: ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value for name in _CALLS}
    return {name: address or 0 for name, address in found.items()}


def clock(b: Builder) -> EmittedValue:
    """The memory in which a loop keeps when it last asked; call it before the loop."""
    last = b.alloca(I64, 1)
    b.store(_cycles(b), last, 0)
    return last


def ask(
    module: LlvmModule, b: Builder, last: EmittedValue, status: EmittedValue, number: EmittedValue
) -> None:
    """Look at the clock, and ask if it is time: the status says whether to stop.

    It is ``-number`` then, and Python's error is set.
    """
    b.call(_routine(module), [last, status, -number])


def _cycles(b: Builder) -> EmittedValue:
    return b.call(b.symbols.declare("llvm.readcyclecounter", I64, (), ""))


def _routine(module: LlvmModule) -> str:
    """The name of ``void ask(last, status, stopped)``, written at the first call."""
    if module.has(ROUTINE):
        return ROUTINE
    function = module.function(
        ROUTINE, VOID, [("last", PTR), ("status", PTR), ("stopped", I64)], "noinline cold", internal=True
    )
    b = function.builder
    last, status, stopped = function.args
    now = _cycles(b)
    with b.if_then((now - b.load(last, 0, I64)) > _CYCLES):
        for called, (ret, arguments) in _CALLS.items():
            module.declare(called, ret, arguments)
        state = b.call("PyGILState_Ensure")
        with b.if_then(b.call("PyErr_CheckSignals").ne(0)):
            b.store(stopped, status, 0)
        b.call("PyGILState_Release", [state])
        b.store(_cycles(b), last, 0)
    b.ret()
    return ROUTINE
