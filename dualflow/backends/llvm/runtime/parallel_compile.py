"""Compiles several modules in parallel: LLVM runs without the GIL, on threads of this module.

Modules in separate contexts, each with its own code generator, can be compiled concurrently.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from queue import Empty, SimpleQueue
from typing import Self

from dualflow.core.records import NamedTuple

MAX_THREADS = 8
"""The maximum number of threads: more would compete for memory bandwidth and the parser."""


class ObjectCode(NamedTuple):
    """Object code, and the milliseconds of each stage."""

    code: bytes
    parse_ms: float
    optimise_ms: float
    emit_ms: float


Compile = Callable[[str], ObjectCode]
"""Compiles a module of IR text."""


def threads_for(modules: int) -> int:
    """The number of threads for a number of modules."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(modules, processors, MAX_THREADS))


class CompileQueue:
    """A queue of modules that worker threads compile while the caller adds more.

    The caller's thread compiles too once it calls ``results``, all modules if the system refuses threads.

    Args:
        new_compiler: returns a context with a function that compiles, for each thread.
        threads: the maximum number of threads, the caller's included.
    """

    def __init__(self, new_compiler: Callable[[], AbstractContextManager[Compile]], threads: int) -> None:
        self._new_compiler, self._threads = new_compiler, threads
        self._pending: SimpleQueue[tuple[int, str] | None] = SimpleQueue()
        self._results: dict[int, ObjectCode | Exception] = {}
        self._workers: list[threading.Thread] = []
        self._count = 0

    def add(self, text: str) -> None:
        """Start to compile a module."""
        self._pending.put((self._count, text))
        self._count += 1
        if len(self._workers) < self._threads - 1:
            worker = threading.Thread(target=self._work, daemon=True)
            try:
                worker.start()
            except RuntimeError:  # the system refuses more threads
                self._threads = 1
            else:
                self._workers.append(worker)

    def results(self) -> list[ObjectCode]:
        """The code of the modules, in the order in which they were added.

        Raises the error of the first module that can't be compiled.
        """
        for _ in range(len(self._workers) + 1):
            self._pending.put(None)
        self._work()
        self._join()
        results = [self._results[number] for number in range(self._count)]
        for result in results:
            if isinstance(result, Exception):
                raise result
        return [result for result in results if isinstance(result, ObjectCode)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        """Discard pending modules, and join all threads."""
        with contextlib.suppress(Empty):
            while True:
                self._pending.get_nowait()
        for _ in self._workers:
            self._pending.put(None)
        self._join()

    def _join(self) -> None:
        for worker in self._workers:
            worker.join()
        self._workers.clear()

    def _work(self) -> None:
        compiles: Compile | None = None
        with contextlib.ExitStack() as stack:
            while (job := self._pending.get()) is not None:
                number, text = job
                try:
                    compiles = compiles or stack.enter_context(self._new_compiler())
                    self._results[number] = compiles(text)
                except Exception as error:
                    self._results[number] = error
