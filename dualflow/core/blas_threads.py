"""A context manager that limits the number of threads of NumPy's BLAS.

The threads of a BLAS busy-wait between parts of a routine. For a matrix that one thread factors in a
millisecond they gain little, and cost much if other threads need the processors. OpenBLAS has one thread
count for the whole process.
"""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

from dualflow.core import blas
from dualflow.core.locks import SharedLock

ALONE: Final = 512 * 512
"""The number of matrix elements below which routines run on the calling thread only."""

_MAX_SINGLE_THREADED: Final = 64 * 64
"""The number of matrix elements up to which no BLAS starts threads."""


def for_matrices(elements: int) -> AbstractContextManager[Any]:
    """A context manager that limits NumPy's BLAS to one thread if more don't pay for so few ``elements``.

    Calls by other threads are limited
    too meanwhile. The end of the last such block restores the number.
    """
    if _MAX_SINGLE_THREADED < elements < ALONE and _thread_functions() is not None:
        return OneThread()
    return nullcontext()


class OneThread:
    """``with OneThread():`` limits NumPy's BLAS, whose number of threads must be settable, to one thread."""

    __slots__ = ("_inside",)

    def __init__(self) -> None:
        self._inside = False

    def __enter__(self) -> None:
        with _lock.lock:
            self._inside = True
            _limit.enter()

    def __exit__(self, *exc: object) -> None:
        with _lock.lock:
            if self._inside:
                self._inside = False
                _limit.leave()

    def __del__(self) -> None:  # if a signal handler has raised before __exit__
        if self._inside:
            self.__exit__()


class _Limit:
    """The number of open blocks, and the number of threads before the first."""

    def __init__(self) -> None:
        self._blocks = 0
        self._before = 1

    def enter(self) -> None:
        if self._blocks == 0:
            self._before = _get()
        self._blocks += 1
        if self._blocks == 1 and self._before > 1:
            _set(1)

    def leave(self) -> None:
        if self._blocks == 1:
            self._restore()
        self._blocks = max(self._blocks - 1, 0)

    def free_in_child(self) -> None:
        """Restore the number in a forked child: threads with open blocks exist in the parent only."""
        if self._blocks:
            self._restore()
            self._blocks = 0

    def _restore(self) -> None:
        if self._before > 1 and _get() == 1:  # otherwise other code has set it meanwhile
            _set(self._before)


@functools.cache
def _thread_functions() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    """The functions that read and set the number of threads; None if BLAS lacks them."""
    library = blas.find()
    if library is None or not library.set_num_threads or not library.get_num_threads:
        return None
    return (
        ctypes.PYFUNCTYPE(ctypes.c_int)(library.get_num_threads),
        ctypes.PYFUNCTYPE(None, ctypes.c_int)(library.set_num_threads),
    )


def _get() -> int:
    functions = _thread_functions()
    assert functions is not None, "blocks exist only if BLAS has the functions"
    return functions[0]()


def _set(count: int) -> None:
    functions = _thread_functions()
    assert functions is not None, "blocks exist only if BLAS has the functions"
    functions[1](count)


_lock: Final = SharedLock()
_limit: Final = _Limit()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_limit.free_in_child)
