"""Machine code of several modules at once: LLVM works without the interpreter's lock, on threads of ours.

llvmlite lets one thread into LLVM at a time, whatever it does there. But modules that have nothing in common,
each with a code generator of its own, may be compiled side by side: so the function that does it is called in
the library that llvmlite has loaded, past that lock.
"""

from __future__ import annotations

import ctypes
import functools
import os
import threading
import time
from collections.abc import Iterable, Sequence
from queue import SimpleQueue
from typing import Any, NamedTuple

import llvmlite.binding as llvm
from llvmlite.utils import get_library_name

MOST_THREADS = 8
"""More would wait for what they share: memory and the parser."""


class EmittedObject(NamedTuple):
    """Object code, and the milliseconds that it took."""

    code: bytes
    milliseconds: float


def threads_for(modules: int) -> int:
    """How many threads so many modules are worth; one where the function can't be called by address."""
    if _library() is None:
        return 1
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(modules, processors, MOST_THREADS))


def emit_all(modules: Iterable[llvm.ModuleRef], targets: Sequence[llvm.TargetMachine]) -> list[EmittedObject]:
    """The object code of each module, as many at a time as there are targets.

    ``modules`` is walked by this thread, while the others are at work. Raises RuntimeError for what LLVM
    can't compile, and what the walk raises.
    """
    pending: SimpleQueue[tuple[int, llvm.ModuleRef] | None] = SimpleQueue()
    found: dict[int, EmittedObject | Exception] = {}

    def work(target: llvm.TargetMachine) -> None:
        while (job := pending.get()) is not None:
            number, module = job
            try:
                found[number] = _emit(target, module)
            except Exception as error:
                found[number] = error

    helpers = [threading.Thread(target=work, args=(target,), daemon=True) for target in targets[1:]]
    started: list[threading.Thread] = []
    try:
        for helper in helpers:
            helper.start()
            started.append(helper)
        for number, module in enumerate(modules):
            pending.put((number, module))
            del module  # where a later one is refused, the error's traceback must hold none
    finally:
        for _ in range(len(started) + 1):
            pending.put(None)
        work(targets[0])
        for helper in started:
            helper.join()
    made = [found[number] for number in range(len(found))]
    for result in made:
        if isinstance(result, Exception):
            raise result
    return [result for result in made if isinstance(result, EmittedObject)]


def _emit(target: llvm.TargetMachine, module: llvm.ModuleRef) -> EmittedObject:
    start = time.perf_counter()
    library = _library()
    if library is None:
        code = target.emit_object(module)
        return EmittedObject(code, 1e3 * (time.perf_counter() - start))
    message = ctypes.c_char_p()
    buffer = library.LLVMPY_TargetMachineEmitToMemory(target, module, 1, ctypes.byref(message))
    if not buffer:
        raise RuntimeError((message.value or b"no reason is given").decode(errors="replace"))
    try:
        size = library.LLVMPY_GetBufferSize(buffer)
        code = ctypes.string_at(library.LLVMPY_GetBufferStart(buffer), size)
    finally:
        library.LLVMPY_DisposeMemoryBuffer(buffer)
    return EmittedObject(code, 1e3 * (time.perf_counter() - start))


@functools.cache
def _library() -> Any:
    """llvmlite's library, with the functions that are called; None where it or one of them isn't found."""
    pointer = ctypes.c_void_p
    types: dict[str, tuple[Any, list[Any]]] = {
        "LLVMPY_TargetMachineEmitToMemory": (pointer, [pointer, pointer, ctypes.c_int, pointer]),
        "LLVMPY_GetBufferStart": (pointer, [pointer]),
        "LLVMPY_GetBufferSize": (ctypes.c_size_t, [pointer]),
        "LLVMPY_DisposeMemoryBuffer": (None, [pointer]),
    }
    try:
        # It is loaded already: this is another name for it.
        library = ctypes.CDLL(os.path.join(os.path.dirname(llvm.__file__), get_library_name()))
        for name, (result, arguments) in types.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError):
        return None
    return library
