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
    graphs = [PassGraph("trace", "one node for each op that Python called", compiled.graph)]

    def observe(name: str, graph: Graph) -> None:
        if str(graph) != str(graphs[-1].graph):
            graphs.append(PassGraph(name, reasons[name], graph))

    optimise(compiled.graph, compiled.options, observe, passes)
    last = PassGraph("plan", "the graph that runs", compiled.optimised)
    if str(last.graph) != str(graphs[-1].graph):
        graphs.append(last)
    return tuple(graphs)
