"""A trace that can be called under any engine: compiled, inlined into another trace, or recorded by a tape.

============================== ===================================== ==============================
sizes of the arguments         specialisation that runs a call       method that returns it
============================== ===================================== ==============================
static                         the only one                          ``with_static_shapes``
dynamic, eager call            for all sizes, symbolic; a call uses  ``_program_for``
                               that for its equal axes and guards
dynamic, without such a        for the shapes of the call            ``with_static_shapes``
program, or in another trace
============================== ===================================== ==============================
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from dualflow.core import dispatch
from dualflow.core.dispatch import Engine
from dualflow.core.locks import cached_attribute
from dualflow.eager.engine import EagerEngine
from dualflow.eager.recording import Recording
from dualflow.eager.updates import VariableUpdate, commit
from dualflow.function.calls.call_form import REFUSED
from dualflow.function.calls.compiled_graph import CompiledGraph
from dualflow.function.calls.failed_calls import AssignmentHistory
from dualflow.function.calls.lazy_backends import capabilities_of
from dualflow.function.calls.recorded_trace import RecordedTrace
from dualflow.function.calls.shape_variants import ShapeVariants
from dualflow.function.calls.size_decisions import CallSizes
from dualflow.function.calls.size_inference import EqualAxes
from dualflow.function.calls.taped_call import CALL, ForwardBackward, TapedCall
from dualflow.function.calls.trace_gradients import TraceGradients
from dualflow.graph.ir import Graph
from dualflow.graph.options import CompileOptions
from dualflow.graph.size_guards import SizeGuards
from dualflow.graph.user_rewrites import descriptions


class SpecialisedTrace:
    """A trace with what calls of it run, for one set of shapes or for all sizes.

    Args:
        trace: the trace.
        equal_axes: for a program for all sizes, groups of dynamic axes of arguments that have one size in all
            calls; else ().
        call_sizes: the sizes of the call that a program for all sizes is recorded for. They decide the
            comparisons of sizes that ops make, which become guards.
        check_shapes: raises the error of the first op that rejects the shapes of a call's arguments.

    Attributes:
        trace: the trace.
        has_served: whether a call has run this program for all sizes.
    """

    def __init__(
        self,
        trace: RecordedTrace,
        equal_axes: EqualAxes = (),
        call_sizes: CallSizes | None = None,
        check_shapes: Callable[[Sequence[Any]], object] | None = None,
    ) -> None:
        self.trace = trace
        self.has_served = False
        self._serves_all_sizes = bool(equal_axes)
        self._call_sizes = call_sizes
        self._history = AssignmentHistory(trace.graph, trace.variable_of_call)
        self._compiled = CompiledGraph(
            trace.graph,
            trace.options,
            history=self._history,
            pack=trace.pack,
            equal_axes=equal_axes,
            guards=trace.guards,
            call_sizes=call_sizes,
        )
        self._compiled.check_shapes = check_shapes
        self._gradients = TraceGradients(
            trace, equal_axes, call_sizes, check_shapes, lambda gradient: TracedGraph(gradient).run
        )
        self._checked_forward_backward: ForwardBackward | None = None

    @property
    def compiled(self) -> CompiledGraph:
        """The graph, compiled when first called, with the rewrites that are active now."""
        return self._compiled.current

    def satisfies_guards(self, inputs: Sequence[Any]) -> bool:
        """Whether size comparisons recorded in the trace have the same outcomes for ``inputs``."""
        return self._call_sizes is None or self._call_sizes.decide_alike(inputs)

    # calls

    def run(self, arguments: Sequence[Any]) -> Any:
        """The result; REFUSED if this is a program for all sizes, and it doesn't serve ``arguments``."""
        engine = dispatch.current()
        if isinstance(engine, EagerEngine):
            return self._run_compiled(arguments)
        trace, sources = self.trace, [*arguments, *self.trace.captured]
        tensors = [dispatch.operand(engine, x) for x in sources]
        if not isinstance(engine, Recording) or not isinstance(engine.base, EagerEngine):
            return trace.packed(trace.inline(engine, sources, tensors))
        watched = self._watched(engine, tensors)
        if not any(watched):
            return self._run_compiled(arguments)
        pair = self._forward_backward(watched)
        if pair is None or not self.satisfies_guards(arguments):
            return REFUSED
        return trace.packed(self._record(engine, sources, pair))

    def _run_compiled(self, arguments: Sequence[Any]) -> Any:
        """The result of an eager call; REFUSED as in :meth:`run`."""
        compiled = self.compiled
        if self._serves_all_sizes:
            if not _fits_all_sizes(compiled):
                return REFUSED
            self.has_served = True
            if not self.satisfies_guards(arguments):
                return REFUSED
        return compiled(*arguments)

    def _watched(self, engine: Recording, tensors: Sequence[Any]) -> tuple[bool, ...]:
        """The inputs that a tape watches, if there is an output through which a gradient can flow."""
        if not any(v.spec.dtype.is_inexact for v in self.trace.outputs):
            return ()
        by_tape = [tape.watched for tape in engine.tapes]
        return tuple([x.dtype.is_inexact and any(id(x) in ids for ids in by_tape) for x in tensors])

    def _forward_backward(self, watched: tuple[bool, ...]) -> ForwardBackward | None:
        """The forward and backward graphs for a tape that watches these inputs; None if they don't apply."""
        pair = self._gradients.forward_backward(watched, self.trace.active_options)
        if not self._serves_all_sizes or pair is None or pair is self._checked_forward_backward:
            return pair
        if not all(map(_fits_all_sizes, pair.symbolic_graphs)):
            return None
        self.has_served = True
        if not self.trace.options.interpret_first:  # else a thread may still compile it
            self._checked_forward_backward = pair
        return pair

    def _record(self, engine: Recording, sources: Sequence[Any], pair: ForwardBackward) -> Sequence[Any]:
        """The outputs, by a call of the forward graph that the tape of ``engine`` records as one op."""
        written = pair.written
        call = TapedCall(pair, self._history.effect_log())
        update = VariableUpdate([sources[i] for i in written], compiled=True)
        try:
            with update.running, update as locks:
                tensors = tuple([dispatch.operand(engine, x) for x in sources])
                attrs = {"call": call}
                results: Sequence[Any]
                if pair.forward.is_placed_on_device(tensors):
                    results = engine.record(CALL, tensors, attrs, call.run_on_device(tensors))
                else:
                    results = engine.run(CALL, tensors, attrs)
                commit(locks, call.updated)
                if call.effect_log is not None:
                    call.effect_log.end()
        except BaseException as error:
            if call.effect_log is None:
                raise
            arguments = sources[: len(self.trace.graph.arguments)]
            recovered = self._history.recover(error, call.effect_log, arguments)
        else:
            return results
        raise recovered

    # reports

    @property
    def graphs(self) -> list[CompiledGraph]:
        """The compiled graphs created so far: the plain one and the forward and backward graphs of tapes."""
        return [self.compiled, *self._gradients.graphs]

    @property
    def interpreted_calls(self) -> int:
        """The number of calls that NumPy has run while a thread compiled."""
        return self.compiled.interpreted_calls + self._gradients.interpreted_calls

    @property
    def rewrite_lines(self) -> list[str]:
        """A line for each active user-defined rewrite: the places where it changed the compiled graphs."""
        active = self.trace.active_options
        return descriptions(active.rewrites, [*self.compiled.matches, *self._gradients.matches(active)])


class TracedGraph:
    """A trace that is called under any engine: selects the specialisation for each call, and runs it.

    Args:
        trace: the trace.

    Attributes:
        trace: the trace.
    """

    def __init__(self, trace: RecordedTrace) -> None:
        self.trace = trace
        self._own = SpecialisedTrace(trace)
        self._variants: ShapeVariants[SpecialisedTrace] | None = (
            ShapeVariants() if trace.has_dynamic_sizes else None
        )

    @property
    def graph(self) -> Graph:
        """The computation as it was traced; print it."""
        return self.trace.graph

    @property
    def options(self) -> CompileOptions:
        """How it, and its gradient, are compiled."""
        return self.trace.options

    @property
    def guards(self) -> SizeGuards:
        """Comparisons of dynamic sizes that have one outcome in all calls."""
        return self.trace.guards

    @property
    def is_guarded(self) -> bool:
        """Whether Python code decides by dynamic sizes."""
        return any(guard.origin is not None for guard in self.guards.guards)

    @property
    def captured(self) -> tuple[Any, ...]:
        """The source of each capture: a variable, a tensor, or a symbolic tensor of an outer trace."""
        return self.trace.captured

    @property
    def compiled(self) -> CompiledGraph:
        """The graph, compiled when first called, with the rewrites that are active now."""
        return self._own.compiled

    # specialisations

    def with_equal_axes(self, equal_axes: EqualAxes, call_sizes: CallSizes) -> SpecialisedTrace:
        """The trace for all sizes, for calls in which these dynamic axes of arguments have equal sizes.

        The sizes of a call decide the comparisons that ops make of sizes.
        """
        check_shapes = partial(_raise_for_shapes, weakref.ref(self))
        return SpecialisedTrace(self.trace, equal_axes, call_sizes, check_shapes)

    def with_shapes(self, inputs: Sequence[Any]) -> SpecialisedTrace:
        """The trace recorded again for the shapes of ``inputs``."""
        return SpecialisedTrace(self.trace.with_shapes(inputs))

    def with_static_shapes(self, inputs: Sequence[Any]) -> SpecialisedTrace:
        """The trace for the shapes of ``inputs``: the only one if no size is dynamic."""
        return self._own if self._variants is None else self._variants.for_shapes(self, inputs)

    def compiled_for(self, inputs: Sequence[Any]) -> CompiledGraph:
        """The compiled graph for an eager call with ``inputs``, without a tape.

        It is :attr:`compiled` if all sizes are static; else the program for all sizes, or if there is none,
        that of the trace for the shapes of ``inputs``.
        """
        if self._variants is None:
            return self.compiled
        # Compiling a program records guards. If they exclude this call, the next program has other guards.
        while (program := self._program_for(inputs)) is not None:
            compiled = program.compiled
            if not _fits_all_sizes(compiled):
                break
            program.has_served = True
            if program.satisfies_guards(inputs):
                return compiled
        return self.with_static_shapes(inputs).compiled

    def _program_for(self, inputs: Sequence[Any]) -> SpecialisedTrace | None:
        """The trace with symbolic sizes for eager calls with ``inputs``; None if there can't be one.

        This is so if guards fix every size, or the backend has no symbolic sizes.
        """
        assert self._variants is not None, "sizes are dynamic"
        if (
            self.guards.fix_all_axes
            or not _is_eager(dispatch.current())
            or not self._backend_has_symbolic_sizes
        ):
            return None
        return self._variants.for_all_sizes(self, inputs)

    @cached_attribute
    def _backend_has_symbolic_sizes(self) -> bool:
        options = self.options
        return (options.capabilities & capabilities_of(options.backend)).symbolic_sizes

    def run(self, arguments: Sequence[Any]) -> Any:
        """Run the graph on tensors or variables; returns tensors of the current engine.

        Assigns the variables that the graph updates.
        """
        if self._variants is None:
            return self._own.run(arguments)
        while (program := self._program_for(arguments)) is not None:
            if (result := program.run(arguments)) is not REFUSED:
                return result
            if program.satisfies_guards(arguments):
                break  # it has no native program for all sizes
        return self.with_static_shapes(arguments).run(arguments)

    # reports

    @property
    def _specialisations(self) -> list[SpecialisedTrace]:
        """The specialisations that have been called; the only one if no size is dynamic."""
        return [self._own] if self._variants is None else self._variants.all()

    @property
    def interpreted_calls(self) -> int:
        """The number of calls that NumPy has run while a thread compiled."""
        return sum(trace.interpreted_calls for trace in self._specialisations)

    @property
    def recomputation_note(self) -> str:
        """A line of text about work that kernels do more than once; empty if they don't."""
        graphs = [graph for trace in self._specialisations for graph in trace.graphs]
        most = max([graph.recomputation_ratio for graph in graphs], default=1.0)
        return "" if most < 1.005 else f"{self!r}: its kernels execute {most:.2f} times the work of their ops"

    @property
    def rewrite_report(self) -> list[str]:
        """A line for each active user-defined rewrite: where it changed the specialisation that ran last."""
        return [line for trace in self._specialisations[-1:] for line in trace.rewrite_lines]


def _is_eager(engine: Engine) -> bool:
    """Whether ``engine`` is the eager one, or that of tapes which record what it runs."""
    base = engine.base if isinstance(engine, Recording) else engine
    return isinstance(base, EagerEngine)


def _raise_for_shapes(trace: weakref.ref[TracedGraph], inputs: Sequence[Any]) -> None:
    """Record ``trace`` for the shapes of ``inputs``, which raises the error of an op that they don't fit."""
    recorded = trace()
    if recorded is not None:
        recorded.with_static_shapes(inputs[: len(recorded.graph.arguments)])


def _fits_all_sizes(graph: CompiledGraph) -> bool:
    """Whether ``graph`` can run calls of any sizes."""
    return graph.is_interpreted() or graph.serves_all_sizes
