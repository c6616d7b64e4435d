"""A Python function of one row, traced once and run for all rows at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dualflow.core import dispatch
from dualflow.core.records import NamedTuple
from dualflow.core.tree import Structure
from dualflow.function.autograph.conversion import converted
from dualflow.function.batching.batched_value import BatchedValue
from dualflow.function.batching.evaluate import evaluate_batched, shared
from dualflow.function.control.bodies import operands
from dualflow.function.tracing.collect_results import collect
from dualflow.function.tracing.tracer import Tracer, tracing
from dualflow.graph.ir import Graph
from dualflow.graph.passes.dead_code import eliminate_dead_code

Call = Callable[[Callable[..., Any], Sequence[Any]], Any]
"""From a function and values for the leaves of its arguments to what it returns."""


class _Trace(NamedTuple):
    graph: Graph
    structure: Structure


def map_rows(
    fn: Callable[..., Any], call: Call, leaves: Sequence[Any], count: int
) -> tuple[list[BatchedValue], Structure]:
    """The leaves of what ``fn`` returns for each of ``count`` rows, and their structure.

    Args:
        fn: its control flow is converted.
        call: gives ``fn`` its arguments.
        leaves: those of the arguments: a :class:`BatchedValue` for a tensor, else a Python value.
        count: the number of rows.

    Raises:
        UnbatchableError: something can't be done for all rows at once.
    """
    trace = _run(converted(fn), call, leaves)
    tensors = [x for x in leaves if isinstance(x, BatchedValue)]
    sources = [c.source for c in trace.graph.captures]
    inputs = [*tensors, *[BatchedValue(x, False) for x in operands(sources)]]
    engine = dispatch.current()
    found = evaluate_batched(trace.graph, inputs, count, engine.innermost.record_assignment)
    outputs, news = found[: len(trace.graph.outputs)], found[len(trace.graph.outputs) :]
    variables = dict(zip(trace.graph.inputs[len(tensors) :], sources, strict=True))
    made = [x.tensor for x, v in zip(outputs, trace.graph.outputs, strict=True) if v.node is not None]
    for update, value in zip(trace.graph.updates, news, strict=True):
        variable = variables[update.input]
        engine.innermost.update(variable, shared(value, variable), made)
    return outputs, trace.structure


def _run(fn: Callable[..., Any], call: Call, leaves: Sequence[Any]) -> _Trace:
    tracer = Tracer(getattr(fn, "__name__", "row"), around=dispatch.current())
    given = [tracer.argument(x.row_spec) if isinstance(x, BatchedValue) else x for x in leaves]
    with tracing(tracer):
        structure, outputs = collect(call(fn, given), tracer)
    return _Trace(eliminate_dead_code(tracer.builder.finish(outputs, tracer.updates())), structure)
