"""The gradient of a loop: a loop that goes back through the turns, over what the loop kept of each.

The body is traced together with its gradient and cut in two, as a whole function is under a tape. The first
half is the body of a loop over the same inputs that also stacks what the second half reads; a pass makes one
of it and the first loop. The second half is the body of the loop that goes back. Both are ordinary loops, so
that there are gradients of every order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from dualflow.core import dispatch
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.memory import loop_budget
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.eager.tape import GradientTape
from dualflow.function.control import loop_checkpointing
from dualflow.function.control.bodies import traced
from dualflow.graph import control
from dualflow.graph.control import loop_attrs
from dualflow.graph.interpret import replay
from dualflow.graph.ir import Graph, Value
from dualflow.graph.passes import SIMPLIFICATIONS, optimise
from dualflow.graph.split_forward_backward import Halves, Source, halve
from dualflow.ops.complex_numbers import conj
from dualflow.ops.creation import zeros_like
from dualflow.ops.record import Effect

Tensors = list[Any]


@dataclass(frozen=True, slots=True)
class _Loop:
    """A loop whose gradient is taken: its inputs and attributes, and which of its values have a cotangent.

    Attributes:
        moving: the carried values that a cotangent goes back through,
        mapping: the mapped inputs, and
        resting: the other inputs that get one.
        taking: the results that have one: those moving, then rows.
    """

    inputs: tuple[Any, ...]
    body: Graph
    condition: Graph | None
    carried: int
    mapped: int
    length: int | None
    reverse: bool
    lineage: tuple[int, ...]
    again: bool
    moving: tuple[int, ...]
    mapping: tuple[int, ...]
    resting: tuple[int, ...]
    taking: tuple[int, ...]

    @property
    def wanted(self) -> tuple[int, ...]:
        return (*self.moving, *self.mapping, *self.resting)

    @property
    def turns(self) -> int | None:
        """The number of turns, if it is known before the loop runs."""
        return self.length if self.condition is None else None


def _pull(
    needed: Sequence[bool],
    g: Any,
    out: Any,
    *inputs: Any,
    body: Graph,
    condition: Graph | None,
    carried: int,
    mapped: int,
    length: int | None,
    reverse: bool,
    lineage: tuple[int, ...],
    again: bool,
) -> Tensors:
    """The cotangents of the inputs, by a loop that goes back."""
    gs = g if isinstance(g, tuple) else (g,)
    end = carried + mapped
    wanted = [i for i, x in enumerate(inputs) if needed[i] and x.dtype.is_inexact]
    moving = _active(body, carried, wanted)
    inexact = [i for i, v in enumerate(body.outputs) if v.spec.dtype.is_inexact]
    rows = [i for i in inexact if i >= carried and gs[i] is not None]
    flows: Tensors = [None] * len(inputs)
    if not wanted or not (rows or any(gs[i] is not None for i in moving)):
        return flows
    _refuse_effects(body, condition)
    loop = _Loop(
        inputs,
        body,
        condition,
        carried,
        mapped,
        length,
        reverse,
        lineage,
        again,
        moving,
        tuple(i for i in wanted if carried <= i < end),
        tuple(i for i in wanted if i >= end),
        (*moving, *rows),
    )
    halves = _halves(loop)
    kept = _kept(loop, halves)
    turns = _segment(loop, kept)
    if turns is None:
        found = _go_back(loop, halves, _keep(loop, halves, kept), gs)
    else:
        found = _in_segments(loop, turns, gs)
    for i, flow in zip((*moving, *loop.resting, *loop.mapping), found, strict=True):
        flows[i] = flow
    return flows


LOOP: Final = replace(control.LOOP, pullback=_pull)
"""A loop that gradients flow through."""


_REPEATABLE: Final = (None, Effect.CHECK, Effect.ASSIGN)


def _refuse_effects(body: Graph, condition: Graph | None) -> None:
    nodes = (*body.nodes, *(condition.nodes if condition is not None else ()))
    active = next((n for n in nodes if n.op.effect not in _REPEATABLE), None)
    if active is not None:
        where = f"\n  {active.origin}" if active.origin else ""
        raise InvalidArgumentError(
            f"A loop that runs {active.op.name} in each turn can't be run again for its gradient; draw "
            f"random numbers or call Python before the loop, and index what it gave inside.{where}"
        )


def _active(body: Graph, carried: int, wanted: Sequence[int]) -> tuple[int, ...]:
    """The carried values that depend, in some turn, on an input that is ``wanted``."""
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


def _halves(loop: _Loop) -> Halves:
    """The body with its gradient, in two."""
    count = len(loop.body.inputs)

    def both(*symbols: Any) -> Tensors:
        values, cotangents = symbols[:count], symbols[count:]
        sources = [values[i] for i in loop.wanted]
        with GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(sources)
            results = replay(loop.body, values)
        targets = [results[i] for i in loop.taking]
        weights = [conj(c) for c in cotangents]
        found = tape.gradient(targets, sources, weights, unconnected_gradients="zero")
        return [*results, *[conj(x) for x in found]]

    specs = [_spec(v) for v in (*loop.body.inputs, *[loop.body.outputs[i] for i in loop.taking])]
    joint = traced(both, specs)
    if all(v.spec.shape.is_static for v in joint.inputs):  # else it is simplified for the sizes of a call
        joint = optimise(joint, passes=SIMPLIFICATIONS)
    start = loop.carried + loop.mapped
    lasting = joint.inputs[0 if loop.again else start : count]
    return halve(joint, count, len(loop.body.outputs), 0, lasting)


def _kept(loop: _Loop, halves: Halves) -> dict[Source, Value]:
    """What the way back reads of each turn, beside what is stacked anyway."""
    first, carried, count = halves.forward, loop.carried, len(loop.body.outputs)
    before = [i for kind, i in halves.sources if kind == "input" and i < carried]
    if not before and loop.turns is None and not loop.mapped:  # a stack also tells how many turns there were
        before = [min(range(carried), key=lambda i: _bytes(loop.body.inputs[i].spec))]
    after = [i for kind, i in halves.sources if kind == "output" and i < carried]
    residuals = range(len(first.outputs) - count)
    return {
        **{("input", i): first.inputs[i] for i in before},
        **{("output", i): first.outputs[i] for i in after},
        **{("residual", k): first.outputs[count + k] for k in residuals},
    }


def _bytes(spec: TensorSpec) -> float:
    return spec.nbytes if spec.shape.is_static else math.inf


def _segment(loop: _Loop, kept: dict[Source, Value]) -> int | None:
    """How many turns to compute again at a time, where what all turns keep is too much; None to keep it.

    The square root rule: what is kept of each segment's turns, and what each segment begins with, are least
    together when both are the same. (Chen, Xu, Zhang and Guestrin, "Training deep nets with sublinear memory
    cost", 2016.)
    """
    if not all(v.spec.shape.is_static for v in (*kept.values(), *loop.body.inputs)):
        return None  # how much that is will show when the sizes of a call are known
    each = sum(v.spec.nbytes for v in kept.values())
    budget, asked = loop_budget()
    if loop.again or not each or (loop.condition is None and loop.length is None):
        return None
    if loop.condition is not None and len(loop.body.outputs) > loop.carried:
        return None
    start = max(1, sum(v.spec.nbytes for v in loop.body.inputs[: loop.carried]))
    if loop.length is None:
        return max(1, budget // (2 * each)) if asked else None
    if loop.length * each <= budget:
        return None
    turns = math.ceil(math.sqrt(loop.length * start / each))
    return turns if turns < loop.length else None


def _in_segments(loop: _Loop, turns: int, gs: Sequence[Any]) -> Tensors:
    """The cotangents of the inputs :attr:`_Loop.wanted`, through a loop over segments of so many turns."""
    order = (*loop.moving, *loop.resting, *loop.mapping)
    sources = [loop.inputs[i] for i in order]
    attrs = loop_attrs(
        loop.body, loop.carried, loop.mapped, loop.length, condition=loop.condition, reverse=loop.reverse
    )
    with GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(sources)
        results = loop_checkpointing.run(LOOP, loop.inputs, attrs, turns)
    taking = [i for i in loop.taking if gs[i] is not None]
    targets, weights = [results[i] for i in taking], [conj(gs[i]) for i in taking]
    found = tape.gradient(targets, sources, weights, unconnected_gradients="zero")
    return [conj(x) for x in found]


def _keep(loop: _Loop, halves: Halves, stacked: dict[Source, Value]) -> dict[Source, Any]:
    """Run the loop once more, with stacks of what is kept: these, by what they are stacks of."""
    first, carried, count = halves.forward, loop.carried, len(loop.body.outputs)
    rows: list[Source] = [("output", i) for i in range(carried, count)]
    if not stacked and not any(source in rows for source in halves.sources):
        return {}
    graph = replace(first, outputs=(*first.outputs[:count], *stacked.values()))
    attrs = loop_attrs(
        graph,
        carried,
        loop.mapped,
        loop.length,
        condition=loop.condition,
        reverse=loop.reverse,
        extends=loop.lineage,
    )
    results = dispatch.current().run(LOOP, loop.inputs, attrs)
    return dict(zip([*rows, *stacked], results[carried:], strict=True))


def _go_back(loop: _Loop, halves: Halves, stacks: dict[Source, Any], gs: Sequence[Any]) -> Tensors:
    """The cotangents of the inputs :attr:`_Loop.wanted`: moving, resting, then mapping."""
    count, end, moving = len(loop.body.inputs), loop.carried + loop.mapped, len(loop.moving)
    sums = len(loop.resting)
    carry = [gs[i] if gs[i] is not None else zeros_like(loop.inputs[i]) for i in loop.moving]
    carry += [zeros_like(loop.inputs[i]) for i in loop.resting]
    rows = [gs[i] for i in loop.taking[moving:]]
    rest: Tensors = []
    where: list[tuple[str, int]] = []  # of each argument of the second half
    for source in halves.sources:
        kind, i = source
        if source in stacks or (kind == "input" and loop.carried <= i < end):
            where.append(("rows", len(rows)))
            rows.append(stacks[source] if source in stacks else loop.inputs[i])
        elif i >= count:
            i -= count
            where.append(("carry", i) if i < moving else ("rows", i - moving))
        else:
            where.append(("rest", len(rest)))
            rest.append(loop.inputs[i])
    if loop.turns is None and not rows:
        rows.append(loop.inputs[loop.carried] if loop.mapped else next(iter(stacks.values())))

    def turn(*symbols: Any) -> Tensors:
        tables = {
            "carry": symbols[: moving + sums],
            "rows": symbols[moving + sums : moving + sums + len(rows)],
            "rest": symbols[moving + sums + len(rows) :],
        }
        found = replay(halves.backward, [tables[kind][i] for kind, i in where])
        flows, of_rows, shares = found[:moving], found[moving : len(found) - sums], found[len(found) - sums :]
        totals = [a + b for a, b in zip(tables["carry"][moving:], shares, strict=True)]
        return [*flows, *totals, *of_rows]

    specs = [*map(_spec, carry), *map(_row, rows), *map(_spec, rest)]
    back = traced(turn, specs)
    attrs = loop_attrs(back, len(carry), len(rows), loop.turns, reverse=not loop.reverse)
    return list(dispatch.current().run(LOOP, (*carry, *rows, *rest), attrs))


def _spec(x: Any) -> TensorSpec:
    return TensorSpec.of(x.shape, x.dtype) if not isinstance(x, Value) else x.spec


def _row(x: Any) -> TensorSpec:
    return TensorSpec.of(Shape(tuple(x.shape)[1:]), x.dtype)
