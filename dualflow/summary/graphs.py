"""Summaries of graphs: of a given graph, or of the functions that are traced."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Final

from dualflow.core.errors import DTypeError, FailedPreconditionError
from dualflow.core.tracebacks import entry
from dualflow.function.concrete import ConcreteFunction
from dualflow.function.trace_function import TRACE_LISTENERS
from dualflow.function.traced_function import Function
from dualflow.graph.ir import Graph
from dualflow.graph_mode.graph import ExplicitGraph
from dualflow.summary.defaults import DEFAULTS, condition_here
from dualflow.summary.graph_definition import definition, definition_of_operations
from dualflow.summary.tensorboardx import protocol

if TYPE_CHECKING:
    from dualflow.core.argument_types import IntLike, TensorLike


@entry
def graph(graph_data: object, name: str | None = None) -> bool:
    """Write a graph for TensorBoard.

    Args:
        graph_data: a traced :func:`dualflow.function`, of which the last trace is written; a concrete
            function; or a graph.
        name: ignored; an event file has one graph.

    Returns:
        Whether it was written: if there is a default writer, and the condition of :func:`record_if` is true.

    Raises:
        DTypeError: ``graph_data`` is of another type.
        FailedPreconditionError: the function has not been traced; the writer is closed or can't write.

    >>> import dualflow as df
    >>> f = df.function(lambda x: x * x)
    >>> _ = f(df.constant(3.0))
    >>> df.summary.graph(f)
    False
    """
    selected = _graph_of(graph_data)
    if DEFAULTS.writer is None or not condition_here():
        return False
    explicit = isinstance(selected, ExplicitGraph)
    message = definition_of_operations(selected.get_operations()) if explicit else definition(selected)
    event = protocol().event.Event(wall_time=time.time(), step=0, graph_def=message.SerializeToString())
    DEFAULTS.writer.add(event)
    return True


def _graph_of(data: Any) -> Any:
    """The traced or explicit graph of ``data``."""
    if isinstance(data, Function):
        traces = data.concrete_functions
        if not traces:
            raise FailedPreconditionError(
                f"{data.name!r} has no graph yet: call it, or give its get_concrete_function(...)."
            )
        return traces[-1].graph
    if isinstance(data, ConcreteFunction):
        return data.graph
    if isinstance(data, Graph | ExplicitGraph):
        return data
    raise DTypeError(
        f"df.summary.graph takes a df.function, a concrete function or a graph, not a {type(data).__name__}."
    )


class _Tracing:
    """The functions that have been traced since :func:`trace_on`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.traces: list[ConcreteFunction] | None = None

    def begin(self) -> None:
        with self._lock:
            if self.traces is None:
                TRACE_LISTENERS.append(self.note)
            self.traces = []

    def end(self) -> list[ConcreteFunction] | None:
        with self._lock:
            traces, self.traces = self.traces, None
            if traces is not None:
                TRACE_LISTENERS.remove(self.note)
            return traces

    def note(self, concrete: ConcreteFunction) -> None:
        with self._lock:
            if self.traces is not None:
                self.traces.append(concrete)


_TRACING: Final = _Tracing()


@entry
def trace_on(graph: bool = True, profiler: bool = False, profiler_outdir: TensorLike | None = None) -> None:
    """Record the graphs of the functions that are traced from now on, for :func:`trace_export`.

    Args:
        graph: whether to record graphs.
        profiler: True is not supported; use :mod:`dualflow.profiler`.
        profiler_outdir: ignored without ``profiler``.

    Raises:
        FailedPreconditionError: ``profiler`` is True.

    >>> import dualflow as df
    >>> df.summary.trace_on()
    >>> _ = df.function(lambda x: x + 1.0)(df.constant(2.0))
    >>> df.summary.trace_off()
    """
    if profiler:
        raise FailedPreconditionError(
            "df.summary.trace_on does not measure; put the calls into `with df.profiler.trace(folder):`."
        )
    if graph:
        _TRACING.begin()


def trace_off() -> None:
    """Stop recording, and drop the graphs recorded since :func:`trace_on`."""
    _TRACING.end()


@entry
def trace_export(name: str, step: IntLike | None = None, profiler_outdir: TensorLike | None = None) -> None:
    """Write the graph of the last function traced since :func:`trace_on`, and stop recording.

    A function that a traced function calls is part of its graph.

    Args:
        name: ignored; a file of events has one graph.
        step, profiler_outdir: ignored; as in TensorFlow.

    Raises:
        FailedPreconditionError: :func:`trace_on` was not called, or no function has been traced since.
    """
    traces = _TRACING.end()
    if traces is None:
        raise FailedPreconditionError("Must enable trace before export through df.summary.trace_on().")
    if not traces:
        raise FailedPreconditionError(
            "No function has been traced since df.summary.trace_on(): call trace_on() before the first call "
            "of a df.function, or write its graph with df.summary.graph(f)."
        )
    graph(traces[-1])
