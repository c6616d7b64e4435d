"""Evaluates a graph for a whole batch, on the current engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dualflow.core import dispatch
from dualflow.function.batching.batched_value import BatchedValue, UnbatchableError
from dualflow.function.batching.control_rules import batched_cond, batched_loop
from dualflow.function.batching.custom_gradients import batched_custom
from dualflow.function.batching.rules import apply_batched
from dualflow.graph import origin
from dualflow.graph.graph_gradient import GraphGradient
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.respecialise_bodies import attrs_for
from dualflow.ops.custom_vjp import CUSTOM
from dualflow.ops.op_kinds import Cond, Literal, Loop
from dualflow.ops.record import Effect
from dualflow.ops.tensor_sizes import SHAPE, sizes_of

OnAssignment = Callable[[Any, Any], None]


def evaluate_batched(
    graph: Graph, inputs: Sequence[BatchedValue], count: int, on_assignment: OnAssignment | None = None
) -> list[BatchedValue]:
    """The results of ``graph`` for a batch of ``count`` elements: the outputs, then the updates.

    Args:
        graph: the trace for one element.
        inputs: one for each input of the graph.
        count: the size of the batch.
        on_assignment: called for each assignment outside of bodies, with the variable and its new value.

    Raises:
        UnbatchableError: an operation has no batched form; with the user's line.
    """
    values: dict[Value, BatchedValue] = dict(zip(graph.inputs, inputs, strict=True))
    for node in graph.nodes:
        operands = [values[v] for v in node.inputs]
        with origin.recorded_as(node):
            try:
                results = _outputs(node, operands, count, on_assignment)
            except UnbatchableError as error:
                if node.origin is None or str(node.origin) in str(error):
                    raise
                raise UnbatchableError(f"{error}\n  {node.origin}") from None
        values.update(zip(node.outputs, results, strict=True))
    return [values[v] for v in graph.results]


def _outputs(
    node: Node, values: Sequence[BatchedValue], count: int, on_assignment: OnAssignment | None
) -> list[BatchedValue]:
    if isinstance(node.op.kind, Literal):
        return [BatchedValue(dispatch.current().constant(node.attrs["value"]), is_batched=False)]
    if node.effect is Effect.ASSIGN:
        if on_assignment is not None:
            on_assignment(node.attrs["variable"], require_unbatched(values[0], node.attrs["variable"]))
        return []
    attrs = dict(attrs_for(node, [x.element_spec for x in values]))
    if not any(x.is_batched for x in values) and node.effect is not Effect.RANDOM:
        results = dispatch.current().apply(node.op, tuple([x.tensor for x in values]), attrs)
        return [
            BatchedValue(y, is_batched=False) for y in (results if isinstance(results, tuple) else (results,))
        ]

    if node.op is SHAPE:  # all elements of a batch have the same sizes
        sizes: Any = sizes_of(values[0].batch_axis_first.tensor, attrs["dtype"])
        return [BatchedValue(sizes[1:], is_batched=False)]

    def run(body: Graph, inputs: Sequence[BatchedValue]) -> list[BatchedValue]:
        return evaluate_batched(body, inputs, count)

    if isinstance(node.op.kind, Loop):
        return batched_loop(attrs["loop"], values, count, run)
    active = next((x.active for x in values if x.active is not None), None)
    values = [x.batch_axis_first for x in values]
    if isinstance(node.op.kind, Cond):
        index, *operands = values
        stacks = batched_cond(attrs["cond"], index, operands, count, run)
    elif node.op is CUSTOM and isinstance(attrs["grad"], GraphGradient):
        stacks = batched_custom(attrs["grad"], attrs["outputs"], values, count, run)
    else:
        stacks = apply_batched(node.op, values, attrs, count)
    return [BatchedValue(y, is_batched=True, active=active) for y in stacks]


def require_unbatched(value: BatchedValue, variable: Any) -> Any:
    """The tensor of a value that must be the same for all batch elements, to be assigned.

    Raises:
        UnbatchableError: the value is batched.
    """
    if value.is_batched:
        raise UnbatchableError(
            f"{variable!r} is assigned a batched value, but it holds one value for the whole batch; return "
            "the value, and assign its reduction outside of vmap."
        )
    return value.tensor
