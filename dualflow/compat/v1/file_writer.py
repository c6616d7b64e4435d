"""The writer of TensorFlow 1's summaries: event files with summaries and graphs, for TensorBoard."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any, ClassVar, Self

from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.tracebacks import entry
from dualflow.graph_mode import ExplicitGraph, GraphDef, RunMetadata, import_graph_def
from dualflow.summary.event_file import EventFile
from dualflow.summary.graph_definition import definition_of_operations
from dualflow.summary.session_ops import summary_of
from dualflow.summary.tensorboardx import protocol


@entry
class FileWriter:
    """Writes summaries and graphs to a new event file in a folder.

    Threads may share it. A forked process writes to a file of its own.

    Args:
        logdir: the folder, created if it is missing.
        graph: a graph to write, such as ``session.graph``.
        max_queue: the maximum number of buffered events.
        flush_secs: the maximum time in seconds that events are buffered, checked at the next event.
        graph_def: a definition of a graph to write instead.
        filename_suffix: the suffix of the file's name.
        session: TensorFlow's, and ignored.

    Raises:
        NotFoundError: tensorboardX is not installed: ``pip install 'dualflow[summary]'``.
        InvalidArgumentError: the folder or the file can't be created.

    >>> import tempfile
    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default(), v1.Session() as session:
    ...     summary = v1.summary.scalar("loss", v1.constant(0.5))
    ...     with v1.summary.FileWriter(tempfile.mkdtemp(), session.graph) as writer:
    ...         writer.add_summary(session.run(summary), global_step=1)
    """

    def __init__(
        self,
        logdir: str | os.PathLike[str],
        graph: ExplicitGraph | None = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        graph_def: GraphDef | None = None,
        filename_suffix: str | None = None,
        session: object = None,
    ) -> None:
        if not isinstance(logdir, str | os.PathLike) or not os.fspath(logdir):
            raise InvalidArgumentError(f"logdir is the path of a folder, not {logdir!r}.")
        self._settings = Path(logdir), filename_suffix or "", int(max_queue), float(flush_secs)
        self._file = EventFile(*self._settings)
        self._tags: set[str] = set()
        if graph is not None or graph_def is not None:
            self.add_graph(graph, graph_def=graph_def)

    def get_logdir(self) -> str:
        """The folder."""
        return str(self._settings[0])

    def add_summary(self, summary: object, global_step: int | None = None) -> None:
        """Buffer a summary for writing.

        Args:
            summary: the result of a summary op, or a message ``Summary``.
            global_step: the step, 0 by default.

        Raises:
            InvalidArgumentError: ``summary`` is neither.
            FailedPreconditionError: the writer is closed, or its file can't be written to.
        """
        messages = protocol()
        message: Any = summary if isinstance(summary, messages.summary.Summary) else summary_of(summary)
        self.add_event(messages.event.Event(wall_time=time.time(), summary=message), global_step)

    def add_event(self, event: object, global_step: int | None = None) -> None:
        """Buffer a message ``Event`` for writing, at ``global_step`` if it is set.

        Raises:
            DTypeError: ``event`` is of another type.
            FailedPreconditionError: the writer is closed, or its file can't be written to.
        """
        if not isinstance(event, protocol().event.Event):
            raise DTypeError(f"An Event is needed, not a {type(event).__name__}; see add_summary.")
        message: Any = event
        if global_step is not None:
            message.step = int(global_step)
        self._file.add(message)

    def add_graph(
        self,
        graph: ExplicitGraph | None,
        global_step: int | None = None,
        graph_def: GraphDef | None = None,
    ) -> None:
        """Buffer a graph for writing: its operations, name scopes, shapes and lines.

        Args:
            graph: the graph; None with ``graph_def``.
            global_step: the step, 0 by default.
            graph_def: a definition, which is imported to be written.

        Raises:
            DTypeError: both or neither are set, or of another type.
            FailedPreconditionError: the writer is closed, or its file can't be written to.
        """
        if isinstance(graph, GraphDef):
            graph, graph_def = None, graph
        if (graph is None) == (graph_def is None):
            raise DTypeError("add_graph takes a graph, session.graph, or a graph_def.")
        if graph is None:
            graph = ExplicitGraph()
            with graph.as_default():
                import_graph_def(graph_def, name="")  # type: ignore[arg-type]  # not None
        if not isinstance(graph, ExplicitGraph):
            raise DTypeError(f"add_graph takes a tf.Graph, not a {type(graph).__name__}.")
        message = definition_of_operations(graph.get_operations()).SerializeToString()
        self.add_event(protocol().event.Event(wall_time=time.time(), graph_def=message), global_step)

    def add_run_metadata(self, run_metadata: RunMetadata, tag: str, global_step: int | None = None) -> None:
        """Buffer the measured time of a run for writing; TensorBoard shows it in the graph.

        Args:
            run_metadata: that of ``session.run(..., options=..., run_metadata=...)``.
            tag: a unique name, such as of the step.
            global_step: the step, 0 by default.

        Raises:
            InvalidArgumentError: the file has metadata with this tag.
            DTypeError: ``run_metadata`` is of another type.
            FailedPreconditionError: the writer is closed, or its file can't be written to.
        """
        if not isinstance(run_metadata, RunMetadata):
            raise DTypeError(f"A RunMetadata is needed, not a {type(run_metadata).__name__}.")
        if tag in self._tags:
            raise InvalidArgumentError(f"The provided tag {tag!r} was already used for this event type.")
        messages = protocol().event
        tagged = messages.TaggedRunMetadata(tag=tag, run_metadata=run_metadata.SerializeToString())
        self.add_event(messages.Event(wall_time=time.time(), tagged_run_metadata=tagged), global_step)
        self._tags.add(tag)

    def flush(self) -> None:
        """Write the buffered events.

        Raises:
            FailedPreconditionError: the writer is closed, or its file can't be written to.
        """
        self._file.flush()

    def close(self) -> None:
        """Flush and close the file; further calls do nothing."""
        self._file.close()

    def reopen(self) -> None:
        """After :meth:`close`, begin a new file in the folder; an open writer is unchanged."""
        if self._file.closed:
            self._file = EventFile(*self._settings)
            self._tags.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<FileWriter to {str(self._file.path)!r}>"


class FileWriterCache:
    """The writers of a process, one for each folder.

    >>> import tempfile
    >>> from dualflow.compat import v1
    >>> folder = tempfile.mkdtemp()
    >>> cache = v1.summary.FileWriterCache
    >>> cache.get(folder) is cache.get(folder)
    True
    >>> cache.clear()
    """

    _writers: ClassVar[dict[str, FileWriter]] = {}

    @classmethod
    def get(cls, logdir: str | os.PathLike[str]) -> FileWriter:
        """The writer to a folder, created at the first call."""
        key = os.path.abspath(logdir)
        if key not in cls._writers:
            cls._writers[key] = FileWriter(logdir)
        return cls._writers[key]

    @classmethod
    def clear(cls) -> None:
        """Close all writers, and remove them from the cache."""
        while cls._writers:
            cls._writers.popitem()[1].close()
