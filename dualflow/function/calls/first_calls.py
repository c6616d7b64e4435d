"""Calls of a graph that is not compiled yet: NumPy runs them, node by node, while a thread compiles it."""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from collections.abc import Callable

from dualflow.core.locks import SharedLock
from dualflow.core.records import dataclass, field
from dualflow.function.calls.data_dependent_sizes import as_one_node, sized_by_data
from dualflow.function.calls.lazy_backends import backend_of
from dualflow.graph.compiled import Compiled
from dualflow.graph.ir import Graph
from dualflow.graph.options import CompileOptions
from dualflow.graph.passes.assignments import drop_assignments
from dualflow.graph.passes.dead_code import eliminate_dead_code
from dualflow.sizes.symbolic_sizes import UndecidedSize

_NUMPY = CompileOptions(backend="numpy")
_starting = SharedLock()
"""Held while a thread is created."""
_compiling = SharedLock()
"""Acquired by a thread that compiles: one at a time."""


@dataclass(frozen=True, slots=True)
class _CompileThread:
    """A thread that compiles.

    Attributes:
        process: the id of the process that started it; a forked child has no such thread.
        ended: set when the thread has ended.
    """

    process: int = field(default_factory=os.getpid)
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def is_of_this_process(self) -> bool:
        return self.process == os.getpid()


class BackgroundCompile:
    """Calls of one graph: NumPy runs them until a thread has compiled the graph.

    Args:
        graph: the trace, before any pass.
        compile_graph: compiles the graph, and stores the result; referenced weakly. An error ends the thread:
            the next call compiles the graph itself, and raises the error to the user. If no one program
            serves all sizes, NumPy runs that call, too: its caller has seen the thread run.

    Attributes:
        count: the number of calls that NumPy has run.
    """

    def __init__(self, graph: Graph, compile_graph: Callable[[], object]) -> None:
        self.count = 0
        self._graph = graph
        self._compile_graph = weakref.WeakMethod(compile_graph)
        self._interpreted: Compiled | None = None
        self._thread: _CompileThread | None = None
        self._is_undecided = False

    def start(self) -> bool:
        """Start the thread unless this process has started it; returns whether it has not ended yet."""
        return not self._started_thread().ended.is_set()

    def executable_for_call(self) -> Compiled | None:
        """The interpreter's executable for a call that begins now; None if the compiled one is required.

        Starts the thread at the first call, and counts the calls that NumPy runs.
        """
        if not self.start() and not self._is_undecided:
            return None
        self.count += 1
        return self._interpreted

    def wait(self, timeout: float | None) -> bool:
        """Wait at most ``timeout`` seconds; returns whether the thread has ended, or was never started."""
        return self._thread is None or self._started_thread().ended.wait(timeout)

    def _started_thread(self) -> _CompileThread:
        """The thread of this process; it is started at the first call."""
        thread = self._thread
        if thread is not None and thread.is_of_this_process:
            return thread
        with _starting.lock:
            thread = self._thread
            if thread is not None and thread.is_of_this_process:
                return thread
            if self._interpreted is None:
                self._interpreted = backend_of("numpy").build(as_traced(self._graph), _NUMPY)
            thread = self._thread = _CompileThread()
            try:
                threading.Thread(target=self._compile, args=(thread,), name="dualflow compile").start()
            except RuntimeError:  # no more threads can be started: the call compiles the graph itself
                thread.ended.set()
            return thread

    def _compile(self, thread: _CompileThread) -> None:
        """Run in the thread: compile the graph, unless it has been freed or the process is ending."""
        try:
            with _compiling.lock, contextlib.suppress(Exception):
                compile_graph = self._compile_graph()
                # A process that ends waits for its threads.
                if compile_graph is not None and threading.main_thread().is_alive():
                    try:
                        compile_graph()
                    except UndecidedSize:
                        self._is_undecided = True
        finally:
            thread.ended.set()


def as_traced(graph: Graph) -> Graph:
    """``graph`` as NumPy runs it: without assignments and unused nodes, but no other pass has run."""
    cause = sized_by_data(graph)
    return eliminate_dead_code(drop_assignments(graph)) if cause is None else as_one_node(graph, cause)
