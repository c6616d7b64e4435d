"""Records the times of the steps of a call as they run, those of branches and loops inside their step."""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

from dualflow.graph.compiled import StepTime, TimedKind
from dualflow.graph.ir import Node


class StepRecorder:
    """Sums the times of each step over its runs.

    >>> recorder = StepRecorder()
    >>> with recorder.step("loop", TimedKind.CONTROL, None):
    ...     for _ in range(3):
    ...         recorder.count_iteration()
    ...         with recorder.step("body", TimedKind.HOST, None):
    ...             pass
    >>> (loop,) = recorder.times()
    >>> loop.iterations, [(step.kind.value, step.runs) for step in loop.steps]
    (3, [('host', 3)])
    """

    __slots__ = ("_open", "_root")

    def __init__(self) -> None:
        self._root = _RecordedStep(TimedKind.NATIVE, None, 0, "", "")
        self._open = [self._root]

    @contextmanager
    def step(
        self,
        key: Hashable,
        kind: TimedKind,
        node: Node | None,
        *,
        nbytes: int = 0,
        label: str = "",
        kernel: str = "",
    ) -> Iterator[None]:
        """A context manager that records a run of a step.

        Args:
            key: identifies the step among those of the same branch, loop or graph.
            kind: its kind.
            node: the node that it computes.
            nbytes: the bytes of a transfer.
            label: its name, if it computes no node.
            kernel: the name of its kernel.
        """
        recorded = self._open[-1].inside.setdefault(key, _RecordedStep(kind, node, nbytes, label, kernel))
        self._open.append(recorded)
        begin = time.perf_counter()
        try:
            yield
        finally:
            recorded.add_run(time.perf_counter() - begin)
            self._open.pop()

    def count_iteration(self) -> None:
        """Count an iteration of the loop that runs."""
        self._open[-1].iterations += 1

    def times(self) -> list[StepTime]:
        """The steps in the order of their first runs."""
        return [recorded.time() for recorded in self._root.inside.values()]


class _RecordedStep:
    """A step, its runs so far, and the steps inside it."""

    __slots__ = (
        "inside",
        "iterations",
        "kernel",
        "kind",
        "label",
        "nbytes",
        "node",
        "runs",
        "seconds",
        "slowest",
    )

    def __init__(self, kind: TimedKind, node: Node | None, nbytes: int, label: str, kernel: str) -> None:
        self.kind, self.node, self.nbytes, self.label, self.kernel = kind, node, nbytes, label, kernel
        self.runs = self.iterations = 0
        self.seconds = self.slowest = 0.0
        self.inside: dict[Hashable, _RecordedStep] = {}

    def add_run(self, seconds: float) -> None:
        self.runs += 1
        self.seconds += seconds
        self.slowest = max(self.slowest, seconds)

    def time(self) -> StepTime:
        steps = tuple([recorded.time() for recorded in self.inside.values()])
        return StepTime(
            self.kind,
            self.node,
            self.seconds,
            self.runs,
            self.slowest,
            self.iterations,
            steps,
            self.nbytes,
            self.label,
            self.kernel,
        )
