"""Lowers a fused node to a loop nest: orders and joins its loops, assigns depths and stages to its steps."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence

from dualflow.core.records import replace
from dualflow.graph.capabilities import CPU_CACHES, CacheBytes
from dualflow.graph.column_reductions import is_column_reduction
from dualflow.graph.cost_model import CPU, CostModel
from dualflow.graph.fused import (
    Axes,
    IterationSpace,
    axis_set,
    input_axes,
    operands_with_axes,
    output_axes,
    reduced_axes,
)
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.views import base_of, is_scalar_literal
from dualflow.ops.op_kinds import Elementwise, Gather, Reduce, SizeVector
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
from dualflow.sizes.size_functions import may_be_negative
from dualflow.sizes.symbolic_sizes import typical


def lower(
    node: Node,
    inputs: Sequence[Layout],
    outputs: Sequence[Layout],
    costs: CostModel = CPU,
    caches: CacheBytes = CPU_CACHES,
) -> Nest:
    """The loop nest of a fused node with these layouts of its inputs and outputs."""
    body: Graph = node.attrs["body"]
    space: IterationSpace = node.attrs["space"]
    layouts = dict(zip(body.inputs, inputs, strict=True))
    lowered = _LoweredBody(body, space, layouts)
    stores = [(v, layout) for v, layout in zip(body.outputs, outputs, strict=True)]
    written = {base_of(v): layout for v, layout in stores}
    order = _loop_order(lowered, [base_of(v) for v in body.outputs], written)
    steps = [lowered.step(n) for n in lowered.nodes]
    writes = [NestStore(v, lowered.access(v, lowered.axes[v], layout), 0, 0) for v, layout in stores]
    in_order = [a for a in order if a not in space.reduced] + [a for a in order if a in space.reduced]
    if in_order != sorted(in_order):
        steps, writes = _renumbered(in_order, steps, writes)
    nest = Nest(
        name=body.name,
        loops=tuple([NestLoop(space.shape[a], a in space.reduced) for a in in_order]),
        num_parallel=len(in_order) - len(space.reduced),
        vector=in_order.index(order[-1]) if order else None,
        steps=tuple(steps),
        stores=tuple(writes),
        stages=1,
        cost=_cost(steps, writes),
        forwards=not any(may_be_negative(n) for at in (*inputs, *outputs) for n in at.strides),
        scratch_values={},
        costs=costs,
        near_bytes=caches.near,
        reduces_columns=is_column_reduction(space.shape, order, space.reduced),
        repeated=space.repeated,
    )
    return _schedule(_join_loops(nest))


def _cost(steps: Sequence[NestStep], stores: Sequence[NestStore]) -> float:
    """The work of one iteration of the innermost loop, in additions."""
    reads = len([o for s in steps for o in s.operands if o.access is not None])
    return sum([getattr(s.node.op.kind, "cost", 1.0) for s in steps]) + 2 * (reads + len(stores))


class _LoweredBody:
    """The body of a fused node, with accesses by the axes of the iteration space.

    Attributes:
        layouts: of the inputs.
        axes: of the values that the nodes compute.
    """

    def __init__(self, body: Graph, space: IterationSpace, layouts: Mapping[Value, Layout]) -> None:
        self.space, self.layouts = space, layouts
        self.nodes = [n for n in body.nodes if n in space.index_axes]
        self.axes = {v: output_axes(n, space.index_axes[n]) for n in self.nodes for v in n.outputs}

    def access(self, value: Value, axes: Axes, layout: Layout) -> Access:
        """The access of a value with ``layout`` whose dims run along ``axes``."""
        strides = [0] * len(self.space.shape)
        for axis, stride in zip(axes, layout.strides, strict=True):
            if axis is not None:
                strides[axis] += stride
        return Access(layout.buffer, layout.offset, tuple(strides), value.spec.dtype)

    def step(self, node: Node) -> NestStep:
        axis_loops = self.space.index_axes[node]
        operands = tuple([self._operand(v, axes) for v, axes in operands_with_axes(node, axis_loops)])
        folds = isinstance(node.op.kind, Reduce) and bool(reduced_axes(node, axis_loops))
        return NestStep(node, axis_loops, operands, folds, 0, 0, self._gather_axis(node))

    def _operand(self, value: Value, axes: Axes) -> NestOperand:
        if value in self.layouts:
            return NestOperand(access=self.access(value, axes, self.layouts[value]))
        base = base_of(value)
        if is_scalar_literal(base):
            assert base.node is not None
            if isinstance(base.node.op.kind, SizeVector):
                return NestOperand(literal=base.node.attrs["values"][0])
            return NestOperand(literal=base.node.attrs["value"].reshape(-1)[0])
        return NestOperand(value=base)

    def _gather_axis(self, node: Node) -> GatherAxis | None:
        if not isinstance(node.op.kind, Gather):
            return None
        params, axis = node.inputs[0], node.attrs["axis"]
        extent = params.spec.shape[axis]
        assert extent is not None
        return GatherAxis(extent, self.layouts[params].strides[axis])

    def full(self) -> Iterator[Axes]:
        """For each value that has all loop axes: these, in the order of the value's axes."""
        count = len(self.space.shape)
        yield from (axes for axes in self.axes.values() if len(axis_set(axes)) == count)
        for node in self.nodes:
            yield from (a for a in input_axes(node, self.space.index_axes[node]) if len(axis_set(a)) == count)
            yield self.space.index_axes[node]


def _loop_order(body: _LoweredBody, outputs: Sequence[Value], written: Mapping[Value, Layout]) -> list[int]:
    """The loop axes in the memory order of an output, or else of any value, that has all of them."""
    count = len(body.space.shape)
    full = [v for v in outputs if v in body.axes and len(axis_set(body.axes[v])) == count]
    first = body.axes[full[0]] if full else next(body.full(), ())
    axes = [a for a in first if a is not None]
    if full and full[0] in written:  # by the strides of memory, where they are not in order
        distance = dict(zip(first, map(typical, written[full[0]].strides), strict=True))
        axes.sort(key=lambda axis: -distance[axis])
    return [*axes, *(a for a in range(count) if a not in axes)]


def _renumbered(
    loops: Sequence[int], steps: Sequence[NestStep], stores: Sequence[NestStore]
) -> tuple[list[NestStep], list[NestStore]]:
    """The steps and stores of a nest whose loops are these axes, in order."""
    position = {a: i for i, a in enumerate(loops)}

    def reordered(access: Access) -> Access:
        strides = tuple([access.strides[a] for a in loops])
        return Access(access.buffer, access.offset, strides, access.dtype)

    def renamed(step: NestStep) -> NestStep:
        axis_loops = tuple([None if a is None else position[a] for a in step.axis_loops])
        operands = tuple([NestOperand(access=reordered(o.access)) if o.access else o for o in step.operands])
        return NestStep(
            step.node, axis_loops, operands, step.reduces, step.depth, step.stage, step.gather_axis
        )

    return [renamed(s) for s in steps], [s._replace(access=reordered(s.access)) for s in stores]


def _join_loops(nest: Nest) -> Nest:
    """The nest with adjacent loops joined into one, where all accesses have the strides of one loop."""
    inner = len(nest.loops) - 1
    while inner > 0:
        if _joinable(nest, inner - 1, inner):
            nest = _joined(nest, inner - 1)
        inner -= 1
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
        own_loops = [p for p in (outer, inner) if p in step.axis_loops]
        if len(own_loops) == 1 or (own_loops and _reads_position(step)):
            return False
        if own_loops and step.axis_loops.index(outer) + 1 != step.axis_loops.index(inner):
            return False
    return True


def _reads_position(step: NestStep) -> bool:
    """Whether the step's scalar function may read the loop indices: only those without inputs do."""
    return isinstance(step.node.op.kind, Elementwise) and not step.operands


def _joined(nest: Nest, outer: int) -> Nest:
    def strides(access: Access) -> Access:
        return access._replace(strides=access.strides[:outer] + access.strides[outer + 1 :])

    def positions(axis_loops: Axes) -> Axes:
        return tuple(a if a is None or a < outer else a - 1 for a in axis_loops if a != outer)

    def step(old: NestStep) -> NestStep:
        operands = tuple([NestOperand(access=strides(o.access)) if o.access else o for o in old.operands])
        return NestStep(
            old.node, positions(old.axis_loops), operands, old.reduces, old.depth, old.stage, old.gather_axis
        )

    loops = list(nest.loops)
    joined = NestLoop(loops[outer].extent * loops[outer + 1].extent, loops[outer].reduced)
    loops[outer : outer + 2] = [joined]
    num_parallel = nest.num_parallel if joined.reduced else nest.num_parallel - 1
    vector = nest.vector - 1 if nest.vector is not None and nest.vector > outer else nest.vector
    stores = tuple(s._replace(access=strides(s.access)) for s in nest.stores)
    steps = tuple([step(s) for s in nest.steps])
    return replace(
        nest, loops=tuple(loops), num_parallel=num_parallel, vector=vector, steps=steps, stores=stores
    )


def _schedule(nest: Nest) -> Nest:
    """The nest with the depth (the number of loops around it) and the stage of each step and store."""
    num_parallel, depth = nest.num_parallel, len(nest.loops)
    depth_of: dict[Value, int] = {}
    ready: dict[Value, int] = {}
    steps = []
    for step in nest.steps:
        own_depth = max((a + 1 for a in step.axis_loops if a is not None), default=0)
        stage = max((ready[o.value] for o in step.operands if o.value is not None), default=0)
        if not step.reduces:
            own_depth = max([own_depth, *(depth_of[o.value] for o in step.operands if o.value is not None)])
        for value in step.node.outputs:
            depth_of[value] = num_parallel if step.reduces else own_depth
            ready[value] = stage + 1 if step.reduces else stage
        at = depth if step.reduces else own_depth
        steps.append(
            NestStep(step.node, step.axis_loops, step.operands, step.reduces, at, stage, step.gather_axis)
        )
    stores = tuple(s._replace(depth=depth_of[s.value], stage=ready[s.value]) for s in nest.stores)
    reductions = [s.stage for s in steps if s.reduces]
    inner = [s.stage for s in stores if s.depth > num_parallel]
    stages = max([*reductions, *inner], default=0) + 1 if depth > num_parallel else 1
    nest = replace(nest, steps=tuple(steps), stores=stores, stages=stages)
    if stages == 1:
        return nest
    nest = _at_first_use(nest)
    return replace(nest, scratch_values=_scratch_values(nest))


def _at_first_use(nest: Nest) -> Nest:
    """The nest with each step of the reduction loops assigned to the first stage that needs it."""
    first = {s: stage for stage in reversed(range(nest.stages)) for s in stage_steps(nest, stage)}
    steps = [s if first.get(s, s.stage) == s.stage else replace(s, stage=first[s]) for s in nest.steps]
    return replace(nest, steps=tuple(steps))


def _scratch_values(nest: Nest) -> dict[Value, int]:
    """The values of the innermost loop that later stages load from scratch memory, numbered.

    Other values are recomputed. Values are chosen stage by stage, in the order of the steps, so that
    recomputations start from values that are already stored.
    """
    inner = {s.node.output: s for s in nest.steps if s.depth == len(nest.loops) and not s.reduces}
    stored: dict[Value, int] = {}
    for stage in range(1, nest.stages):
        readers = [s for s in nest.steps if s.stage == stage and s.depth > nest.num_parallel]
        read = {o.value for s in readers for o in s.operands}
        read |= {s.value for s in nest.stores if s.stage == stage}
        recompute: dict[Value, float] = {}
        for value, step in inner.items():
            recompute[value] = _recompute_cost(step, recompute, stored, nest.costs)
            late = value in read and value not in stored and step.stage < stage
            if late and recompute[value] > _scratch_cost(nest, value):
                stored[value] = len(stored)
    return stored


def _recompute_cost(
    step: NestStep, recompute: Mapping[Value, float], stored: Collection[Value], costs: CostModel
) -> float:
    """The cost of recomputing a value, in additions; ``recompute`` has the costs of earlier values."""
    cost: float = getattr(step.node.op.kind, "cost", 1.0)
    for operand in dict.fromkeys(step.operands):
        if operand.access is not None or operand.value in stored:
            cost += costs.load_cost
        elif operand.value is not None:
            cost += recompute.get(operand.value, 0.0)
    return cost


def _scratch_cost(nest: Nest, value: Value) -> float:
    """The cost of storing an element of a value in a scratch row and loading it again, in additions."""
    return nest.costs.scratch(_scratch_bytes(nest, value), value.spec.dtype.size, nest.near_bytes)


def _scratch_bytes(nest: Nest, value: Value) -> int:
    """The bytes of a value's scratch memory, which is for one iteration or vector of the parallel loops."""
    elements = math.prod(typical(loop.extent) for loop in nest.loops if loop.reduced)
    return (
        elements * value.spec.dtype.size * (1 if nest.has_scratch_per_iteration else nest.costs.vector_lanes)
    )


def stage_steps(nest: Nest, stage: int) -> list[NestStep]:
    """The steps that ``stage`` runs in the reduction loops, in order: those that its results depend on.

    A value of an earlier stage is recomputed unless the nest stores it.
    """
    num_parallel = nest.num_parallel
    inner = {s.node.output: s for s in nest.steps if s.depth > num_parallel}
    reductions = [s for s in nest.steps if s.reduces and s.stage == stage]
    pending = [o.value for s in reductions for o in s.operands]
    pending += [s.value for s in nest.stores if s.depth > num_parallel and s.stage == stage]
    needed = {s.node.output for s in reductions}
    while pending:
        value = pending.pop()
        step = inner.get(value) if value is not None else None
        if step is None or step.node.output in needed or step.reduces:
            continue
        needed.add(step.node.output)
        if step.stage == stage or step.node.output not in nest.scratch_values:
            pending += [o.value for o in step.operands]
    return [s for s in nest.steps if s.node.output in needed]
