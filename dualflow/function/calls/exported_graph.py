"""The optimised graph of a trace for an export target; its open sizes become symbolic."""

from __future__ import annotations

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.records import replace
from dualflow.core.symbolic_sizes import UndecidedSize
from dualflow.function.calls.data_dependent_sizes import sized_by_data
from dualflow.function.calls.lazy_backends import capabilities_of
from dualflow.function.calls.symbolic_graph import with_symbolic_sizes
from dualflow.graph.ir import Graph
from dualflow.graph.options import CompileOptions
from dualflow.graph.passes import optimise
from dualflow.graph.string_graphs import holds_strings


def exported_graph(graph: Graph, options: CompileOptions, target: str) -> Graph:
    """``graph`` after the passes for ``target``; open sizes are symbolic.

    Raises:
        InvalidArgumentError: there are strings, or a size depends on data.
    """
    if holds_strings(graph):
        raise InvalidArgumentError(f"{graph.name} can't be exported: it computes with strings.")
    options = replace(options, capabilities=capabilities_of(target))
    if sized_by_data(graph) is not None:
        try:
            graph = with_symbolic_sizes(graph, options)
        except UndecidedSize as error:
            place = f" It is {error.place}" if error.place else ""
            raise InvalidArgumentError(
                f"{graph.name} can't be exported for all sizes: {error}. Fix the sizes of arguments.{place}"
            ) from None
    return optimise(graph, options)
