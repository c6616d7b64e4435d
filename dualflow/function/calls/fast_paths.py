"""The fast paths of a compiled graph: checked calls at first, and C fast calls once they pay.

When a process first uses the C fast call, LLVM compiles it, or it is loaded from the disk. A process that
makes few calls never does. A thread prepares it, and calls remain checked calls until it is ready.
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
"""The number of checked calls that a process makes before it prepares the C fast call; 0 to wait for it.

The C fast call saves 4 to 20 us in a call. To load its code and its modules takes 2.5 ms, and to compile the
code ten times as long.
"""
_FastPath = Callable[..., Any]
_starting: Final = SharedLock()
"""Held while the thread is created."""


class CallCount:
    """The number of checked calls of the process in place of C fast calls; threads may lose some."""

    value = 0


class Preparation:
    """The thread that prepares the C fast call; None before it is created.

    It has ended in a forked child, which then prepares the C fast call at its next call.
    """

    thread: threading.Thread | None = None


class FastPaths:
    """The fast paths of a compiled graph, by the form of call that they serve; ``backend`` compiles it."""

    __slots__ = ("_backend", "_early", "_lasting")

    def __init__(self, backend: str) -> None:
        self._backend = backend
        self._early: dict[CallForm | None, _FastPath] = {}
        self._lasting: dict[CallForm | None, _FastPath] = {}

    def find(self, form: CallForm | None, make: Callable[[CallForm | None, bool], _FastPath]) -> _FastPath:
        """The fast path for ``form``: ``make(form, early)`` returns a new one.

        An early one is not the C fast call, and returns REFUSED as soon as that pays.
        """
        if (fast := self._lasting.get(form)) is not None:
            return fast
        if CallCount.value >= MIN_CALLS and (not has_c_calls(self._backend) or _is_prepared()):
            return self._lasting.setdefault(form, make(form, False))
        return self._early.get(form) or self._early.setdefault(form, _counted(make(form, True)))


def _counted(call: _FastPath) -> _FastPath:
    """``call``, which counts its calls, and returns REFUSED once the process may use the C fast call.

    It returns REFUSED after :data:`MIN_CALLS` of the process, which starts the thread, and when that has
    ended.
    """

    def counted(*values: Any) -> Any:
        if CallCount.value < MIN_CALLS:
            CallCount.value += 1
        elif (thread := Preparation.thread) is None or not thread.is_alive():
            return REFUSED
        return call(*values)

    return counted


def _is_prepared() -> bool:
    """Whether no thread is preparing the C fast call; the first call starts it.

    If it has failed, or there can't be another thread, the caller compiles the code, and gets the error.
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
