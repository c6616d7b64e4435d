"""The specialisations of a trace with dynamic sizes: programs for all sizes, and traces for single shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Generic, Protocol, TypeVar

from dualflow.function.calls.size_decisions import CallSizes
from dualflow.function.calls.size_inference import EqualAxes
from dualflow.function.tracing.tracer import tracing_lock
from dualflow.graph.ir import Graph
from dualflow.graph.symbolic_size_ops import Axis

MAX_SHAPES: Final = 256
MAX_PROGRAMS: Final = 64
MAX_DECISIONS: Final = 16
"""The maximum number of programs for one pattern of equal sizes; they differ in comparisons of sizes."""


class Specialisation(Protocol):
    """The interface of a trace that is specialised for sizes.

    Attributes:
        has_served: whether it is for all sizes, and has served a call.
    """

    has_served: bool

    def satisfies_guards(self, inputs: Sequence[Any]) -> bool:
        """Whether the recorded comparisons of sizes have the same outcomes for the shapes of ``inputs``."""


S = TypeVar("S", bound=Specialisation)
S_co = TypeVar("S_co", bound=Specialisation, covariant=True)


class DynamicTrace(Protocol[S_co]):
    """The interface of a trace with dynamic sizes, which creates its specialisations."""

    @property
    def graph(self) -> Graph:
        """The graph of the trace."""

    def with_shapes(self, inputs: Sequence[Any]) -> S_co:
        """The trace for the shapes of ``inputs``."""

    def with_equal_axes(self, equal_axes: EqualAxes, call_sizes: CallSizes) -> S_co:
        """The trace for all sizes, for calls in which these dynamic axes of arguments have equal sizes.

        The sizes of a call decide the comparisons that ops make of sizes.
        """


class ShapeVariants(Generic[S]):
    """The specialisations of a trace with dynamic sizes.

    The latest 64 programs and 256 traces are kept.
    """

    def __init__(self) -> None:
        self._traces: dict[tuple[Any, ...], S] = {}
        self._programs: dict[EqualAxes, list[S]] = {}
        self._latest: tuple[tuple[Any, ...], S | None] = (), None

    @property
    def latest_shapes(self) -> tuple[Any, ...]:
        """The shapes of the latest inputs that a program for all sizes was requested for."""
        return self._latest[0]

    def for_shapes(self, trace: DynamicTrace[S], inputs: Sequence[Any]) -> S:
        """``trace`` for the shapes of ``inputs``, tensors and variables."""
        shapes = tuple([x.shape for x in inputs])
        variant = self._traces.get(shapes)
        if variant is None:
            with tracing_lock.lock:
                variant = self._traces.get(shapes) or trace.with_shapes(inputs)
                self._traces[shapes] = variant
                while len(self._traces) > MAX_SHAPES:
                    del self._traces[next(iter(self._traces))]
        return variant

    def for_all_sizes(self, trace: DynamicTrace[S], inputs: Sequence[Any]) -> S | None:
        """The specialisation for all sizes, in which axes that are equal in ``inputs`` share a size variable.

        Its ops decide alike for these sizes. Whether native programs serve them is known when it is compiled.
        None if ops decide in too many ways.
        """
        shapes = tuple([x.shape for x in inputs])
        latest_shapes, program = self._latest
        if shapes != latest_shapes or program is None or not program.satisfies_guards(inputs):
            program = self._program_for(trace, inputs)
            self._latest = shapes, program
        return program

    def _program_for(self, trace: DynamicTrace[S], inputs: Sequence[Any]) -> S | None:
        equal = equal_axes(trace.graph, inputs)
        programs = self._programs.get(equal)
        if programs is None:
            programs = self._programs.setdefault(equal, [])
            for oldest in list(self._programs)[:-MAX_PROGRAMS]:
                self._programs.pop(oldest, None)
        for program in programs:
            if program.satisfies_guards(inputs):
                return program
        if len(programs) >= MAX_DECISIONS:
            return None
        axes = [axis for group in equal for axis in group]
        program = trace.with_equal_axes(
            equal, CallSizes({(i, axis): inputs[i].shape[axis] for i, axis in axes})
        )
        programs.append(program)
        return program

    def all(self) -> list[S]:
        """The specialisations that have been called."""
        programs = [program for several in list(self._programs.values()) for program in several]
        return [*self._traces.values(), *(program for program in programs if program.has_served)]


def equal_axes(graph: Graph, inputs: Sequence[Any]) -> EqualAxes:
    """Groups of dynamic axes of the graph's arguments whose sizes in ``inputs`` are equal."""
    groups: dict[int, list[Axis]] = {}
    for i, (value, x) in enumerate(zip(graph.arguments, inputs, strict=True)):
        for axis, size in enumerate(value.spec.shape):
            if size is None:
                groups.setdefault(x.shape[axis], []).append((i, axis))
    return tuple([tuple(group) for group in groups.values()])
