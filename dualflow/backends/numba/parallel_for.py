"""A parallel for over a kernel's range: each thread, and the caller, takes the next chunk from a queue.

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


class _ThreadPool:
    """The thread pool of this process, which is created at its first use."""

    def __init__(self) -> None:
        self.lock = SharedLock()
        self.threads: ThreadPoolExecutor | None = None
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._drop_in_child)

    def _drop_in_child(self) -> None:
        """Drop the pool in a forked child, which has none of its parent's threads."""
        self.threads = None

    def executor(self) -> ThreadPoolExecutor:
        with self.lock.lock:
            if self.threads is None:
                self.threads = ThreadPoolExecutor(max(thread_count.max_threads() - 1, 1), "dualflow-numba")
            return self.threads


_pool: Final = _ThreadPool()


def _num_helpers(chunks: int, most: int | None) -> int:
    """The number of threads to start for ``chunks`` chunks, if at most ``most`` threads may work."""
    return min(thread_count.num_threads(), chunks, chunks if most is None else most) - 1


def parallel_for(kernel: Callable[..., None], most: int | None = None) -> Callable[..., None]:
    """A function ``run(total, chunk, *arguments)`` that runs ``kernel`` in chunks, on several threads.

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

        futures = deque[Future[None]]()
        # If no thread can be started, or Python is shutting down, the caller runs the remaining chunks.
        with suppress(RuntimeError):
            futures.extend(_pool.executor().submit(work) for _ in range(_num_helpers(len(begins), most)))
        try:
            work()
        finally:
            begins.clear()
            for future in futures:
                if not future.cancel():
                    future.result()

    return run
