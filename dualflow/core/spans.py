"""Profiler spans and logs. Without a profiler, a span costs one attribute read.

Long operations run in ``with span(kind, name):``; short ones read ``WATCHED`` first. Operations that take
milliseconds, such as a trace or a compile, log a line when they end.
"""

from __future__ import annotations

import os
import sys
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Final, Protocol

from dualflow.core.locks import imported
from dualflow.core.slot import Slot

if TYPE_CHECKING:
    import logging


class Watcher(Protocol):
    """A profiler that records spans."""

    def span(self, kind: str, name: str, origin: Any = None) -> AbstractContextManager[Any]:
        """A context whose time is recorded; ``origin`` is the user's line, by default the current one."""
        ...

    def add(self, kind: str, name: str, begin: int, end: int, origin: Any) -> None:
        """Record a span that machine code has timed, in nanoseconds of ``time.perf_counter``."""
        ...


WATCHED: Final[Slot[Watcher | None]] = Slot("the profiler that runs", None)
_NOTHING: Final = nullcontext()
_LOG_TOPICS: Final = os.environ.get("DUALFLOW_LOG")


def span(kind: str, name: str, origin: Any = None) -> AbstractContextManager[None]:
    """A context that is recorded by the running profiler, if there is one.

    Args:
        kind: "op", "call", "kernels", "host", "collective", "transfer", "trace", "compile", "data" or "step".
        name: the name of the operation.
        origin: the user's line; by default the current one.

    >>> with span("data", "wait"):
    ...     pass
    """
    watcher = WATCHED.value
    return _NOTHING if watcher is None else watcher.span(kind, name, origin)


def logger(topic: str) -> logging.Logger | None:
    """The logger ``dualflow.TOPIC`` if it is enabled, by ``DUALFLOW_LOG`` or by the program; else None.

    A process that neither sets the variable nor has imported ``logging`` does not import it here.

    Args:
        topic: "trace", "compile", "cache" or "memory".

    Raises:
        InvalidArgumentError: the variable names another topic.

    >>> logger("trace") is None
    True
    """
    if _LOG_TOPICS:
        imported("dualflow.core.log_topics").enable_topics(_LOG_TOPICS)
    elif "logging" not in sys.modules:
        return None
    library = imported("logging")
    return library.getLogger(f"dualflow.{topic}") if _is_enabled(library, topic) else None


def _is_enabled(library: Any, topic: str) -> bool:
    """Whether the logger of a topic logs information.

    ``logging`` would take its lock to compute this. A signal handler that raises there leaves it locked.
    """
    root = library.getLogger()
    if root.manager.disable >= library.INFO:
        return False
    for name in (f"dualflow.{topic}", "dualflow"):
        level = getattr(root.manager.loggerDict.get(name), "level", library.NOTSET)
        if level != library.NOTSET:
            return bool(level <= library.INFO)
    return bool(root.level <= library.INFO)
