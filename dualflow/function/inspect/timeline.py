"""Timelines: the ops of an eager call and the steps of a compiled one, with their times and memory."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from itertools import accumulate
from typing import Any

import numpy as np

from dualflow.core import dispatch
from dualflow.core.delegating_engine import DelegatingEngine
from dualflow.core.records import dataclass, replace
from dualflow.core.spec import TensorSpec
from dualflow.eager.engine import EAGER
from dualflow.function.calls.array_ownership import array_of
from dualflow.function.calls.compiled_graph import CompiledGraph
from dualflow.function.calls.data_dependent_sizes import sized_by_data
from dualflow.function.calls.lazy_backends import listed_kernels
from dualflow.function.inspect.inspected import InspectedCall
from dualflow.graph.compiled import Footprint, StepTime
from dualflow.graph.fused import body_of
from dualflow.graph.ir import Node, Origin, Value
from dualflow.graph.origin import caller
from dualflow.graph.string_graphs import holds_strings
from dualflow.graph.work import bytes_moved, work
from dualflow.ops.record import Op

SECONDS = 0.3
"""The total time of the calls from which a timeline takes the fastest."""

_MAX_RUNS = 100


@dataclass(frozen=True, slots=True)
class TimelineStep:
    """A step of a call: an eager op, a kernel, a matrix product, a copy, a host call.

    Attributes:
        kind: "op", or a :class:`dualflow.graph.compiled.TimedKind`.
        name: the name of the op; those of a kernel's ops, joined by ``+``.
        begin: seconds after the call began.
        seconds: its duration.
        origins: the user's lines.
        operations: its work in additions; see :class:`dualflow.graph.analysis.Workload`.
        nbytes: the bytes that it reads and writes.
        kernel: the name of the kernel in the listing; "" for none.
    """

    kind: str
    name: str
    begin: float
    seconds: float
    origins: tuple[Origin, ...]
    operations: float
    nbytes: int
    kernel: str = ""


_Run = tuple[float, tuple[TimelineStep, ...]]
"""The seconds of a call, and its steps."""


class _TimedOp:
    """An op that ran: what the recorder stores, which should take no time."""

    __slots__ = ("attrs", "begin", "end", "inputs", "live", "op", "origin", "outputs")

    def __init__(self, op: Op, attrs: dict[str, Any], origin: Origin | None) -> None:
        self.op, self.attrs, self.origin = op, attrs, origin
        self.inputs: list[TensorSpec] = []
        self.outputs: list[TensorSpec] = []
        self.begin = self.end = 0.0
        self.live = 0

    def step(self, start: float) -> TimelineStep:
        node = Node(self.op, [Value(spec) for spec in self.inputs], self.attrs, self.outputs, self.origin)
        origins = () if self.origin is None else (self.origin,)
        seconds = self.end - self.begin
        return TimelineStep(
            "op", self.op.name, self.begin - start, seconds, origins, work(node), bytes_moved(node)
        )


class _TimingEngine(DelegatingEngine):
    """The eager engine, which also records the time of each op; ops inside of an op are part of it."""

    __slots__ = ("_depth", "ops")

    def __init__(self) -> None:
        super().__init__(EAGER)
        self.ops: list[_TimedOp] = []
        self._depth = 0

    def run(self, op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        if self._depth:
            return super().run(op, inputs, attrs)
        timed = _TimedOp(op, attrs, caller())
        self._depth += 1
        timed.begin = time.perf_counter()
        try:
            result = super().run(op, inputs, attrs)
        finally:
            timed.end = time.perf_counter()
            self._depth -= 1
        if tracemalloc.is_tracing():
            timed.live = tracemalloc.get_traced_memory()[0]
        timed.inputs = [x.spec for x in inputs]
        timed.outputs = [x.spec for x in (result if isinstance(result, tuple) else (result,))]
        self.ops.append(timed)
        return result


@dataclass(frozen=True, slots=True)
class Timelines:
    """The steps of an eager and of a compiled call, and the memory after each.

    Attributes:
        eager, graph: the steps, in order.
        eager_memory: the bytes that are allocated after each op.
        graph_memory: the bytes that are allocated in each step of the plan; empty if sizes depend on data.
    """

    eager: tuple[TimelineStep, ...]
    graph: tuple[TimelineStep, ...]
    eager_memory: tuple[int, ...]
    graph_memory: tuple[int, ...]


def timelines(call: InspectedCall, compiled: CompiledGraph, eager_seconds: float) -> Timelines:
    """The timelines of a call. Unrecorded eager runs count as ``eager_seconds``."""
    planned = sized_by_data(compiled.graph) is None and not holds_strings(compiled.graph)
    return Timelines(
        eager_steps(call, eager_seconds),
        graph_steps(call, compiled),
        eager_memory(call),
        graph_memory(_footprint(compiled)) if planned else (),
    )


def _footprint(compiled: CompiledGraph) -> Footprint:
    """The memory of a call: with a budget the steps run in order."""
    in_order = compiled.options.memory_budget is not None
    return compiled.backend.footprint(compiled.optimised, in_order=in_order)


def eager_steps(call: InspectedCall, unrecorded: float) -> tuple[TimelineStep, ...]:
    """The ops of the fastest of several eager calls.

    Recording makes the gaps between ops longer. So they are shortened, all in proportion, to what a call of
    ``unrecorded`` seconds spends outside of ops.
    """

    def run() -> _Run:
        engine, prepared = _TimingEngine(), call.timed_call(eagerly=True)
        prepared.prepare()
        with dispatch.using(engine):
            start = time.perf_counter()
            prepared.function(*prepared.args, **prepared.kwargs)
            seconds = time.perf_counter() - start
        return seconds, tuple([op.step(start) for op in engine.ops])

    seconds, steps = _fastest(run)
    in_ops = sum(step.seconds for step in steps)
    outside = max(0.0, min(unrecorded, seconds) - in_ops)
    factor = outside / (seconds - in_ops) if seconds > in_ops else 1.0
    earlier = (0.0, *accumulate(step.seconds for step in steps))
    return tuple(
        [
            replace(step, begin=before + factor * (step.begin - before))
            for step, before in zip(steps, earlier, strict=False)
        ]
    )


def eager_memory(call: InspectedCall) -> tuple[int, ...]:
    """The bytes that an eager call has allocated after each of its ops, by tracemalloc."""
    engine, prepared = _TimingEngine(), call.timed_call(eagerly=True)
    prepared.prepare()
    running = tracemalloc.is_tracing()
    if not running:
        tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        with dispatch.using(engine):
            prepared.function(*prepared.args, **prepared.kwargs)
    finally:
        if not running:
            tracemalloc.stop()
    return tuple([max(0, op.live - before) for op in engine.ops])


def graph_steps(call: InspectedCall, compiled: CompiledGraph) -> tuple[TimelineStep, ...]:
    """The steps of the fastest of several calls of a compiled graph."""
    timer = compiled.backend.step_timer(compiled.executable)
    kernels = listed_kernels(compiled.without_symbolic_sizes)

    def run() -> _Run:
        call.state.reset()
        inputs = (*call.inputs, *compiled.sources.captured)
        times = timer([np.array(array_of(x), order="C") for x in inputs])
        return sum(step.seconds for step in times), tuple([_step(x, kernels) for x in times])

    return _fastest(run)[1]


def graph_memory(footprint: Footprint) -> tuple[int, ...]:
    """The bytes that a call of a compiled graph has allocated in each of its steps, by the plan."""
    live = [footprint.held] * len(footprint.steps)
    for block in footprint.blocks:
        for step in range(block.birth, max((block.birth, *block.reads)) + 1):
            live[step] += block.nbytes
    return tuple(live)


def _step(timed: StepTime, kernels: dict[Node, str]) -> TimelineStep:
    node = timed.node
    if node is None:
        return TimelineStep(timed.kind, "machine code", timed.begin, timed.seconds, (), 0.0, 0)
    body = body_of(node)
    origins = [o for o in (node.origin, *node.merged_origins) if o is not None]
    inner = (node,) if body is None else body.nodes
    origins += [o for n in inner for o in (n.origin, *n.merged_origins) if o is not None]
    return TimelineStep(
        timed.kind,
        node.op.name if body is None else body.name,
        timed.begin,
        timed.seconds,
        tuple(dict.fromkeys(origins)),
        work(node),
        bytes_moved(node),
        next((kernels[n] for n in inner if n in kernels), ""),
    )


def _fastest(run: Callable[[], _Run]) -> _Run:
    """The run that took the least time; the first one warms up caches."""
    start, runs = time.perf_counter(), [run()]
    while len(runs) < _MAX_RUNS and time.perf_counter() - start < SECONDS:
        runs.append(run())
    return min(runs, key=lambda timed: timed[0])
