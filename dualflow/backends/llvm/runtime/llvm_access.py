"""Who may use LLVM: one thread at a time, and no signal or fork cuts its work in half."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import FrameType
from typing import Any

from dualflow.core.locks import unforkable


@contextlib.contextmanager
def llvm_to_ourselves() -> Iterator[None]:
    """Every use of LLVM, freeing included, is within this: one at a time, and none is cut in half by a fork.

    Signals wait: raised at the wrong place, a handler's error would leave a lock taken for ever, or have an
    object freed twice.
    """
    with unforkable():
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        handlers = {int(n): h for n in signal.valid_signals() if callable(h := signal.getsignal(n))}
        arrived: dict[int, FrameType | None] = {}
        with _blocked(handlers):
            try:
                for number in handlers:  # another thread may take a signal that this one blocks
                    signal.signal(number, arrived.__setitem__)
                yield
            finally:
                for number, handler in handlers.items():
                    signal.signal(number, handler)
        _handle(handlers, arrived)


@contextlib.contextmanager
def _blocked(numbers: Iterable[int]) -> Iterator[None]:
    """This thread gets none of these signals before the end, where the system can hold them back."""
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
    """Call the handlers of signals that have waited, each once; the others too where one raises."""
    while arrived:
        number, frame = arrived.popitem()
        try:
            handlers[number](number, frame)
        finally:
            _handle(handlers, arrived)
