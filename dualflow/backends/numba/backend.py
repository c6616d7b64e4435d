"""The Numba backend: graphs as Python source that ``numba.njit`` compiles."""

from __future__ import annotations

import time

from dualflow.backends.numba.executable import NumbaExecutable
from dualflow.graph.compiled import CompileCosts, Figures, KernelReport
from dualflow.graph.ir import Graph


def build(graph: Graph) -> NumbaExecutable:
    """Compile ``graph``, whose sizes are static and whose passes have run."""
    return NumbaExecutable(graph)


def text(compiled: NumbaExecutable) -> str:
    """The program and its kernels, as they run."""
    return compiled.source.listing(compiled.graph.name)


def figures(compiled: NumbaExecutable) -> Figures:
    """What the program consists of."""
    kinds = [call.kind for call in compiled.plan.walk()]
    return Figures(
        kernels=tuple([KernelReport(name, nodes) for name, nodes in compiled.source.runs]),
        products=kinds.count("product"),
        hosts=kinds.count("host"),
        arena_bytes=compiled.plan.arena_bytes,
        arena_stays=False,
    )


def costs(compiled: NumbaExecutable) -> CompileCosts:
    """What writing the source takes; Numba compiles a kernel in its first call, and keeps it on disk."""
    begun = time.perf_counter()
    NumbaExecutable(compiled.graph)
    return CompileCosts(
        emission=time.perf_counter() - begun, compilation=compiled.compile_seconds, linking=0.0,
        paid=compiled.compile_seconds, source="compiled" if compiled.source.kernels else "none",
    )
