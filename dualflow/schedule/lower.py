"""A fused node becomes a loop nest: loops are ordered and joined, values get levels and stages."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence

from dualflow.core.records import replace
from dualflow.core.symbolic_sizes import typical
from dualflow.graph.axes import base_of, is_scalar_literal
from dualflow.graph.column_folds import folds_columns
from dualflow.graph.cost_model import CPU, CostModel
from dualflow.graph.fused import Axes, IterationSpace, axis_set, input_axes, output_axes, reduced_axes
from dualflow.graph.ir import Graph, Node, Value
from dualflow.ops.op_kinds import Elementwise, Gather, Reduce
from dualflow.schedule.nest import (
    Access,
    GatherAxis,
    Layout,
    Nest,
    NestLoop,
    NestOperand,
    NestStep,
    NestStore,
)


def lower(node: Node, inputs: Sequence[Layout], outputs: Sequence[Layout], costs: CostModel = CPU) -> Nest:
    """The loop nest of a fused node whose inputs and outputs lie as given."""
    body: Graph = node.attrs["body"]
    space: IterationSpace = node.attrs["space"]
    where = dict(zip(body.inputs, inputs, strict=True))
    raw = _LoweredBody(body, space, where)
    stores = [(v, layout) for v, layout in zip(body.outputs, outputs, strict=True)]
    written = {base_of(v): layout for v, layout in stores}
    order = _loop_order(raw, [base_of(v) for v in body.outputs], written)
    steps = [raw.step(n) for n in body.nodes if n in space.own]
    writes = [NestStore(v, raw.access(v, raw.made[v], layout), 0, 0) for v, layout in stores]
    nest = _in_order(body.name, space, order, steps, writes, costs)
    return _schedule(_join_loops(nest))


class _LoweredBody:
    """The body of a fused node, its accesses in terms of the axes of the iteration space."""

    def __init__(self, body: Graph, space: IterationSpace, where: Mapping[Value, Layout]) -> None:
        self.space, self.where = space, where
        self.nodes = [n for n in body.nodes if n in space.own]
        self.made = {v: output_axes(n, space.own[n]) for n in self.nodes for v in n.outputs}

    def access(self, value: Value, axes: Axes, layout: Layout) -> Access:
        """How the loops walk ``layout`` when the value's dims run along ``axes``."""
        strides = [0] * len(self.space.shape)
        for axis, stride in zip(axes, layout.strides, strict=True):
            if axis is not None:
                strides[axis] += stride
        return Access(layout.buffer, layout.offset, tuple(strides), value.spec.dtype)

    def step(self, node: Node) -> NestStep:
        own = self.space.own[node]
        operands = tuple(
            self._operand(v, axes) for v, axes in zip(node.inputs, input_axes(node, own), strict=True)
        )
        folds = isinstance(node.op.kind, Reduce) and bool(reduced_axes(node, own))
        return NestStep(node, own, operands, folds, 0, 0, self._gather_axis(node))

    def _operand(self, value: Value, axes: Axes) -> NestOperand:
        if value in self.where:
            return NestOperand(access=self.access(value, axes, self.where[value]))
        base = base_of(value)
        if is_scalar_literal(base):
            assert base.node is not None
            return NestOperand(literal=base.node.attrs["value"].reshape(-1)[0])
        return NestOperand(value=base)

    def _gather_axis(self, node: Node) -> GatherAxis | None:
        if not isinstance(node.op.kind, Gather):
            return None
        params, axis = node.inputs[0], node.attrs["axis"]
        extent = params.spec.shape[axis]
        assert extent is not None
        return GatherAxis(extent, self.where[params].strides[axis])

    def full(self) -> Iterator[Axes]:
        """The axes of each value that varies along all loops, in order of the values' dims."""
        count = len(self.space.shape)
        yield from (axes for axes in self.made.values() if len(axis_set(axes)) == count)
        for node in self.nodes:
            yield from (a for a in input_axes(node, self.space.own[node]) if len(axis_set(a)) == count)
            yield self.space.own[node]


def _loop_order(body: _LoweredBody, outputs: Sequence[Value], written: Mapping[Value, Layout]) -> list[int]:
    """The axes of the iteration space in memory order: of an output with all of them, else of any value."""
    count = len(body.space.shape)
    whole = [v for v in outputs if v in body.made and len(axis_set(body.made[v])) == count]
    first = body.made[whole[0]] if whole else next(body.full(), ())
    named = [a for a in first if a is not None]
    if whole and whole[0] in written:  # by the strides of memory, where they are not in order
        distance = dict(zip(first, map(typical, written[whole[0]].strides), strict=True))
        named.sort(key=lambda axis: -distance[axis])
    return [*named, *(a for a in range(count) if a not in named)]


def _in_order(
    name: str,
    space: IterationSpace,
    order: list[int],
    steps: list[NestStep],
    stores: list[NestStore],
    costs: CostModel,
) -> Nest:
    """The nest with axes renamed to loop positions: kept loops first, each kind in memory order."""
    loops = [a for a in order if a not in space.reduced] + [a for a in order if a in space.reduced]
    position = {a: i for i, a in enumerate(loops)}

    def moved(access: Access) -> Access:
        strides = tuple([access.strides[a] for a in loops])
        return Access(access.buffer, access.offset, strides, access.dtype)

    def renamed(step: NestStep) -> NestStep:
        own = tuple([None if a is None else position[a] for a in step.own])
        operands = tuple([NestOperand(access=moved(o.access)) if o.access else o for o in step.operands])
        return NestStep(step.node, own, operands, step.reduces, step.level, step.stage, step.gather_axis)

    return Nest(
        name=name,
        loops=tuple(NestLoop(space.shape[a], a in space.reduced) for a in loops),
        vector=position[order[-1]] if order else None,
        steps=tuple(map(renamed, steps)),
        stores=tuple(s._replace(access=moved(s.access)) for s in stores),
        stages=1,
        cached={},
        costs=costs,
        columns=folds_columns(space.shape, order, space.reduced),
        repeated=space.repeated,
    )


def _join_loops(nest: Nest) -> Nest:
    """The nest with neighbouring loops made one wherever every access walks them as one."""
    at = len(nest.loops) - 1
    while at > 0:
        if _joinable(nest, at - 1, at):
            nest = _joined(nest, at - 1)
        at -= 1
    return nest


def _accesses(nest: Nest) -> Iterator[Access]:
    for step in nest.steps:
        yield from (o.access for o in step.operands if o.access is not None)
    yield from (s.access for s in nest.stores)


def _joinable(nest: Nest, outer: int, inner: int) -> bool:
    loops = nest.loops
    if loops[outer].reduced != loops[inner].reduced or nest.vector == outer:
        return False
    for access in _accesses(nest):
        if access.strides[outer] != access.strides[inner] * loops[inner].extent:
            return False
    for step in nest.steps:
        named = [p for p in (outer, inner) if p in step.own]
        if len(named) == 1 or (named and _reads_position(step)):
            return False
        if named and step.own.index(outer) + 1 != step.own.index(inner):
            return False
    return True


def _reads_position(step: NestStep) -> bool:
    """Whether the step's code may ask for its place in the loops: only those without inputs do."""
    return isinstance(step.node.op.kind, Elementwise) and not step.operands


def _joined(nest: Nest, outer: int) -> Nest:
    def strides(access: Access) -> Access:
        return access._replace(strides=access.strides[:outer] + access.strides[outer + 1 :])

    def positions(own: Axes) -> Axes:
        kept = [a for a in own if a != outer]
        return tuple(a if a is None or a < outer else a - 1 for a in kept)

    def step(old: NestStep) -> NestStep:
        operands = tuple([NestOperand(access=strides(o.access)) if o.access else o for o in old.operands])
        return NestStep(
            old.node, positions(old.own), operands, old.reduces, old.level, old.stage, old.gather_axis
        )

    loops = list(nest.loops)
    joined = NestLoop(loops[outer].extent * loops[outer + 1].extent, loops[outer].reduced)
    loops[outer : outer + 2] = [joined]
    vector = nest.vector - 1 if nest.vector is not None and nest.vector > outer else nest.vector
    stores = tuple(s._replace(access=strides(s.access)) for s in nest.stores)
    return replace(nest, loops=tuple(loops), vector=vector, steps=tuple(map(step, nest.steps)), stores=stores)


def _schedule(nest: Nest) -> Nest:
    """The nest with the level of every value (how many loops it is inside of) and its stage."""
    kept, depth = nest.num_parallel, len(nest.loops)
    level: dict[Value, int] = {}
    ready: dict[Value, int] = {}
    steps = []
    for step in nest.steps:
        own_level = max((a + 1 for a in step.own if a is not None), default=0)
        stage = max((ready[o.value] for o in step.operands if o.value is not None), default=0)
        if not step.reduces:
            own_level = max([own_level, *(level[o.value] for o in step.operands if o.value is not None)])
        for value in step.node.outputs:
            level[value] = kept if step.reduces else own_level
            ready[value] = stage + 1 if step.reduces else stage
        at = depth if step.reduces else own_level
        steps.append(NestStep(step.node, step.own, step.operands, step.reduces, at, stage, step.gather_axis))
    stores = tuple(s._replace(level=level[s.value], stage=ready[s.value]) for s in nest.stores)
    folds = [s.stage for s in steps if s.reduces]
    inner = [s.stage for s in stores if s.level > kept]
    stages = max([*folds, *inner], default=0) + 1 if depth > kept else 1
    nest = replace(nest, steps=tuple(steps), stores=stores, stages=stages)
    if stages == 1:
        return nest
    nest = _at_first_use(nest)
    return replace(nest, cached=_cached(nest))


def _at_first_use(nest: Nest) -> Nest:
    """The nest with every step of the reduced loops in the first stage that runs it."""
    first = {s: stage for stage in reversed(range(nest.stages)) for s in stage_steps(nest, stage)}
    moved = [s if first.get(s, s.stage) == s.stage else replace(s, stage=first[s]) for s in nest.steps]
    return replace(nest, steps=tuple(moved))


def _cached(nest: Nest) -> dict[Value, int]:
    """The values of the inner loops that a later stage loads instead of computing them again, numbered.

    The choice is made stage by stage in the order of the steps, so that what is computed again starts from
    what is stored already.
    """
    inner = {s.node.output: s for s in nest.steps if s.level == len(nest.loops) and not s.reduces}
    stored: dict[Value, int] = {}
    for stage in range(1, nest.stages):
        readers = [s for s in nest.steps if s.stage == stage and s.level > nest.num_parallel]
        read = {o.value for s in readers for o in s.operands}
        read |= {s.value for s in nest.stores if s.stage == stage}
        again: dict[Value, float] = {}
        for value, step in inner.items():
            again[value] = _cost_again(step, again, stored, nest.costs)
            late = value in read and value not in stored and step.stage < stage
            if late and again[value] > nest.costs.scratch(_row_bytes(nest, value), value.spec.dtype.size):
                stored[value] = len(stored)
    return stored


def _cost_again(
    step: NestStep, again: Mapping[Value, float], stored: Collection[Value], costs: CostModel
) -> float:
    """The additions that it takes to compute a value again; ``again`` has those of earlier values."""
    cost: float = getattr(step.node.op.kind, "cost", 1.0)
    for operand in dict.fromkeys(step.operands):
        if operand.access is not None or operand.value in stored:
            cost += costs.load
        elif operand.value is not None:
            cost += again.get(operand.value, 0.0)
    return cost


def _row_bytes(nest: Nest, value: Value) -> int:
    """The scratch memory of a value, for one iteration of the kept loops, or for one vector of them."""
    row = math.prod(typical(loop.extent) for loop in nest.loops if loop.reduced)
    return row * value.spec.dtype.size * (1 if nest.has_scratch_per_iteration else nest.costs.vector_lanes)


def stage_steps(nest: Nest, stage: int) -> list[NestStep]:
    """The steps inside the reduced loops that ``stage`` runs: what its folds and stores need, in order.

    A value of an earlier stage is computed again unless the nest keeps it.
    """
    kept = nest.num_parallel
    inner = {s.node.output: s for s in nest.steps if s.level > kept}
    wanted = [s for s in nest.steps if s.reduces and s.stage == stage]
    pending = [o.value for s in wanted for o in s.operands]
    pending += [s.value for s in nest.stores if s.level > kept and s.stage == stage]
    found = {s.node.output for s in wanted}
    while pending:
        value = pending.pop()
        step = inner.get(value) if value is not None else None
        if step is None or step.node.output in found or step.reduces:
            continue
        found.add(step.node.output)
        if step.stage == stage or step.node.output not in nest.cached:
            pending += [o.value for o in step.operands]
    return [s for s in nest.steps if s.node.output in found]
