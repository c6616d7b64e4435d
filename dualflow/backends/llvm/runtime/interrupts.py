"""Polls for signals in long loops of native code, so that Ctrl-C stops them.

Python runs signal handlers in the interpreter only. A poll acquires the GIL, so it is limited by time: a loop
reads the cycle counter every few iterations, and polls after some 50 ms.
"""

from __future__ import annotations

from typing import Final

from dualflow.backends.llvm.runtime import python_symbols
from dualflow.backends.llvm.text import I32, I64, PTR, VOID, Builder, EmittedValue, LlvmModule

ROUTINE: Final = "poll_signals"
_CYCLES = 1 << 27
_CALLS = dict(zip(python_symbols.NAMES, ((I32, ()), (I32, ()), (VOID, (I32,))), strict=True))


def start_timer(b: Builder) -> EmittedValue:
    """Stack memory with the cycle count of a loop's last poll; emitted before the loop."""
    last = b.alloca(I64, 1)
    b.store(_cycles(b), last, 0)
    return last


def poll_signals(
    module: LlvmModule, b: Builder, last: EmittedValue, status: EmittedValue, number: EmittedValue
) -> None:
    """Read the cycle counter, and poll for signals if the interval is over.

    If a signal handler raised, the status becomes ``-number`` and Python's error is set.
    """
    b.call(_routine(module), [last, status, -number])


def _cycles(b: Builder) -> EmittedValue:
    return b.call(b.symbols.declare("llvm.readcyclecounter", I64, (), ""))


def _routine(module: LlvmModule) -> str:
    """The name of ``void poll_signals(last, status, stopped)``, emitted at the first call."""
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
