"""The executable of a graph: loaded from the disk, or compiled after the passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dualflow.core.locks import unforkable
from dualflow.function.calls.lazy_backends import building, program_entry
from dualflow.graph.options import CompileOptions

if TYPE_CHECKING:
    from dualflow.graph.compiled import Compiled
    from dualflow.graph.ir import Graph


def built_program(
    graph: Graph, options: CompileOptions, optimise: Callable[[], Graph], *, may_load: bool = True
) -> Compiled:
    """The executable of ``graph``, whose passes have not run.

    Args:
        graph: the graph before the passes.
        options: how it is compiled.
        optimise: returns the graph after all passes; it is called unless the program is on the disk.
        may_load: whether the program may come from the disk, and is stored there; False if the passes have
            run, or the graph after them doesn't follow from ``graph`` and ``options``.

    Raises:
        UndecidedSize: no one program serves all values of its size variables.
    """
    entry = program_entry(graph, options) if may_load else None
    if entry is not None:
        with unforkable():
            loaded: Compiled | None = entry.load()
        if loaded is not None:
            return loaded
    if options.rewrites:  # they may call any code, and so don't run while other threads compile
        after_rewrites = optimise()
        optimise = lambda: after_rewrites  # noqa: E731
    with building(graph, options) as build:
        optimised = optimise()
        with unforkable():  # a child process would inherit locks of imports and of the compiler
            executable: Any = build(optimised)
            if entry is not None:
                entry.store(executable)
    compiled: Compiled = executable
    return compiled
