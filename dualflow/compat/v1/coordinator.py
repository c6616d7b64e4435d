"""``v1.train.Coordinator``: stops several threads together, and raises the first error of one of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TypeAlias

from dualflow.core.errors import FailedPreconditionError, OutOfRangeError

ExceptionInfo: TypeAlias = tuple[type[BaseException], BaseException, TracebackType | None]


class Coordinator:
    """A stop request that several threads share.

    A thread runs ``while not coord.should_stop():``. Any thread requests the stop. The main thread waits in
    :meth:`join`, which raises the error that was passed with the request.

    Args:
        clean_stop_exception_types: classes of errors that are a regular end; by default OutOfRangeError, the
            end of a dataset.

    >>> import threading
    >>> from dualflow.compat import v1
    >>> coord, steps = v1.train.Coordinator(), []
    >>> def work():
    ...     while not coord.should_stop():
    ...         steps.append(len(steps))
    ...         if len(steps) == 3:
    ...             coord.request_stop()
    >>> thread = threading.Thread(target=work)
    >>> thread.start()
    >>> coord.join([thread])
    >>> steps
    [0, 1, 2]
    """

    def __init__(self, clean_stop_exception_types: tuple[type[BaseException], ...] | None = None) -> None:
        self._clean = (OutOfRangeError,) if clean_stop_exception_types is None else clean_stop_exception_types
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._error: BaseException | None = None
        self._threads: list[threading.Thread] = []

    def should_stop(self) -> bool:
        """Whether a stop was requested."""
        return self._stop.is_set()

    def request_stop(self, ex: BaseException | ExceptionInfo | None = None) -> None:
        """Request that all threads stop; further requests are ignored.

        Args:
            ex: an error, or what ``sys.exc_info()`` returns: :meth:`join` raises the first one.
        """
        error = ex[1] if isinstance(ex, tuple) else ex
        with self._lock:
            if self._stop.is_set():
                return
            if error is not None and not isinstance(error, self._clean):
                self._error = error
            self._stop.set()

    def clear_stop(self) -> None:
        """Forget the request and its error, so that threads may run again."""
        with self._lock:
            self._error = None
            self._stop.clear()

    def wait_for_stop(self, timeout: float | None = None) -> bool:
        """Wait for a request, for ``timeout`` seconds at most; returns whether there was one."""
        return self._stop.wait(timeout)

    @contextmanager
    def stop_on_exception(self) -> Iterator[None]:
        """A context in which an exception is recorded as a stop request."""
        try:
            yield
        except Exception as error:
            self.request_stop(error)

    def register_thread(self, thread: threading.Thread) -> None:
        """Add a thread that :meth:`join` waits for."""
        with self._lock:
            self._threads.append(thread)

    @property
    def joined(self) -> bool:
        """Whether all registered threads have ended."""
        return not any(thread.is_alive() for thread in self._threads)

    def raise_requested_exception(self) -> None:
        """Raise the error of the request, if there is one."""
        if self._error is not None:
            raise self._error

    def join(
        self,
        threads: Sequence[threading.Thread] | None = None,
        stop_grace_period_secs: float = 120,
        ignore_live_threads: bool = False,
    ) -> None:
        """Wait for a request to stop or the end of all threads, then for the end of all threads.

        Args:
            threads: to wait for, besides those that were registered.
            stop_grace_period_secs: the seconds that threads have after the request.
            ignore_live_threads: whether threads that run on after that are no error.

        Raises:
            FailedPreconditionError: a thread runs on.
            Exception: the error of the request.
        """
        with self._lock:
            waiting = [*self._threads, *(threads or ())]
        while any(thread.is_alive() for thread in waiting) and not self._stop.wait(0.05):
            pass
        deadline = time.monotonic() + stop_grace_period_secs
        for thread in waiting:
            thread.join(max(0.0, deadline - time.monotonic()))
        self.raise_requested_exception()
        alive = [thread.name for thread in waiting if thread.is_alive()]
        if alive and not ignore_live_threads:
            raise FailedPreconditionError(
                f"Coordinator stopped with threads still running: {' '.join(alive)}. Let their loops test "
                "should_stop(), or raise stop_grace_period_secs."
            )
