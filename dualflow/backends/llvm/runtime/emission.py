"""Machine code of several modules at once: LLVM works without the interpreter's lock, on threads of ours.

Modules that have nothing in common, each with a code generator of its own, may be compiled side by side.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Sequence
from queue import SimpleQueue
from typing import NamedTuple

from dualflow.backends.llvm.runtime.llvm_library import ParsedModule, Target

MOST_THREADS = 8
"""More would wait for what they share: memory and the parser."""


class EmittedObject(NamedTuple):
    """Object code, and the milliseconds that it took."""

    code: bytes
    milliseconds: float


def threads_for(modules: int) -> int:
    """How many threads so many modules are worth."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(modules, processors, MOST_THREADS))


def emit_all(modules: Iterable[ParsedModule], targets: Sequence[Target]) -> list[EmittedObject]:
    """The object code of each module, as many at a time as there are targets.

    ``modules`` is walked by this thread, while the others are at work; each is closed once it is compiled.
    Raises RuntimeError for what LLVM can't compile, and what the walk raises.
    """
    pending: SimpleQueue[tuple[int, ParsedModule] | None] = SimpleQueue()
    found: dict[int, EmittedObject | Exception] = {}

    def work(target: Target) -> None:
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


def _emit(target: Target, module: ParsedModule) -> EmittedObject:
    start = time.perf_counter()
    try:
        code = target.emit(module)
    finally:
        module.close()
    return EmittedObject(code, 1e3 * (time.perf_counter() - start))
