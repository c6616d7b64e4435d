"""A step repeated over the rows of tensors: unrolled where rows are few, else one node of the graph.

The node carries tensors from row to row and stacks what each step gives. Its gradient is such a node too,
that goes the other way, so there are gradients of every order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from dualflow.core import dispatch
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.function.control.bodies import trace_body, tracer_of
from dualflow.function.control.closures import Closure, close_over
from dualflow.function.control.control_nodes import loop_node
from dualflow.function.control.spec_checks import check_loop_variables
from dualflow.function.tracing.tracer import Tracer, tracing
from dualflow.gradient.custom import WrittenGradient
from dualflow.graph.control import run_loop
from dualflow.graph.control_spec import LoopSpec
from dualflow.graph.interpret import replay
from dualflow.graph.ir import Graph
from dualflow.graph.passes.hoist_random import for_all_iterations, only_draw, with_rows
from dualflow.ops.creation import zeros
from dualflow.ops.joining import stack, unstack

Tensors = list[Any]
Step = Callable[[Tensors, Tensors], tuple[Tensors, Tensors]]
"""From what is carried, and one row of each tensor, to what is carried on, and rows of the results."""

UNROLLED: Final = 32
"""While tracing, up to so many rows are steps of their own in the graph; the step is traced once."""


def repeat(
    step: Step,
    carry: Tensors,
    xs: Tensors,
    length: int | None,
    reverse: bool,
    results: Sequence[TensorSpec] | None = None,
) -> tuple[Tensors, Tensors]:
    """Run ``step`` for each row of ``xs``, from the last one if ``reverse``.

    There are ``length`` rows: None for as many as ``xs`` will have when the graph runs. Eagerly no rows call
    no step where ``results`` says what it would give.

    Returns:
        What is carried out of the last step, and the results stacked in the order of the rows of ``xs``.

    Raises:
        InvalidArgumentError: what is carried changes its shape.
        DTypeError: it changes its dtype.
    """
    if length is None:
        return _node(step, carry, xs, length, reverse)
    if dispatch.current().eager:
        if length:
            return _unroll(step, carry, xs, length, reverse)
        return carry, _empty(_row_specs(step, carry, xs) if results is None else results)
    return (_inlined if 0 < length <= UNROLLED else _node)(step, carry, xs, length, reverse)


def repeat_while(
    goes_on: Callable[..., Any],
    step: Callable[[Tensors], tuple[Tensors, Tensors]],
    carry: Tensors,
    most: int | None,
) -> tuple[Tensors, Tensors]:
    """Run ``step`` while ``goes_on`` holds of what is carried, at most ``most`` times; None for any number.

    Returns:
        What is carried out of the last step, and the rows that the steps gave, stacked.
    """
    count, specs = len(carry), _specs(carry, [])
    if not dispatch.current().eager:
        test = trace_body(goes_on, specs, lambda symbols: symbols)
        iteration = trace_body(lambda *s: _joined(step(list(s))), specs, lambda symbols: symbols)
        found = loop_node(test, iteration, carry, most)
        return found[:count], found[count:]
    results: list[Tensors] = []
    while (most is None or len(results) < most) and bool(goes_on(*carry)):
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
        before = [x.spec for x in carry]
        carry, ys = step(carry, [x[t] for x in rows])
        check_loop_variables(before, [x.spec for x in carry])
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
    """What a step gives for one row; it is traced for that and never run."""
    tracer = Tracer("step")
    symbols = [tracer.argument(spec) for spec in _specs(carry, xs)]
    with tracing(tracer):
        _, ys = step(list(symbols[: len(carry)]), list(symbols[len(carry) :]))
    return [TensorSpec.of(y.shape, y.dtype) for y in ys]


def _empty(results: Sequence[TensorSpec]) -> Tensors:
    return [zeros(Shape((0, *[size or 0 for size in spec.shape])), spec.dtype) for spec in results]


def _traced(step: Step, carry: Tensors, xs: Tensors) -> Closure:
    """The step, traced once: its arguments are what is carried, and a row of each tensor."""
    count = len(carry)
    specs = _specs(carry, xs)
    body = trace_body(lambda *s: step(list(s[:count]), list(s[count:])), specs, lambda symbols: symbols)
    check_loop_variables(specs[:count], [v.spec for v in body.outputs[:count]])
    return close_over([body], count)


def _is_complete(graph: Graph) -> bool:
    """Whether the graph says all that the step does, for any row.

    The gradient function of a ``custom_gradient`` holds tensors of its own call, and sizes that the rows'
    values tell are known only where these are.
    """
    return not any(
        isinstance(node.attrs.get("grad"), WrittenGradient)
        or any(not spec.shape.is_static for spec in node.specs)
        for node in graph.nodes
    )


def _inlined(step: Step, carry: Tensors, xs: Tensors, length: int, reverse: bool) -> tuple[Tensors, Tensors]:
    """The step's graph for each row, one after the other: the user's Python runs once."""
    closure = _traced(step, carry, xs)
    (graph,) = closure.graphs
    if not _is_complete(graph):
        return _unroll(step, carry, xs, length, reverse)

    def again(carry: Tensors, row: Tensors) -> tuple[Tensors, Tensors]:
        variables, read = closure.operands()
        return closure.assign(replay(graph, [*carry, *variables, *row, *read]))

    return _unroll(again, carry, xs, length, reverse)


def _node(
    step: Step, carry: Tensors, xs: Tensors, length: int | None, reverse: bool
) -> tuple[Tensors, Tensors]:
    closure = _traced(step, carry, xs)
    variables, read = closure.operands()
    return closure.assign(_apply(closure.graphs[0], [*carry, *variables], xs, read, length, reverse))


def _apply(
    graph: Graph, carry: Tensors, xs: Tensors, rest: Tensors, length: int | None, reverse: bool
) -> Tensors:
    room = tracer_of(dispatch.current()).options.stack_budget
    draw = None if reverse or length is None else only_draw(graph, length, room)
    if draw is not None and length is not None:  # so that the loop has no effect, and a gradient
        graph = with_rows(graph, draw, len(carry) + len(xs))
        xs = [*xs, dispatch.current().run(draw.op, (), for_all_iterations(draw, length))]
    return run_loop(LoopSpec(graph, len(carry), len(xs), length, reverse=reverse), [*carry, *xs, *rest])
