"""How many threads NumPy's BLAS may use, for a while.

The threads of a BLAS wait awake between two parts of a routine. For a matrix that one thread factors in a
millisecond they gain little, and cost much where other threads want the processors. OpenBLAS has one number
for the whole process.
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
"""Routines for matrices of fewer elements run on the thread that calls them."""

_TINY: Final = 64 * 64
"""For so few elements no BLAS wakes a thread."""


def for_matrices(elements: int) -> AbstractContextManager[Any]:
    """The block in which routines of BLAS are called for matrices of so many elements.

    It limits NumPy's BLAS to one thread if that is enough for such matrices. Other threads' calls of that
    BLAS are limited too meanwhile. When the last such block ends, the number is what it was.
    """
    return OneThread() if _TINY < elements < ALONE and _number() is not None else nullcontext()


class OneThread:
    """``with OneThread():`` NumPy's BLAS, which must have a number of threads to set, has one."""

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

    def __del__(self) -> None:  # where a signal's handler has raised between the two
        if self._inside:
            self.__exit__()


class _Limit:
    """How many blocks are open, and the number of threads that was found by the first."""

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
        """The threads that were in a block have stayed in the parent."""
        if self._blocks:
            self._restore()
            self._blocks = 0

    def _restore(self) -> None:
        if self._before > 1 and _get() == 1:  # else somebody else has set it meanwhile
            _set(self._before)


@functools.cache
def _number() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    """What tells and what sets the number of threads; None where there is no such function."""
    found = blas.find()
    if found is None or not found.set_num_threads or not found.get_num_threads:
        return None
    return (
        ctypes.PYFUNCTYPE(ctypes.c_int)(found.get_num_threads),
        ctypes.PYFUNCTYPE(None, ctypes.c_int)(found.set_num_threads),
    )


def _get() -> int:
    number = _number()
    assert number is not None, "blocks are only made where there is one"
    return number[0]()


def _set(count: int) -> None:
    number = _number()
    assert number is not None, "blocks are only made where there is one"
    number[1](count)


_lock: Final = SharedLock()
_limit: Final = _Limit()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_limit.free_in_child)
