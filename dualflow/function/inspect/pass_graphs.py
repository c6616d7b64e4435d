"""The graphs between the passes of a compile, for reports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dualflow.core.records import NamedTuple
from dualflow.function.calls.compiled_graph import CompiledGraph
from dualflow.function.calls.data_dependent_sizes import is_one_node, sized_by_data
from dualflow.graph.draw.diagram import NumberedKernel
from dualflow.graph.fused import body_of, computed_nodes
from dualflow.graph.ir import Graph, Node
from dualflow.graph.passes.pipeline import PASSES, optimise, with_rewrites


class PassGraph(NamedTuple):
    """The graph after a pass.

    Attributes:
        name: the name of the pass; "trace" for the graph before all passes.
        reason: why the pass is at its position.
        graph: the graph after it.
        kernels: the kernels that compute its nodes, by the names of the listing.
    """

    name: str
    reason: str
    graph: Graph
    kernels: Mapping[Node, NumberedKernel]


def graphs_of_passes(compiled: CompiledGraph, kernels: Mapping[Node, str]) -> tuple[PassGraph, ...]:
    """The trace, the graph after each pass that changed it, and the graph that runs.

    Args:
        compiled: the compiled graph.
        kernels: the name that the kernel of each node has in the listing.
    """
    passes = with_rewrites(PASSES, compiled.options.rewrites)
    reasons = {step.name: step.reason for step in passes}
    reasons |= {"trace": "one node for each op that Python called", "plan": "the graph that runs"}
    graphs: list[PassGraph] = []
    last_text = ""

    def observe(name: str, graph: Graph) -> None:
        nonlocal last_text
        text = str(graph)
        if text != last_text:
            graphs.append(PassGraph(name, reasons[name], graph, {}))
            last_text = text

    observe("trace", compiled.graph)
    if (begin := graph_before_passes(compiled)) is not None:
        optimise(begin, compiled.options, observe, passes)
    observe("plan", compiled.optimised)
    runs = compiled.optimised  # equal to the last graph, but with the nodes that the kernels compute
    graphs[-1] = graphs[-1]._replace(graph=runs, kernels=dict(_kernels_of(runs, kernels)))
    return tuple(graphs)


def graph_before_passes(compiled: CompiledGraph) -> Graph | None:
    """The graph that the passes begin with, whose sizes may be symbolic; None if no pass has run."""
    if is_one_node(compiled.optimised):
        return None
    symbolic = compiled.serves_all_sizes or sized_by_data(compiled.graph) is not None
    return compiled.graph_with_symbolic_sizes if symbolic else compiled.graph


def kernel_name(node: Node, kernels: Mapping[Node, str]) -> str:
    """The name of the kernel that computes ``node``, or the nodes of its body; "" for none."""
    return next((kernels[n] for n in computed_nodes(node) if n in kernels), "")


def _kernels_of(graph: Graph, kernels: Mapping[Node, str]) -> Iterator[tuple[Node, NumberedKernel]]:
    """The nodes that kernels compute, in a graph, its branches and loops."""
    for node in graph.nodes:
        if name := kernel_name(node, kernels):
            yield node, NumberedKernel(f"kernel {name}", int(name.removeprefix("k")))
        elif body_of(node) is None:
            for _, body in node.bodies:
                yield from _kernels_of(body, kernels)
