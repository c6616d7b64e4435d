"""What a running profiler notes: one row of stretches of time for each thread."""

from __future__ import annotations

import threading
from time import perf_counter_ns
from typing import Any, Final, NamedTuple

from dualflow.graph.ir import Origin
from dualflow.graph.origin import caller

MOST_EVENTS: Final = 1_000_000
"""How many stretches are kept, about 150 MB; later ones are counted only."""


class TimedStretch(NamedTuple):
    """A stretch of time: what ran, when in nanoseconds, and the user's line that asked for it."""

    kind: str
    name: str
    begin: int
    end: int
    origin: Origin | None
    details: dict[str, Any] | None


class Row:
    """The stretches of one thread, in the order in which they ended."""

    def __init__(self, number: int, name: str) -> None:
        self.number = number
        self.name = name
        self.stretches: list[TimedStretch] = []


class NotedBlock:
    """A block that becomes a stretch; no frame of ``contextlib`` hides the line that runs it."""

    __slots__ = ("_begin", "_details", "_kind", "_name", "_origin", "_recorder")

    def __init__(
        self, recorder: Recorder, kind: str, name: str, origin: Origin | None, details: dict[str, Any] | None
    ) -> None:
        self._recorder = recorder
        self._kind = kind
        self._name = name
        self._origin = origin
        self._details = details
        self._begin = 0

    def __enter__(self) -> None:
        self._begin = perf_counter_ns()

    def __exit__(self, *exc: object) -> None:
        end, origin = perf_counter_ns(), self._origin or caller()
        self._recorder.add(self._kind, self._name, self._begin, end, origin, self._details)


class Recorder:
    """Notes stretches of time until it is closed. Each thread has a row, which it alone writes to.

    Attributes:
        rows: of the threads that have noted something.
        dropped: how many stretches came after the most that are kept.
    """

    def __init__(self) -> None:
        self.begin = perf_counter_ns()
        self.rows: list[Row] = []
        self.dropped = 0
        self._open = True
        self._lock = threading.Lock()
        self._local = threading.local()
        self._left = MOST_EVENTS

    def span(
        self, kind: str, name: str, origin: Any = None, details: dict[str, Any] | None = None
    ) -> NotedBlock:
        """The block that is noted when it ends, also by an exception."""
        return NotedBlock(self, kind, name, origin, details)

    def add(
        self, kind: str, name: str, begin: int, end: int, origin: Origin | None, details: Any = None
    ) -> None:
        """Note a stretch of this thread, unless the recorder is closed."""
        row: Row | None = getattr(self._local, "row", None)
        if row is None:
            row = self._begin_row()
        with self._lock:
            if not self._open:
                return
            if self._left == 0:
                self.dropped += 1
                return
            self._left -= 1
        row.stretches.append(TimedStretch(kind, name, begin, end, origin, details))

    def close(self) -> list[Row]:
        """Note nothing more; the rows that are there now."""
        with self._lock:
            self._open = False
            return list(self.rows)

    def _begin_row(self) -> Row:
        thread = threading.current_thread()
        row = self._local.row = Row(threading.get_native_id(), thread.name)
        with self._lock:
            self.rows.append(row)
        return row
