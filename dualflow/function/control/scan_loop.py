"""Scans: a step that runs for each row of tensors, unrolled if there are few rows, else one loop node.

The node carries values from step to step and stacks the outputs of the steps. Its gradient is such a node
too, in the reverse order, so that gradients of every order exist.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from dualflow.core import dispatch
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.function.control.closures import Closure, close_over
from dualflow.function.control.control_nodes import loop_node
from dualflow.function.control.spec_checks import check_loop_variables
from dualflow.function.control.trace_bodies import (
    carried_shapes,
    check_sizes_read,
    row_shapes,
    trace_body,
    tracer_of,
)
from dualflow.function.tracing.tracer import Tracer, tracing
from dualflow.gradient.custom import UserGradient
from dualflow.graph.control_ops import run_loop
from dualflow.graph.control_spec import LoopSpec
from dualflow.graph.interpret import replay
from dualflow.graph.ir import Graph
from dualflow.graph.passes.hoist_random import batched_attributes, single_random_op, with_scanned_draw
from dualflow.ops.creation import zeros
from dualflow.ops.joining import stack, unstack

Tensors = list[Any]
Step = Callable[[Tensors, Tensors], tuple[Tensors, Tensors]]
"""Maps the carried values and a row of each scanned input to the next ones and a row of each output."""

UNROLL_LIMIT: Final = 32
"""The largest number of rows for which a trace has a copy of the step's graph for each row."""


def scan_loop(
    step: Step,
    carry: Tensors,
    xs: Tensors,
    length: int | None,
    *,
    reverse: bool,
    output_specs: Sequence[TensorSpec] | None = None,
) -> tuple[Tensors, Tensors]:
    """Run ``step`` for each row of ``xs``, as ``jax.lax.scan``.

    Args:
        step: the body of the loop.
        carry: the initial carried values.
        xs: the scanned inputs.
        length: the number of rows; None if it is dynamic, or symbolic.
        reverse: whether to begin with the last row.
        output_specs: the specs of a row of each output. Without them, an eager scan of no rows traces
            ``step``.

    Returns:
        The final carried values, and the outputs stacked in the order of the rows of ``xs``.

    Raises:
        InvalidArgumentError: a carried value changes its shape.
        DTypeError: a carried value changes its dtype.
    """
    if type(length) is not int:
        return _node(step, carry, xs, length, reverse)
    if dispatch.current().eager:
        if length:
            return _unroll(step, carry, xs, length, reverse)
        return carry, _empty(_row_specs(step, carry, xs) if output_specs is None else output_specs)
    return (_inlined if 0 < length <= UNROLL_LIMIT else _node)(step, carry, xs, length, reverse)


def scan_while(
    condition: Callable[..., Any],
    step: Callable[[Tensors], tuple[Tensors, Tensors]],
    carry: Tensors,
    limit: int | None,
    specs: Sequence[TensorSpec] | None = None,
) -> tuple[Tensors, Tensors]:
    """Run ``step`` while ``condition`` holds for the carried values, at most ``limit`` times.

    Args:
        condition: takes the carried values.
        step: returns the next carried values, and the outputs.
        carry: the initial carried values.
        limit: the largest number of steps; None for any.
        specs: the specs of the carried values in all steps; None for those of ``carry``.

    Returns:
        The final carried values, and the stacked outputs of the steps.
    """
    count = len(carry)
    specs = _specs(carry, []) if specs is None else list(specs)
    if not dispatch.current().eager:
        shapes = carried_shapes(carry, specs)
        test = trace_body(condition, specs, lambda tensors: tensors, shapes)
        iteration = trace_body(lambda *s: _joined(step(list(s))), specs, lambda tensors: tensors, shapes)
        check_sizes_read([test, iteration], iteration)
        outputs = loop_node(test, iteration, carry, limit)
        return outputs[:count], outputs[count:]
    results: list[Tensors] = []
    while (limit is None or len(results) < limit) and bool(condition(*carry)):
        carry, ys = step(carry)
        results.append(ys)
    if not results:
        return carry, _empty(_row_specs(lambda state, _: step(state), carry, []))
    return carry, [stack(column) for column in zip(*results, strict=True)]


def _joined(parts: tuple[Tensors, Tensors]) -> Tensors:
    return [*parts[0], *parts[1]]


def _unroll(step: Step, carry: Tensors, xs: Tensors, length: int, reverse: bool) -> tuple[Tensors, Tensors]:
    rows = [unstack(x) for x in xs]
    results: list[Tensors] = []
    for t in _order(length, reverse):
        specs = [x.spec for x in carry]
        carry, ys = step(carry, [x[t] for x in rows])
        check_loop_variables(specs, [x.spec for x in carry])
        results.append(ys)
    if reverse:
        results.reverse()
    return carry, [stack(column) for column in zip(*results, strict=True)]


def _order(length: int, reverse: bool) -> range:
    return range(length - 1, -1, -1) if reverse else range(length)


def _specs(carry: Tensors, xs: Tensors) -> list[TensorSpec]:
    return [TensorSpec.of(x.shape, x.dtype) for x in carry] + [
        TensorSpec.of(x.shape[1:], x.dtype) for x in xs
    ]


def _row_specs(step: Step, carry: Tensors, xs: Tensors) -> Sequence[TensorSpec]:
    """The specs of a row of each output, from a trace of the step that is not run."""
    tracer = Tracer("step")
    tensors = [tracer.argument(spec) for spec in _specs(carry, xs)]
    with tracing(tracer):
        _, ys = step(list(tensors[: len(carry)]), list(tensors[len(carry) :]))
    return [TensorSpec.of(y.shape, y.dtype) for y in ys]


def _empty(results: Sequence[TensorSpec]) -> Tensors:
    return [zeros(Shape((0, *[size or 0 for size in spec.shape])), spec.dtype) for spec in results]


def _traced(step: Step, carry: Tensors, xs: Tensors) -> Closure:
    """The step, traced once for the specs of the carried values and of a row of each scanned input."""
    count = len(carry)
    specs = _specs(carry, xs)
    shapes = [*carried_shapes(carry, specs[:count]), *row_shapes(xs)]
    body = trace_body(
        lambda *s: step(list(s[:count]), list(s[count:])), specs, lambda tensors: tensors, shapes
    )
    check_loop_variables(specs[:count], [v.spec for v in body.outputs[:count]])
    check_sizes_read([body], body)
    return close_over([body], count)


def _is_complete(graph: Graph) -> bool:
    """Whether the graph is valid for each row, rather than only for the row that was traced.

    A gradient function of ``custom_gradient`` captures the tensors of its call. Sizes that depend on values
    have to be computed for each row.
    """
    return not any(
        isinstance(node.attrs.get("grad"), UserGradient)
        or any(not spec.shape.is_static for spec in node.specs)
        for node in graph.nodes
    )


def _inlined(step: Step, carry: Tensors, xs: Tensors, length: int, reverse: bool) -> tuple[Tensors, Tensors]:
    """The loop as copies of the step's graph, one for each row; the user's Python code runs once."""
    closure = _traced(step, carry, xs)
    (graph,) = closure.graphs
    if not _is_complete(graph):
        return _unroll(step, carry, xs, length, reverse)

    def inlined_step(carry: Tensors, row: Tensors) -> tuple[Tensors, Tensors]:
        variables, read = closure.operands()
        return closure.assign(replay(graph, [*carry, *variables, *row, *read]))

    return _unroll(inlined_step, carry, xs, length, reverse)


def _node(
    step: Step, carry: Tensors, xs: Tensors, length: int | None, reverse: bool
) -> tuple[Tensors, Tensors]:
    closure = _traced(step, carry, xs)
    variables, read = closure.operands()
    return closure.assign(_apply(closure.graphs[0], [*carry, *variables], xs, read, length, reverse))


def _apply(
    graph: Graph, carry: Tensors, xs: Tensors, invariants: Tensors, length: int | None, reverse: bool
) -> Tensors:
    budget = tracer_of(dispatch.current()).options.stack_budget
    draw = None if reverse or type(length) is not int else single_random_op(graph, length, budget)
    if draw is not None and type(length) is int:
        # hoist the random op out of the loop, as one draw for all iterations: a loop without effects has a
        # gradient
        graph = with_scanned_draw(graph, draw, len(carry) + len(xs))
        xs = [*xs, dispatch.current().run(draw.op, (), batched_attributes(draw, length))]
    spec = LoopSpec(graph, carried=len(carry), scanned=len(xs), length=length, reverse=reverse)
    return run_loop(spec, [*carry, *xs, *invariants])
