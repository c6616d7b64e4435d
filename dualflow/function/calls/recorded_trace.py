"""Traces: a recorded graph, with the information to run, inline or differentiate it.

A traced function, its gradient, and a gradient of higher order are each a :class:`RecordedTrace`. They are
nodes of one tracer, so that tensors in the closure of a custom gradient are valid in all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from dualflow.core import dispatch
from dualflow.core.dispatch import Engine
from dualflow.core.locks import cached_attribute
from dualflow.core.records import replace
from dualflow.core.spec import TensorSpec
from dualflow.core.traced_device import traced_on
from dualflow.function.arguments.results import Packer
from dualflow.function.tracing.gradient_graphs import (
    has_gradient_function,
    traced_gradients,
    with_gradient_graphs,
)
from dualflow.function.tracing.tracer import Tracer, tracing
from dualflow.graph.interpret import replay
from dualflow.graph.ir import Graph, Node, Update, Value
from dualflow.graph.options import CompileOptions
from dualflow.graph.passes.assignments import nodes_with_effects, with_variables
from dualflow.graph.passes.dead_code import eliminate_dead_code
from dualflow.graph.passes.random_streams import with_streams_of
from dualflow.graph.size_guards import NO_GUARDS, SizeGuards
from dualflow.graph.user_rewrites import REWRITES

_NONE: Final[Mapping[int, int]] = {}


class RecordedTrace:
    """A graph that a tracer recorded; nothing changes it.

    Args:
        tracer: recorded the values.
        graph: the part of its graph that computes the values.
        options: how it, and its gradient, are compiled.
        inputs: the tracer's value for each input of ``graph``; by default the same values.
        outputs: the tracer's value for each output of ``graph``; by default the same values.
        effects: the tracer's nodes with effects, which always run, in program order; by default those of
            ``graph``.
        variable_arguments: the number of the argument for each variable that is an argument, by the
            variable's id.
        pack: puts the outputs into the structure of the result; without it they are a sequence.
        guards: comparisons of dynamic sizes that have one outcome in all calls.

    Attributes:
        graph: the computation as it was traced; print it.
    """

    def __init__(
        self,
        tracer: Tracer,
        graph: Graph,
        options: CompileOptions,
        *,
        inputs: Sequence[Value] | None = None,
        outputs: Sequence[Value] | None = None,
        effects: Sequence[Node] | None = None,
        variable_arguments: Mapping[int, int] = _NONE,
        pack: Packer | None = None,
        guards: SizeGuards = NO_GUARDS,
    ) -> None:
        self.tracer = tracer
        self.graph = graph
        self.options = options
        self.inputs = tuple(graph.inputs if inputs is None else inputs)
        self.outputs = tuple(graph.outputs if outputs is None else outputs)
        self.effects = tuple(nodes_with_effects(graph.nodes) if effects is None else effects)
        self.variable_arguments = variable_arguments
        self.pack = pack
        self.guards = guards
        self._graph_for_traces: Graph | None = None

    @cached_attribute
    def captured(self) -> tuple[Any, ...]:
        """The source of each capture: a variable, a tensor, or a symbolic tensor of an outer trace."""
        return tuple([c.source for c in self.graph.captures])

    @property
    def graph_for_traces(self) -> Graph:
        """The graph, as other traces evaluate it.

        Custom gradient functions hold tensors of this trace, so graphs are in their place. What these capture
        are further inputs. A function that raises is traced again at the next use: its error may depend on
        what it reads.
        """
        graph = self._graph_for_traces
        if graph is None:
            gradients = traced_gradients(self.tracer, self.graph.nodes)
            graph = with_gradient_graphs(self.graph, gradients)
            if len(gradients) == sum(map(has_gradient_function, self.graph.nodes)):
                self._graph_for_traces = graph
        return graph

    @property
    def has_dynamic_sizes(self) -> bool:
        """Whether the size of an argument is known only at run time."""
        return not all(v.spec.shape.is_static for v in self.graph.arguments)

    @property
    def active_options(self) -> CompileOptions:
        """The options with the rewrites that are active now."""
        rewrites = REWRITES.active(self.options.rewrites)
        same = rewrites == self.options.rewrites
        return self.options if same else replace(self.options, rewrites=rewrites)

    def packed(self, outputs: Sequence[Any]) -> Any:
        """``outputs`` in the structure of the result."""
        return outputs if self.pack is None else self.pack(outputs)

    def variable_of_call(self, variable: Any, arguments: Sequence[Any]) -> Any:
        """The variable that a call assigns where the trace assigns ``variable``: an argument, or the same."""
        index = self.variable_arguments.get(id(variable))
        return variable if index is None else arguments[index]

    def inline(self, engine: Engine, sources: Sequence[Any], tensors: Sequence[Any]) -> list[Any]:
        """The outputs, by evaluating the graph node by node on ``engine``.

        Args:
            engine: the current engine.
            sources: the arguments of the call, then the sources of the captures.
            tensors: the engine's tensor for each of them.
        """
        variables = {key: sources[index] for key, index in self.variable_arguments.items()}

        def record_assignment(variable: Any, value: Any) -> None:
            engine.innermost.record_assignment(variables.get(id(variable), variable), value)

        is_eager = engine.innermost.eager
        graph = self.graph if is_eager else self.graph_for_traces
        added = graph.captures[len(self.graph.captures) :]
        tensors = [*tensors, *[dispatch.operand(engine, capture.source) for capture in added]]
        if variables:
            graph = with_variables(graph, variables)
        if self.tracer.on_device:
            engine.compile_for_device()
        if not is_eager:
            graph = with_streams_of(graph, engine.innermost)
        results = replay(graph, tensors, record_assignment)
        count = len(self.outputs)
        computed = [x for x, v in zip(results[:count], self.graph.outputs, strict=True) if v.node is not None]
        for i, value in zip(self.graph.updated_inputs, results[count:], strict=True):
            engine.innermost.update(sources[i], value, computed)
        return results[:count]

    def with_shapes(self, inputs: Sequence[Any]) -> RecordedTrace:
        """The same computation, recorded by a new tracer for arguments with the shapes of ``inputs``."""
        graph = self.graph_for_traces
        tracer = Tracer(graph.name, options=self.options)
        with tracing(tracer), traced_on(None):
            arguments = [
                tracer.argument(TensorSpec(x.shape, v.spec.dtype, v.spec.name))
                for x, v in zip(inputs, graph.arguments, strict=True)
            ]
            captured = [
                tracer.read(c.source) if c.variable else tracer.lift(c.source) for c in graph.captures
            ]
            results = replay(graph, [*arguments, *captured], tracer.record_assignment)
            count = len(graph.outputs)
            bound: list[Update] = []
            for at, value in zip(graph.updated_inputs, results[count:], strict=True):
                if at < len(arguments):
                    bound.append(Update(arguments[at]._value, value._value))
                else:
                    tracer.assign(graph.captures[at - len(arguments)].source, value)
        outputs = [tracer.lift(x)._value for x in results[:count]]
        recorded = eliminate_dead_code(tracer.builder.finish(outputs, [*bound, *tracer.updates()]))
        return RecordedTrace(
            tracer, recorded, self.options, variable_arguments=self.variable_arguments, pack=self.pack
        )
