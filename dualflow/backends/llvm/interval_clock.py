"""The clock of timed programs: the steps before and after each interval that start and stop its time.

An interval is a step, a conditional, a loop, or an iteration. Its times are words of the parameter table
(``runtime/clock.ll``), so those of all iterations of a loop are summed, and none is stored.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, Protocol

import numpy as np

from dualflow.backends.llvm.parameter_table import Parameter, ParameterTable
from dualflow.backends.llvm.runtime import jit
from dualflow.backends.llvm.runtime.ir_source import IrSource
from dualflow.backends.llvm.steps import IntervalKind, StepKind
from dualflow.core.records import NamedTuple
from dualflow.graph.compiled import StepTime, TimedKind
from dualflow.graph.ir import Node
from dualflow.schedule.operands import CallKind, kind_of

Array = np.ndarray[Any, Any]
_WORDS: Final = 4
_TOTAL, _RUNS, _SLOWEST = 1, 2, 3
"""The words of an interval that have its times; the first one is the begin of the run that goes on."""
_FUNCTION: Final = "clock_gettime"
_EMPTY_INTERVALS: Final = 5
"""The intervals without a step, whose shortest time is that of reading the clock."""


class Interval(NamedTuple):
    """An interval of a timed program.

    Attributes:
        kind: what it is.
        node: the node that it computes, of a loop or conditional for itself and its iterations.
        step: the kind of its step, if it is one.
        words: the index of its words in the parameter table.
        parent: the number of the interval that contains it; None for none.
    """

    kind: IntervalKind
    node: Node | None
    step: StepKind | None
    words: int
    parent: int | None


class ProgramUnit(Protocol):
    """A program under construction; see :class:`.entry.Unit`."""

    table: ParameterTable
    addresses: dict[str, int]
    node: Node | None

    def set_callee(self, step: int, function: IrSource) -> None:
        """Set the callee of the step at index ``step``."""
        ...


class StepList(Protocol):
    """A list of steps under construction; see :class:`.entry.Entry`."""

    @property
    def unit(self) -> ProgramUnit:
        """The program of the steps."""
        ...

    def append(self, kind: StepKind, numbers: Sequence[Parameter]) -> int:
        """Append a step; returns its index."""
        ...


class IntervalClock:
    """Emits the steps of the clock, and reads the times of a call.

    Attributes:
        intervals: the intervals, in the order of the program.
    """

    __slots__ = ("_open", "_words", "intervals")

    def __init__(self) -> None:
        self.intervals: list[Interval] = []
        self._open: list[int] = []
        self._words = np.empty([0, _WORDS], np.intp)

    @contextmanager
    def interval(self, steps: StepList, kind: IntervalKind, step: StepKind | None = None) -> Iterator[None]:
        """A context manager that emits the start and the stop of an interval in a list.

        Args:
            steps: the list.
            kind: the kind of the interval.
            step: the kind of its step.
        """
        unit = steps.unit
        words = unit.table.extend([0] * _WORDS)
        self.intervals.append(Interval(kind, unit.node, step, words, self._open[-1] if self._open else None))
        self._open.append(len(self.intervals) - 1)
        _emit(steps, words, stops=False)
        yield
        self._open.pop()
        _emit(steps, words, stops=True)

    def calibrate(self, steps: StepList) -> None:
        """Emit intervals without a step."""
        for _ in range(_EMPTY_INTERVALS):
            with self.interval(steps, IntervalKind.EMPTY):
                pass

    def reset(self, params: Array) -> None:
        """Set all times in a parameter table to 0."""
        params[self._words_of_intervals()] = 0

    def times(self, params: Array) -> list[StepTime]:
        """The steps that have run, by the times in a parameter table.

        It reads the intervals that have run: between two host calls these are few of the program's.
        """
        words = self._words_of_intervals()
        numbers = np.flatnonzero(params[words[:, _RUNS]])
        rows = params[words[numbers]].tolist()
        return _Times(self.intervals, dict(zip(numbers.tolist(), rows, strict=True))).steps()

    def _words_of_intervals(self) -> Array:
        """The indices of the words of each interval in the parameter table."""
        if len(self._words) != len(self.intervals):
            first = np.array([interval.words for interval in self.intervals])
            self._words = first[:, None] + np.arange(_WORDS)
        return self._words


def has_clock() -> bool:
    """Whether the C library has the clock."""
    return jit.process_symbol(_FUNCTION) != 0


@functools.cache
def clock_source() -> IrSource:
    """The module of the clock."""
    return IrSource(jit.shipped_text("clock.ll"), ("df_clock",))


def _emit(steps: StepList, words: int, *, stops: bool) -> None:
    """Emit a step that starts or stops the interval whose words begin at the index ``words``."""
    clock = [0, int(stops), time.CLOCK_MONOTONIC]
    step, unit = steps.append(StepKind.KERNEL, [0, 1, 1, *clock]), steps.unit
    own = len(unit.table.params) - len(clock)
    unit.table.params[own] = words - own
    unit.set_callee(step, clock_source())
    unit.addresses[_FUNCTION] = jit.process_symbol(_FUNCTION)


class _Times:
    """Computes the times of one call from those of its intervals, without those of reading the clock.

    Args:
        intervals: the intervals of the program.
        rows: the words of those that have run, by their numbers in ascending order.
    """

    def __init__(self, intervals: Sequence[Interval], rows: Mapping[int, Sequence[int]]) -> None:
        self._intervals, self._rows = intervals, rows
        self._clock = min(
            (row[_TOTAL] for i, row in rows.items() if intervals[i].kind is IntervalKind.EMPTY), default=0
        )
        self._inside: dict[int | None, list[int]] = {}
        for number in rows:
            interval = intervals[number]
            if interval.kind is not IntervalKind.EMPTY:
                self._inside.setdefault(interval.parent, []).append(number)

    def steps(self) -> list[StepTime]:
        return self._level(None)

    def _level(self, parent: int | None) -> list[StepTime]:
        """The steps inside of an interval; those of iterations are steps of their loop."""
        times: list[StepTime] = []
        for number in self._numbers(parent):
            timed = self._step(number)
            last = times[-1] if times else None
            if last is not None and last.node is not None and last.node is timed.node:  # steps of one node
                slowest = last.slowest + timed.slowest
                times[-1] = last._replace(seconds=last.seconds + timed.seconds, slowest=slowest)
            else:
                times.append(timed)
        return times

    def _numbers(self, parent: int | None) -> Iterator[int]:
        for number in self._inside.get(parent, ()):
            if self._intervals[number].kind is IntervalKind.ITERATION:
                yield from self._numbers(number)
            else:
                yield number

    def _step(self, number: int) -> StepTime:
        interval, row = self._intervals[number], self._rows[number]
        inside = self._level(number)
        clocks = row[_RUNS] + 2 * self._clocks_inside(number)
        seconds = max((row[_TOTAL] - self._clock * clocks) / 1e9, sum((s.seconds for s in inside), 0.0))
        iterations = sum(
            self._rows[n][_RUNS]
            for n in self._inside.get(number, ())
            if self._intervals[n].kind is IntervalKind.ITERATION
        )
        longest = (row[_SLOWEST] - self._clock * clocks / row[_RUNS]) / 1e9  # with the clocks of a mean run
        return StepTime(
            _timed_kind(interval),
            None if interval.step is StepKind.TASKS else interval.node,
            seconds,
            runs=row[_RUNS],
            slowest=min(seconds, max(longest, seconds / row[_RUNS])),
            iterations=iterations,
            steps=tuple(inside),
        )

    def _clocks_inside(self, number: int) -> int:
        """The runs of all intervals inside of one."""
        return sum(self._rows[n][_RUNS] + self._clocks_inside(n) for n in self._inside.get(number, ()))


def _timed_kind(interval: Interval) -> TimedKind:
    if interval.kind is IntervalKind.CONTROL:
        return TimedKind.CONTROL
    if interval.step is StepKind.TASKS:  # calls of several ops at the same time
        return TimedKind.NATIVE
    if interval.step is StepKind.MOVE:
        return TimedKind.COPY
    is_product = interval.node is not None and kind_of(interval.node) is CallKind.PRODUCT
    return TimedKind.PRODUCT if is_product else TimedKind.KERNEL
