"""The default backend: graphs as machine code that LLVM makes of our own text."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from dualflow.backends.llvm.capabilities import capabilities
from dualflow.backends.llvm.executable import KEPT_ARENA, Executable, planned
from dualflow.backends.llvm.program import write
from dualflow.backends.llvm.runtime import target
from dualflow.backends.llvm.runtime.jit import CompileReport
from dualflow.backends.runtime import switches
from dualflow.core.locks import imported
from dualflow.graph.compiled import CodeSource, CompileCosts, CompileStats, Footprint, KernelReport
from dualflow.graph.ir import Graph
from dualflow.graph.options import CompileOptions
from dualflow.schedule import plan as planning
from dualflow.schedule.executed_work import work_ratio
from dualflow.schedule.operands import CallKind
from dualflow.schedule.runs import run_of

if TYPE_CHECKING:
    from dualflow.backends.llvm.runtime.compiler import ObjectCode

_COST_RUNS = 3


def build(graph: Graph, options: CompileOptions) -> Executable:
    """Compile ``graph``, whose sizes are static and whose passes have run."""
    if switches.checked_side():
        checked: Executable = imported("dualflow.backends.llvm.checked_executable").CheckedExecutable(
            graph, options
        )
        return checked
    return Executable(graph, options)


def footprint(graph: Graph) -> Footprint:
    """The memory that a call takes of ``graph``."""
    return planning.footprint(graph, capabilities())


def compile_stats(compiled: Executable) -> CompileStats:
    """What the program consists of."""
    kinds = [call.kind for call in compiled.plan.walk()]
    made = [KernelReport(k.name, tuple([s.node for s in k.nest.steps])) for k in compiled.program.kernels]
    return CompileStats(
        kernels=tuple(made),
        products=kinds.count(CallKind.PRODUCT),
        hosts=kinds.count(CallKind.HOST),
        arena_bytes=compiled.program.arena_bytes,
        arena_stays=compiled.program.arena_bytes <= KEPT_ARENA,
        executed=work_ratio((run_of(k.nest, k.lanes), k.nest) for k in compiled.program.kernels),
    )


def costs(compiled: Executable) -> CompileCosts:
    """What compiling takes: planning and emission measured now, the rest as it was when it was done."""
    made = compiled.made
    known = [source for source in compiled.program.sources if made is None or source not in made.compiled]
    stages: list[ObjectCode | CompileReport] = [] if made is None else [made.report]
    if known:
        # LLVM: with a full cache it is not needed before
        compiler = imported("dualflow.backends.llvm.runtime.compiler")
        stages += compiler.build_all([source.text for source in known], target.vector_bits())
    return CompileCosts(
        emission=sorted(_emission_seconds(compiled) for _ in range(_COST_RUNS))[_COST_RUNS // 2],
        compilation=sum(stage.parse_ms + stage.optimise_ms + stage.emit_ms for stage in stages) / 1e3,
        linking=sum(library.report.link_ms for library in compiled.libraries) / 1e3,
        paid=0.0 if made is None else made.report.total_ms / 1e3,
        source=_source(compiled),
    )


def _emission_seconds(compiled: Executable) -> float:
    begun = time.perf_counter()
    write(planned(compiled.graph, compiled.options), compiled.options)
    return time.perf_counter() - begun


def _source(compiled: Executable) -> CodeSource:
    if not compiled.libraries:
        return CodeSource.NONE
    if compiled.made is None:
        return CodeSource.PROCESS
    return CodeSource.COMPILED if compiled.made.compiled else CodeSource.DISK
