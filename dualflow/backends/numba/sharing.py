"""A kernel's range shared between threads: each thread, and the caller, takes the next chunk from a queue.

The threads are Python's, and kernels run without the GIL. The threads of Numba's ``prange`` are not used:
their code takes several times as long to compile as the kernel, and they end the process if two threads, or a
forked child, use them.
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
    """The thread pool of this process, created at first use."""

    def __init__(self) -> None:
        self.lock = SharedLock()
        self.pool: ThreadPoolExecutor | None = None
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        """Drop the pool in a forked child, which has none of its parent's threads."""
        self.pool = None

    def helpers(self) -> ThreadPoolExecutor:
        with self.lock.lock:
            if self.pool is None:
                self.pool = ThreadPoolExecutor(max(thread_count.max_threads() - 1, 1), "dualflow-numba")
            return self.pool


_team: Final = _Team()


def _helpers(chunks: int, most: int | None) -> int:
    """The number of threads to start for ``chunks`` chunks, if at most ``most`` threads may work."""
    return min(thread_count.num_threads(), chunks, chunks if most is None else most) - 1


def shared(kernel: Callable[..., None], most: int | None = None) -> Callable[..., None]:
    """A function of a range's length, a chunk's length, and the remaining arguments of ``kernel``.

    Chunks are the same for any number of threads, of which there are at most ``most``.
    """

    def run(total: int, chunk: int, *arguments: Any) -> None:
        begins = deque(range(0, total, chunk))

        def work() -> None:
            while True:
                try:
                    begin = begins.popleft()
                except IndexError:
                    return
                kernel(begin, min(begin + chunk, total), *arguments)

        helping = deque[Future[None]]()
        # If no thread can be started, or Python is shutting down, the caller runs the remaining chunks.
        with suppress(RuntimeError):
            helping.extend(_team.helpers().submit(work) for _ in range(_helpers(len(begins), most)))
        try:
            work()
        finally:
            begins.clear()
            for help in helping:
                if not help.cancel():
                    help.result()

    return run
