"""Starting and stopping the profiler; a process has at most one at a time."""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from dualflow.core.errors import FailedPreconditionError, InvalidArgumentError
from dualflow.core.spans import WATCHED
from dualflow.core.tracebacks import entry
from dualflow.function.run_eagerly import CALL_MODE
from dualflow.profiler.engine import record_ops
from dualflow.profiler.recorder import Recorder
from dualflow.profiler.trace_file import write

_count: Final = itertools.count()


class ProfileFile:
    """The file of a trace.

    Attributes:
        path: the path of the file, which is written when the profiler stops.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def __repr__(self) -> str:
        return f"<ProfileFile {str(self.path)!r}>"


class ProfilerOptions(NamedTuple):
    """TensorFlow's options, which are ignored: ops, functions and data are always recorded.

    >>> import dualflow as df
    >>> df.profiler.experimental.ProfilerOptions().host_tracer_level
    2
    """

    host_tracer_level: int = 2
    python_tracer_level: int = 0
    device_tracer_level: int = 1
    delay_ms: int | None = None


class RunningProfile(NamedTuple):
    """The running profiler: its recorder, and the file to write."""

    recorder: Recorder
    file: ProfileFile


class _ProfilerControl:
    """Starts and stops the process's profiler, of which at most one runs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: RunningProfile | None = None

    def begin(self, folder: Path) -> ProfileFile:
        with self._lock:
            if self._running is not None:
                raise FailedPreconditionError(
                    f"Another profiler is running, for {str(self._running.file.path)!r}: stop it first."
                )
            stamp = f"{time.strftime('%Y%m%d-%H%M%S')}_{os.getpid()}_{next(_count)}"
            file, recorder = ProfileFile(_created(folder) / f"dualflow_{stamp}.trace.json"), Recorder()
            self._running = RunningProfile(recorder, file)
            WATCHED.fill(recorder)
            CALL_MODE.set(watched=True)
            record_ops(recorder)
            return file

    def end(self, *, save: bool) -> None:
        with self._lock:
            if self._running is None:
                raise FailedPreconditionError(
                    "Cannot export profiling results. No profiler is running: begin one with "
                    "df.profiler.experimental.start(folder), or with df.profiler.trace(folder)."
                )
            (recorder, file), self._running = self._running, None
            record_ops(None)
            CALL_MODE.set(watched=False)
            WATCHED.clear()
        rows = recorder.close()
        if not save:
            return
        try:
            write(recorder, rows, file.path)
        except OSError as error:
            raise FailedPreconditionError(
                f"The profile can't be written to {str(file.path)!r}: {error.strerror}."
            ) from error


_PROFILER: Final = _ProfilerControl()


def _created(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            raise PermissionError(None, "it is not writable")
    except OSError as error:
        raise InvalidArgumentError(
            f"A profile can't be written to {str(folder)!r}: {error.strerror}. Give a folder that this "
            "process may create, or write to."
        ) from error
    return folder


def _folder(logdir: Any) -> Path:
    if not isinstance(logdir, str | os.PathLike) or not os.fspath(logdir):
        raise InvalidArgumentError(f"logdir is the path of a folder, not {logdir!r}.")
    return Path(logdir)


@contextmanager
def _block(logdir: Any) -> Iterator[ProfileFile]:
    file = _PROFILER.begin(_folder(logdir))
    try:
        yield file
    finally:
        _PROFILER.end(save=True)


@entry
def trace(logdir: str | os.PathLike[str]) -> Any:
    """A context of which a trace is written: the spans of each thread, with the user's lines.

    Spans are ops (``op``), calls of traced functions (``call``) and in them their compiled code (``kernels``:
    ``native`` is machine code, ``host`` runs in NumPy or Python), collectives of machine code with other
    workers (``collective``), copies between the memories of the host and of a GPU (``transfer``), traces
    (``trace``), compilations (``compile``), waits for data (``data``), and the steps that
    ``experimental.Trace`` marks (``step``).
    Calls take longer while a profiler runs, since they don't take fast paths; the times of kernels are
    correct. Calls of concrete functions may be missing.

    Args:
        logdir: the folder, created if it is missing. The file has Chrome's trace format:
            https://ui.perfetto.dev opens it.

    Returns:
        A context manager that yields a :class:`ProfileFile`. The file is written at the end of the block,
        also after an exception.

    Raises:
        FailedPreconditionError: another profiler is running, or the file can't be written.
        InvalidArgumentError: the folder can't be created.

    >>> import json, tempfile
    >>> import dualflow as df
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with df.profiler.trace(folder) as file:
    ...         _ = df.constant(1.0) + 2.0
    ...     events = json.loads(file.path.read_text())["traceEvents"]
    >>> [event["name"] for event in events if event["ph"] == "X"]
    ['add']
    """
    return _block(logdir)


@entry
def start(logdir: str | os.PathLike[str], options: ProfilerOptions | None = None) -> None:
    """Start the profiler; see :func:`dualflow.profiler.trace`.

    Args:
        logdir: the folder that :func:`stop` writes to, created if it is missing.
        options: ignored; as in TensorFlow.

    Raises:
        FailedPreconditionError: another profiler is running.
        InvalidArgumentError: the folder can't be created.
    """
    _PROFILER.begin(_folder(logdir))


@entry
def stop(save: bool = True) -> None:
    """Stop the profiler, and write the trace.

    Args:
        save: whether to write the trace.

    Raises:
        FailedPreconditionError: no profiler is running, or the file can't be written.
    """
    _PROFILER.end(save=save)


@entry
class Profile:
    """A context of which a trace is written, like :func:`dualflow.profiler.trace`.

    >>> import tempfile
    >>> import dualflow as df
    >>> with df.profiler.experimental.Profile(tempfile.mkdtemp()):
    ...     _ = df.zeros([2]) + 1.0
    """

    def __init__(self, logdir: str | os.PathLike[str], options: ProfilerOptions | None = None) -> None:
        self._logdir = logdir

    def __enter__(self) -> None:
        start(self._logdir)

    def __exit__(self, *exc: object) -> None:
        stop()


class Trace:
    """A named block in the trace, such as a training step; does nothing without a profiler.

    Args:
        name: the name of the block.
        kwargs: metadata of the block, such as ``step_num=3``.

    >>> import dualflow as df
    >>> for step in range(2):
    ...     with df.profiler.experimental.Trace("train", step_num=step):
    ...         pass
    """

    def __init__(self, name: str, **kwargs: Any) -> None:
        self._name = name
        self._details: dict[str, Any] = {}
        self._open: AbstractContextManager[None] | None = None
        self.set_metadata(**kwargs)

    def __enter__(self) -> Trace:
        recorder = WATCHED.value
        if isinstance(recorder, Recorder):
            self._open = recorder.span("step", self._name, details=self._details)
            self._open.__enter__()
        return self

    def set_metadata(self, **kwargs: Any) -> None:
        """Add metadata to the block, also while it runs."""
        for key, x in kwargs.items():
            self._details[key] = x if isinstance(x, int | float | str) else str(x)

    def __exit__(self, *exc: object) -> None:
        if self._open is not None:
            block, self._open = self._open, None
            block.__exit__(None, None, None)
