"""Profiler spans. Without a profiler, a span costs one attribute read.

What takes its time runs in ``with span(kind, name):``. What is too short for that reads ``WATCHED``.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final, Protocol

from dualflow.core.slot import Slot


class Watcher(Protocol):
    """What notes stretches of time."""

    def span(self, kind: str, name: str, origin: Any = None) -> AbstractContextManager[Any]:
        """The block whose time is noted; ``origin`` is the user's line, by default the one that runs now."""
        ...


WATCHED: Final[Slot[Watcher | None]] = Slot("the profiler that runs", None)
_NOTHING: Final = nullcontext()


def span(kind: str, name: str, origin: Any = None) -> AbstractContextManager[None]:
    """The block of a stretch of time of some kind.

    Args:
        kind: "op", "call", "kernels", "host", "trace", "compile", "data" or "step".
        name: of what runs.
        origin: the user's line; by default the one that runs now.

    >>> with span("data", "wait"):
    ...     pass
    """
    watcher = WATCHED.value
    return _NOTHING if watcher is None else watcher.span(kind, name, origin)
