"""The lock around LLVM: one thread at a time, not interrupted by signals or forks."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import FrameType
from typing import Any

from dualflow.core.locks import unforkable


@contextlib.contextmanager
def llvm_lock() -> Iterator[None]:
    """Hold the lock around a use of LLVM, freeing included; forks wait for it.

    Signals are deferred: an exception of a handler could leave a lock of LLVM's taken, or free an object
    twice.
    """
    with unforkable():
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        handlers = {int(n): h for n in signal.valid_signals() if callable(h := signal.getsignal(n))}
        arrived: dict[int, FrameType | None] = {}

        def defer(number: int, frame: FrameType | None) -> None:
            arrived[number] = frame

        with _blocked(handlers):
            try:
                for number in handlers:  # another thread may take a signal that this one blocks
                    signal.signal(number, defer)
                yield
            finally:
                for number, handler in handlers.items():
                    signal.signal(number, handler)
        _handle(handlers, arrived)


@contextlib.contextmanager
def _blocked(numbers: Iterable[int]) -> Iterator[None]:
    """Block signals in this thread, where the system supports it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _handle(handlers: Mapping[int, Callable[..., Any]], arrived: dict[int, FrameType | None]) -> None:
    """Call the handlers of deferred signals, each once, even if one of them raises."""
    while arrived:
        number, frame = arrived.popitem()
        try:
            handlers[number](number, frame)
        finally:
            _handle(handlers, arrived)
