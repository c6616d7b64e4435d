"""Summary writers: objects with an event file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from dualflow.core import dispatch
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.tracebacks import entry
from dualflow.ops.op_kinds import Opaque
from dualflow.ops.record import Effect, Op
from dualflow.summary.defaults import DEFAULTS, checked_step, with_defaults
from dualflow.summary.event_file import EventFile

if TYPE_CHECKING:
    from dualflow.core.argument_types import IntLike


def _flush(*, writer: Any) -> tuple[()]:
    writer.flush_now()
    return ()


FLUSH = Op(
    name="flush_summaries",
    doc="Writes the events that a writer holds.",
    infer=lambda *, writer: (),
    kernel=_flush,
    kind=Opaque("summaries are written by Python"),
    outputs=None,
    effect=Effect.PRINT,
)


@entry
class SummaryWriter:
    """A writer of summaries; :func:`create_file_writer` creates one.

    Args:
        file: the event file; None to write nothing.
    """

    def __init__(self, file: EventFile | None) -> None:
        self._file = file

    @contextmanager
    def as_default(self, step: IntLike | None = None) -> Iterator[SummaryWriter]:
        """A context whose summaries are written by this writer, which is flushed at its end.

        Args:
            step: the default step in the block; unchanged if None.

        Raises:
            FailedPreconditionError: the writer is closed.
        """
        self._require_open()
        changes = {} if step is None else {"step": checked_step(step)}
        writer = None if self._file is None else self
        with with_defaults(writer=writer, traced=not dispatch.current().eager, **changes):
            try:
                yield self
            finally:
                if self._file is None or not self._file.closed:
                    self.flush()

    def set_as_default(self, step: IntLike | None = None) -> None:
        """Make this the default writer of the thread.

        Args:
            step: the default step; unchanged if None.

        Raises:
            FailedPreconditionError: the writer is closed.
        """
        self._require_open()
        if step is not None:
            DEFAULTS.step = checked_step(step)
        DEFAULTS.writer = None if self._file is None else self
        DEFAULTS.traced = not dispatch.current().eager

    def init(self) -> None:
        """Does nothing: the file is created with the writer."""

    def flush(self) -> None:
        """Write the buffered events; in a traced function, when it runs.

        Raises:
            FailedPreconditionError: the writer is closed, or its file can't be written to.
        """
        if dispatch.current().eager:
            self.flush_now()
        else:
            dispatch.current().apply(FLUSH, (), {"writer": self})

    def flush_now(self) -> None:
        """Write the buffered events now, even while a function is being traced."""
        if self._file is not None:
            self._file.flush()

    def close(self) -> None:
        """Flush and close the file; further calls do nothing."""
        if self._file is not None:
            self._file.close()

    def add(self, event: object) -> None:
        """Buffer an ``Event`` message for writing.

        Raises:
            FailedPreconditionError: the writer is closed, or its file can't be written to.
        """
        if self._file is not None:
            self._file.add(event)

    def _require_open(self) -> None:
        if self._file is not None:
            self._file.require_open()

    def __repr__(self) -> str:
        return f"<SummaryWriter to {'nowhere' if self._file is None else str(self._file.path)!r}>"

    def __reduce__(self) -> NoReturn:
        raise DTypeError(
            "A SummaryWriter can't be pickled or copied: it holds a file of this process. Make another with "
            "df.summary.create_file_writer()."
        )


@entry
def create_file_writer(
    logdir: str | os.PathLike[str],
    max_queue: int | None = None,
    flush_millis: int | None = None,
    filename_suffix: str | None = None,
    name: str | None = None,
    experimental_trackable: bool = False,
    experimental_mesh: object = None,
) -> SummaryWriter:
    """A writer of a new event file in a folder, for TensorBoard.

    Args:
        logdir: the folder, created if it is missing.
        max_queue: the maximum number of buffered events, 10 by default.
        flush_millis: the maximum time in ms that events are buffered, checked at the next event; 120,000 by
            default.
        filename_suffix: the suffix of the file's name, ``.v2`` by default.
        name, experimental_trackable, experimental_mesh: ignored; as in TensorFlow.

    Raises:
        NotFoundError: tensorboardX is not installed: ``pip install 'dualflow[summary]'``.
        InvalidArgumentError: the folder can't be created, or a number is negative.

    >>> import tempfile
    >>> import dualflow as df
    >>> folder = tempfile.mkdtemp()
    >>> writer = df.summary.create_file_writer(folder)
    >>> with writer.as_default():
    ...     for step in range(3):
    ...         _ = df.summary.scalar("loss", 1.0 / (step + 1), step=step)
    >>> writer.close()
    """
    if not isinstance(logdir, str | os.PathLike) or not os.fspath(logdir):
        raise InvalidArgumentError(f"logdir is the path of a folder, not {logdir!r}.")
    queue_size = 10 if max_queue is None else int(max_queue)
    wait = 120_000 if flush_millis is None else int(flush_millis)
    if queue_size < 0 or wait < 0:
        raise InvalidArgumentError(
            f"max_queue and flush_millis are at least 0, not {max_queue} and {flush_millis}."
        )
    suffix = ".v2" if filename_suffix is None else filename_suffix
    return SummaryWriter(EventFile(Path(logdir), suffix, queue_size, wait / 1000))


def create_noop_writer() -> SummaryWriter:
    """A writer that discards summaries: in its blocks there is no default writer.

    >>> import dualflow as df
    >>> with df.summary.create_noop_writer().as_default():
    ...     df.summary.scalar("loss", 1.0, step=0)
    False
    """
    return SummaryWriter(None)
