"""Machine code of several modules at once: LLVM works without the interpreter's lock, on threads of ours.

Modules that have nothing in common, each with a code generator of its own, may be compiled side by side.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Self

from dualflow.backends.llvm.runtime.llvm_library import ParsedModule, Target
from dualflow.core.records import NamedTuple

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


class Emission:
    """The object code of modules that come one after another, made while more of them are prepared.

    The thread that puts modules works too once it asks for the ``results``. Modules that are put are closed.

    Args:
        new_target: a code generator for each thread.
        threads: how many may work, that of the caller included.
    """

    def __init__(self, new_target: Callable[[], Target], threads: int) -> None:
        self._new_target, self._threads = new_target, threads
        self._pending: SimpleQueue[tuple[int, ParsedModule] | None] = SimpleQueue()
        self._found: dict[int, EmittedObject | Exception] = {}
        self._helpers: list[threading.Thread] = []
        self._count = 0

    def put(self, module: ParsedModule) -> None:
        """Have one more module compiled; it is closed then."""
        self._pending.put((self._count, module))
        self._count += 1
        if len(self._helpers) < self._threads - 1:
            helper = threading.Thread(target=self._work, args=(self._new_target(),), daemon=True)
            helper.start()
            self._helpers.append(helper)

    def results(self) -> list[EmittedObject]:
        """The object code of each module, in order. Raises RuntimeError for what LLVM can't compile."""
        for _ in range(len(self._helpers) + 1):
            self._pending.put(None)
        if self._count:
            self._work(self._new_target())
        self._join()
        made = [self._found[number] for number in range(self._count)]
        for result in made:
            if isinstance(result, Exception):
                raise result
        return [result for result in made if isinstance(result, EmittedObject)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        """Leave out what no thread has begun with; no thread is left."""
        with contextlib.suppress(Empty):
            while True:
                job = self._pending.get_nowait()
                if job is not None:
                    job[1].close()
        for _ in self._helpers:
            self._pending.put(None)
        self._join()

    def _join(self) -> None:
        for helper in self._helpers:
            helper.join()
        self._helpers.clear()

    def _work(self, target: Target) -> None:
        while (job := self._pending.get()) is not None:
            number, module = job
            try:
                self._found[number] = _emit(target, module)
            except Exception as error:
                self._found[number] = error


def _emit(target: Target, module: ParsedModule) -> EmittedObject:
    start = time.perf_counter()
    try:
        code = target.emit(module)
    finally:
        module.close()
    return EmittedObject(code, 1e3 * (time.perf_counter() - start))
