"""A step repeated over the rows of tensors: unrolled where rows are few, else one node of the graph.

The node carries tensors from row to row and stacks what each step gives. Its gradient is such a node too,
that goes the other way, so there are gradients of every order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.eager.tape import GradientTape
from dualflow.function.bodies import aligned, operands, trace_body
from dualflow.function.trace import Tracer, tracing
from dualflow.graph.control import with_effects
from dualflow.graph.interpret import evaluate, replay
from dualflow.graph.ir import Graph
from dualflow.graph.passes.dead_code import eliminate_dead_code
from dualflow.ops.complex_numbers import conj
from dualflow.ops.conversion import identity
from dualflow.ops.creation import zeros, zeros_like
from dualflow.ops.forms import Opaque
from dualflow.ops.joining import stack, unstack
from dualflow.ops.record import Op

Array = np.ndarray[Any, Any]
Tensors = list[Any]
Step = Callable[[Tensors, Tensors], tuple[Tensors, Tensors]]
"""From what is carried, and one row of each tensor, to what is carried on, and rows of the results."""

UNROLLED: Final = 32
"""While tracing, up to so many rows are steps of their own in the graph."""


def repeat(step: Step, carry: Tensors, xs: Tensors, length: int, reverse: bool) -> tuple[Tensors, Tensors]:
    """Run ``step`` for each row of ``xs``, from the last one if ``reverse``.

    Returns:
        What is carried out of the last step, and the results stacked in the order of the rows of ``xs``.

    Raises:
        InvalidArgumentError: what is carried changes its shape.
        DTypeError: it changes its dtype.
    """
    if dispatch.current().eager:
        return _unroll(step, carry, xs, length, reverse) if length else (carry, _nothing(step, carry, xs))
    return (_unroll if 0 < length <= UNROLLED else _node)(step, carry, xs, length, reverse)


def _unroll(step: Step, carry: Tensors, xs: Tensors, length: int, reverse: bool) -> tuple[Tensors, Tensors]:
    rows = [unstack(x) for x in xs]
    results: list[Tensors] = []
    for t in _order(length, reverse):
        before = [x.spec for x in carry]
        carry, ys = step(carry, [x[t] for x in rows])
        _check(before, [x.spec for x in carry])
        results.append(ys)
    if reverse:
        results.reverse()
    return carry, [stack(column) for column in zip(*results, strict=True)]


def _order(length: int, reverse: bool) -> range:
    return range(length - 1, -1, -1) if reverse else range(length)


def _check(before: Sequence[TensorSpec], after: Sequence[TensorSpec]) -> None:
    for was, now in zip(before, after, strict=True):
        if was.dtype is not now.dtype:
            raise DTypeError(
                f"What is carried from row to row had dtype {was.dtype.name} before a step and has "
                f"{now.dtype.name} after it; cast it."
            )
        if was.shape != now.shape:
            raise InvalidArgumentError(
                f"What is carried from row to row had shape {was.shape} before a step and has {now.shape} "
                "after it."
            )


def _specs(carry: Tensors, xs: Tensors) -> list[TensorSpec]:
    return [TensorSpec.of(x.shape, x.dtype) for x in carry] + [
        TensorSpec.of(x.shape[1:], x.dtype) for x in xs
    ]


def _nothing(step: Step, carry: Tensors, xs: Tensors) -> Tensors:
    """The results of no steps: their shapes and dtypes come from a step that is traced and never run."""
    tracer = Tracer("step")
    symbols = [tracer.argument(spec) for spec in _specs(carry, xs)]
    with tracing(tracer):
        _, ys = step(list(symbols[: len(carry)]), list(symbols[len(carry) :]))
    return [zeros(Shape((0, *y.shape)), y.dtype) for y in ys]


def _node(step: Step, carry: Tensors, xs: Tensors, length: int, reverse: bool) -> tuple[Tensors, Tensors]:
    count = len(carry)
    specs = _specs(carry, xs)
    body = trace_body(lambda *s: step(list(s[:count]), list(s[count:])), specs, lambda symbols: symbols)
    carried, ys = body.outputs[:count], body.outputs[count:]
    _check(specs[:count], [v.spec for v in carried])
    written = {key: variable for key, (variable, _) in body.writes.items()}
    kept = {key: source for key, (source, _) in body.reads.items() if key not in written}
    inputs = [
        *body.arguments[:count],
        *aligned([body], written)[0],
        *body.arguments[count:],
        *aligned([body], kept)[0],
    ]
    graph = body.graph(inputs, [*carried, *[value for _, value in body.writes.values()], *ys])
    engine = dispatch.current()
    state = operands(list(written.values()))
    found = _apply(graph, [*carry, *state], xs, operands(list(kept.values())), length, reverse)
    after = count + len(written)
    for variable, value in zip(written.values(), found[count:after], strict=True):
        engine.unrecorded.update(variable, value, found)
    return found[:count], found[after:]


def _apply(graph: Graph, carry: Tensors, xs: Tensors, rest: Tensors, length: int, reverse: bool) -> Tensors:
    attrs = {"body": graph, "carried": len(carry), "mapped": len(xs), "length": length, "reverse": reverse}
    inputs = (*carry, *xs, *rest)
    return list(dispatch.current().run(with_effects(SCAN, [graph]), inputs, attrs))


def _infer(
    *specs: TensorSpec, body: Graph, carried: int, mapped: int, length: int, reverse: bool
) -> tuple[TensorSpec, ...]:
    rows = [v.spec for v in body.outputs[carried:]]
    return (*specs[:carried], *[TensorSpec.of(Shape((length, *r.shape)), r.dtype) for r in rows])


def _run(
    *arrays: Array, body: Graph, carried: int, mapped: int, length: int, reverse: bool
) -> tuple[Array, ...]:
    carry: Sequence[Array] = arrays[:carried]
    xs, rest = arrays[carried : carried + mapped], arrays[carried + mapped :]
    specs = [v.spec for v in body.outputs[carried:]]
    stacks = [np.empty((length, *s.shape), s.dtype.dtype) for s in specs]
    for t in _order(length, reverse):
        found = evaluate(body, [*carry, *[x[t, ...] for x in xs], *rest])
        carry = found[:carried]
        for rows, y in zip(stacks, found[carried:], strict=True):
            rows[t] = y
    return (*carry, *stacks)


def _pull(
    needed: Sequence[bool],
    g: Any,
    out: Any,
    *inputs: Any,
    body: Graph,
    carried: int,
    mapped: int,
    length: int,
    reverse: bool,
) -> Tensors:
    """Go through the rows the other way, from what each step began with."""
    if any(n.op.effect is not None for n in body.nodes):
        raise InvalidArgumentError(
            f"The steps over more than {UNROLLED} rows that draw random numbers or call Python can't be run "
            "again for their gradient; draw before, and map over what was drawn."
        )
    gs = list(g) if isinstance(g, tuple) else [g]
    end = carried + mapped
    moving = [i for i in range(carried) if inputs[i].dtype.is_inexact]
    mapping = [i for i in range(carried, end) if needed[i] and inputs[i].dtype.is_inexact]
    resting = [i for i in range(end, len(inputs)) if needed[i] and inputs[i].dtype.is_inexact]
    taking = [i for i, v in enumerate(body.outputs) if v.spec.dtype.is_inexact]
    before = _history(inputs, body, carried, mapped, length, reverse)

    def step(carry: Tensors, row: Tensors) -> tuple[Tensors, Tensors]:
        """The cotangents of one step: carried back, those of its row, and the sums of those of the rest."""
        values = [*row[:end], *[identity(x) for x in inputs[end:]]]
        sources = [values[i] for i in (*moving, *mapping, *resting)]
        with GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(sources)
            results = replay(body, values)
        weights = [conj(c) for c in (*carry[: len(moving)], *row[end:])]
        found = tape.gradient([results[i] for i in taking], sources, weights, unconnected_gradients="zero")
        flows = [conj(x) for x in found]
        first, last = len(moving), len(moving) + len(mapping)
        sums = [a + b for a, b in zip(carry[first:], flows[last:], strict=True)]
        return [*flows[:first], *sums], flows[first:last]

    start = [*[gs[i] for i in moving], *[zeros_like(inputs[i]) for i in resting]]
    xs = [*before, *inputs[carried:end], *[gs[i] for i in taking if i >= carried]]
    last, of_rows = repeat(step, start, xs, length, not reverse)
    flows: Tensors = [None] * len(inputs)
    for i, flow in zip((*moving, *resting, *mapping), (*last, *of_rows), strict=True):
        flows[i] = flow
    return flows


def _history(
    inputs: Sequence[Any], body: Graph, carried: int, mapped: int, length: int, reverse: bool
) -> Tensors:
    """What is carried into each step, stacked."""
    if not carried:
        return []
    outputs = (*body.outputs[:carried], *body.inputs[:carried])
    keeping = eliminate_dead_code(replace(body, outputs=outputs))
    end = carried + mapped
    carry, xs, rest = list(inputs[:carried]), list(inputs[carried:end]), list(inputs[end:])
    return _apply(keeping, carry, xs, rest, length, reverse)[carried:]


SCAN: Final = Op(
    name="scan",
    doc="The body for each row of the mapped inputs: what it carries in the end, then its results, stacked.",
    infer=_infer,
    kernel=_run,
    form=Opaque("its steps are run one by one"),
    pullback=_pull,
    outputs=None,
)
