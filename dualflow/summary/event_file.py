"""Event files: each record is a length, data and checksums, and is appended completely or not at all."""

from __future__ import annotations

import itertools
import os
import socket
import threading
import time
import weakref
from pathlib import Path
from typing import Any, Final

from dualflow.core.errors import FailedPreconditionError, InvalidArgumentError
from dualflow.ops.records.record_files import framed
from dualflow.summary.tensorboardx import protocol

_VERSION: Final = "brain.Event:2"
_CREATE_FLAGS: Final = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0)
_count: Final = itertools.count()


class EventFile:
    """An event file with a buffer of events in memory; thread-safe.

    If writing fails, for example on a full disk, the file is truncated to its last complete record, and the
    events are kept for the next attempt. A forked child begins a file of its own.

    Args:
        folder: the folder; created if it is missing.
        suffix: the suffix of the file's name.
        max_events: the maximum number of buffered events.
        max_seconds: the maximum time that an event is buffered, checked when another one is added.

    Raises:
        InvalidArgumentError: the folder or the file can't be created.
    """

    def __init__(self, folder: Path, suffix: str, max_events: int, max_seconds: float) -> None:
        self.folder = folder
        self._suffix = suffix
        self._max_events = max_events
        self._max_seconds = max_seconds
        self._lock = threading.RLock()
        self._records: list[bytes] = []
        self.closed = False
        self._open()

    def _open(self) -> None:
        """Create a file with a unique name."""
        event = protocol().event.Event(wall_time=time.time(), file_version=_VERSION)
        stamp = f"{int(time.time()):010d}.{socket.gethostname()}.{os.getpid()}.{next(_count)}"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.path = self.folder / f"events.out.tfevents.{stamp}{self._suffix}"
            self._descriptors = [os.open(self.path, _CREATE_FLAGS, 0o666)]
        except OSError as error:
            raise InvalidArgumentError(
                f"Summaries can't be written to {str(self.folder)!r}: {error.strerror}. Give a folder that "
                "this process may make, or write to."
            ) from error
        self._process = os.getpid()
        self._end = weakref.finalize(
            self, _write_and_close, self._process, self._lock, self._records, self._descriptors
        )
        self._since = time.monotonic()
        self._records[:] = [framed([event.SerializeToString()])]
        self.flush()

    def add(self, event: Any) -> None:
        """Buffer ``event``, and write the buffer if it is full or old.

        Raises:
            FailedPreconditionError: the file is closed, or can't be written to.
        """
        record = framed([event.SerializeToString()])
        self._reopen_in_child()
        with self._lock:
            self.require_open()
            if not self._records:
                self._since = time.monotonic()
            self._records.append(record)
            if len(self._records) >= self._max_events or time.monotonic() - self._since >= self._max_seconds:
                self.flush()

    def flush(self) -> None:
        """Write all buffered events.

        Raises:
            FailedPreconditionError: the file is closed, or can't be written to.
        """
        self._reopen_in_child()
        with self._lock:
            self.require_open()
            try:
                _append(self._descriptors[0], self._records)
            except OSError as error:
                raise FailedPreconditionError(
                    f"Summaries can't be written to {str(self.path)!r}: {error.strerror}. They are kept in "
                    "memory; the next flush() tries again."
                ) from error

    def close(self) -> None:
        """Write all events and close the file, even if writing fails."""
        self._reopen_in_child()
        with self._lock:
            if self.closed:
                return
            try:
                self.flush()
            finally:
                self.closed = True
                self._end.detach()
                os.close(self._descriptors.pop())

    def require_open(self) -> None:
        """Check that the file is open.

        Raises:
            FailedPreconditionError: it is closed.
        """
        if self.closed:
            raise FailedPreconditionError(
                "SummaryWriter is already closed; make another with df.summary.create_file_writer()."
            )

    def _reopen_in_child(self) -> None:
        """In a forked child: drop the parent's file and buffered events, and begin another file."""
        if os.getpid() != self._process:
            self._lock = threading.RLock()
            self._end.detach()
            self._records.clear()
            if not self.closed:
                os.close(self._descriptors.pop())
                self._open()


def _append(descriptor: int, records: list[bytes]) -> None:
    """Append records and clear the list; after an error the file is truncated to its old length."""
    start = os.lseek(descriptor, 0, os.SEEK_END)
    data = memoryview(b"".join(records))
    try:
        while data:
            data = data[os.write(descriptor, data) :]
    except OSError:
        os.ftruncate(descriptor, start)
        raise
    records.clear()


def _write_and_close(process: int, lock: Any, records: list[bytes], descriptors: list[int]) -> None:
    """Finalizer of a file that wasn't closed: write the buffered events, except in a forked child."""
    if os.getpid() != process:
        return
    with lock:
        try:
            _append(descriptors[0], records)
        finally:
            os.close(descriptors.pop())
