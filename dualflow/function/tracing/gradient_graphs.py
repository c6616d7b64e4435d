"""Custom gradient functions as graphs: they capture tensors of one trace, a graph is evaluated in any."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

from dualflow.core.errors import DualflowError
from dualflow.core.records import NamedTuple, replace
from dualflow.function.tracing.tracer import Tracer, tracing
from dualflow.gradient.custom import UserGradient
from dualflow.graph.extract import ancestors, extract
from dualflow.graph.graph_gradient import GraphGradient
from dualflow.graph.ir import Capture, Graph, Node, Value
from dualflow.graph.rewrite import Expansion, rebuild, replaced_by
from dualflow.ops.custom_vjp import CUSTOM


class TracedGradient(NamedTuple):
    """The gradient function of a node as a graph.

    Attributes:
        rule: the rule that evaluates the graph.
        extras: inputs of the trace that the function captures, which become further inputs of the node. No
            gradient flows through them at first order.
        captures: what these are from, for those that are no arguments of the trace.
    """

    rule: GraphGradient
    extras: Sequence[Value]
    captures: Mapping[Value, Capture]


Gradients: TypeAlias = Mapping[Node, TracedGradient]


class UntraceableGradient(DualflowError):
    """The gradient function of a node can't be traced; the message is the reason, a clause."""


def has_gradient_function(node: Node) -> bool:
    """Whether ``node`` has a gradient function of the user's."""
    return node.op is CUSTOM and isinstance(node.attrs["grad"], UserGradient)


def traced_gradient(tracer: Tracer, node: Node) -> TracedGradient:
    """The gradient function of a node of the trace ``tracer`` as a graph.

    Raises:
        UntraceableGradient: tracing the function raises, or it has effects or reads results of random ops.
    """
    rule = node.attrs["grad"]
    inputs = node.inputs[node.attrs["outputs"] :]
    refusals = _refusals(tracer)
    try:
        with tracing(tracer):
            cotangents = [tracer.argument(v.spec) for v in node.outputs]
            outputs = [tracer.tensor_of(v) for v in node.outputs]
            g: Any = tuple(cotangents) if len(cotangents) > 1 else cotangents[0]
            out: Any = tuple(outputs) if len(outputs) > 1 else outputs[0]
            input_cotangents = rule((True,) * len(inputs), g, out, *map(tracer.tensor_of, inputs))
            values = [None if flow is None else tracer.lift(flow)._value for flow in input_cotangents]
    except (DualflowError, NameError, TypeError, ValueError) as error:
        # A NameError: the function reads a variable of a loop that has ended.
        for outer, refusal in refusals:
            outer.refusal = refusal
        raise UntraceableGradient(f"tracing it raised {error}") from error
    after = tracer.builder.finish(())
    operands = [*[x._value for x in cotangents], *node.outputs, *inputs]
    returned = [v for v in values if v is not None]
    _, sources = ancestors(returned, operands)
    extras = [v for v in after.inputs if v in sources]
    graph = extract(after, [*operands, *extras], returned, name=f"{rule.name}_gradient")
    if any(n.effect is not None for n in graph.nodes):
        raise UntraceableGradient("it reads results of random ops, or has effects itself")
    captures = dict(zip(after.inputs[len(after.arguments) :], after.captures, strict=True))
    return TracedGradient(
        GraphGradient(_with_duplicates(graph, [*operands, *extras]), _flows(values, extras)),
        extras,
        {v: captures[v] for v in extras if v in captures},
    )


def _refusals(tracer: Tracer | None) -> list[tuple[Tracer, Exception | None]]:
    """The errors that a trace and those around it have stored; one of a gradient function is not theirs."""
    return [] if tracer is None else [(tracer, tracer.refusal), *_refusals(tracer.outer)]


def traced_gradients(tracer: Tracer, nodes: Iterable[Node]) -> Gradients:
    """The gradient functions of nodes of a trace as graphs.

    A function that can't be traced is left out: it raises when the gradient is computed.
    """
    gradients = {}
    for node in filter(has_gradient_function, nodes):
        with suppress(UntraceableGradient):
            gradients[node] = traced_gradient(tracer, node)
    return gradients


def with_gradient_graphs(graph: Graph, gradients: Gradients) -> Graph:
    """``graph`` with graphs in place of the gradient functions of some nodes, and what these capture."""
    if not gradients:
        return graph

    def expanded(node: Node, current: Node) -> Expansion | None:
        gradient = gradients.get(node)
        if gradient is None:
            return None
        attrs = {"grad": gradient.rule, "outputs": node.attrs["outputs"]}
        inputs = (*current.inputs, *gradient.extras)
        return replaced_by(node.like(CUSTOM, inputs, attrs, node.specs))

    rebuilt = rebuild(graph, expanded)
    added = {v: c for gradient in gradients.values() for v, c in gradient.captures.items()}
    for value in graph.inputs:
        added.pop(value, None)
    return replace(rebuilt, inputs=(*rebuilt.inputs, *added), captures=(*rebuilt.captures, *added.values()))


def _flows(values: Sequence[Value | None], extras: Sequence[Value]) -> tuple[bool, ...]:
    return (*[v is not None for v in values], *[False] * len(extras))


def _with_duplicates(graph: Graph, operands: Sequence[Value]) -> Graph:
    """``graph``, whose inputs are the distinct ``operands``, with an unused input for each repeated one."""
    remaining, used = iter(graph.inputs), set()
    inputs = []
    for operand in operands:
        inputs.append(Value(operand.spec) if operand in used else next(remaining))
        used.add(operand)
    return replace(graph, inputs=tuple(inputs))
