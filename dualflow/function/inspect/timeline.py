"""Timelines: the ops of an eager call and the steps of a compiled one, with their times and memory.

A step inside a loop is one step, however often it runs: its time is the sum of all iterations.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from dualflow.function.inspect.inspected import InspectedCall
from dualflow.function.inspect.pass_graphs import kernel_name
from dualflow.graph.compiled import Footprint, StepTime, TimedKind
from dualflow.graph.fused import body_of
from dualflow.graph.ir import Node, Origin, Value
from dualflow.graph.origin import caller, origins_of
from dualflow.graph.string_graphs import holds_strings
from dualflow.graph.work import bytes_moved, work
from dualflow.ops.record import Op

SECONDS = 0.3
"""The total time of the calls from which a timeline takes the fastest."""

_MAX_RUNS = 100
_NAMES = {TimedKind.NATIVE: "machine code"}
"""The names of steps that compute no single node."""


@dataclass(frozen=True, slots=True)
class TimelineStep:
    """A step of a call: an eager op, a kernel, a matrix product, a copy, a host call.

    Attributes:
        kind: "op", or a :class:`dualflow.graph.compiled.TimedKind`.
        name: the name of the op; those of a kernel's ops, joined by ``+``.
        begin: seconds after the call began.
        seconds: its duration; in a loop, the sum of its runs.
        origins: the user's lines.
        operations: the work of one run in additions; see :class:`dualflow.graph.analysis.Workload`.
        nbytes: the bytes that one run reads and writes, or transfers.
        kernel: the name of the kernel in the listing; "" for none.
        depth: the number of branches and loops around it.
        runs: how often it ran.
        slowest: the duration of the slowest run.
        iterations: the trip count of a loop; 0 for other steps.
    """

    kind: str
    name: str
    begin: float
    seconds: float
    origins: tuple[Origin, ...]
    operations: float
    nbytes: int
    kernel: str = ""
    depth: int = 0
    runs: int = 1
    slowest: float = 0.0
    iterations: int = 0


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


def timelines(
    call: InspectedCall, compiled: CompiledGraph, eager_seconds: float, kernels: Mapping[Node, str]
) -> Timelines:
    """The timelines of a call.

    Args:
        call: the call.
        compiled: its compiled graph.
        eager_seconds: the time of an eager call that is not recorded.
        kernels: the name that the kernel of each node has in the listing.
    """
    planned = planned_memory(compiled)
    return Timelines(
        eager_steps(call, eager_seconds),
        graph_steps(call, compiled, kernels),
        eager_memory(call),
        () if planned is None else graph_memory(planned),
    )


def planned_memory(compiled: CompiledGraph) -> Footprint | None:
    """The memory of a call by the plan; None if sizes depend on data. With a budget, steps run in order."""
    if sized_by_data(compiled.graph) is not None or holds_strings(compiled.graph):
        return None
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


def graph_steps(
    call: InspectedCall, compiled: CompiledGraph, kernels: Mapping[Node, str]
) -> tuple[TimelineStep, ...]:
    """The steps of the fastest of several calls of a compiled graph."""
    timer = compiled.backend.step_timer(compiled.executable)

    def run() -> _Run:
        call.state.reset()
        inputs = (*call.inputs, *compiled.sources.captured)
        times = timer([np.array(array_of(x), order="C") for x in inputs])
        return sum(step.seconds for step in times), tuple(_steps(times, kernels))

    return _fastest(run)[1]


def graph_memory(footprint: Footprint) -> tuple[int, ...]:
    """The bytes that a call of a compiled graph has allocated in each of its steps, by the plan."""
    live = [footprint.held] * len(footprint.steps)
    for block in footprint.blocks:
        for step in range(block.birth, max((block.birth, *block.reads)) + 1):
            live[step] += block.nbytes
    return tuple(live)


def _steps(
    times: Sequence[StepTime], kernels: Mapping[Node, str], begin: float = 0.0, depth: int = 0
) -> Iterator[TimelineStep]:
    """The steps of a call one after another, each before the steps inside it."""
    for timed in times:
        yield _step(timed, kernels, begin, depth)
        yield from _steps(timed.steps, kernels, begin, depth + 1)
        begin += timed.seconds


def _step(timed: StepTime, kernels: Mapping[Node, str], begin: float, depth: int) -> TimelineStep:
    node = timed.node
    if node is None:
        name = timed.label or _NAMES.get(timed.kind, timed.kind.value)
        step = TimelineStep(timed.kind, name, begin, timed.seconds, (), 0.0, timed.nbytes)
        return replace(step, depth=depth, runs=timed.runs, slowest=timed.slowest)
    body = body_of(node)
    nodes = (node, *(() if body is None else body.nodes))
    divided = timed.kind is TimedKind.CONTROL  # whose work is that of its steps
    return TimelineStep(
        timed.kind,
        node.op.name if body is None else body.name,
        begin,
        timed.seconds,
        origins_of(nodes),
        0.0 if divided else work(node),
        0 if divided else bytes_moved(node),
        timed.kernel or kernel_name(node, kernels),
        depth,
        timed.runs,
        timed.slowest,
        timed.iterations,
    )


def _fastest(run: Callable[[], _Run]) -> _Run:
    """The run that took the least time; the first one warms up caches."""
    start, runs = time.perf_counter(), [run()]
    while len(runs) < _MAX_RUNS and time.perf_counter() - start < SECONDS:
        runs.append(run())
    return min(runs, key=lambda timed: timed[0])
