"""A Python function of one batch element, traced once and evaluated for the whole batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dualflow.core import dispatch
from dualflow.core.records import NamedTuple
from dualflow.core.tree import Structure
from dualflow.function.autograph.conversion import converted
from dualflow.function.batching.batched_value import BatchedValue
from dualflow.function.batching.dynamic_batch import batched_dynamically
from dualflow.function.batching.evaluate import evaluate_batched, require_unbatched
from dualflow.function.control.trace_bodies import operands
from dualflow.function.tracing.collect_results import collect
from dualflow.function.tracing.gradient_graphs import traced_gradients, with_gradient_graphs
from dualflow.function.tracing.tracer import OuterShape, Tracer, tracing
from dualflow.graph.ir import Graph
from dualflow.graph.passes.dead_code import eliminate_dead_code

Call = Callable[[Callable[..., Any], Sequence[Any]], Any]
"""Calls a function with values for the leaves of its arguments, and returns its result."""


class _Trace(NamedTuple):
    graph: Graph
    structure: Structure


def batch_function(
    fn: Callable[..., Any], call: Call, leaves: Sequence[Any], count: int | None, *, sequential: bool
) -> tuple[list[BatchedValue], Structure]:
    """Trace ``fn`` for one element, and evaluate it for a batch of ``count`` elements.

    In a trace with dynamic sizes, the evaluation is a node.

    Returns the leaves of the result, and their structure.

    Args:
        fn: a Python function, whose control flow is converted.
        call: calls ``fn`` with its arguments.
        leaves: the leaves of the arguments: a :class:`BatchedValue` for a tensor, else a Python value.
        count: the size of the batch; None if it is dynamic.
        sequential: whether such a node computes one element after the other if an operation has no batched
            form.

    Raises:
        UnbatchableError: an operation has no batched form.
    """
    trace = _run(converted(fn), call, leaves)
    tensors = [x for x in leaves if isinstance(x, BatchedValue)]
    sources = [c.source for c in trace.graph.captures]
    inputs = [*tensors, *[BatchedValue(x, is_batched=False) for x in operands(sources)]]
    if count is None or _has_dynamic_sizes(trace.graph):
        return batched_dynamically(trace.graph, inputs, sequential), trace.structure
    engine = dispatch.current()
    results = evaluate_batched(trace.graph, inputs, count, engine.innermost.record_assignment)
    outputs, new_values = results[: len(trace.graph.outputs)], results[len(trace.graph.outputs) :]
    variables = dict(zip(trace.graph.inputs[len(tensors) :], sources, strict=True))
    computed = [x.tensor for x, v in zip(outputs, trace.graph.outputs, strict=True) if v.node is not None]
    for update, value in zip(trace.graph.updates, new_values, strict=True):
        variable = variables[update.input]
        engine.innermost.update(variable, require_unbatched(value, variable), computed)
    return outputs, trace.structure


def _has_dynamic_sizes(graph: Graph) -> bool:
    """Whether the size of an input is dynamic."""
    return any(not v.spec.shape.is_static for v in graph.inputs)


def _run(fn: Callable[..., Any], call: Call, leaves: Sequence[Any]) -> _Trace:
    tracer = Tracer(getattr(fn, "__name__", "batch_element"), enclosing_engine=dispatch.current())
    arguments = [
        tracer.argument(x.element_spec, OuterShape(x.tensor, x.is_batched))
        if isinstance(x, BatchedValue)
        else x
        for x in leaves
    ]
    with tracing(tracer):
        structure, outputs = collect(call(fn, arguments), tracer)
    graph = tracer.builder.finish(outputs, tracer.updates())
    graph = with_gradient_graphs(graph, traced_gradients(tracer, graph.nodes))
    return _Trace(eliminate_dead_code(graph), structure)
