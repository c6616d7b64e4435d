"""The Numba backend: graphs as Python source that ``numba.njit`` compiles."""

from __future__ import annotations

import time
from functools import partial

from dualflow.backends.numba.capabilities import capabilities
from dualflow.backends.numba.executable import NumbaExecutable
from dualflow.backends.numba.program_source import program
from dualflow.backends.runtime.numba_version_check import require_numba
from dualflow.graph.compiled import (
    CodeSource,
    CompileCosts,
    Compiled,
    CompileStats,
    Footprint,
    KernelReport,
    StepTimer,
    whole_call,
)
from dualflow.graph.ir import Graph
from dualflow.graph.options import CompileOptions
from dualflow.schedule import plan as planning
from dualflow.schedule.operands import CallKind
from dualflow.sizes.symbolic_sizes import typical


def build(graph: Graph, options: CompileOptions) -> Compiled:
    """Compile ``graph``, whose passes have run.

    Raises:
        UndecidedSize: a size depends on data.
    """
    require_numba()
    return NumbaExecutable(graph, options)


def footprint(graph: Graph, *, in_order: bool = True) -> Footprint:
    """The memory that a call of ``graph`` takes; its calls always run in order."""
    return planning.footprint(graph, capabilities())


def compile_stats(compiled: NumbaExecutable) -> CompileStats:
    """The kernels, products and host calls of the program."""
    kinds = [call.kind for call in compiled.plan.walk()]
    return CompileStats(
        kernels=tuple([KernelReport(name, nodes) for name, nodes in compiled.source.context.kernel_calls]),
        products=kinds.count(CallKind.PRODUCT),
        host_calls=sum(map(kinds.count, (CallKind.HOST, CallKind.POSITIONS, CallKind.FOURIER))),
        arena_bytes=typical(compiled.plan.arena_bytes),
        keeps_arena=False,
        recomputation_ratio=compiled.source.context.recomputation_ratio,
    )


def costs(compiled: NumbaExecutable) -> CompileCosts:
    """The costs of compiling: planning and emission are timed now, Numba's time was recorded before."""
    started = time.perf_counter()
    program(compiled.graph, compiled.options)
    emission = time.perf_counter() - started
    seconds, compiles = compiled.compile_seconds, compiled.origin is CodeSource.COMPILED
    return CompileCosts(
        emission=emission,
        compilation=seconds if compiles else 0.0,
        linking=0.0 if compiles else seconds,
        paid=seconds,
        source=compiled.origin,
    )


def step_timer(compiled: NumbaExecutable) -> StepTimer:
    """A function that times a call as a whole: the program is one function."""
    return partial(whole_call, compiled)
