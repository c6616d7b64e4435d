"""Traces branches and loop bodies as graphs; the values that they capture become inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dualflow.core import dispatch
from dualflow.core.dispatch import Engine
from dualflow.core.records import NamedTuple
from dualflow.core.spec import TensorSpec
from dualflow.core.tree import Structure
from dualflow.function.tracing.collect_results import collect
from dualflow.function.tracing.gradient_graphs import Gradients, traced_gradients, with_gradient_graphs
from dualflow.function.tracing.symbolic_tensor import SymbolicTensor
from dualflow.function.tracing.tracer import OuterShape, Tracer, tracing
from dualflow.graph.extract import ancestors
from dualflow.graph.ir import Graph, Node, Value


class Body(NamedTuple):
    """A Python function traced inside another trace.

    Attributes:
        tracer: the inner trace.
        arguments: the inputs for the function's arguments.
        structure: the structure of the result.
        outputs: the leaves of the result.
        gradients: graphs of its custom gradient functions; see :meth:`with_gradients`.
        node_count: the number of its nodes, before those of the gradients; None for all.
    """

    tracer: Tracer
    arguments: tuple[Value, ...]
    structure: Structure
    outputs: tuple[Value, ...]
    gradients: Gradients = {}  # noqa: RUF012  # never changed
    node_count: int | None = None

    @property
    def reads(self) -> dict[int, tuple[Any, Value]]:
        """The tensors and variables that the body captures, by id, each with its input."""
        return {id(c.source): (c.source, v) for v, c in self.tracer.builder.captures}

    @property
    def writes(self) -> dict[int, tuple[Any, Value]]:
        """The variables that the body assigns, by their ids, and their new values."""
        sources = {v: c.source for v, c in self.tracer.builder.captures}
        return {id(sources[u.input]): (sources[u.input], u.value) for u in self.tracer.updates()}

    def graph(self, inputs: Sequence[Value], outputs: Sequence[Value]) -> Graph:
        """The body as a graph, without dead nodes."""
        nodes = self.tracer.builder.nodes[: self.node_count]
        effects = [n for n in nodes if n.effect is not None]
        needed, _ = ancestors(outputs, inputs, effects)
        live: list[Node] = [n for n in nodes if n in needed]
        graph = Graph(self.tracer.name, tuple(inputs), tuple(live), tuple(outputs))
        return with_gradient_graphs(graph, self.gradients)

    def with_gradients(self) -> Body:
        """This body with its custom gradient functions as graphs, which capture what these read.

        A gradient function holds tensors of the body's trace, but the body's gradient is another trace.
        """
        nodes = list(self.tracer.builder.nodes)
        gradients = traced_gradients(self.tracer, nodes)
        return self._replace(gradients=gradients, node_count=len(nodes))


def trace_body(
    function: Callable[..., Any],
    specs: Sequence[TensorSpec],
    pack: Callable[[list[Any]], Sequence[Any]],
    shapes: Sequence[OuterShape | None] | None = None,
) -> Body:
    """Trace ``function`` with symbolic tensors of ``specs``.

    Args:
        function: returns a structure of tensors.
        specs: the specs of the tensors.
        pack: makes the arguments of ``function`` from the tensors.
        shapes: where the tensors have their dynamic sizes from; None if that is unknown.
    """
    inner = inner_tracer(getattr(function, "__name__", "body"))
    shapes = [None] * len(specs) if shapes is None else shapes
    tensors = [inner.argument(spec, shape) for spec, shape in zip(specs, shapes, strict=True)]
    with tracing(inner):
        structure, outputs = collect(function(*pack(list(tensors))), inner)
    return Body(inner, tuple(x._value for x in tensors), structure, tuple(outputs))


def traced(function: Callable[..., Any], specs: Sequence[TensorSpec]) -> Graph:
    """The graph of ``function``, a function from tensors to a list of tensors, without captures."""
    body = trace_body(function, specs, lambda tensors: tensors).with_gradients()
    assert not body.reads, "a body reads nothing but its inputs"
    return body.graph(body.arguments, body.outputs)


def carried_shapes(initial: Sequence[Any], specs: Sequence[TensorSpec]) -> list[OuterShape | None]:
    """For each carried value, the outer tensor whose dynamic sizes it has; None if iterations change it.

    None where the spec is not that of the initial value, since iterations change the size.
    """
    return [
        OuterShape(x, is_row=False) if type(x) is SymbolicTensor and x.spec.shape == spec.shape else None
        for x, spec in zip(initial, specs, strict=True)
    ]


def row_shapes(tensors: Sequence[Any]) -> list[OuterShape | None]:
    """For a row of each of ``tensors``, the outer tensor whose dynamic sizes it has."""
    return [OuterShape(x, is_row=True) if type(x) is SymbolicTensor else None for x in tensors]


def check_sizes_read(bodies: Sequence[Body], iteration: Body) -> None:
    """Check that an iteration keeps the sizes of carried values that Python code has read as numbers.

    ``bodies`` are those that have read them: the loop's body ``iteration``, and its condition.

    Raises:
        ExactSizesRequired: a size changes, so the loop is traced for each shape.
    """
    scope = iteration.tracer.size_scope
    if scope is None:
        return
    for body in bodies:
        shapes = body.tracer.outer_shapes
        for argument, result in zip(body.arguments, iteration.outputs, strict=False):
            if argument in shapes and not shapes[argument].is_row:
                scope.require_unchanged(body.tracer.tensor_of(argument), iteration.tracer.tensor_of(result))


def inner_tracer(name: str) -> Tracer:
    """A tracer for a body, nested in the current trace."""
    return Tracer(name, tracer_of(dispatch.current()).creation)


def tracer_of(engine: Engine) -> Tracer:
    """The tracer that ``engine`` records to, directly or through tapes and accumulators."""
    tracer = engine.innermost
    assert isinstance(tracer, Tracer), "control flow is traced inside a trace"
    return tracer


def operands(sources: Sequence[Any]) -> list[Any]:
    """The current engine's tensors for captured ``sources``: tensors, and the current values of variables."""
    engine = dispatch.current()
    return [dispatch.operand(engine, x) for x in sources]
