"""The gradient of a loop: a loop that goes back through the iterations, over what the loop kept of each.

The body is traced together with its gradient and cut in two, as a whole function is under a tape. The first
half is the body of a loop over the same inputs that also stacks what the second half reads; a pass makes one
of it and the first loop. The second half is the body of the loop that goes back. Both are ordinary loops, so
that there are gradients of every order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from dualflow.core import dispatch
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.records import NamedTuple, replace
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.eager.tape import GradientTape, apply_vjp
from dualflow.function.control import loop_checkpointing
from dualflow.function.control.bodies import traced, tracer_of
from dualflow.graph.control import run_loop
from dualflow.graph.control_spec import LoopSpec
from dualflow.graph.interpret import replay
from dualflow.graph.ir import Graph, Value
from dualflow.graph.options import CompileOptions
from dualflow.graph.passes import SIMPLIFICATIONS, optimise
from dualflow.graph.split_forward_backward import (
    ForwardBackwardGraphs,
    Source,
    SourceKind,
    split_forward_backward,
)
from dualflow.ops.complex_numbers import conj
from dualflow.ops.creation import zeros_like
from dualflow.ops.op_kinds import Decompose
from dualflow.ops.record import Effect

Tensors = list[Any]


class _Pulled(NamedTuple):
    """A loop whose gradient is taken, its inputs, and which of its values have a cotangent.

    Attributes:
        moving: the carried values that a cotangent goes back through,
        mapping: the scanned inputs, and
        resting: the other inputs that get one.
        taking: the results that have one: those moving, then rows.
    """

    loop: LoopSpec
    inputs: tuple[Any, ...]
    moving: tuple[int, ...]
    mapping: tuple[int, ...]
    resting: tuple[int, ...]
    taking: tuple[int, ...]

    @property
    def wanted(self) -> tuple[int, ...]:
        return (*self.moving, *self.mapping, *self.resting)


def pull_loop(needed: Sequence[bool], g: Any, out: Any, *inputs: Any, loop: LoopSpec) -> Tensors:
    """The cotangents of the inputs, by a loop that goes back."""
    gs = g if isinstance(g, tuple) else (g,)
    wanted = [i for i, x in enumerate(inputs) if needed[i] and x.dtype.is_inexact]
    moving = _active(loop, wanted)
    inexact = [i for i, v in enumerate(loop.body.outputs) if v.spec.dtype.is_inexact]
    rows = [i for i in inexact if i >= loop.carried and gs[i] is not None]
    flows: Tensors = [None] * len(inputs)
    if not wanted or not (rows or any(gs[i] is not None for i in moving)):
        return flows
    _refuse_effects(loop)
    pulled = _Pulled(
        loop,
        inputs,
        moving,
        mapping=tuple(i for i in wanted if loop.carried <= i < loop.end),
        resting=tuple(i for i in wanted if i >= loop.end),
        taking=(*moving, *rows),
    )
    options = tracer_of(dispatch.current()).options
    graphs = _forward_backward(pulled, options)
    kept = _kept(loop, graphs)
    if _has_sizes_of_its_own(loop.body) and any(
        not v.spec.shape.is_static for (kind, _), v in kept.items() if kind is SourceKind.RESIDUAL
    ):  # rows of several sizes make no stack
        loop = replace(loop, recompute=True)
        pulled = pulled._replace(loop=loop)
        graphs = _forward_backward(pulled, options)
        kept = _kept(loop, graphs)
    iterations = _segment(loop, kept, options)
    if iterations is None:
        found = _go_back(pulled, graphs, _keep(pulled, graphs, kept), gs, out)
    else:
        found = _in_segments(pulled, iterations, gs)
    for i, flow in zip((*moving, *pulled.resting, *pulled.mapping), found, strict=True):
        flows[i] = flow
    return flows


def _has_sizes_of_its_own(graph: Graph) -> bool:
    """Whether iterations of ``graph`` read sizes, which may differ between iterations."""
    return any(
        isinstance(n.op.kind, Decompose) or any(_has_sizes_of_its_own(b) for _, b in n.bodies)
        for n in graph.nodes
    )


_REPEATABLE: Final = (None, Effect.CHECK, Effect.ASSIGN)


def _refuse_effects(loop: LoopSpec) -> None:
    nodes = (n for graph in reversed(loop.graphs) for n in graph.nodes)
    active = next((n for n in nodes if n.effect not in _REPEATABLE), None)
    if active is not None:
        where = f"\n  {active.origin}" if active.origin else ""
        raise InvalidArgumentError(
            f"A loop that runs {active.op.name} in each iteration can't be run again for its gradient; draw "
            f"random numbers or call Python before the loop, and index what it gave inside.{where}"
        )


def _active(loop: LoopSpec, wanted: Sequence[int]) -> tuple[int, ...]:
    """The carried values that depend, in some iteration, on an input that is ``wanted``."""
    body, carried = loop.body, loop.carried
    reached = {body.inputs[i] for i in wanted}
    while True:
        for node in body.nodes:
            if not reached.isdisjoint(node.inputs):
                reached.update(node.outputs)
        more = {
            body.inputs[i]
            for i in range(carried)
            if body.outputs[i] in reached and body.outputs[i].spec.dtype.is_inexact
        }
        if more <= reached:
            return tuple(i for i in range(carried) if body.inputs[i] in reached)
        reached |= more


def _forward_backward(pulled: _Pulled, options: CompileOptions) -> ForwardBackwardGraphs:
    """The body and its gradient, cut into a forward and a backward body."""
    loop = pulled.loop
    count = len(loop.body.inputs)

    def both(*symbols: Any) -> Tensors:
        values, cotangents = symbols[:count], symbols[count:]
        sources = [values[i] for i in pulled.wanted]
        with GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(sources)
            results = replay(loop.body, values)
        targets = [results[i] for i in pulled.taking]
        weights = [conj(c) for c in cotangents]
        found = apply_vjp(tape, targets, weights, sources)
        return [*results, *[conj(x) for x in found]]

    specs = [_spec(v) for v in (*loop.body.inputs, *[loop.body.outputs[i] for i in pulled.taking])]
    joint = traced(both, specs)
    if all(v.spec.shape.is_static for v in joint.inputs):  # else it is simplified for the sizes of a call
        joint = optimise(joint, options, passes=SIMPLIFICATIONS)
    lasting = joint.inputs[0 if loop.recompute else loop.end : count]
    return split_forward_backward(joint, count, len(loop.body.outputs), 0, lasting)


def _kept(loop: LoopSpec, graphs: ForwardBackwardGraphs) -> dict[Source, Value]:
    """The values of each iteration that the backward loop reads, beside those that are stacked anyway."""
    first, carried, count = graphs.forward, loop.carried, len(loop.body.outputs)
    before = [i for kind, i in graphs.sources if kind is SourceKind.INPUT and i < carried]
    if (
        not before and loop.iterations is None and not loop.scanned
    ):  # a stack also tells how many iterations there were
        before = [min(range(carried), key=lambda i: _bytes(loop.body.inputs[i].spec))]
    after = [i for kind, i in graphs.sources if kind is SourceKind.OUTPUT and i < carried]
    residuals = range(len(first.outputs) - count)
    return {
        **{(SourceKind.INPUT, i): first.inputs[i] for i in before},
        **{(SourceKind.OUTPUT, i): first.outputs[i] for i in after},
        **{(SourceKind.RESIDUAL, k): first.outputs[count + k] for k in residuals},
    }


def _bytes(spec: TensorSpec) -> float:
    return spec.nbytes if spec.shape.is_static else math.inf


def _segment(loop: LoopSpec, kept: dict[Source, Value], options: CompileOptions) -> int | None:
    """How many iterations to compute again at a time; None if what all iterations keep fits into memory.

    The square root rule: what is kept of each segment's iterations, and what each segment begins with, are
    least together when both are the same. (Chen, Xu, Zhang and Guestrin, "Training deep nets with sublinear
    memory cost", 2016.)
    """
    if not all(v.spec.shape.is_static for v in (*kept.values(), *loop.body.inputs)):
        return None  # how much that is will show when the sizes of a call are known
    each = sum(v.spec.nbytes for v in kept.values())
    budget = options.loop_budget
    if loop.recompute or not each or (loop.condition is None and loop.length is None):
        return None
    if loop.condition is not None and loop.stacked:
        return None
    start = max(1, sum(v.spec.nbytes for v in loop.body.inputs[: loop.carried]))
    if loop.length is None:
        return max(1, budget // (2 * each)) if options.kept_by_loops is not None else None
    if loop.length * each <= budget:
        return None
    iterations = math.ceil(math.sqrt(loop.length * start / each))
    return iterations if iterations < loop.length else None


def _in_segments(pulled: _Pulled, iterations: int, gs: Sequence[Any]) -> Tensors:
    """The cotangents of the inputs :attr:`_Pulled.wanted`, through a loop over segments of so many
    iterations."""
    order = (*pulled.moving, *pulled.resting, *pulled.mapping)
    sources = [pulled.inputs[i] for i in order]
    with GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(sources)
        results = loop_checkpointing.run(pulled.loop, pulled.inputs, iterations)
    taking = [i for i in pulled.taking if gs[i] is not None]
    targets, weights = [results[i] for i in taking], [conj(gs[i]) for i in taking]
    found = apply_vjp(tape, targets, weights, sources)
    return [conj(x) for x in found]


def _keep(pulled: _Pulled, graphs: ForwardBackwardGraphs, stacked: dict[Source, Value]) -> dict[Source, Any]:
    """Run the loop once more with stacks of what is kept; return the stacks by the value that they stack."""
    loop = pulled.loop
    first, carried, count = graphs.forward, loop.carried, len(loop.body.outputs)
    rows: list[Source] = [(SourceKind.OUTPUT, i) for i in range(carried, count)]
    if not stacked and not any(source in rows for source in graphs.sources):
        return {}
    graph = replace(first, outputs=(*first.outputs[:count], *stacked.values()))
    results = run_loop(loop.extended(graph), pulled.inputs)
    return dict(zip([*rows, *stacked], results[carried:], strict=True))


def _go_back(
    pulled: _Pulled, graphs: ForwardBackwardGraphs, stacks: dict[Source, Any], gs: Sequence[Any], out: Any
) -> Tensors:
    """The cotangents of the inputs :attr:`_Pulled.wanted`: moving, resting, then mapping."""
    loop, inputs = pulled.loop, pulled.inputs
    count, moving, sums = len(loop.body.inputs), len(pulled.moving), len(pulled.resting)
    results = out if isinstance(out, tuple) else (out,)
    carry = [gs[i] if gs[i] is not None else zeros_like(results[i]) for i in pulled.moving]
    carry += [zeros_like(inputs[i]) for i in pulled.resting]
    rows = [gs[i] for i in pulled.taking[moving:]]
    rest: Tensors = []
    where: list[tuple[str, int]] = []  # of each argument of the second half
    for source in graphs.sources:
        kind, i = source
        if source in stacks or (kind is SourceKind.INPUT and loop.carried <= i < loop.end):
            where.append(("rows", len(rows)))
            rows.append(stacks[source] if source in stacks else inputs[i])
        elif i >= count:
            i -= count
            where.append(("carry", i) if i < moving else ("rows", i - moving))
        else:
            where.append(("rest", len(rest)))
            rest.append(inputs[i])
    if loop.iterations is None and not rows:
        rows.append(inputs[loop.carried] if loop.scanned else next(iter(stacks.values())))

    def iteration(*symbols: Any) -> Tensors:
        tables = {
            "carry": symbols[: moving + sums],
            "rows": symbols[moving + sums : moving + sums + len(rows)],
            "rest": symbols[moving + sums + len(rows) :],
        }
        found = replay(graphs.backward, [tables[kind][i] for kind, i in where])
        flows, of_rows, shares = found[:moving], found[moving : len(found) - sums], found[len(found) - sums :]
        totals = [a + b for a, b in zip(tables["carry"][moving:], shares, strict=True)]
        return [*flows, *totals, *of_rows]

    through = [loop.body.inputs[i].spec for i in pulled.moving]  # sizes that iterations change are open
    specs = [*through, *map(_spec, carry[moving:]), *map(_row, rows), *map(_spec, rest)]
    back = traced(iteration, specs)
    way_back = LoopSpec(back, len(carry), len(rows), loop.iterations, reverse=not loop.reverse)
    return run_loop(way_back, [*carry, *rows, *rest])


def _spec(x: Any) -> TensorSpec:
    return TensorSpec.of(x.shape, x.dtype) if not isinstance(x, Value) else x.spec


def _row(x: Any) -> TensorSpec:
    return TensorSpec.of(Shape(tuple(x.shape)[1:]), x.dtype)
