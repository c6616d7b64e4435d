"""A recorder's rows as a file in Chrome's trace format, which Perfetto shows."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dualflow.core.atomic_files import AtomicFile
from dualflow.profiler.recorder import Recorder, Row, TimedStretch


def trace_events(rows: list[Row], start: int) -> Iterator[dict[str, Any]]:
    """The events of Chrome's trace format: names of rows, then complete events, in order of their begin.

    Args:
        rows: of a recorder.
        start: the time that is 0 in the trace.
    """
    process = os.getpid()
    yield {"ph": "M", "name": "process_name", "pid": process, "tid": 0, "args": {"name": "dualflow"}}
    for row in rows:
        named = {"ph": "M", "name": "thread_name", "pid": process, "tid": row.number}
        yield named | {"args": {"name": row.name}}
        for stretch in sorted(row.stretches, key=lambda s: (s.begin, -s.end)):
            yield _event(stretch, start) | {"pid": process, "tid": row.number}


def _event(stretch: TimedStretch, start: int) -> dict[str, Any]:
    """Times are microseconds with three digits behind the point: whole nanoseconds."""
    args = dict(stretch.details or {})
    if stretch.origin is not None:
        args["line"] = f"{stretch.origin.file}:{stretch.origin.line}"
        args["function"] = stretch.origin.function
    begin, end = stretch.begin - start, stretch.end - start
    times = {"ts": begin / 1000, "dur": (end - begin) / 1000}
    return {"ph": "X", "cat": stretch.kind, "name": stretch.name, "args": args} | times


def write(recorder: Recorder, rows: list[Row], path: Path) -> None:
    """Write the trace under a temporary name, and give it its own when it is whole.

    Raises:
        OSError: it can't be written; nothing is left then.
    """
    document = {
        "displayTimeUnit": "ns",
        "otherData": {"dropped_events": recorder.dropped},
        "traceEvents": list(trace_events(rows, recorder.begin)),
    }
    with AtomicFile(os.fspath(path)) as file:
        for part in json.JSONEncoder().iterencode(document):
            file.write(part.encode())
