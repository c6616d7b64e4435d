"""Custom gradients of saved graphs: the gradient function of each, traced to a graph inside its node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dualflow.core.errors import DualflowError, InvalidArgumentError
from dualflow.core.records import replace
from dualflow.function.concrete import ConcreteFunction
from dualflow.function.tracing.tracer import tracing
from dualflow.gradient.custom import UserGradient
from dualflow.graph.extract import extract
from dualflow.graph.graph_gradient import GraphGradient
from dualflow.graph.ir import Capture, Graph, Node, Value
from dualflow.graph.rewrite import Expansion, rebuild, replaced_by
from dualflow.ops.custom_vjp import CUSTOM


def with_traced_gradients(trace: ConcreteFunction) -> Graph:
    """The graph of a trace, in which each custom gradient function is replaced by a graph.

    Tensors of the trace that a gradient function captures become further inputs of the node; no gradient
    flows through them at first order.

    Raises:
        InvalidArgumentError: a gradient function can't be traced, or has an effect; with the user's line.
    """
    graph = trace.graph
    captures = dict(zip(graph.inputs[len(graph.arguments) :], graph.captures, strict=True))

    def traced(node: Node, current: Node) -> Expansion | None:
        if node.op is not CUSTOM or not isinstance(node.attrs["grad"], UserGradient):
            return None
        gradient, extras = _traced(trace, node, captures)
        attrs = {"grad": gradient, "outputs": node.attrs["outputs"]}
        inputs = (*current.inputs, *extras)
        return replaced_by(Node(CUSTOM, inputs, attrs, node.specs, node.origin, node.merged_origins))

    rebuilt = rebuild(graph, traced)
    if rebuilt is graph:
        return graph
    ordered = sorted(captures.items(), key=lambda item: not item[1].variable)
    return replace(
        rebuilt,
        inputs=(*graph.arguments, *[value for value, _ in ordered]),
        captures=tuple([capture for _, capture in ordered]),
    )


def _traced(
    concrete: ConcreteFunction, node: Node, captures: dict[Value, Capture]
) -> tuple[GraphGradient, Sequence[Value]]:
    """The gradient of ``node`` as a graph, and the graph's further inputs, which extend ``captures``."""
    tracer, rule = concrete.trace.tracer, node.attrs["grad"]
    inputs = node.inputs[node.attrs["outputs"] :]
    try:
        with tracing(tracer):
            cotangents = [tracer.argument(v.spec) for v in node.outputs]
            outputs = [tracer.tensor_of(v) for v in node.outputs]
            g: Any = tuple(cotangents) if len(cotangents) > 1 else cotangents[0]
            out: Any = tuple(outputs) if len(outputs) > 1 else outputs[0]
            input_cotangents = rule((True,) * len(inputs), g, out, *map(tracer.tensor_of, inputs))
            values = [None if flow is None else tracer.lift(flow)._value for flow in input_cotangents]
    except (DualflowError, TypeError, ValueError) as error:
        raise InvalidArgumentError(
            f"The gradient function of {rule.name} can't be saved: tracing it raised {error}{_place(node)}"
        ) from error
    after = tracer.builder.finish(())
    given_values = [*[x._value for x in cotangents], *node.outputs, *inputs]
    returned = [v for v in values if v is not None]
    after_captures = dict(zip(after.inputs[len(after.arguments) :], after.captures, strict=True))
    extras = extract(after, given_values, returned).inputs[len(dict.fromkeys(given_values)) :]
    captures.update({v: after_captures[v] for v in extras if v in after_captures})
    graph = extract(after, [*given_values, *extras], returned, name=f"{rule.name}_gradient")
    if any(n.effect is not None for n in graph.nodes):
        raise InvalidArgumentError(
            f"The gradient function of {rule.name} can't be saved: it reads results of random ops, or has "
            f"effects itself. Compute these before the function, and pass them to it.{_place(node)}"
        )
    return GraphGradient(_with_duplicates(graph, [*given_values, *extras]), _flows(values, extras)), extras


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


def _place(node: Node) -> str:
    return "" if node.origin is None else f"\n  {node.origin}"
