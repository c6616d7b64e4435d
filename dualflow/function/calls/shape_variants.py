"""Specialises a trace with open sizes for the shapes of a call, by evaluating its graph with a new tracer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from dualflow.core.spec import TensorSpec
from dualflow.function.calls.traced_graph import TracedGraph
from dualflow.function.tracing.tracer import Tracer, tracing, tracing_lock
from dualflow.graph.interpret import replay
from dualflow.graph.ir import Update
from dualflow.graph.passes.dead_code import eliminate_dead_code

MAX_SHAPES: Final = 256


class ShapeVariants:
    """The specialisations of a trace with open sizes, by the shapes of the calls; the latest 256."""

    def __init__(self) -> None:
        self._traces: dict[tuple[Any, ...], TracedGraph] = {}

    def get(self, trace: TracedGraph, inputs: Sequence[Any]) -> TracedGraph:
        """``trace`` for the shapes of ``inputs``, tensors and variables."""
        shapes = tuple([x.shape for x in inputs])
        variant = self._traces.get(shapes)
        if variant is None:
            with tracing_lock.lock:
                variant = self._traces.get(shapes) or specialise(trace, inputs)
                self._traces[shapes] = variant
                while len(self._traces) > MAX_SHAPES:
                    del self._traces[next(iter(self._traces))]
        return variant

    def all(self) -> list[TracedGraph]:
        """All specialised traces, the newest last."""
        return list(self._traces.values())


def specialise(trace: TracedGraph, inputs: Sequence[Any]) -> TracedGraph:
    """``trace``, recorded for arguments with the shapes of ``inputs``."""
    graph = trace.graph
    tracer = Tracer(graph.name, options=trace.options)
    with tracing(tracer):
        arguments = [
            tracer.argument(TensorSpec(x.shape, v.spec.dtype, v.spec.name))
            for x, v in zip(inputs, graph.arguments, strict=True)
        ]
        captured = [tracer.read(c.source) if c.variable else tracer.lift(c.source) for c in graph.captures]
        results = replay(graph, [*arguments, *captured], tracer.record_assignment)
        count = len(graph.outputs)
        place = {v: i for i, v in enumerate(graph.inputs)}
        bound: list[Update] = []
        for update, value in zip(graph.updates, results[count:], strict=True):
            at = place[update.input]
            if at < len(arguments):
                bound.append(Update(arguments[at]._value, value._value))
            else:
                tracer.assign(graph.captures[at - len(arguments)].source, value)
    outputs = [tracer.lift(x)._value for x in results[:count]]
    recorded = eliminate_dead_code(tracer.builder.finish(outputs, [*bound, *tracer.updates()]))
    return TracedGraph(tracer, recorded, options=trace.options, bound=trace.bound, pack=trace.pack)
