"""Writing of a recorder's rows in Chrome's trace format."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dualflow.core.atomic_files import AtomicFile
from dualflow.profiler.recorder import Recorder, Row, TimedSpan


def trace_events(rows: list[Row], start: int) -> Iterator[dict[str, Any]]:
    """The events of Chrome's trace format: names of rows, then complete events by start time.

    Args:
        rows: the rows of a recorder.
        start: the time that becomes 0 in the trace.
    """
    process = os.getpid()
    yield {"ph": "M", "name": "process_name", "pid": process, "tid": 0, "args": {"name": "dualflow"}}
    for row in rows:
        named = {"ph": "M", "name": "thread_name", "pid": process, "tid": row.number}
        yield named | {"args": {"name": row.name}}
        for span in sorted(row.spans, key=lambda s: (s.begin, -s.end)):
            yield _event(span, start) | {"pid": process, "tid": row.number}


def _event(span: TimedSpan, start: int) -> dict[str, Any]:
    """A complete event; times are in microseconds with three decimals, that is whole nanoseconds."""
    args = dict(span.details or {})
    if span.origin is not None:
        args["line"] = f"{span.origin.file}:{span.origin.line}"
        args["function"] = span.origin.function
    begin, end = span.begin - start, span.end - start
    times = {"ts": begin / 1000, "dur": (end - begin) / 1000}
    return {"ph": "X", "cat": span.kind, "name": span.name, "args": args} | times


def write(recorder: Recorder, rows: list[Row], path: Path) -> None:
    """Write the trace, atomically.

    Raises:
        OSError: it can't be written; no file is left then.
    """
    document = {
        "displayTimeUnit": "ns",
        "otherData": {"dropped_events": recorder.dropped},
        "traceEvents": list(trace_events(rows, recorder.begin)),
    }
    with AtomicFile(os.fspath(path)) as file:
        for part in json.JSONEncoder().iterencode(document):
            file.write(part.encode())
