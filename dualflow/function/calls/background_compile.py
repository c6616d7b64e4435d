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

_NUMPY = CompileOptions(backend="numpy")
_starting = SharedLock()
_compiling = SharedLock()
"""Acquired by a thread that compiles: one at a time."""


@dataclass(frozen=True, slots=True)
class _CompileThread:
    """A thread that compiles, and the process that has started it."""

    process: int = field(default_factory=os.getpid)
    ended: threading.Event = field(default_factory=threading.Event)


class BackgroundCompile:
    """Runs a graph as it was traced until a thread has compiled it.

    Args:
        graph: the trace, before any pass.
        compile_it: compiles the graph, and stores the result; referenced weakly. An error ends the thread:
            the next call compiles the graph itself, and raises the error to the user.

    Attributes:
        count: the number of calls it has served.
    """

    def __init__(self, graph: Graph, compile_it: Callable[[], object]) -> None:
        self.count = 0
        self._graph = graph
        self._compile_it = weakref.WeakMethod(compile_it)
        self._interpreted: Compiled | None = None
        self._work: _CompileThread | None = None

    @property
    def serving(self) -> bool:
        """Whether it serves a call that begins now; the thread is started if there is none."""
        job = self._work
        if job is None or job.process != os.getpid():  # a forked child has no thread of its parent's
            job = self._begin()
        return not job.ended.is_set()

    def take(self) -> Compiled | None:
        """The interpreter's executable for a call that begins now; None if the thread has ended."""
        if not self.serving:
            return None
        self.count += 1
        return self._interpreted

    def wait(self, timeout: float | None) -> bool:
        """Wait at most ``timeout`` seconds; returns whether the thread has ended, or was never started."""
        job = self._work
        if job is not None and job.process != os.getpid():
            job = self._begin()
        return job is None or job.ended.wait(timeout)

    def _begin(self) -> _CompileThread:
        with _starting.lock:
            job = self._work
            if job is not None and job.process == os.getpid():
                return job
            if self._interpreted is None:
                self._interpreted = backend_of("numpy").build(as_traced(self._graph), _NUMPY)
            job = self._work = _CompileThread()
            try:
                threading.Thread(target=self._run, args=(job,), name="dualflow compile").start()
            except RuntimeError:  # no more threads can be started: the call compiles the graph itself
                job.ended.set()
            return job

    def _run(self, job: _CompileThread) -> None:
        try:
            with _compiling.lock, contextlib.suppress(Exception):
                compile_it = self._compile_it()
                # A process that ends waits for its threads.
                if compile_it is not None and threading.main_thread().is_alive():
                    compile_it()
        finally:
            job.ended.set()


def as_traced(graph: Graph) -> Graph:
    """``graph`` without unused nodes, and otherwise as it was traced."""
    cause = sized_by_data(graph)
    return eliminate_dead_code(drop_assignments(graph)) if cause is None else as_one_node(graph, cause)
