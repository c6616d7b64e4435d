"""The batching rule of ``custom_gradient``: the results of the batch, and the gradient graph of the batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dualflow.core import dispatch
from dualflow.core.spec import TensorSpec
from dualflow.function.batching.batched_value import BatchedValue
from dualflow.function.tracing.tracer import Tracer, tracing
from dualflow.graph.graph_gradient import GraphGradient
from dualflow.graph.ir import Graph
from dualflow.graph.passes.dead_code import eliminate_dead_code
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.custom_vjp import CUSTOM

EvaluateBody = Callable[[Graph, Sequence[BatchedValue]], list[BatchedValue]]
"""Evaluates a graph for the whole batch."""


def batched_custom(
    rule: GraphGradient, outputs: int, values: Sequence[BatchedValue], count: int, evaluate: EvaluateBody
) -> list[Any]:
    """The outputs of a function with a custom gradient, each with a batch axis of ``count`` elements.

    The cotangent of an input that the elements share is the sum of those of the elements.

    Args:
        rule: the gradient of one element.
        outputs: the number of outputs, which are the first ``values``.
        values: the outputs, then the inputs.
        count: the size of the batch.
        evaluate: evaluates the gradient for the whole batch.
    """
    stacks = [y.with_batch_axis(count) for y in values[:outputs]]
    if not all(v.spec.shape.is_static for v in rule.graph.inputs):
        return stacks  # a trace with dynamic sizes has its gradients before it is evaluated for a batch
    inputs = values[outputs:]
    with_cotangent = [x for x, flows in zip(inputs, rule.flows, strict=True) if flows]

    def gradient(*tensors: Any) -> list[Any]:
        operands = [BatchedValue(x, is_batched=True) for x in tensors[: 2 * outputs]]
        operands += [x._replace(tensor=t) for x, t in zip(inputs, tensors[2 * outputs :], strict=True)]
        flows = [flow.with_batch_axis(count) for flow in evaluate(rule.graph, operands)]
        return [
            flow if x.is_batched else reduce_sum(flow, 0)
            for x, flow in zip(with_cotangent, flows, strict=True)
        ]

    tensors = [*stacks, *[x.tensor for x in inputs]]
    specs = [TensorSpec.of(x.shape, x.dtype) for x in (*stacks, *tensors)]
    attrs = {"grad": GraphGradient(_traced(gradient, specs), rule.flows), "outputs": outputs}
    return list(dispatch.current().apply(CUSTOM, tuple(tensors), attrs))


def _traced(function: Callable[..., list[Any]], specs: Sequence[TensorSpec]) -> Graph:
    """The graph of a function that reads nothing but its arguments."""
    tracer = Tracer("gradient", enclosing_engine=dispatch.current())
    arguments = [tracer.argument(spec) for spec in specs]
    with tracing(tracer):
        results = [tracer.lift(x)._value for x in function(*arguments)]
    return eliminate_dead_code(tracer.builder.finish(results))
