"""The graphs between the passes of a compile, for reports."""

from __future__ import annotations

from dualflow.core.records import NamedTuple
from dualflow.function.calls.compiled_graph import CompiledGraph
from dualflow.graph.ir import Graph
from dualflow.graph.passes import PASSES, optimise, with_rewrites


class PassGraph(NamedTuple):
    """The graph after a pass.

    Attributes:
        name: the name of the pass; "trace" for the graph before all passes.
        reason: why the pass is at its position.
        graph: the graph after it.
    """

    name: str
    reason: str
    graph: Graph


def graphs_of_passes(compiled: CompiledGraph) -> tuple[PassGraph, ...]:
    """The trace, the graph after each pass that changed it, and the graph that runs."""
    passes = with_rewrites(PASSES, compiled.options.rewrites)
    reasons = {step.name: step.reason for step in passes}
    reasons |= {"trace": "one node for each op that Python called", "plan": "the graph that runs"}
    graphs: list[PassGraph] = []
    last_text = ""

    def observe(name: str, graph: Graph) -> None:
        nonlocal last_text
        text = str(graph)
        if text != last_text:
            graphs.append(PassGraph(name, reasons[name], graph))
            last_text = text

    observe("trace", compiled.graph)
    optimise(compiled.graph, compiled.options, observe, passes)
    observe("plan", compiled.optimised)
    return tuple(graphs)
