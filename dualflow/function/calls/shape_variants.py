"""Specialises a trace with open sizes for the shapes of a call, by evaluating its graph with a new tracer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from dualflow.core.spec import TensorSpec
from dualflow.function.calls.size_inference import EqualAxes
from dualflow.function.calls.traced_graph import TracedGraph
from dualflow.function.tracing.tracer import Tracer, tracing, tracing_lock
from dualflow.graph.interpret import replay
from dualflow.graph.ir import Graph, Update
from dualflow.graph.passes.dead_code import eliminate_dead_code
from dualflow.graph.symbolic_size_ops import Axis

MAX_SHAPES: Final = 256
MAX_PROGRAMS: Final = 64


class ShapeVariants:
    """The specialisations of a trace with open sizes: programs for all sizes, and traces for single shapes.

    The latest 64 programs and 256 traces are kept.
    """

    def __init__(self) -> None:
        self._traces: dict[tuple[Any, ...], TracedGraph] = {}
        self._programs: dict[EqualAxes, TracedGraph] = {}

    def get(self, trace: TracedGraph, inputs: Sequence[Any]) -> TracedGraph:
        """The specialisation of ``trace`` for the shapes of ``inputs``, tensors and variables."""
        shapes = tuple([x.shape for x in inputs])
        variant = self._traces.get(shapes)
        if variant is None:
            with tracing_lock.lock:
                variant = self._traces.get(shapes) or specialise(trace, inputs)
                self._traces[shapes] = variant
                while len(self._traces) > MAX_SHAPES:
                    del self._traces[next(iter(self._traces))]
        return variant

    def for_all_sizes(self, trace: TracedGraph, inputs: Sequence[Any]) -> TracedGraph | None:
        """The specialisation of ``trace`` whose one native program serves all sizes; None if there is none.

        Axes have one size in that program if their sizes in ``inputs`` are equal.
        """
        if trace.options.interpret_first or trace.options.memory_budget is not None:
            return None  # the plan of a budget is one for numbers; a thread compiles for the shapes of a call
        equal = equal_axes(trace.graph, inputs)
        program = self._programs.get(equal)
        if program is None:
            program = self._programs.setdefault(equal, trace.with_equal_axes(equal))
            for oldest in list(self._programs)[:-MAX_PROGRAMS]:
                self._programs.pop(oldest, None)
        return program if program.compiled.serves_all_sizes else None

    def all(self) -> list[TracedGraph]:
        """The specialisations that have been called."""
        programs = [p for p in list(self._programs.values()) if p.compiled.serves_all_sizes]
        return [*self._traces.values(), *programs]


def equal_axes(graph: Graph, inputs: Sequence[Any]) -> EqualAxes:
    """Groups of open axes of the graph's arguments whose sizes in ``inputs`` are equal."""
    groups: dict[int, list[Axis]] = {}
    for i, (value, x) in enumerate(zip(graph.arguments, inputs, strict=True)):
        for axis, size in enumerate(value.spec.shape):
            if size is None:
                groups.setdefault(x.shape[axis], []).append((i, axis))
    return tuple([tuple(group) for group in groups.values()])


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
    return TracedGraph(
        tracer, recorded, options=trace.options, variable_arguments=trace.variable_arguments, pack=trace.pack
    )
