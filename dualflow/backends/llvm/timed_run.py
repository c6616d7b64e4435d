"""The times of the steps of one call: each step of a step list runs alone.

A call of an entry is a walk along a step list in the parameter table. Here a copy of the table is linked so
that the list has one step at a time, and the driver is called once for each.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dualflow.backends.llvm.executable import Executable, NativePart, address_of
from dualflow.backends.llvm.host_step import HostStep
from dualflow.backends.llvm.steps import LINK, RUN_STEPS, StepKind
from dualflow.graph.compiled import StepTime, TimedKind
from dualflow.graph.effect_log import EffectLog
from dualflow.graph.ir import Graph, Node
from dualflow.graph.options import CompileOptions
from dualflow.schedule.operands import CallKind, kind_of

Array = np.ndarray[Any, Any]
_CALLS_OF_AN_EMPTY_LIST = 5


class TimedExecutable(Executable):
    """A compiled graph whose calls record the time of each step.

    Attributes:
        times: the steps of the last call.
    """

    __slots__ = ("_lists", "_records", "times")

    def __init__(self, graph: Graph, options: CompileOptions) -> None:
        super().__init__(graph, options)
        itemsize = self._params.itemsize
        self._lists = {part.at * itemsize for part in self.program.parts if part.entry == RUN_STEPS}
        self._records = {record.address: record for record in self.program.steps}
        self.times: list[StepTime] = []

    def run(self, arrays: Sequence[Array], effect_log: EffectLog | None = None) -> list[Array]:
        self.times = []
        return super().run(arrays, effect_log)

    def host(self, step: HostStep, buffers: list[Array], effect_log: EffectLog | None) -> None:
        begin = time.perf_counter()
        super().host(step, buffers, effect_log)
        self._add(TimedKind.HOST, step.node, time.perf_counter() - begin)

    def enter(
        self,
        part: NativePart,
        addresses: Sequence[int],
        status: Array,
        effect_log: EffectLog | None,
        params: Array | None = None,
    ) -> None:
        if part.offset not in self._lists:
            begin = time.perf_counter()
            super().enter(part, addresses, status, effect_log, params)
            self._add(TimedKind.NATIVE, None, time.perf_counter() - begin)
            return
        table = (self._params if params is None else params).copy()
        own_addresses = (addresses[0], address_of(table), addresses[2])

        def enter() -> float:
            start = time.perf_counter()
            super(TimedExecutable, self).enter(part, own_addresses, status, effect_log, table)
            return time.perf_counter() - start

        head = part.offset // table.itemsize
        steps = list(_steps(table, head))
        table[head + LINK] = 0
        overhead = min(enter() for _ in range(_CALLS_OF_AN_EMPTY_LIST))
        for step in steps:
            table[head + LINK], table[step + LINK] = step - head, 0
            record, seconds = self._records[step], max(0.0, enter() - overhead)
            if record.kind is StepKind.TASKS:  # calls of several ops at the same time
                self._add(TimedKind.NATIVE, None, seconds)
            elif record.kind not in (StepKind.STOP, StepKind.NOTE):
                self._add(_kind_of(record.node, record.kind), record.node, seconds)

    def _add(self, kind: TimedKind, node: Node | None, seconds: float) -> None:
        """Record a step, which begins at the end of the last one; consecutive steps of a node are merged."""
        last = self.times[-1] if self.times else None
        if last is not None and node is not None and last.node is node:
            self.times[-1] = last._replace(seconds=last.seconds + seconds)
        else:
            begin = 0.0 if last is None else last.begin + last.seconds
            self.times.append(StepTime(kind, node, begin, seconds))


def _steps(table: Array, head: int) -> Iterator[int]:
    """The indices of the steps of a list."""
    here = head
    while link := int(table[here + LINK]):
        here += link
        yield here


def _kind_of(node: Node, kind: StepKind) -> TimedKind:
    if kind is StepKind.MOVE:
        return TimedKind.COPY
    return TimedKind.PRODUCT if kind_of(node) is CallKind.PRODUCT else TimedKind.KERNEL
