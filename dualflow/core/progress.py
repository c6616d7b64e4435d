"""Progress of long operations, on a terminal or in a notebook.

The operation counts its steps. A thread of its own shows the count from the third second on, so a short
operation shows nothing, and one that is a single call of C shows its time. Elsewhere no thread is started.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, TextIO

SHOWN_AFTER: Final = 2.0
"""Seconds after which an operation is long."""

_INTERVAL: Final = 0.2
_WIDTH: Final = 24
_LABEL: Final = 40


class _Shown:
    """Whether an outer operation shows its progress; nested ones don't."""

    running = False


class progress:
    """A context manager that shows the progress of a long operation.

    Args:
        label: what it does, such as ``compile step``.
        total: the number of its steps; None if it is not known.
        after: the seconds after which it is shown.

    >>> with progress("save model", total=2) as steps:
    ...     steps.step()
    ...     steps.step()
    """

    __slots__ = ("_after", "_begin", "_count", "_ended", "_label", "_lock", "_shown", "_thread", "_total")

    def __init__(self, label: str, total: int | None = None, after: float = SHOWN_AFTER) -> None:
        self._label = label if len(label) <= _LABEL else f"{label[: _LABEL - 3]}..."
        self._total = total
        self._after = after
        self._count = 0
        self._begin = 0.0
        self._shown = 0
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def step(self) -> None:
        """Count a step."""
        self._count += 1

    def write(self, stream: TextIO, text: str) -> None:
        """Write a line of output, before which the shown progress is erased; it is shown again after it."""
        with self._lock:
            self._erase(sys.stderr)
            stream.write(text)
            stream.flush()

    def __enter__(self) -> progress:
        if not _Shown.running and _is_watched():
            _Shown.running = True
            self._begin = time.monotonic()
            self._thread = threading.Thread(target=self._show, args=(sys.stderr,), daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, frames: TracebackType | None
    ) -> None:
        if self._thread is not None:
            self._ended.set()
            self._thread.join()
            _Shown.running = False

    def _show(self, stream: Any) -> None:
        with suppress(OSError, ValueError):  # the terminal is gone, or the stream is closed
            interval = self._after
            while not self._ended.wait(interval):
                text = self._text(time.monotonic() - self._begin)
                with self._lock:
                    stream.write(f"\r{text:<{self._shown}}")
                    stream.flush()
                    self._shown, interval = max(self._shown, len(text)), _INTERVAL
            with self._lock:
                self._erase(stream)

    def _erase(self, stream: Any) -> None:
        if self._shown:
            stream.write(f"\r{'':<{self._shown}}\r")
            stream.flush()
            self._shown = 0

    def _text(self, seconds: float) -> str:
        """The line: the label, a bar or a count, and the time so far."""
        if self._total:
            done = min(1.0, self._count / self._total)
            bar = f"{'#' * round(_WIDTH * done):-<{_WIDTH}}"
            return f"{self._label}  {bar} {done:4.0%}  {seconds:.0f} s"
        count = f"  {self._count:,}" if self._count else ""
        return f"{self._label}{count}  {seconds:.0f} s"


def _is_watched() -> bool:
    """Whether a person sees stderr, and has not switched progress off; for the main thread."""
    if os.environ.get("DUALFLOW_PROGRESS") == "0":
        return False
    stream: Any = sys.stderr
    if stream is None or threading.current_thread() is not threading.main_thread():
        return False
    if type(stream).__module__.startswith("ipykernel"):
        return True
    with suppress(ValueError):  # it is closed
        return bool(stream.isatty())
    return False
