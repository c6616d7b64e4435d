"""The optimised graph of a trace for an export target; its dynamic sizes become symbolic."""

from __future__ import annotations

from typing import Any

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.locks import imported
from dualflow.core.records import replace
from dualflow.function.calls.data_dependent_sizes import sized_by_data
from dualflow.function.calls.lazy_backends import capabilities_of, onnx_composites
from dualflow.function.calls.symbolic_graph import with_symbolic_sizes
from dualflow.function.options import compile_options
from dualflow.graph.fused import body_of
from dualflow.graph.ir import STAGED, Graph
from dualflow.graph.options import CompileOptions
from dualflow.graph.string_graphs import holds_strings
from dualflow.sizes.symbolic_sizes import UndecidedSize


def exported_graph(graph: Graph, options: CompileOptions, target: str) -> Graph:
    """``graph`` after the passes for ``target``; dynamic sizes are symbolic.

    Raises:
        InvalidArgumentError: there are strings, or a size depends on data.
    """
    if holds_strings(graph):
        raise InvalidArgumentError(f"{graph.name} can't be exported: it computes with strings.")
    options = replace(options, capabilities=capabilities_of(target))
    optimised: Graph = _pipeline().optimise(_sized(graph, options), options)
    return optimised


def simplified_graph(graph: Graph, options: CompileOptions) -> Graph:
    """``graph`` after the passes that keep every value and write no kernels; dynamic sizes are symbolic.

    Composites that ONNX has an op for are found before their parts need sizes, and once more in computations
    that were deferred until sizes are symbolic.

    Raises:
        InvalidArgumentError: no expression describes a size.
    """
    composites, pipeline = onnx_composites(), _pipeline()
    graph = pipeline.optimise(graph, options, passes=(composites,))
    passes = pipeline.with_rewrites((composites, *pipeline.SIMPLIFICATIONS), options.rewrites)
    simplified: Graph = pipeline.optimise(_sized(graph, options), options, passes=passes)
    return simplified


@STAGED.fill
def graph_at_stage(graph: Graph, stage: str) -> Graph:
    """``graph``, a trace, after the passes up to a stage; see :meth:`dualflow.graph.ir.Graph.draw`.

    Raises:
        InvalidArgumentError: there is no such stage, or the graph has kernels already.
    """
    options, pipeline = compile_options(), _pipeline()
    simplifications = pipeline.with_rewrites(pipeline.SIMPLIFICATIONS, options.rewrites)
    passes = {"traced": (), "optimised": simplifications, "kernels": None}
    if stage not in passes:
        raise InvalidArgumentError(f"There is no stage {stage!r}: use {', '.join(map(repr, passes))}.")
    if any(body_of(node) is not None for node in graph.nodes):
        if stage == "kernels":
            return graph
        raise InvalidArgumentError(
            f"{graph.name} has kernels: passes have run. Draw the .graph of the concrete function."
        )
    if stage == "traced":
        return graph
    options = replace(options, capabilities=capabilities_of(options.backend))
    staged: Graph = pipeline.optimise(_sized(graph, options), options, passes=passes[stage])
    return staged


def _pipeline() -> Any:
    """The module with all passes, imported at its first use: a program on disk needs none."""
    return imported("dualflow.graph.passes.pipeline")


def _sized(graph: Graph, options: CompileOptions) -> Graph:
    """``graph`` with symbolic sizes instead of dynamic ones."""
    if sized_by_data(graph) is None:
        return graph
    try:
        return with_symbolic_sizes(graph, options)
    except UndecidedSize as error:
        location = f" It is {error.location}" if error.location else ""
        raise InvalidArgumentError(
            f"{graph.name} can't be exported for all sizes: {error}. Fix the sizes of arguments.{location}"
        ) from None
