"""Profiler spans. Without a profiler, a span costs one attribute read.

Long operations run in ``with span(kind, name):``; short ones read ``WATCHED`` first.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final, Protocol

from dualflow.core.slot import Slot


class Watcher(Protocol):
    """A profiler that records spans."""

    def span(self, kind: str, name: str, origin: Any = None) -> AbstractContextManager[Any]:
        """A block whose time is recorded; ``origin`` is the user's line, by default the current one."""
        ...


WATCHED: Final[Slot[Watcher | None]] = Slot("the profiler that runs", None)
_NOTHING: Final = nullcontext()


def span(kind: str, name: str, origin: Any = None) -> AbstractContextManager[None]:
    """A block that is recorded by the running profiler, if there is one.

    Args:
        kind: "op", "call", "kernels", "host", "trace", "compile", "data" or "step".
        name: the name of the operation.
        origin: the user's line; by default the current one.

    >>> with span("data", "wait"):
    ...     pass
    """
    watcher = WATCHED.value
    return _NOTHING if watcher is None else watcher.span(kind, name, origin)
