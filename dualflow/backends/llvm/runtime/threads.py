"""The thread pool that kernels share, and the address of its parallel-for.

The parallel-for is machine code, in ``pool.ll``. Its workers start at the first loop that is long enough,
never at import; after a fork the child starts its own the same way. On unsupported platforms (other than
Linux on x86-64 and AArch64) every loop runs on the calling thread, and ``status()`` reports it.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys

from dualflow.backends.llvm.runtime import immortal, jit
from dualflow.backends.llvm.runtime.ir_source import QUICKLY_COMPILED, IrSource
from dualflow.backends.runtime import thread_count
from dualflow.backends.runtime.thread_count import MAX_THREADS as MAX_THREADS
from dualflow.backends.runtime.thread_count import available as available
from dualflow.backends.runtime.thread_count import max_threads as max_threads
from dualflow.backends.runtime.thread_count import unavailable_reason as unavailable_reason
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.library_functions import function_address
from dualflow.core.locks import unforkable
from dualflow.core.records import NamedTuple

_POOL_BYTES = 4096
_ALIGNMENT = 128

# Byte offsets of fields of %pool.
_LIMIT = 640
_RUNNING = 648

_MACHINES = {
    "x86_64": """
        declare void @llvm.x86.sse2.pause()
        define internal void @relax() alwaysinline { call void @llvm.x86.sse2.pause() ret void }
        define internal i64 @futex_call() alwaysinline { ret i64 202 }
    """,
    "aarch64": """
        declare void @llvm.aarch64.hint(i32)
        define internal void @relax() alwaysinline { call void @llvm.aarch64.hint(i32 1) ret void }
        define internal i64 @futex_call() alwaysinline { ret i64 98 }
    """,
}
_ELSEWHERE = """
    define internal void @relax() alwaysinline { ret void }
    define internal i64 @futex_call() alwaysinline { ret i64 0 }
"""
_SYSTEM_CALLS = (
    "syscall",
    "sched_yield",
    "prctl",
    "pthread_create",
    "pthread_attr_init",
    "pthread_attr_setdetachstate",
    "pthread_attr_setstacksize",
    "pthread_attr_destroy",
    "pthread_sigmask",
    "sigfillset",
    "sigdelset",
)


class Pool(NamedTuple):
    """A thread pool: its memory, and the address of ``df_pfor(pool, fn, ctx, n, chunk)``."""

    address: int
    pfor: int
    library: jit.Library


class PoolStatus(NamedTuple):
    """The threads of a loop (the caller included), the workers started, and the reason for having none."""

    threads: int
    workers_started: int
    reason: str


def num_thread_indices(threads: int | None) -> int:
    """The number of thread indices in a program that is compiled for ``threads``.

    All programs share the pool, so a parallel loop may run on every thread of the process.
    """
    return 1 if threads == 1 else max(threads or 1, max_threads())


def num_threads() -> int:
    """The threads that a loop may use now, the caller included; fewer if the system could not start some."""
    return _field(_shared[0], _LIMIT).value + 1 if _shared else thread_count.num_threads()


def set_num_threads(count: int) -> None:
    """Set the number of threads of a loop, the caller included; 1 makes every loop serial.

    Raises:
        InvalidArgumentError: ``count`` is less than 1 or more than ``max_threads()``.
    """
    if not 1 <= count <= max_threads():
        more = f"set DUALFLOW_NUM_THREADS (at most {MAX_THREADS}) before it starts to have more"
        raise InvalidArgumentError(
            f"can't use {count} threads: this process has from 1 to {max_threads()}; "
            f"{unavailable_reason() or more}"
        )
    with unforkable():
        thread_count.use(count)
        for pool in _shared:
            _field(pool, _LIMIT).value = count - 1


@functools.cache
def pool_source() -> IrSource:
    """The module of the parallel-for."""
    return IrSource(QUICKLY_COMPILED + jit.shipped_text("pool.ll") + _machine(), ("df_pfor",))


@functools.cache
def tasks_source() -> IrSource:
    """The module that runs the tasks of a region on the threads of a pool."""
    return IrSource(QUICKLY_COMPILED + jit.shipped_text("tasks.ll") + _machine(), ("df_run_tasks",))


def _machine() -> str:
    """The functions of ``pool.ll`` and ``tasks.ll`` that depend on the processor."""
    return _MACHINES[os.uname().machine] if available() else _ELSEWHERE


def pool(background: jit.Compilation | None = None) -> Pool:
    """The pool of this process, created by the first call; the first parallel loop starts its workers.

    ``background`` may be compiling its code already.
    """
    with unforkable():
        if not _shared:
            _shared.append(create_pool(thread_count.num_threads() - 1, background))
        return _shared[0]


def create_pool(workers: int, background: jit.Compilation | None = None) -> Pool:
    """A new pool with its own workers, which run until the process exits."""
    process = ctypes.CDLL("msvcrt" if sys.platform == "win32" else None)
    abort = function_address(process, "abort")
    # Without workers none of these is called; functions that the platform lacks are bound to abort.
    symbols = {name: function_address(process, name) or abort for name in _SYSTEM_CALLS}
    library = jit.compile_sources([pool_source()], symbols, background)
    pool = Pool(immortal.zeroed(_POOL_BYTES, _ALIGNMENT), library.address("df_pfor"), library)
    _field(pool, _LIMIT).value = min(workers, MAX_THREADS - 1) if available() else 0
    _pools.append(pool)
    return pool


def status() -> PoolStatus:
    """The state of the shared pool.

    >>> status().threads >= 1
    True
    """
    started = _field(_shared[0], _RUNNING).value if _shared else 0
    alone = "the limit is one thread" if num_threads() == 1 else ""
    return PoolStatus(num_threads(), started, unavailable_reason() or alone)


def _field(pool: Pool, offset: int) -> ctypes.c_int64:
    return ctypes.c_int64.from_address(pool.address + offset)


def _restart_in_child() -> None:
    """Reset the pools in a forked child, which has no workers and no owner of the lock."""
    for pool in _pools:
        limit = _field(pool, _LIMIT).value
        ctypes.memset(pool.address, 0, _POOL_BYTES)
        _field(pool, _LIMIT).value = limit


_pools: list[Pool] = []
_shared: list[Pool] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_restart_in_child)
