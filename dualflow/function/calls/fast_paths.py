"""The fast paths of a compiled graph: checked calls at first, and C fast calls once they pay.

The C fast call is machine code that LLVM compiles, or that is loaded from the disk, once in a process. A
thread does so after the first checked calls of the process; calls remain checked calls until it has ended.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any, Final

from dualflow.core.locks import SharedLock, unforkable
from dualflow.function.calls.call_form import REFUSED, CallForm
from dualflow.function.calls.lazy_backends import has_c_calls, prepare_c_calls

MIN_CALLS: Final = 50
"""The number of checked calls of a process before a thread prepares the C fast call.

If it is 0, the first call waits for the C fast call. The C fast call saves 4 to 20 us in a call. Loading its
code and its modules takes 2.5 ms, and compiling the code ten times as long.
"""
_FastPath = Callable[..., Any]
_starting: Final = SharedLock()
"""Held while the thread of :class:`Preparation` is created."""


class CallCount:
    """The number of checked calls of the process, up to :data:`MIN_CALLS`.

    Increments are not atomic, so calls of several threads may count as one.
    """

    value = 0


class Preparation:
    """The thread that prepares the C fast call; None before it is created.

    In a forked child the thread is not alive, so the next call of the child prepares the C fast call itself.
    """

    thread: threading.Thread | None = None


class FastPaths:
    """The fast paths of a compiled graph, by form of call.

    Args:
        backend: the name of the backend that compiled the graph.
    """

    __slots__ = ("_backend", "_permanent", "_temporary")

    def __init__(self, backend: str) -> None:
        self._backend = backend
        self._temporary: dict[CallForm | None, _FastPath] = {}
        self._permanent: dict[CallForm | None, _FastPath] = {}

    def find(self, form: CallForm | None, make: Callable[[CallForm | None, bool], _FastPath]) -> _FastPath:
        """The fast path for ``form``, a permanent or a temporary one.

        A permanent one is the C fast call, or a checked call if the graph or its backend has no C fast call.
        A temporary one is a checked call that returns REFUSED once a permanent one can replace it.

        Args:
            form: the form of call.
            make: ``make(form, temporary)`` returns a new fast path.
        """
        if (fast := self._permanent.get(form)) is not None:
            return fast
        if CallCount.value >= MIN_CALLS and (not has_c_calls(self._backend) or _is_prepared()):
            return self._permanent.setdefault(form, make(form, False))
        return self._temporary.get(form) or self._temporary.setdefault(form, _counting(make(form, True)))


def _counting(call: _FastPath) -> _FastPath:
    """A function that counts calls and runs ``call``, until a new fast path has to be made.

    It returns REFUSED after :data:`MIN_CALLS` calls of the process, so that :func:`_is_prepared` starts the
    thread, and once the thread has ended.
    """

    def counted(*values: Any) -> Any:
        if CallCount.value < MIN_CALLS:
            CallCount.value += 1
        elif (thread := Preparation.thread) is None or not thread.is_alive():
            return REFUSED
        return call(*values)

    return counted


def _is_prepared() -> bool:
    """Whether the thread that prepares the C fast call has ended; the first call starts the thread.

    It has ended, too, if the preparation has failed or no thread can be started. The caller then compiles the
    code itself, which raises the error.
    """
    if not MIN_CALLS:
        return True
    with _starting.lock:
        thread = Preparation.thread
        if thread is None:
            thread = Preparation.thread = threading.Thread(
                target=_prepare, name="dualflow prepare", daemon=False
            )
            with contextlib.suppress(RuntimeError):  # no more threads can be started
                thread.start()
    return not thread.is_alive()


def _prepare() -> None:
    # A child process would inherit locks of imports and of the compiler.
    with contextlib.suppress(Exception), unforkable():
        if threading.main_thread().is_alive():  # a process that ends waits for its threads
            prepare_c_calls()
