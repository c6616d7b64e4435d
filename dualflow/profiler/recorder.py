"""The records of a running profiler: a row of spans for each thread."""

from __future__ import annotations

import threading
from time import perf_counter_ns
from typing import Any, Final, NamedTuple

from dualflow.graph.ir import Origin
from dualflow.graph.origin import caller

MAX_EVENTS: Final = 1_000_000
"""The maximum number of recorded spans, about 150 MB; later ones are only counted."""


class TimedSpan(NamedTuple):
    """A recorded span: its kind and name, its time in nanoseconds, and the user's line."""

    kind: str
    name: str
    begin: int
    end: int
    origin: Origin | None
    details: dict[str, Any] | None


class Row:
    """The spans of one thread, in the order of their ends."""

    def __init__(self, number: int, name: str) -> None:
        self.number = number
        self.name = name
        self.spans: list[TimedSpan] = []


class SpanBlock:
    """A context that is recorded as a span; no frame of ``contextlib`` hides the line of its caller."""

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
    """Records spans until it is closed. Each thread has a row, to which only that thread writes.

    Attributes:
        rows: the rows of threads with spans.
        dropped: the number of spans beyond the maximum.
    """

    def __init__(self) -> None:
        self.begin = perf_counter_ns()
        self.rows: list[Row] = []
        self.dropped = 0
        self._open = True
        self._lock = threading.Lock()
        self._local = threading.local()
        self._left = MAX_EVENTS

    def span(
        self, kind: str, name: str, origin: Any = None, details: dict[str, Any] | None = None
    ) -> SpanBlock:
        """A context that is recorded when it ends, also by an exception."""
        return SpanBlock(self, kind, name, origin, details)

    def add(
        self, kind: str, name: str, begin: int, end: int, origin: Origin | None, details: Any = None
    ) -> None:
        """Record a span of this thread, unless the recorder is closed."""
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
        row.spans.append(TimedSpan(kind, name, begin, end, origin, details))

    def close(self) -> list[Row]:
        """Stop recording, and return the rows."""
        with self._lock:
            self._open = False
            return list(self.rows)

    def _begin_row(self) -> Row:
        thread = threading.current_thread()
        row = self._local.row = Row(threading.get_native_id(), thread.name)
        with self._lock:
            self.rows.append(row)
        return row
