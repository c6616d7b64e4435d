"""Allocates storage for the values of one graph of a plan, the whole graph or a body inside it.

A scope orders the calls of its graph, and gives each value a buffer and a layout there. The scopes of a plan
share constants, temporaries and counters: :class:`PlanState`.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dualflow.core.locks import imported
from dualflow.core.records import replace
from dualflow.core.spec import TensorSpec
from dualflow.graph.capabilities import Capabilities
from dualflow.graph.control_spec import branches_of, loop_of, row_spec
from dualflow.graph.cost_model import CostModel
from dualflow.graph.ir import Graph, Node, Update, Value
from dualflow.graph.symbolic_size_ops import Axis, binds_or_checks_size, is_argument_size
from dualflow.graph.views import base_of
from dualflow.ops.op_kinds import Cond, Literal
from dualflow.schedule.arena import Lifetime, assign
from dualflow.schedule.call_order import Allocation, BufferKind, fails, ordered
from dualflow.schedule.concurrency import Region, StepAccess, concurrent_order
from dualflow.schedule.concurrent_arena import AccessedBlock, assign_concurrent
from dualflow.schedule.copying import copy_node
from dualflow.schedule.loop_sizes import changing_positions, changing_sizes, loop_buffers
from dualflow.schedule.nest import Layout, contiguous_strides
from dualflow.schedule.operands import (
    CallKind,
    StridedNode,
    chosen_strides,
    is_control,
    kind_of,
    with_copies,
)
from dualflow.schedule.pieces_in_place import pieces_in_place
from dualflow.schedule.planned import (
    LoopMemory,
    PlannedBody,
    PlannedCall,
    PlannedLoop,
    StackRow,
    TripCount,
    dynamic_buffers,
)
from dualflow.schedule.scope_layouts import ScopeLayouts
from dualflow.schedule.window_products import with_window_products
from dualflow.sizes.size_functions import largest
from dualflow.sizes.symbolic_sizes import SizeFactor, size_variables


class PlanState:
    """The state that all scopes of a plan share: the buffers of the buffer table, and counters.

    Attributes:
        argument_sizes: the size variables whose values a call computes before the program runs, each with
            the axes of arguments that have this size.
        bound_sizes: these size variables.
        has_data_sizes: whether sizes are computed while the program runs.
        loop_buffers: the number of row buffers that are added with the calls of loops.
        threads: the number of threads that may run calls at the same time.
    """

    def __init__(
        self,
        capabilities: Capabilities,
        *,
        separate: bool,
        costs: CostModel,
        argument_sizes: Mapping[SizeFactor, tuple[Axis, ...]],
        has_data_sizes: bool,
        threads: int,
    ) -> None:
        self.costs = costs
        self.threads = threads
        self.argument_sizes = argument_sizes
        self.bound_sizes = frozenset(argument_sizes)
        self.has_data_sizes = has_data_sizes
        self.capabilities = capabilities
        self.separate = separate
        self.constants: list[np.ndarray[Any, Any]] = []
        self.temporaries: list[TensorSpec] = []
        self.row_buffers = 0
        self.loop_buffers = 0
        self.loops = 0

    def row_buffer(self) -> int:
        """The number of one more row buffer."""
        self.row_buffers += 1
        return self.row_buffers - 1

    def loop(self) -> int:
        """The number of one more loop."""
        self.loops += 1
        return self.loops - 1


class PlanScope:
    """A graph whose values are allocated together: the whole graph, or a body inside it.

    Args:
        graph: the graph.
        state: what the scopes of the plan share.
        live_out: values that are read after the last call, such as a loop's condition.
        updates_variables: whether the updates are those of variables.
    """

    def __init__(
        self,
        graph: Graph,
        state: PlanState,
        live_out: Sequence[Value] = (),
        *,
        updates_variables: bool = False,
    ) -> None:
        self.live_out = live_out
        self.state = state
        self.replacements: dict[Value, Value] = {}
        if state.capabilities.windows and not live_out:
            graph = with_window_products(graph, self.replacements, state.costs)
        if state.capabilities.product_epilogues:
            epilogues = imported("dualflow.schedule.product_epilogues")
            graph = epilogues.with_product_epilogues(graph, self.replacements, state.costs)
        nodes, self.targets = ordered(graph, updates_variables=updates_variables)
        self.strides = chosen_strides(nodes, self.targets, state.bound_sizes)
        preassigned = {
            v: allocation.strides for v, allocation in self.targets.items() if allocation.strides is not None
        }
        steps = with_copies(nodes, {**self.strides, **preassigned}, state.capabilities)
        # other steps read the sizes of arguments; if all sizes follow from these, a call checks them first
        checks_first = updates_variables and bool(state.bound_sizes)
        first = binds_or_checks_size if checks_first else is_argument_size
        self.steps = sorted(steps, key=lambda step: not first(step.node))
        self.allocations: dict[Value, Allocation] = {
            v: Allocation(BufferKind.INPUT, i) for i, v in enumerate(graph.inputs)
        }
        self.bodies: dict[StridedNode, list[PlanScope]] = {}
        for step in self.steps:  # a loop, since a comprehension is a frame of Python for each nested body
            if is_control(step.node):
                self.bodies[step] = _scopes(step.node, state)
        self.counters = {s.node: state.loop() for s in self.bodies}
        state.loop_buffers += sum(map(loop_buffers, self.counters))
        self.block_offsets: dict[StridedNode, int] = {}
        self._place_constants()
        self._place_results()
        self.pieces = pieces_in_place(self.steps, live_out, self.allocations)
        self.regions: tuple[Region, ...] = ()
        # bodies compare symbolic sizes as they run
        if state.threads > 1 and (updates_variables or not state.bound_sizes):
            self._form_regions()
        self.arena_bytes = self._fill_arena()
        for value in reversed(self.pieces):
            self.allocations[value] = self._place_of_piece(value)

    def _form_regions(self) -> None:
        """Move calls that may run concurrently next to each other, where that pays."""
        accesses = [self._access(step) for step in self.steps]
        state = self.state
        order, self.regions = concurrent_order(
            self.steps, accesses, state.costs, state.threads, state.bound_sizes
        )
        self.steps = [self.steps[i] for i in order]

    def _access(self, step: StridedNode) -> StepAccess:
        """The storage that a step reads and writes: the numbers of inputs, or the values themselves."""
        outputs = [self._storage(v) for v in step.node.outputs]
        return StepAccess(
            tuple([self._storage(v) for v in step.inputs]),
            tuple(outputs),
            any(type(storage) is int for storage in outputs),
            fails(step.node) or kind_of(step.node) is CallKind.SCATTER,
        )

    def _storage(self, value: Value) -> int | Value:
        base = base_of(value)
        allocation = self.allocations[base]
        return allocation.number if allocation.kind is BufferKind.INPUT else base

    def _place_constants(self) -> None:
        constants, allocations = self.state.constants, self.allocations
        for base in (base_of(v) for v in (*(v for s in self.steps for v in s.inputs), *self.live_out)):
            if base.node is not None and isinstance(base.node.op.kind, Literal) and base not in allocations:
                allocations[base] = Allocation(BufferKind.CONSTANT, len(constants))
                constants.append(np.ascontiguousarray(base.node.attrs["value"]))

    def _place_results(self) -> None:
        """Allocate the values that the steps compute."""
        hosts = [s for s in self.steps if kind_of(s.node) is CallKind.HOST]
        crossing = {base_of(v) for s in hosts for v in s.inputs} | {v for s in hosts for v in s.node.outputs}
        temporaries = self.state.temporaries
        for value in (v for s in self.steps for v in s.node.outputs):
            if value in self.targets:
                self.allocations[value] = self.targets[value]
            elif value in crossing:
                self.allocations[value] = Allocation(BufferKind.TEMPORARY, len(temporaries))
                temporaries.append(value.spec)
            elif (
                not value.spec.shape.is_static
                or not size_variables(value.spec.shape) <= self.state.bound_sizes
            ):
                self.allocations[value] = Allocation(BufferKind.STACK, self.state.row_buffer())
            elif self.state.separate:
                self.allocations[value] = Allocation(
                    BufferKind.TEMPORARY, len(temporaries), strides=self.strides.get(value)
                )
                temporaries.append(value.spec)
            else:
                self.allocations[value] = Allocation(BufferKind.ARENA, strides=self.strides.get(value))

    def _owner(self, value: Value) -> Value:
        """The value whose storage contains ``value``."""
        while value in self.pieces:
            value = self.pieces[value].whole
        return value

    def _place_of_piece(self, value: Value) -> Allocation:
        """The allocation of a piece inside the assembled value."""
        piece = self.pieces[value]
        whole = self.allocations[piece.whole]
        return whole._replace(offset=whole.offset + piece.offset)

    def reads(self) -> list[tuple[Value, tuple[int, list[int]]]]:
        """The values in the arena, each with the step that computes it and the steps that read it."""
        reads: dict[Value, tuple[int, list[int]]] = {}
        for number, step in enumerate(self.steps):
            for value in map(self._owner, step.node.outputs):
                if self.allocations[value].kind is BufferKind.ARENA:
                    reads.setdefault(value, (number, []))
            for base in dict.fromkeys(map(self._owner, map(base_of, step.inputs))):
                if base in reads:
                    reads[base][1].append(number)
        for base in map(self._owner, map(base_of, self.live_out)):
            if base in reads:
                reads[base][1].append(len(self.steps))
        return list(reads.items())

    def inner(self) -> list[tuple[int, int]]:
        """For each step with bodies its number, and the bytes of the block that its bodies share."""
        return [
            (number, functools.reduce(largest, (b.arena_bytes for b in self.bodies[step]), 0))
            for number, step in enumerate(self.steps)
            if step in self.bodies
        ]

    def task_bytes(self) -> int:
        """The bytes of memory of all threads for values of one task."""
        bodies = [body.task_bytes() for scopes in self.bodies.values() for body in scopes]
        return functools.reduce(largest, [*bodies, *(r.threads * r.task_bytes for r in self.regions)], 0)

    def _fill_arena(self) -> int:
        """Assign offsets in the arena by the lifetimes of values; returns the size of the arena in bytes."""
        values, inner = self.reads(), self.inner()
        kinds = [BufferKind.ARENA] * len(values)
        if self.regions:
            accessed = self._accessing_steps()
            shared = [AccessedBlock(tuple(accessed[v]), v.spec.nbytes) for v, _ in values]
            shared += [AccessedBlock((number,), nbytes) for number, nbytes in inner]
            offsets, in_task, size, task_bytes = assign_concurrent(shared, self.regions)
            kinds = [BufferKind.TASK if own else BufferKind.ARENA for own in in_task]
            pairs = zip(self.regions, task_bytes, strict=True)
            self.regions = tuple([region._replace(task_bytes=nbytes) for region, nbytes in pairs])
        else:
            blocks = [
                Lifetime(birth, max(reads, default=birth), v.spec.nbytes) for v, (birth, reads) in values
            ]
            blocks += [Lifetime(number, number, nbytes) for number, nbytes in inner]
            offsets, size = assign(blocks)
        for (value, _), offset, kind in zip(values, offsets, kinds, strict=False):
            strides = self.allocations[value].strides
            self.allocations[value] = Allocation(kind, 0, offset // value.spec.dtype.size, strides)
        steps_with_bodies = [self.steps[number] for number, _ in inner]
        self.block_offsets = dict(zip(steps_with_bodies, offsets[len(values) :], strict=True))
        return size

    def _accessing_steps(self) -> dict[Value, list[int]]:
        """For each value with storage of its own, the steps that access it, in order."""
        accessed: dict[Value, list[int]] = {}
        for number, step in enumerate(self.steps):
            bases = [*map(base_of, step.inputs), *step.node.outputs]
            for owner in dict.fromkeys(map(self._owner, bases)):
                accessed.setdefault(owner, []).append(number)
        for owner in dict.fromkeys(map(self._owner, map(base_of, self.live_out))):
            accessed.setdefault(owner, []).append(len(self.steps))
        return accessed

    def calls(self, layouts: ScopeLayouts) -> tuple[PlannedCall, ...]:
        """The steps, with the layouts of their operands and results."""
        return self.planned(layouts).calls

    def planned(self, layouts: ScopeLayouts) -> PlannedBody:
        """The body of a conditional or loop."""
        calls = []
        for step in self.steps:
            calls.append(self._call(step, layouts))  # noqa: PERF401, a comprehension is one more frame
        return PlannedBody(tuple(calls), tuple(map(layouts.layout_of, self.live_out)), self.regions)

    def _call(self, step: StridedNode, layouts: ScopeLayouts) -> PlannedCall:
        inputs = tuple(map(layouts.layout_of, step.inputs))
        outputs = tuple(map(layouts.layout_of, step.node.outputs))
        if step not in self.bodies:
            return PlannedCall(step.node, inputs, outputs)
        base = layouts.base + self.block_offsets[step]
        if isinstance(step.node.op.kind, Cond):
            blocks = []
            for b in self.bodies[step]:
                inner = ScopeLayouts(layouts.starts, b.allocations, base, inputs[1:], outputs)
                blocks.append(b.planned(inner))
            return PlannedCall(step.node, inputs, outputs, tuple(blocks))
        return self._loop(step, layouts, base, inputs, outputs)

    def _loop(
        self,
        step: StridedNode,
        layouts: ScopeLayouts,
        base: int,
        inputs: tuple[Layout, ...],
        outputs: tuple[Layout, ...],
    ) -> PlannedCall:
        node = step.node
        loop = loop_of(node)
        scanned = loop.scanned
        carry, new_stacks = loop.split_results(outputs)
        _, scanned_stacks, invariant = loop.split_inputs(inputs)
        *tests, body = self.bodies[step]
        new_values = loop.split_results(node.outputs).stacked
        values = [*loop.split_inputs(step.inputs).scanned, *new_values]
        stacks = [*scanned_stacks, *new_stacks]
        grows = [*[False] * scanned, *[not v.spec.shape.is_static for v in new_values]]
        rows = [self._row(*row, layouts) for row in zip(values, stacks, grows, strict=True)]
        row_layouts = [Layout(r.buffer, 0, stack.strides[1:]) for r, stack in zip(rows, stacks, strict=True)]
        growing = changing_positions(loop)
        following = [self._following(loop.body.outputs[i], layouts) for i in growing]
        body_inputs = (*carry, *row_layouts[:scanned], *invariant)
        body_outputs = (*row_layouts[scanned:], *following)
        body_layouts = ScopeLayouts(layouts.starts, body.allocations, base, body_inputs, body_outputs)
        blocks = [body.planned(body_layouts)]
        for test in tests:
            test_layouts = ScopeLayouts(layouts.starts, test.allocations, base, (*carry, *invariant))
            blocks.insert(0, test.planned(test_layouts))
        stack_writer = next((v.node for v in values[:scanned] if not v.spec.shape.is_static), None)
        same_as = self.counters[stack_writer] if stack_writer is not None else None
        memory = LoopMemory(
            tuple(rows),
            changing_sizes(loop, [v.spec for v in step.inputs]),
            tuple([(carry[i].buffer, layout.buffer) for i, layout in zip(growing, following, strict=True)]),
            tuple(dynamic_buffers(new_stacks, new_values, self.state.bound_sizes).items()),
        )
        trip_count = TripCount(self.counters[node], loop.length, same_as)
        iterations = PlannedLoop(_copies_of_initial_values(step, inputs, carry), trip_count, memory)
        return PlannedCall(node, inputs, outputs, tuple(blocks), iterations)

    def _following(self, value: Value, layouts: ScopeLayouts) -> Layout:
        """The layout of the next value of a loop-carried value whose size an iteration changes."""
        buffer = layouts.starts[BufferKind.STACK] + self.state.row_buffer()
        return Layout(buffer, 0, contiguous_strides(value.spec.shape))

    def _row(self, value: Value, stack: Layout, grows: bool, layouts: ScopeLayouts) -> StackRow:
        buffer = layouts.starts[BufferKind.STACK] + self.state.row_buffer()
        return StackRow(buffer, stack, row_spec(value.spec).nbytes, value.spec.dtype, grows)


def _copies_of_initial_values(
    step: StridedNode, inputs: Sequence[Layout], carry: Sequence[Layout]
) -> tuple[PlannedCall, ...]:
    """The calls that copy the initial values of a loop to the buffers of its loop-carried values."""
    loop = loop_of(step.node)
    copies = []
    for value, source, target, carried in zip(step.inputs, inputs, carry, loop.body.inputs, strict=False):
        copied = value if carried.spec == value.spec else Value(carried.spec)
        copies.append(PlannedCall(copy_node(copied), (source,), (target,)))
    return tuple(copies)


def _scopes(node: Node, state: PlanState) -> list[PlanScope]:
    """The scopes of the graphs inside a conditional or loop; loop-carried values are updated in place."""
    if isinstance(node.op.kind, Cond):
        scopes = []
        for branch in branches_of(node):
            scopes.append(PlanScope(branch, state))  # noqa: PERF401, a comprehension is one more frame
        return scopes
    loop = loop_of(node)
    body, test = loop.body, loop.condition
    growing = changing_positions(loop)
    updates = tuple([Update(*pair) for i, pair in enumerate(loop.carried_values) if i not in growing])
    outputs = (*loop.stacked, *[body.outputs[i] for i in growing])
    iteration = PlanScope(replace(body, outputs=outputs, updates=updates), state)
    return (
        [iteration]
        if test is None
        else [PlanScope(replace(test, outputs=()), state, test.outputs), iteration]
    )
