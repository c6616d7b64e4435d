"""The call mode of the process: whether traced functions run as Python, inlined, or profiled."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final


class CallMode:
    """The conditions that keep calls off the fast path.

    Attributes:
        is_slow: whether calls take the slow path; the only attribute that each call reads.
        python: whether the Python functions run instead of traces.
        watched: whether a profiler is active.
        inlining: the number of :meth:`inlined` blocks that each thread is in.
    """

    __slots__ = ("_lock", "inlining", "is_slow", "python", "watched")

    def __init__(self) -> None:
        self.is_slow = self.python = self.watched = False
        self.inlining: dict[int, int] = {}
        self._lock = threading.Lock()

    def set(self, *, python: bool | None = None, watched: bool | None = None) -> None:
        """Set the attributes that are not None."""
        with self._lock:
            self.python = self.python if python is None else python
            self.watched = self.watched if watched is None else watched
            self._switch()

    @contextmanager
    def inlined(self) -> Iterator[None]:
        """A context in which the functions that this thread calls run inline in their caller, without traces.

        It is for code that replaces the values of variables temporarily, which a trace would keep.
        """
        thread = threading.get_ident()
        with self._lock:
            self.inlining[thread] = self.inlining.get(thread, 0) + 1
            self._switch()
        try:
            yield
        finally:
            with self._lock:
                self.inlining[thread] -= 1
                if not self.inlining[thread]:
                    del self.inlining[thread]
                self._switch()

    def _switch(self) -> None:
        self.is_slow = self.python or self.watched or bool(self.inlining)


CALL_MODE: Final = CallMode()


def run_functions_eagerly(run_eagerly: bool) -> None:
    """Run each :func:`function` as its Python function, for stepping through it in a debugger, or not.

    >>> import dualflow as df
    >>> df.config.run_functions_eagerly(True)
    >>> df.function(lambda x: x.numpy() + 1)(df.constant(1.0))
    np.float32(2.0)
    >>> df.config.run_functions_eagerly(False)
    """
    CALL_MODE.set(python=bool(run_eagerly))


def functions_run_eagerly() -> bool:
    """Whether :func:`run_functions_eagerly` is on."""
    return CALL_MODE.python
