"""The gradients of a trace under eager tapes: forward and backward graphs for each set of watched inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.records import NamedTuple
from dualflow.function.calls.compiled_graph import CompiledGraph
from dualflow.function.calls.recorded_trace import RecordedTrace
from dualflow.function.calls.size_decisions import CallSizes
from dualflow.function.calls.size_inference import EqualAxes
from dualflow.function.calls.symbolic_graph import with_symbolic_sizes
from dualflow.function.calls.taped_call import ForwardBackward, differentiate
from dualflow.function.tracing.tracer import tracing_lock
from dualflow.graph.extract import ancestors, extract
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.options import CompileOptions
from dualflow.graph.passes.assignments import nodes_with_effects
from dualflow.graph.user_rewrites import Match
from dualflow.sizes.symbolic_sizes import UndecidedSize

_Watched = tuple[bool, ...]
MAX_WATCHED: Final = 64
"""The maximum number of sets of watched inputs whose graphs are kept, the latest ones."""


class _RecordedGradient(NamedTuple):
    """The gradients of a trace, recorded by its tracer.

    Attributes:
        graph: the nodes of the trace and of the gradients.
        effects: the nodes of the gradients that have effects.
        cotangents: those of the outputs, which are arguments.
        cotangents_of_inputs: those of the inputs that the outputs depend on.
        effect_results: the results of the trace's random and Python ops that the gradients read.
        inputs_with_cotangent: the positions of these inputs.
        outputs_with_cotangent: the positions of the outputs that have one.
    """

    graph: Graph
    effects: Sequence[Node]
    cotangents: Sequence[Value]
    cotangents_of_inputs: Sequence[Value]
    effect_results: Sequence[Value]
    inputs_with_cotangent: Sequence[int]
    outputs_with_cotangent: Sequence[int]

    def joint(self, trace: RecordedTrace) -> Graph:
        """The graph that computes the outputs of the trace, what its gradients read, and the gradients."""
        return extract(
            self.graph,
            [*trace.inputs, *self.cotangents],
            [*trace.outputs, *self.effect_results, *self.cotangents_of_inputs],
            name=trace.graph.name,
            updates=trace.graph.updates,
            effects=[*trace.effects, *self.effects],
        )


class TraceGradients:
    """The forward and backward graphs of a trace, recorded when a tape first watches a set of its inputs.

    Args:
        trace: the trace.
        equal_axes: groups of dynamic axes of arguments that have one size in all calls, for one program for
            all sizes; else ().
        call_sizes: the sizes of a call, which decide the comparisons that ops make, for such a program.
        check_shapes: raises the error of the first op that rejects the shapes of a call's arguments.
        function_of: returns a function that runs another trace on any engine, for gradients of higher order.
    """

    def __init__(
        self,
        trace: RecordedTrace,
        equal_axes: EqualAxes,
        call_sizes: CallSizes | None,
        check_shapes: Callable[[Sequence[Any]], object] | None,
        function_of: Callable[[RecordedTrace], Callable[[Sequence[Any]], Sequence[Any]]],
    ) -> None:
        self._trace = trace
        self._equal_axes = equal_axes
        self._call_sizes = call_sizes
        self._check_shapes = check_shapes
        self._function_of = function_of
        self._by_watched: dict[tuple[_Watched, CompileOptions], ForwardBackward] = {}
        self._without_symbolic_sizes: set[tuple[_Watched, CompileOptions]] = set()

    @property
    def graphs(self) -> list[CompiledGraph]:
        """The forward and backward graphs created so far."""
        return [graph for pair in list(self._by_watched.values()) for graph in pair.graphs]

    @property
    def interpreted_calls(self) -> int:
        """The number of calls of forward graphs that NumPy has run while a thread compiled."""
        return sum(pair.forward.interpreted_calls for pair in list(self._by_watched.values()))

    def matches(self, options: CompileOptions) -> list[Match]:
        """Where rewrites of users have changed the graphs that are compiled with ``options``."""
        pairs = [pair for (_, used), pair in list(self._by_watched.items()) if used == options]
        return [match for pair in pairs for match in pair.matches]

    def forward_backward(self, watched: _Watched, options: CompileOptions) -> ForwardBackward | None:
        """The forward and backward graphs for a tape that watches these inputs.

        None if the trace is for all sizes, and no expression describes one of the sizes.
        """
        key = watched, options
        pair = self._by_watched.get(key)
        if pair is None and key not in self._without_symbolic_sizes:
            with tracing_lock.lock:
                pair = self._by_watched.get(key) or self._differentiated(*key)
                if pair is not None:
                    self._by_watched[key] = pair
                    for oldest in list(self._by_watched)[:-MAX_WATCHED]:
                        del self._by_watched[oldest]
                else:
                    self._without_symbolic_sizes.add(key)
        return pair

    def _differentiated(self, watched: Sequence[bool], options: CompileOptions) -> ForwardBackward | None:
        """The outputs differentiated by the ``watched`` inputs; None where :meth:`forward_backward` is."""
        trace, recorded = self._trace, self._record(watched)
        joint = recorded.joint(trace)
        try:
            outputs_of = dict(enumerate(recorded.outputs_with_cotangent, start=len(trace.inputs)))
            if self._equal_axes:
                joint = with_symbolic_sizes(
                    joint, options, self._equal_axes, trace.guards, outputs_of, self._call_sizes
                )
            elif options.memory_budget is not None:
                with suppress(
                    UndecidedSize
                ):  # a budget is planned for numbers: cotangents get those of outputs
                    joint = with_symbolic_sizes(joint, options, shaped_as=outputs_of)
            pair = ForwardBackward(
                joint,
                inputs=len(trace.inputs),
                outputs=len(trace.outputs),
                effect_results=len(recorded.effect_results),
                effects=len(trace.effects),
                inputs_with_cotangent=recorded.inputs_with_cotangent,
                outputs_with_cotangent=recorded.outputs_with_cotangent,
                make_traceable_backward=lambda: self._traceable_backward(recorded, watched),
                options=options,
                call_sizes=self._call_sizes if self._equal_axes else None,
            )
        except (UndecidedSize, InvalidArgumentError):  # the latter for sizes that are equal by a guard alone
            return None
        pair.forward.check_shapes = self._check_shapes
        return pair

    def _record(self, watched: Sequence[bool]) -> _RecordedGradient:
        """Record the gradients by the ``watched`` inputs in the trace."""
        trace, tracer = self._trace, self._trace.tracer
        before = tracer.builder.finish(())
        results = [*trace.outputs, *(u.value for u in trace.graph.updates)]
        needed, _ = ancestors(results, trace.inputs, trace.effects)
        outputs_with_cotangent = [i for i, v in enumerate(trace.outputs) if v.spec.dtype.is_inexact]
        indices = [i for i, w in enumerate(watched) if w]
        cotangents, gradients = differentiate(
            tracer,
            [n for n in before.nodes if n in needed],
            [trace.inputs[i] for i in indices],
            [trace.outputs[i] for i in outputs_with_cotangent],
        )
        cotangents_of_inputs = [flow for flow in gradients if flow is not None]
        after = tracer.builder.finish(())
        return _RecordedGradient(
            after,
            nodes_with_effects(after.nodes[len(before.nodes) :]),
            cotangents,
            cotangents_of_inputs,
            self._effect_results(cotangents_of_inputs, cotangents),
            [i for i, flow in zip(indices, gradients, strict=True) if flow is not None],
            outputs_with_cotangent,
        )

    def _traceable_backward(
        self, recorded: _RecordedGradient, watched: Sequence[bool]
    ) -> Callable[[Sequence[Any]], Sequence[Any]]:
        """A function that runs the backward graph on any engine.

        Raises:
            InvalidArgumentError: a gradient of it would have to flow through an op with an effect.
        """
        trace = self._trace
        sources = [v for v, is_watched in zip(trace.inputs, watched, strict=True) if is_watched]
        self._check_effect_results(recorded.effect_results, sources)
        inputs = [*trace.inputs, *recorded.effect_results, *recorded.cotangents]
        graph = extract(
            recorded.graph,
            inputs,
            recorded.cotangents_of_inputs,
            name=f"{trace.graph.name}_gradient",
            effects=recorded.effects,
        )
        backward = RecordedTrace(
            trace.tracer,
            graph,
            trace.options,
            inputs=[*inputs, *graph.inputs[len(graph.arguments) :]],
            outputs=recorded.cotangents_of_inputs,
            effects=recorded.effects,
        )
        return self._function_of(backward)

    def _effect_results(
        self, cotangents_of_inputs: Sequence[Value], cotangents: Sequence[Value]
    ) -> list[Value]:
        """Results of random and Python ops that the gradient reads; running these again would change them."""
        needed, _ = ancestors(cotangents_of_inputs, [*self._trace.inputs, *cotangents])
        return [v for n in self._trace.effects if n in needed for v in n.outputs]

    def _check_effect_results(self, effect_results: Sequence[Value], sources: Sequence[Value]) -> None:
        """Raise if a gradient of higher order would have to flow through an op with an effect."""
        for node in dict.fromkeys(v.node for v in effect_results):
            assert node is not None, "they are results of nodes"
            _, read = ancestors(node.inputs, ())
            if not read.isdisjoint(sources) and (node.op.vjp is not None or node.op.joint_vjp is not None):
                raise InvalidArgumentError(
                    f"The second derivative of {self._trace.graph.name!r} goes through {node.op.name}, which "
                    "can't be run again to compute it. Call it outside of the traced function.\n"
                    f"  {node.origin}"
                )
