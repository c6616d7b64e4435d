"""Compiles several modules in parallel: LLVM runs without the GIL, on threads of this module.

Modules in separate contexts, each with its own code generator, can be compiled concurrently.
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

MAX_THREADS = 8
"""The maximum number of threads: more would compete for memory bandwidth and the parser."""


class EmittedObject(NamedTuple):
    """Object code, and the milliseconds that code generation took."""

    code: bytes
    milliseconds: float


def threads_for(modules: int) -> int:
    """The number of threads for a number of modules."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(modules, processors, MAX_THREADS))


class CompileQueue:
    """A queue of modules that worker threads compile while the caller adds more.

    The caller's thread compiles too once it calls ``results``. Each module is closed after its compilation.

    Args:
        new_target: returns a code generator, for each thread.
        threads: the maximum number of threads, the caller's included.
    """

    def __init__(self, new_target: Callable[[], Target], threads: int) -> None:
        self._new_target, self._threads = new_target, threads
        self._pending: SimpleQueue[tuple[int, ParsedModule] | None] = SimpleQueue()
        self._results: dict[int, EmittedObject | Exception] = {}
        self._workers: list[threading.Thread] = []
        self._count = 0

    def put(self, module: ParsedModule) -> None:
        """Add a module to the queue; it is closed after its compilation."""
        self._pending.put((self._count, module))
        self._count += 1
        if len(self._workers) < self._threads - 1:
            worker = threading.Thread(target=self._work, args=(self._new_target(),), daemon=True)
            worker.start()
            self._workers.append(worker)

    def results(self) -> list[EmittedObject]:
        """The object code of each module, in order.

        Raises:
            RuntimeError: LLVM can't compile one of them.
        """
        for _ in range(len(self._workers) + 1):
            self._pending.put(None)
        if self._count:
            self._work(self._new_target())
        self._join()
        results = [self._results[number] for number in range(self._count)]
        for result in results:
            if isinstance(result, Exception):
                raise result
        return [result for result in results if isinstance(result, EmittedObject)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        """Discard pending modules, and join all threads."""
        with contextlib.suppress(Empty):
            while True:
                job = self._pending.get_nowait()
                if job is not None:
                    job[1].close()
        for _ in self._workers:
            self._pending.put(None)
        self._join()

    def _join(self) -> None:
        for worker in self._workers:
            worker.join()
        self._workers.clear()

    def _work(self, target: Target) -> None:
        while (job := self._pending.get()) is not None:
            number, module = job
            try:
                self._results[number] = _emit(target, module)
            except Exception as error:
                self._results[number] = error


def _emit(target: Target, module: ParsedModule) -> EmittedObject:
    start = time.perf_counter()
    try:
        code = target.emit(module)
    finally:
        module.close()
    return EmittedObject(code, 1e3 * (time.perf_counter() - start))
