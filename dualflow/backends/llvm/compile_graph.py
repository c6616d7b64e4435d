"""From a graph after all passes to a linked program: plan, text, machine code.

The code is shared: graphs that differ only in sizes have the same text, hence one library in this process and
one object on disk. They differ in the parameter table.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from dualflow.backends.llvm import early_compile
from dualflow.backends.llvm.capabilities import capabilities
from dualflow.backends.llvm.certain_sources import certain_sources
from dualflow.backends.llvm.linked_program import LinkedProgram, Lowered
from dualflow.backends.llvm.runtime import jit, python_symbols, threads
from dualflow.backends.llvm.runtime.background_compile import BackgroundCompilation
from dualflow.backends.llvm.runtime.ir_source import IrSource
from dualflow.backends.runtime import switches
from dualflow.core.locks import imported, unforkable
from dualflow.core.records import replace
from dualflow.graph.compiled import GraphInputs
from dualflow.graph.ir import Graph
from dualflow.graph.options import CompileOptions
from dualflow.schedule.host_fallback import with_host_fallbacks
from dualflow.schedule.plan import plan
from dualflow.schedule.planned import Plan

if TYPE_CHECKING:
    from dualflow.backends.llvm.interval_clock import IntervalClock
    from dualflow.backends.llvm.program import Program


def planned(graph: Graph, options: CompileOptions) -> Plan:
    """The plan of ``graph``, in which loops and conditionals with host calls are host calls.

    With a memory budget, calls run in the order for which the budget was computed.
    """
    capabilities_here, separate = options.capabilities & capabilities(), bool(switches.checked_side())
    if options.memory_budget is not None:
        capabilities_here = replace(capabilities_here, concurrent_calls=1)
    return plan(with_host_fallbacks(graph), capabilities_here, separate=separate, costs=options.cost_model)


def lowered(
    graph: Graph,
    options: CompileOptions,
    begin: Callable[[IrSource], None] = lambda _: None,
    clock: IntervalClock | None = None,
) -> Lowered:
    """The plan and the code of ``graph``; ``begin`` and ``clock`` are those of ``program.write``."""
    layout = planned(graph, options)
    for source in certain_sources(layout):
        begin(source)
    write = imported("dualflow.backends.llvm.program").write  # LLVM compiles the sources above meanwhile
    return Lowered(graph, layout, write(layout, options, begin, clock))


def compile_graph(
    graph: Graph,
    options: CompileOptions,
    clock: IntervalClock | None = None,
    background: BackgroundCompilation | None = None,
) -> LinkedProgram:
    """The program of ``graph``, whose passes have run.

    Args:
        graph: the graph.
        options: the compile options.
        clock: times the steps of each call; None for a program without a clock.
        background: the compilation that was begun before the passes; ended here.
    """
    with background or BackgroundCompilation() as background:
        result = lowered(graph, options, partial(early_compile.begin, background), clock)
        program = result.program
        libraries, new_library = _libraries_of(program, background)
        pool = _pool(background) if program.image.uses_pool else None
    return LinkedProgram(
        image=program.image,
        inputs=GraphInputs.of(graph),
        functions={
            name: library.address(name) for source, library in libraries.items() for name in source.exports
        },
        libraries=tuple(dict.fromkeys(libraries[source] for source in program.sources)),
        new_library=new_library,
        pool=pool,
        loaded=False,
        lower=lambda: result,
    )


def _libraries_of(
    program: Program, background: BackgroundCompilation
) -> tuple[dict[IrSource, jit.Library], jit.Library | None]:
    """The library of each of a program's sources, and the new one, if any."""
    new = None
    with unforkable():
        libraries = {
            source: library for source in program.sources if (library := early_compile.libraries.get(source))
        }
        missing = [source for source in program.sources if source not in libraries]
        if missing:
            symbols = {**python_symbols.addresses(), **program.addresses}
            if switches.checked_side():
                symbols |= imported("dualflow.backends.llvm.runtime.checked_memory").symbols()
            symbols |= {name: library.address(name) for s, library in libraries.items() for name in s.exports}
            new = jit.compile_sources(missing, symbols, background)
            libraries |= dict.fromkeys(missing, new)
            early_compile.libraries.update(dict.fromkeys(missing, new))
        return libraries, new


def _pool(background: BackgroundCompilation) -> threads.Pool:
    """The thread pool; once it exists, no program begins to compile its code."""
    pool = threads.pool(background)
    early_compile.libraries[threads.pool_source()] = pool.library
    return pool
