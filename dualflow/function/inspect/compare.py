"""``df.compare``: time, memory and results of a function, eager and compiled."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import CodeType
from typing import Any

from dualflow.core import dispatch
from dualflow.core.progress import progress
from dualflow.core.tracebacks import entry
from dualflow.function.calls.lazy_backends import listed_kernels
from dualflow.function.inspect.agreement import compared
from dualflow.function.inspect.compare_report import Comparison
from dualflow.function.inspect.device_run import measure_on_device, require_device
from dualflow.function.inspect.inspected import InspectedCall, inspect_call
from dualflow.function.inspect.measure import CountingEngine, best_times, peak_bytes
from dualflow.function.inspect.measurements import Costs, DeviceMeasurements, Fused
from dualflow.function.inspect.pass_graphs import graph_before_passes, graphs_of_passes
from dualflow.function.inspect.timeline import timelines
from dualflow.graph.compiled import CompileStats, KernelReport, PartReport
from dualflow.graph.ir import Node, Origin
from dualflow.graph.origin import line_label, origins_of
from dualflow.graph.passes.pipeline import optimise

_COST_RUNS = 3


@entry
def compare(f: Callable[..., Any], *args: Any, devices: Sequence[str] = (), **kwargs: Any) -> Comparison:
    """Run ``f(*args, **kwargs)`` eagerly and as a compiled graph, and measure both.

    The function is called about a hundred times each way, for about a second in all, or a few times if a call
    takes long. Variables and random generators are reset before each measurement and at the end, so that
    comparing a training step does not train. Side effects of Python code, such as printing or appending to a
    list, happen at each eager call. During the eager calls of ``f``, functions that it calls run eagerly too.

    Args:
        f: a :func:`dualflow.function`, or a plain function, which is converted to one.
        args: the positional arguments of ``f``.
        devices: other devices to measure ``f`` on, such as ``["/GPU:0"]``; by default none. The times
            include the transfers of arguments and results. Pass an argument of ``f`` with this name by its
            position.
        kwargs: the keyword arguments of ``f``.

    Returns:
        The measurements; print them for a table.

    Raises:
        DTypeError: ``f`` is not callable.
        InvalidArgumentError: a device is not available, or is the CPU.
        FailedPreconditionError: called while a function is traced or a tape records.

    >>> import dualflow as df
    >>> report = compare(lambda x: df.reduce_sum(df.exp(x) * 2.0), df.ones([8]))
    >>> report.kernels, report.eager_ops, report.difference.agrees
    (1, {'exp': 1, 'multiply': 1, 'reduce_sum': 1}, True)
    """
    for device in devices:
        require_device(device)
    with inspect_call("compare", f, args, kwargs) as call, progress(f"compare {call.concrete.name}"):
        return _ComparisonRun(call).report(tuple([measure_on_device(call, device) for device in devices]))


class _ComparisonRun:
    """One comparison: an eager and a compiled call, and their measurements."""

    def __init__(self, call: InspectedCall) -> None:
        self.call, self.concrete = call, call.concrete
        self.compiled = call.concrete.with_static_shapes(call.inputs).compiled
        self.eager, self.graph = call.timed_call(eagerly=True), call.timed_call(eagerly=False)

    def report(self, devices: tuple[DeviceMeasurements, ...]) -> Comparison:
        executable = self.compiled.executable
        compile_stats = self.compiled.backend.compile_stats(executable)
        counting = CountingEngine()
        with dispatch.using(counting):
            expected = self.call.outcome(eagerly=True)
        difference = compared(expected, self.call.outcome(eagerly=False))
        del expected
        eager_seconds, graph_seconds = best_times([self.eager, self.graph])
        kernels = listed_kernels(self.compiled.without_symbolic_sizes)
        return Comparison(
            name=self.concrete.name,
            arguments=self.call.arguments(),
            argument_bytes=sum(x.spec.nbytes for x in self.call.inputs),
            eager_seconds=eager_seconds,
            graph_seconds=graph_seconds,
            eager_peak_bytes=peak_bytes(self.eager),
            graph_peak_bytes=self._graph_peak(compile_stats),
            eager_ops=dict(counting.ops),
            nodes=len(self.concrete.graph.nodes),
            kernels=len(compile_stats.kernels),
            blas_calls=compile_stats.products,
            host_calls=compile_stats.host_calls,
            fused=tuple(_fused(k, kernels) for k in compile_stats.kernels if len(k.nodes) > 1),
            parts=tuple(PartReport(p.kind, p.what, p.reason) for p in executable.parts),
            recomputation_ratio=compile_stats.recomputation_ratio,
            tasks=compile_stats.tasks,
            workload=import_module("dualflow.graph.analysis").workload(self.compiled.optimised),
            costs=self._costs(),
            difference=difference,
            updated=tuple(_short(u.input.spec.name) for u in executable.graph.updates),
            devices=devices,
            definition=_definition(self.call.traced.python_function),
            timelines=timelines(self.call, self.compiled, eager_seconds, kernels),
            pass_graphs=graphs_of_passes(self.compiled, kernels),
            listing=self.compiled.text,
        )

    def _graph_peak(self, compile_stats: CompileStats) -> int:
        """The peak of a call, plus the arena if it was allocated before the call."""
        peak, arena = peak_bytes(self.graph), compile_stats.arena_bytes
        outputs = sum(v.spec.nbytes for v in self.compiled.optimised.outputs)
        allocated_before = compile_stats.keeps_arena or peak < arena + outputs
        return peak + arena if allocated_before else peak

    def _costs(self) -> Costs:
        traced, compiled = self.call.traced, self.compiled
        begin = graph_before_passes(compiled)
        self.graph.prepare()
        call = traced._signature.bind(self.graph.args, self.graph.kwargs)
        compiling = compiled.backend.costs(compiled.executable)
        return Costs(
            trace=_median_seconds(lambda: traced.traced(call)),
            passes=0.0 if begin is None else _median_seconds(lambda: optimise(begin, compiled.options)),
            emission=compiling.emission,
            compilation=compiling.compilation,
            linking=compiling.linking,
            paid=compiling.paid,
            source=compiling.source,
        )


def _median_seconds(run: Callable[[], object]) -> float:
    seconds = []
    for _ in range(_COST_RUNS):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return sorted(seconds)[len(seconds) // 2]


def _fused(kernel: KernelReport, listed: Mapping[Node, str]) -> Fused:
    """The name in the listing, the ops and the source lines of a kernel."""
    nodes = kernel.nodes
    name = next((listed[node] for node in nodes if node in listed), kernel.name)
    lines = dict.fromkeys(map(line_label, sorted(origins_of(nodes))))
    return Fused(name, tuple(node.op.name for node in nodes), tuple(lines))


def _definition(python_function: Callable[..., Any]) -> Origin | None:
    code: CodeType | None = getattr(python_function, "__code__", None)
    return None if code is None else Origin(code.co_filename, code.co_firstlineno, code.co_name)


def _short(name: str | None) -> str:
    return (name or "variable").removesuffix(":0")
