"""The default backend: compiles graphs to machine code through LLVM IR text."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from dualflow.backends.llvm.capabilities import capabilities
from dualflow.backends.llvm.compile_graph import compile_graph, lowered
from dualflow.backends.llvm.executable import MAX_REUSED_ARENA, Array, Executable
from dualflow.backends.llvm.runtime import target
from dualflow.backends.llvm.runtime.background_compile import BackgroundCompilation
from dualflow.backends.llvm.runtime.jit import CompileReport
from dualflow.backends.runtime import switches
from dualflow.core.locks import imported
from dualflow.graph.compiled import (
    CodeSource,
    CompileCosts,
    Compiled,
    CompileStats,
    Footprint,
    KernelReport,
    StepTime,
    StepTimer,
    whole_call,
)
from dualflow.graph.ir import Graph
from dualflow.graph.options import CompileOptions
from dualflow.schedule import plan as planning
from dualflow.schedule.operands import CallKind
from dualflow.schedule.select_kernel import kernel_launch
from dualflow.sizes.symbolic_sizes import typical

if TYPE_CHECKING:
    from dualflow.backends.llvm.runtime.parallel_compile import ObjectCode
    from dualflow.backends.llvm.timed_run import TimedExecutable

_COST_RUNS = 3


def build(graph: Graph, options: CompileOptions, background: BackgroundCompilation | None = None) -> Compiled:
    """Compile ``graph``, whose passes have run; ``background`` is that of :func:`compile_graph`."""
    if switches.checked_side():
        checked: Executable = imported("dualflow.backends.llvm.checked_executable").CheckedExecutable(
            graph, options
        )
        return checked
    return Executable(compile_graph(graph, options, background=background), options)


def footprint(graph: Graph, *, in_order: bool = True) -> Footprint:
    """The memory that a call of ``graph`` uses."""
    return planning.footprint(graph, capabilities(), in_order=in_order)


def compile_stats(compiled: Executable) -> CompileStats:
    """The kernels, products and host calls of the program."""
    work_ratio = imported("dualflow.schedule.executed_work").work_ratio
    kinds = [call.kind for call in compiled.plan.walk()]
    kernels = compiled.program.kernels
    nests = [kernel.lowered_nest() for kernel in kernels]
    reports = [
        KernelReport(kernel.name, tuple([step.node for step in nest.steps]))
        for kernel, nest in zip(kernels, nests, strict=True)
    ]
    return CompileStats(
        kernels=tuple(reports),
        products=kinds.count(CallKind.PRODUCT),
        host_calls=kinds.count(CallKind.HOST),
        arena_bytes=typical(compiled.image.arena_bytes),
        keeps_arena=typical(compiled.image.arena_bytes) <= MAX_REUSED_ARENA,
        tasks=compiled.image.tasks,
        recomputation_ratio=work_ratio(
            (kernel_launch(nest, kernel.lanes), nest) for kernel, nest in zip(kernels, nests, strict=True)
        ),
    )


def costs(compiled: Executable) -> CompileCosts:
    """The costs of compiling: of emission as measured now, of new code as measured when it was compiled."""
    new = compiled.new_library
    reused = [source for source in compiled.program.sources if new is None or source not in new.compiled]
    stages: list[ObjectCode | CompileReport] = [] if new is None else [new.report]
    if reused:
        # imports LLVM, which a full cache avoids
        compiler = imported("dualflow.backends.llvm.runtime.compiler")
        stages += compiler.build_all([source.text for source in reused], target.vector_bits())
    return CompileCosts(
        emission=sorted(_emission_seconds(compiled) for _ in range(_COST_RUNS))[_COST_RUNS // 2],
        compilation=sum(stage.parse_ms + stage.optimise_ms + stage.emit_ms for stage in stages) / 1e3,
        linking=sum(library.report.link_ms for library in compiled.libraries) / 1e3,
        paid=0.0 if new is None else new.report.total_ms / 1e3,
        source=_source(compiled),
    )


def step_timer(compiled: Executable) -> StepTimer:
    """A function that times each step of a call; with checked memory or without a clock, the whole call."""
    if switches.checked_side() or not imported("dualflow.backends.llvm.interval_clock").has_clock():
        return partial(whole_call, compiled)
    module = imported("dualflow.backends.llvm.timed_run")
    timed: TimedExecutable = module.TimedExecutable(compiled.graph, compiled.options)

    def run(arrays: Sequence[Array]) -> list[StepTime]:
        timed.run(arrays)
        return timed.times

    return run


def _emission_seconds(compiled: Executable) -> float:
    start = time.perf_counter()
    lowered(compiled.graph, compiled.options)
    return time.perf_counter() - start


def _source(compiled: Executable) -> CodeSource:
    if not compiled.libraries:
        return CodeSource.NONE
    if compiled.new_library is None:
        return CodeSource.PROCESS
    return CodeSource.COMPILED if compiled.new_library.compiled else CodeSource.DISK
