"""A trace that can be called under any engine: compiled, inlined into another trace, or recorded by a tape.

It is a traced function, its gradient, or a gradient of higher order. All of these are nodes of one tracer, so
that tensors in the closure of a custom gradient are valid in all of them.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from dualflow.core import dispatch
from dualflow.core.dispatch import AbstractVariable, Engine
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.locks import cached_attribute
from dualflow.core.records import replace
from dualflow.core.spec import TensorSpec
from dualflow.eager.engine import EAGER
from dualflow.eager.recording import Recording
from dualflow.eager.tensor import wrap
from dualflow.eager.updates import UpdateStep, commit
from dualflow.function.arguments.results import Packer
from dualflow.function.calls.call_form import REFUSED
from dualflow.function.calls.compiled_graph import CompiledGraph
from dualflow.function.calls.failed_calls import AssignmentHistory
from dualflow.function.calls.lazy_backends import capabilities_of
from dualflow.function.calls.shape_variants import ShapeVariants
from dualflow.function.calls.size_decisions import CallSizes
from dualflow.function.calls.size_inference import EqualAxes
from dualflow.function.calls.symbolic_graph import with_symbolic_sizes
from dualflow.function.calls.taped_call import CALL, ForwardBackward, TapedCall, differentiate
from dualflow.function.tracing.tracer import Tracer, tracing, tracing_lock
from dualflow.graph.extract import ancestors, extract
from dualflow.graph.interpret import replay
from dualflow.graph.ir import Graph, Node, Update, Value
from dualflow.graph.options import CompileOptions
from dualflow.graph.passes.assignments import nodes_with_effects, with_variables
from dualflow.graph.passes.dead_code import eliminate_dead_code
from dualflow.graph.passes.random_streams import with_streams_of
from dualflow.graph.size_guards import NO_GUARDS, SizeGuards
from dualflow.graph.user_rewrites import REWRITES, descriptions
from dualflow.sizes.symbolic_sizes import UndecidedSize

_NONE: Final[Mapping[int, int]] = {}


class TracedGraph:
    """A traced graph, which can be called under any engine.

    Args:
        tracer: recorded the values.
        graph: the part of its graph that computes the values.
        inputs: the tracer's value for each input of ``graph``; by default the same values.
        outputs: the tracer's value for each output of ``graph``; by default the same values.
        effects: the tracer's nodes with effects, which always run, in program order.
        options: how it, and its gradient, are compiled.
        variable_arguments: the number of the argument for each variable that is an argument, by the
            variable's id.
        pack: puts the outputs into the structure of the result; without it they are a sequence.
        equal_axes: groups of dynamic axes of arguments that have one size in all calls.
        guards: comparisons of dynamic sizes that have one outcome in all calls.
        call_sizes: for a trace for all sizes, those of a call, which decide the comparisons that ops make.

    Attributes:
        graph: the computation as it was traced; print it.
        compiled: the same, compiled when first called, with the rewrites that are active now.
        has_served: whether a program for all sizes of it has served a call.
    """

    def __init__(
        self,
        tracer: Tracer,
        graph: Graph,
        inputs: Sequence[Value] | None = None,
        outputs: Sequence[Value] | None = None,
        effects: Sequence[Node] | None = None,
        *,
        options: CompileOptions,
        variable_arguments: Mapping[int, int] = _NONE,
        pack: Packer | None = None,
        equal_axes: EqualAxes = (),
        guards: SizeGuards = NO_GUARDS,
        call_sizes: CallSizes | None = None,
    ) -> None:
        self.tracer = tracer
        self.graph = graph
        self.options = options
        self.variable_arguments = variable_arguments
        self.pack = pack
        self.guards = guards
        self.call_sizes = call_sizes
        self._equal_axes = equal_axes
        has_dynamic_sizes = not equal_axes and not all(v.spec.shape.is_static for v in graph.arguments)
        self._variants: ShapeVariants[TracedGraph] | None = ShapeVariants() if has_dynamic_sizes else None
        self._inputs = tuple(graph.inputs if inputs is None else inputs)
        self._outputs = tuple(graph.outputs if outputs is None else outputs)
        self._effects = tuple(nodes_with_effects(graph.nodes) if effects is None else effects)
        self._history = AssignmentHistory(graph, partial(_variable_of_call, variable_arguments))
        self._compiled = CompiledGraph(
            graph,
            options,
            history=self._history,
            pack=pack,
            equal_axes=equal_axes,
            guards=guards,
            call_sizes=call_sizes,
        )
        self._by_sources: dict[tuple[tuple[bool, ...], CompileOptions], ForwardBackward] = {}
        self._checked_forward_backward: ForwardBackward | None = None
        self._undecided: set[tuple[tuple[bool, ...], CompileOptions]] = set()
        self.has_served = False

    # specialisations of a trace with dynamic sizes

    def with_equal_axes(self, equal_axes: EqualAxes, call_sizes: CallSizes) -> TracedGraph:
        """The same trace, compiled for calls in which these dynamic axes of arguments have equal sizes.

        The sizes of a call decide the comparisons that ops make of sizes.
        """
        program = TracedGraph(
            self.tracer,
            self.graph,
            self._inputs,
            self._outputs,
            self._effects,
            options=self.options,
            variable_arguments=self.variable_arguments,
            pack=self.pack,
            equal_axes=equal_axes,
            guards=self.guards,
            call_sizes=call_sizes,
        )
        program._compiled.check_shapes = partial(_raise_for_shapes, weakref.ref(self))
        return program

    def with_shapes(self, inputs: Sequence[Any]) -> TracedGraph:
        """The same trace, recorded by a new tracer for arguments with the shapes of ``inputs``."""
        graph = self.graph
        tracer = Tracer(graph.name, options=self.options)
        with tracing(tracer):
            arguments = [
                tracer.argument(TensorSpec(x.shape, v.spec.dtype, v.spec.name))
                for x, v in zip(inputs, graph.arguments, strict=True)
            ]
            captured = [
                tracer.read(c.source) if c.variable else tracer.lift(c.source) for c in graph.captures
            ]
            results = replay(graph, [*arguments, *captured], tracer.record_assignment)
            count = len(graph.outputs)
            input_index = {v: i for i, v in enumerate(graph.inputs)}
            bound: list[Update] = []
            for update, value in zip(graph.updates, results[count:], strict=True):
                at = input_index[update.input]
                if at < len(arguments):
                    bound.append(Update(arguments[at]._value, value._value))
                else:
                    tracer.assign(graph.captures[at - len(arguments)].source, value)
        outputs = [tracer.lift(x)._value for x in results[:count]]
        recorded = eliminate_dead_code(tracer.builder.finish(outputs, [*bound, *tracer.updates()]))
        return TracedGraph(
            tracer, recorded, options=self.options, variable_arguments=self.variable_arguments, pack=self.pack
        )

    def with_static_shapes(self, inputs: Sequence[Any]) -> TracedGraph:
        """The trace for the shapes of ``inputs``, without dynamic sizes: itself if it has none."""
        return self if self._variants is None else self._variants.for_shapes(self, inputs)

    def compiled_for(self, inputs: Sequence[Any]) -> CompiledGraph:
        """The compiled graph for an eager call with ``inputs``, without a tape.

        It is :attr:`compiled` if all sizes are static; else the program for all sizes, or if there is none,
        that of the trace for the shapes of ``inputs``.
        """
        if self._variants is None:
            return self.compiled
        while (program := self._program_for(inputs)) is not None:
            compiled = program.compiled
            if not _fits_all_sizes(compiled):
                break
            program.has_served = True
            if program.satisfies_guards(inputs):
                return compiled
        return self.with_static_shapes(inputs).compiled

    def _program_for(self, inputs: Sequence[Any]) -> TracedGraph | None:
        """The trace with symbolic sizes for eager calls with ``inputs``; None if there can't be one.

        This is so if a memory budget must be planned for static sizes under a tape, guards fix every size, or
        the backend has no symbolic sizes.
        """
        assert self._variants is not None, "sizes are dynamic"
        engine = dispatch.current()
        if (
            (self.options.memory_budget is not None and engine is not EAGER)
            or self.guards.fix_all_axes
            or not _is_eager(engine)
            or not self._backend_has_symbolic_sizes
        ):
            return None
        return self._variants.for_all_sizes(self, inputs)

    def satisfies_guards(self, inputs: Sequence[Any]) -> bool:
        """Whether size comparisons recorded in this trace have the same outcomes for ``inputs``."""
        return self.call_sizes is None or self.call_sizes.decide_alike(inputs)

    @cached_attribute
    def _backend_has_symbolic_sizes(self) -> bool:
        options = self.options
        return (options.capabilities & capabilities_of(options.backend)).symbolic_sizes

    @property
    def compiled(self) -> CompiledGraph:
        return self._compiled.current

    @property
    def active_options(self) -> CompileOptions:
        """The options with the rewrites that are active now."""
        rewrites = REWRITES.active(self.options.rewrites)
        same = rewrites == self.options.rewrites
        return self.options if same else replace(self.options, rewrites=rewrites)

    @cached_attribute
    def captured(self) -> tuple[Any, ...]:
        """The source of each capture: a variable, a tensor, or a symbolic tensor of an outer trace."""
        return tuple([c.source for c in self.graph.captures])

    @property
    def graphs(self) -> list[CompiledGraph]:
        """The compiled graphs created so far: the plain one and the forward and backward graphs of tapes."""
        return [self.compiled, *(graph for pair in self._by_sources.values() for graph in pair.graphs)]

    @property
    def rewrites(self) -> list[str]:
        """A line for each active user-defined rewrite: the places where it changed the compiled graphs."""
        active = self.active_options
        pairs = [pair for (_, options), pair in self._by_sources.items() if options == active]
        matches = [*self.compiled.matches, *(match for pair in pairs for match in pair.matches)]
        return descriptions(active.rewrites, matches)

    @property
    def interpreted_calls(self) -> int:
        """The number of calls that NumPy has run while a thread compiled."""
        forward = sum(pair.forward.interpreted_calls for pair in self._by_sources.values())
        variants = () if self._variants is None else self._variants.all()
        return self.compiled.interpreted_calls + forward + sum(v.interpreted_calls for v in variants)

    @property
    def _traces(self) -> Sequence[TracedGraph]:
        """The traces that calls run."""
        return [self]

    @property
    def recomputation_note(self) -> str:
        """A line of text about work that kernels do more than once; empty if they don't."""
        most = max([graph.executed for trace in self._traces for graph in trace.graphs], default=1.0)
        return "" if most < 1.005 else f"{self!r}: its kernels execute {most:.2f} times the work of their ops"

    @property
    def rewritten(self) -> list[str]:
        """A line for each active rewrite of users: where it has changed what runs."""
        return [line for trace in self._traces[-1:] for line in trace.rewrites]

    def run(self, arguments: Sequence[Any]) -> Any:
        """The result as tensors of the current engine, for a tensor or variable for each argument.

        Assigns the variables that the graph updates.
        """
        if self._variants is None:
            return self._run(arguments)
        while (program := self._program_for(arguments)) is not None:
            if (result := program._run(arguments)) is not REFUSED:
                return result
            if program.satisfies_guards(arguments):
                break  # it has no native program for all sizes
        return self.with_static_shapes(arguments)._run(arguments)

    def _run(self, arguments: Sequence[Any]) -> Any:
        """The result; REFUSED if this trace is for all sizes, and has no program for all sizes."""
        engine = dispatch.current()
        if engine is EAGER:
            return self._run_compiled(arguments)
        sources = [*arguments, *self.captured]
        tensors = _read(engine, sources)
        if not isinstance(engine, Recording) or engine.base is not EAGER:
            return self.packed(self._inline(engine, sources, tensors))
        watched = self._watched(engine, tensors)
        if not any(watched):
            return self._run_compiled(arguments)
        pair = self._forward_backward(watched)
        if pair is None or not self.satisfies_guards(arguments):
            return REFUSED
        return self.packed(self._record(engine, sources, pair))

    def _run_compiled(self, arguments: Sequence[Any]) -> Any:
        """The result of an eager call; REFUSED as in :meth:`_run`."""
        compiled = self.compiled
        if self._equal_axes:
            if not _fits_all_sizes(compiled):
                return REFUSED
            self.has_served = True
            if not self.satisfies_guards(arguments):
                return REFUSED
        return compiled(*arguments)

    def packed(self, outputs: Sequence[Any]) -> Any:
        """``outputs`` in the structure of the result."""
        return outputs if self.pack is None else self.pack(outputs)

    def _watched(self, engine: Recording, tensors: Sequence[Any]) -> tuple[bool, ...]:
        """The inputs that a tape watches, if there is an output through which a gradient can flow."""
        if not any(v.spec.dtype.is_inexact for v in self._outputs):
            return ()
        by_tape = [tape.watched for tape in engine.tapes]
        return tuple([x.dtype.is_inexact and any(id(x) in ids for ids in by_tape) for x in tensors])

    def _inline(self, engine: Engine, sources: Sequence[Any], tensors: Sequence[Any]) -> list[Any]:
        """The outputs, by evaluating the graph node by node on ``engine``."""
        variables = {key: sources[index] for key, index in self.variable_arguments.items()}

        def record_assignment(variable: Any, value: Any) -> None:
            engine.innermost.record_assignment(variables.get(id(variable), variable), value)

        graph = with_variables(self.graph, variables) if variables else self.graph
        if not engine.innermost.eager:
            graph = with_streams_of(graph, engine.innermost)
        results = replay(graph, tensors, record_assignment)
        count = len(self._outputs)
        computed = [x for x, v in zip(results[:count], self.graph.outputs, strict=True) if v.node is not None]
        for update, value in zip(self.graph.updates, results[count:], strict=True):
            variable = sources[self.graph.inputs.index(update.input)]
            engine.innermost.update(variable, value, computed)
        return results[:count]

    def _forward_backward(self, watched: tuple[bool, ...]) -> ForwardBackward | None:
        """The forward and backward graphs for a tape that watches these inputs; None if they don't apply."""
        key = watched, self.active_options
        pair = self._by_sources.get(key)
        if pair is None and key not in self._undecided:
            with tracing_lock.lock:
                pair = self._by_sources.get(key) or self._differentiated(*key)
                if pair is not None:
                    self._by_sources[key] = pair
                else:
                    self._undecided.add(key)
        if not self._equal_axes or pair is None or pair is self._checked_forward_backward:
            return pair
        if not all(map(_fits_all_sizes, pair.symbolic_graphs)):
            return None
        self.has_served = True
        if not self.options.interpret_first:  # else a thread may still compile it
            self._checked_forward_backward = pair
        return pair

    def _record(self, engine: Recording, sources: Sequence[Any], pair: ForwardBackward) -> Sequence[Any]:
        """The outputs, by a call of the forward graph that the tape of ``engine`` records as one op."""
        written = pair.written
        call = TapedCall(pair, self._history.effect_log())
        step = UpdateStep([sources[i] for i in written], compiled=True)
        try:
            with step.running, step as locks:
                tensors = _read(engine, sources)
                results: Sequence[Any] = engine.run(CALL, tuple(tensors), {"call": call})
                commit(locks, list(map(wrap, call.updated)))
                if call.effect_log is not None:
                    call.effect_log.end()
        except BaseException as error:
            if call.effect_log is None:
                raise
            recovered = self._history.recover(error, call.effect_log, sources[: len(self.graph.arguments)])
        else:
            return results
        raise recovered

    def _differentiated(self, watched: Sequence[bool], options: CompileOptions) -> ForwardBackward | None:
        """The graph and the gradient of its outputs with respect to the inputs ``watched``.

        None if this trace is for all sizes, and no expression describes one of the sizes.
        """
        tracer = self.tracer
        before = tracer.builder.finish(())
        results = [*self._outputs, *(u.value for u in self.graph.updates)]
        needed, _ = ancestors(results, self._inputs, self._effects)
        outputs_with_cotangent = [i for i, v in enumerate(self._outputs) if v.spec.dtype.is_inexact]
        indices = [i for i, w in enumerate(watched) if w]
        cotangents, gradients = differentiate(
            tracer,
            [n for n in before.nodes if n in needed],
            [self._inputs[i] for i in indices],
            [self._outputs[i] for i in outputs_with_cotangent],
        )
        inputs_with_cotangent = [i for i, flow in zip(indices, gradients, strict=True) if flow is not None]
        cotangents_of_inputs = [flow for flow in gradients if flow is not None]
        after = tracer.builder.finish(())
        effects = nodes_with_effects(after.nodes[len(before.nodes) :])
        effect_results = self._effect_results(cotangents_of_inputs, cotangents)
        joint = extract(
            after,
            [*self._inputs, *cotangents],
            [*self._outputs, *effect_results, *cotangents_of_inputs],
            name=self.graph.name,
            updates=self.graph.updates,
            effects=[*self._effects, *effects],
        )

        def make_traceable_backward() -> Callable[[Sequence[Any]], Sequence[Any]]:
            self._check_effect_results(effect_results, [self._inputs[i] for i in indices])
            inputs = [*self._inputs, *effect_results, *cotangents]
            graph = extract(
                after, inputs, cotangents_of_inputs, name=f"{self.graph.name}_gradient", effects=effects
            )
            values = [*inputs, *graph.inputs[len(graph.arguments) :]]
            return TracedGraph(tracer, graph, values, cotangents_of_inputs, effects, options=self.options).run

        try:
            if self._equal_axes:
                outputs_of = dict(enumerate(outputs_with_cotangent, start=len(self._inputs)))
                joint = with_symbolic_sizes(
                    joint, options, self._equal_axes, self.guards, outputs_of, self.call_sizes
                )
            pair = ForwardBackward(
                joint,
                inputs=len(self._inputs),
                outputs=len(self._outputs),
                effect_results=len(effect_results),
                effects=len(self._effects),
                inputs_with_cotangent=inputs_with_cotangent,
                outputs_with_cotangent=outputs_with_cotangent,
                make_traceable_backward=make_traceable_backward,
                options=options,
            )
        except (UndecidedSize, InvalidArgumentError):  # the latter for sizes that are equal by a guard alone
            return None
        pair.forward.check_shapes = self.compiled.check_shapes
        return pair

    def _effect_results(
        self, cotangents_of_inputs: Sequence[Value], cotangents: Sequence[Value]
    ) -> list[Value]:
        """Results of random and Python ops that the gradient reads; running these again would change them."""
        needed, _ = ancestors(cotangents_of_inputs, [*self._inputs, *cotangents])
        return [v for n in self._effects if n in needed for v in n.outputs]

    def _check_effect_results(self, effect_results: Sequence[Value], sources: Sequence[Value]) -> None:
        """Raise if a gradient of higher order would have to flow through an op with an effect."""
        for node in dict.fromkeys(v.node for v in effect_results):
            assert node is not None, "they are results of nodes"
            _, read = ancestors(node.inputs, ())
            if not read.isdisjoint(sources) and (node.op.vjp is not None or node.op.joint_vjp is not None):
                raise InvalidArgumentError(
                    f"The second derivative of {self.graph.name!r} goes through {node.op.name}, which can't "
                    f"be run again to compute it. Call it outside of the traced function.\n  {node.origin}"
                )


def _is_eager(engine: Engine) -> bool:
    """Whether ``engine`` is the eager one, or that of tapes which record what it runs."""
    return engine is EAGER or (isinstance(engine, Recording) and engine.base is EAGER)


def _raise_for_shapes(trace: weakref.ref[TracedGraph], inputs: Sequence[Any]) -> None:
    """Record ``trace`` for the shapes of ``inputs``, which raises the error of an op that they don't fit."""
    recorded = trace()
    if recorded is not None:
        recorded.with_static_shapes(inputs[: len(recorded.graph.arguments)])


def _fits_all_sizes(graph: CompiledGraph) -> bool:
    """Whether ``graph`` can run calls of any sizes."""
    return graph.is_interpreted() or graph.serves_all_sizes


def _read(engine: Engine, sources: Sequence[Any]) -> list[Any]:
    """The engine's tensors for ``sources``."""
    return [engine.read(x) if isinstance(x, AbstractVariable) else engine.lift(x) for x in sources]


def _variable_of_call(variable_arguments: Mapping[int, int], variable: Any, arguments: Sequence[Any]) -> Any:
    """The variable that a call assigns where its trace assigns ``variable``: an argument, or the same one."""
    index = variable_arguments.get(id(variable))
    return variable if index is None else arguments[index]
