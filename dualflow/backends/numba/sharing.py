"""A kernel's range shared between threads: whoever is awake claims the next chunk, the caller too.

The threads are Python's, and kernels run without the GIL. Numba's own threads, which ``prange`` uses, stay
out of it: code for them takes several times as long to compile as the kernel itself, and they end the process
where two threads or a forked child come to them.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final

from dualflow.backends.runtime import thread_count
from dualflow.core.locks import SharedLock


class _Team:
    """The threads of this process that help callers, made when they are first needed."""

    def __init__(self) -> None:
        self.lock = SharedLock()
        self.pool: ThreadPoolExecutor | None = None
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        """A forked child has none of its parent's threads."""
        self.pool = None

    def helpers(self) -> ThreadPoolExecutor:
        with self.lock.lock:
            if self.pool is None:
                self.pool = ThreadPoolExecutor(max(thread_count.max_threads() - 1, 1), "dualflow-numba")
            return self.pool


_team: Final = _Team()


def _helpers(chunks: int, most: int | None) -> int:
    """How many threads are to help a caller with so many chunks, where at most ``most`` are to work."""
    return min(thread_count.num_threads(), chunks, chunks if most is None else most) - 1


def shared(kernel: Callable[..., None], most: int | None = None) -> Callable[..., None]:
    """A function of a range's length, a chunk's, and the rest that ``kernel`` takes behind its range.

    Chunks are the same for any number of threads, of which there are at most ``most``.
    """

    def run(total: int, chunk: int, *given: Any) -> None:
        waiting = deque(range(0, total, chunk))

        def work() -> None:
            while True:
                try:
                    begin = waiting.popleft()
                except IndexError:
                    return
                kernel(begin, min(begin + chunk, total), *given)

        helping = deque[Future[None]]()
        # Where no thread can be started, or Python is ending, the caller does what is left.
        with suppress(RuntimeError):
            helping.extend(_team.helpers().submit(work) for _ in range(_helpers(len(waiting), most)))
        try:
            work()
        finally:
            waiting.clear()
            for help in helping:
                if not help.cancel():
                    help.result()

    return run
