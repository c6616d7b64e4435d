"""Lowers a fused node to a loop nest: orders and joins its loops, assigns depths and stages to its steps."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence

from dualflow.core.records import NamedTuple, replace
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
    lowered = _LoweredBody(body, space, dict(zip(body.inputs, inputs, strict=True)))
    written = {base_of(v): layout for v, layout in zip(body.outputs, outputs, strict=True)}
    order = _loop_order(lowered, [base_of(v) for v in body.outputs], written)
    axes = [a for a in order if a not in space.reduced] + [a for a in order if a in space.reduced]
    stored = [lowered.strides(lowered.axes[v], at) for v, at in zip(body.outputs, outputs, strict=True)]
    loops = _joined_loops(lowered, axes, order[-1:], [*lowered.read.values(), *stored])
    num_parallel = len([a for a in loops.trip_counts if a not in space.reduced])
    steps, depths, stages = _steps(lowered, loops, num_parallel)
    accesses = map(loops.access, body.outputs, outputs, stored)
    stores = tuple(
        [NestStore(v, at, depths[v], stages[v]) for v, at in zip(body.outputs, accesses, strict=True)]
    )
    nest = Nest(
        name=body.name,
        loops=tuple([NestLoop(extent, a in space.reduced) for a, extent in loops.trip_counts.items()]),
        num_parallel=num_parallel,
        vector=list(loops.trip_counts).index(order[-1]) if order else None,
        steps=steps,
        stores=stores,
        stages=_stages(steps, stores, num_parallel) if len(loops.trip_counts) > num_parallel else 1,
        cost=_cost(steps, stores),
        forwards=not any(may_be_negative(n) for at in (*inputs, *outputs) for n in at.strides),
        scratch_values={},
        costs=costs,
        near_bytes=caches.near,
        reduces_columns=is_column_reduction(space.shape, order, space.reduced),
        repeated=space.repeated,
    )
    if nest.stages == 1:
        return nest
    nest = _at_first_use(nest)
    return replace(nest, scratch_values=_scratch_values(nest))


def _cost(steps: Sequence[NestStep], stores: Sequence[NestStore]) -> float:
    """The work of one iteration of the innermost loop, in additions."""
    reads = len([o for s in steps for o in s.operands if o.access is not None])
    return sum([getattr(s.node.op.kind, "cost", 1.0) for s in steps]) + 2 * (reads + len(stores))


class _LoweredBody:
    """The body of a fused node, with strides by the axes of the iteration space.

    Attributes:
        layouts: of the inputs.
        axes: of the values that the nodes compute.
        operands: of each node, with their axes.
        read: the strides of each operand that is in memory.
    """

    def __init__(self, body: Graph, space: IterationSpace, layouts: Mapping[Value, Layout]) -> None:
        self.space, self.layouts = space, layouts
        self.nodes = [n for n in body.nodes if n in space.index_axes]
        self.axes = {v: output_axes(n, space.index_axes[n]) for n in self.nodes for v in n.outputs}
        self.operands = {n: operands_with_axes(n, space.index_axes[n]) for n in self.nodes}
        self.read: dict[tuple[Value, Axes], Sequence[int]] = {}
        for operand in dict.fromkeys([x for operands in self.operands.values() for x in operands]):
            value, axes = operand
            if value in layouts:
                self.read[operand] = self.strides(axes, layouts[value])

    def strides(self, axes: Axes, layout: Layout) -> Sequence[int]:
        """The strides, by axis of the space, of a value with ``layout`` whose dims run along ``axes``."""
        strides = [0] * len(self.space.shape)
        for axis, stride in zip(axes, layout.strides, strict=True):
            if axis is not None:
                strides[axis] += stride
        return strides

    def gather_axis(self, node: Node) -> GatherAxis | None:
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


class _Loops(NamedTuple):
    """The loops of a nest: each is an axis of the iteration space, with which others may be joined.

    Attributes:
        trip_counts: the trip count of the loop of each axis, outermost first.
        index_axes: for each node its axes that are loops; None for an axis of size 1.
    """

    trip_counts: dict[int, int]
    index_axes: dict[Node, Axes]

    def access(self, value: Value, layout: Layout, strides: Sequence[int]) -> Access:
        """The access of a value that has these strides along the axes of the space."""
        by_loop = tuple([strides[axis] for axis in self.trip_counts])
        return Access(layout.buffer, layout.offset, by_loop, value.spec.dtype)


def _joined_loops(
    body: _LoweredBody, axes: Sequence[int], vector: Sequence[int], accesses: Sequence[Sequence[int]]
) -> _Loops:
    """The loops over ``axes``: adjacent ones are joined into one where all accesses have the strides of one.

    The joined loop has the strides of the inner one. An axis of ``vector`` is no outer one.
    """
    space, kept = body.space, list(axes)
    loops = _Loops({a: space.shape[a] for a in axes}, {n: space.index_axes[n] for n in body.nodes})
    for at in reversed(range(1, len(axes))):
        outer, inner = kept[at - 1], kept[at]
        same_kind = (outer in space.reduced) == (inner in space.reduced) and outer not in vector
        if same_kind and _joinable(loops, outer, inner, accesses):
            loops.trip_counts[inner] = loops.trip_counts.pop(outer) * loops.trip_counts[inner]
            for node, index_axes in loops.index_axes.items():
                loops.index_axes[node] = tuple([a for a in index_axes if a != outer])
            del kept[at - 1]
    return loops


def _joinable(loops: _Loops, outer: int, inner: int, accesses: Sequence[Sequence[int]]) -> bool:
    extent = loops.trip_counts[inner]
    for strides in accesses:
        if strides[outer] != strides[inner] * extent:
            return False
    for node, index_axes in loops.index_axes.items():
        own = (outer in index_axes) + (inner in index_axes)
        if own == 1 or (own and _reads_position(node)):
            return False
        if own and index_axes.index(outer) + 1 != index_axes.index(inner):
            return False
    return True


def _reads_position(node: Node) -> bool:
    """Whether the node's scalar function may read the loop indices: only those without inputs do."""
    return isinstance(node.op.kind, Elementwise) and not node.inputs


def _steps(
    body: _LoweredBody, loops: _Loops, num_parallel: int
) -> tuple[tuple[NestStep, ...], dict[Value, int], dict[Value, int]]:
    """The steps, and for each value that they compute the depth and the stage in which it is available."""
    position: dict[int | None, int | None] = {axis: i for i, axis in enumerate(loops.trip_counts)}
    position[None] = None
    accesses = {
        operand: loops.access(operand[0], body.layouts[operand[0]], strides)
        for operand, strides in body.read.items()
    }
    depth_of: dict[Value, int] = {}
    ready: dict[Value, int] = {}
    steps = []
    for node in body.nodes:
        axis_loops = tuple([position[a] for a in loops.index_axes[node]])
        operands = tuple([_operand(x, accesses) for x in body.operands[node]])
        reduces = isinstance(node.op.kind, Reduce) and bool(reduced_axes(node, body.space.index_axes[node]))
        read = [o.value for o in operands if o.value is not None]
        stage = max([ready[v] for v in read], default=0)
        if reduces:
            depth, available, next_stage = len(loops.trip_counts), num_parallel, stage + 1
        else:
            depth = max([0, *[a + 1 for a in axis_loops if a is not None], *[depth_of[v] for v in read]])
            available, next_stage = depth, stage
        for value in node.outputs:
            depth_of[value], ready[value] = available, next_stage
        steps.append(NestStep(node, axis_loops, operands, reduces, depth, stage, body.gather_axis(node)))
    return tuple(steps), depth_of, ready


def _operand(operand: tuple[Value, Axes], accesses: Mapping[tuple[Value, Axes], Access]) -> NestOperand:
    access = accesses.get(operand)
    if access is not None:
        return NestOperand(access=access)
    base = base_of(operand[0])
    if is_scalar_literal(base):
        assert base.node is not None
        if isinstance(base.node.op.kind, SizeVector):
            return NestOperand(literal=base.node.attrs["values"][0])
        return NestOperand(literal=base.node.attrs["value"].reshape(-1)[0])
    return NestOperand(value=base)


def _stages(steps: Sequence[NestStep], stores: Sequence[NestStore], num_parallel: int) -> int:
    """How often the reduction loops run."""
    reductions = [s.stage for s in steps if s.reduces]
    inner = [s.stage for s in stores if s.depth > num_parallel]
    return max([*reductions, *inner], default=0) + 1


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
