"""The default backend: graphs as machine code that LLVM makes of our own text."""

from __future__ import annotations

import time

from dualflow.backends.llvm.executable import KEPT_ARENA, Executable
from dualflow.backends.llvm.product import choice
from dualflow.backends.llvm.program import write
from dualflow.backends.llvm.runtime import target
from dualflow.core.locks import imported
from dualflow.graph.compiled import CodeSource, CompileCosts, Figures, KernelReport
from dualflow.graph.ir import Graph
from dualflow.graph.options import CompileOptions
from dualflow.schedule.operands import CallKind
from dualflow.schedule.plan import plan

_COST_RUNS = 3


def build(graph: Graph, options: CompileOptions) -> Executable:
    """Compile ``graph``, whose sizes are static and whose passes have run."""
    return Executable(graph, options)


def figures(compiled: Executable) -> Figures:
    """What the program consists of."""
    kinds = [call.kind for call in compiled.plan.walk()]
    made = [KernelReport(k.name, tuple([s.node for s in k.nest.steps])) for k in compiled.program.kernels]
    return Figures(
        kernels=tuple(made),
        products=kinds.count(CallKind.PRODUCT),
        hosts=kinds.count(CallKind.HOST),
        arena_bytes=compiled.program.arena_bytes,
        arena_stays=compiled.program.arena_bytes <= KEPT_ARENA,
    )


def costs(compiled: Executable) -> CompileCosts:
    """What compiling takes: planning and emission measured now, the rest as it was when it was done."""
    library = compiled.library
    report = library.report if library else None
    compilation = linking = paid = 0.0
    if library is not None and report is not None:
        compiler = imported(
            "dualflow.backends.llvm.runtime.compiler"
        )  # LLVM: with a full cache it is not needed before
        stages = compiler.build(library.text, target.vector_bits()) if report.from_cache else report
        compilation = (stages.parse_ms + stages.optimise_ms + stages.emit_ms) / 1e3
        linking = report.link_ms / 1e3
        paid = 0.0 if compiled.reused else report.total_ms / 1e3
    return CompileCosts(
        emission=sorted(_emission_seconds(compiled) for _ in range(_COST_RUNS))[_COST_RUNS // 2],
        compilation=compilation,
        linking=linking,
        paid=paid,
        source=_source(compiled),
    )


def _emission_seconds(compiled: Executable) -> float:
    begun, own = time.perf_counter(), choice.own()
    write(plan(compiled.graph, strided_products=own, window_products=own), compiled.options)
    return time.perf_counter() - begun


def _source(compiled: Executable) -> CodeSource:
    if compiled.library is None:
        return CodeSource.NONE
    if compiled.reused:
        return CodeSource.PROCESS
    return CodeSource.DISK if compiled.library.report.from_cache else CodeSource.COMPILED
