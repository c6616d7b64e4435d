"""Executables that time each step of a call, in branches and loops too."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from dualflow.backends.llvm.compile_graph import compile_graph
from dualflow.backends.llvm.executable import Executable, NativePart
from dualflow.backends.llvm.host_step import HostStep
from dualflow.backends.llvm.interval_clock import IntervalClock
from dualflow.backends.llvm.sized_call import SizedCall
from dualflow.graph.compiled import StepTime, TimedKind
from dualflow.graph.effect_log import EffectLog
from dualflow.graph.ir import Graph, Node
from dualflow.graph.options import CompileOptions
from dualflow.schedule.program_statements import CallRoutine

Array = np.ndarray[Any, Any]


class TimedExecutable(Executable):
    """A compiled graph whose calls record the time of each step.

    Attributes:
        times: the steps of the last call.
    """

    __slots__ = ("_clock", "times")

    def __init__(self, graph: Graph, options: CompileOptions) -> None:
        self._clock = IntervalClock()
        super().__init__(compile_graph(graph, options, self._clock), options)
        self.times: list[StepTime] = []

    def run(self, arrays: Sequence[Array], effect_log: EffectLog | None = None) -> list[Array]:
        self.times = []
        return super().run(arrays, effect_log)

    def host(self, step: HostStep, buffers: list[Array], effect_log: EffectLog | None) -> None:
        begin = time.perf_counter()
        super().host(step, buffers, effect_log)
        self.add_host_call(step.node, time.perf_counter() - begin)

    def sized_call(self, params: Array, arrays: Sequence[Array]) -> SizedCall:
        return _TimedSizedCall(self, params, arrays, self._take_arena(self.image.arena_bytes))

    def enter(
        self,
        part: NativePart,
        addresses: Sequence[int],
        status: Array,
        effect_log: EffectLog | None,
        params: Array | None = None,
    ) -> None:
        table = self._params if params is None else params
        self._clock.reset(table)
        super().enter(part, addresses, status, effect_log, params)
        for step in self._clock.times(table):
            self.times.append(step)

    def add_host_call(self, node: Node, seconds: float) -> None:
        """Record a host call."""
        self.times.append(StepTime(TimedKind.HOST, node, seconds, slowest=seconds))


class _TimedSizedCall(SizedCall):
    """A call of a program with dynamic sizes, whose host calls are timed by ``executable``."""

    __slots__ = ("_executable",)

    def __init__(
        self, executable: TimedExecutable, params: Array, arrays: Sequence[Array], arena: Array
    ) -> None:
        super().__init__(executable.image, params, arrays, arena)
        self._executable = executable

    def host(self, call: CallRoutine, effect_log: EffectLog | None) -> None:
        begin = time.perf_counter()
        super().host(call, effect_log)
        self._executable.add_host_call(call.node, time.perf_counter() - begin)
