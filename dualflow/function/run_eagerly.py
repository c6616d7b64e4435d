"""The switch that calls of traced functions look at: as Python, inlined, or with a profiler looking on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final


class Fallbacks:
    """Why calls take another way than the short one.

    Attributes:
        on: whether they may do.
        python: whether functions run as the Python that they wrap.
        watched: whether a profiler looks on.
        inlining: how many blocks of :meth:`inlined` each thread is in.
    """

    __slots__ = ("_lock", "inlining", "on", "python", "watched")

    def __init__(self) -> None:
        self.on = self.python = self.watched = False
        self.inlining: dict[int, int] = {}
        self._lock = threading.Lock()

    def set(self, *, python: bool | None = None, watched: bool | None = None) -> None:
        """Change what is given."""
        with self._lock:
            self.python = self.python if python is None else python
            self.watched = self.watched if watched is None else watched
            self._switch()

    @contextmanager
    def inlined(self) -> Iterator[None]:
        """Let the functions that this thread calls be part of what calls them: no trace is made or found.

        For blocks in which variables stand for other values than their own: a trace would keep those.
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
        self.on = self.python or self.watched or bool(self.inlining)


FALLBACKS: Final = Fallbacks()


def run_functions_eagerly(run_eagerly: bool) -> None:
    """Let every :func:`function` run as the Python it wraps, to step through it in a debugger, or not.

    >>> import dualflow as df
    >>> df.config.run_functions_eagerly(True)
    >>> df.function(lambda x: x.numpy() + 1)(df.constant(1.0))
    np.float32(2.0)
    >>> df.config.run_functions_eagerly(False)
    """
    FALLBACKS.set(python=bool(run_eagerly))


def functions_run_eagerly() -> bool:
    """Whether :func:`run_functions_eagerly` is on."""
    return FALLBACKS.python
