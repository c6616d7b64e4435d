"""Custom gradients of saved graphs: the gradient function of each, traced to a graph inside its node."""

from __future__ import annotations

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.records import replace
from dualflow.function.concrete import ConcreteFunction
from dualflow.function.tracing.gradient_graphs import (
    TracedGradient,
    UntraceableGradient,
    has_gradient_function,
    traced_gradient,
    with_gradient_graphs,
)
from dualflow.graph.ir import Graph, Node


def with_traced_gradients(trace: ConcreteFunction) -> Graph:
    """The graph of a trace, in which each custom gradient function is replaced by a graph.

    Tensors of the trace that a gradient function captures become further inputs of the node; no gradient
    flows through them at first order.

    Raises:
        InvalidArgumentError: a gradient function can't be traced, or has an effect; with the user's line.
    """
    graph = trace.graph
    gradients = {node: _traced(trace, node) for node in filter(has_gradient_function, graph.nodes)}
    if not gradients:
        return graph
    graph = with_gradient_graphs(graph, gradients)
    captures = zip(graph.inputs[len(graph.arguments) :], graph.captures, strict=True)
    ordered = sorted(captures, key=lambda item: not item[1].variable)
    return replace(
        graph,
        inputs=(*graph.arguments, *[value for value, _ in ordered]),
        captures=tuple([capture for _, capture in ordered]),
    )


def _traced(concrete: ConcreteFunction, node: Node) -> TracedGradient:
    """The gradient function of ``node`` as a graph.

    Raises:
        InvalidArgumentError: it can't be traced, or has an effect; with the user's line.
    """
    try:
        return traced_gradient(concrete.trace.tracer, node)
    except UntraceableGradient as error:
        place = "" if node.origin is None else f"\n  {node.origin}"
        raise InvalidArgumentError(
            f"The gradient function of {node.attrs['grad'].name} can't be saved: {error.message}. Compute "
            f"random numbers and effects before the function, and pass them to it.{place}"
        ) from error
