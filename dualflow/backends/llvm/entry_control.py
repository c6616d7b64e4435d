"""Conditionals and loops of an entry, as branches of machine code around calls.

An entry with loops copies the buffer table to its stack. The copy has the addresses of stack rows after the
program's buffers, which change between iterations, and those of growable buffers. These are allocated with
C's realloc, and freed when the entry returns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext

from dualflow.backends.llvm.check_values import CheckValues
from dualflow.backends.llvm.entry import Entry, Unit
from dualflow.backends.llvm.failures import note_failure
from dualflow.backends.llvm.runtime.interrupts import poll_signals, start_timer
from dualflow.backends.llvm.steps import IntervalKind, StepKind
from dualflow.backends.llvm.text import I8, I64, PTR, VOID, EmittedValue, Type
from dualflow.core import trampoline
from dualflow.core.locks import imported
from dualflow.core.trampoline import Calls
from dualflow.graph.control_ops import memory_message
from dualflow.graph.ir import Node
from dualflow.schedule.call_order import fails
from dualflow.schedule.call_reports import OUT_OF_BOUNDS
from dualflow.schedule.operands import CallKind
from dualflow.schedule.planned import StackRow, dynamic_buffers, shapes_without_memory
from dualflow.schedule.program_statements import (
    INITIAL_CAPACITY,
    CallRoutine,
    CheckBounds,
    ChooseBranch,
    CopyMemory,
    LaunchNest,
    LaunchPieces,
    Multiply,
    RequireCondition,
    RunLoop,
    RunTasks,
    ScatterRows,
    Statement,
    ValueLayout,
    bodies,
    unconditional,
    walk_program,
)
from dualflow.sizes.size_functions import largest
from dualflow.sizes.symbolic_sizes import is_static, typical

MAX_LENGTH = 32
"""Statements in a function of an entry."""
POLL_INTERVAL = 16
"""Iterations of a loop between two checks for a signal; a power of two."""

_STEPS = (LaunchNest, LaunchPieces, Multiply, ScatterRows, CheckBounds, CopyMemory, RunTasks)
"""The statements that are steps in programs with static sizes."""
_STEP_KINDS = (CallKind.WINDOW_SUM, CallKind.FOURIER, CallKind.COLLECTIVE)
"""The kinds of routines that are steps in programs with static sizes."""


def write_entry(unit: Unit, name: str, program: Sequence[Statement]) -> Entry:
    """Emit the entry ``name`` for the statements of ``program``."""
    entry = Entry(unit, name)
    control = _EntryEmitter(entry)
    control.begin(program)
    control.run(program)
    control.end(program)
    return entry


def _is_step(statement: Statement) -> bool:
    """Whether ``statement`` is a step in a program with static sizes."""
    if isinstance(statement, CallRoutine):
        return statement.kind in _STEP_KINDS
    return isinstance(statement, _STEPS)


def _run_task(entry: Entry, task: Sequence[Statement]) -> None:
    """Emit the statements of a task, all of which are steps."""
    _EntryEmitter(entry).run(task)


class _EntryEmitter:
    """Emits the statements of a program in an entry, with conditionals and loops as machine code.

    Attributes:
        entry: the entry.
        iterations: stack memory with the trip count of each loop.
        capacity: stack memory with the capacity of each loop's growable buffers, in rows.
        outermost: the outermost loop that is being emitted.
        rows: the buffers that are rows of stacks: addresses inside another buffer.
        conditions: the number of checks of conditions so far.
    """

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self.iterations: EmittedValue | None = None
        self.capacity: EmittedValue | None = None
        self.outermost: Node | None = None
        self.rows: frozenset[int] = frozenset()
        self.conditions = 0
        self._lengths: dict[int, int] = {}

    def begin(self, program: Sequence[Statement]) -> None:
        """Emit what the statements of ``program`` require: a calibrated clock, and memory for loops."""
        unit = self.entry.unit
        if unit.clock is not None:
            unit.node = program[0].node
            unit.clock.calibrate(self.entry)
        loops = [s for s in walk_program(program) if isinstance(s, RunLoop)]
        if loops:
            self.rows = frozenset(row.buffer for loop in loops for row in loop.memory.rows)
            self._begin_loops()

    def _begin_loops(self) -> None:
        """Emit the counters of loops, and an extended copy of the buffer table."""
        plan, entry, b = self.entry.unit.plan, self.entry, self.entry.builder
        self.iterations, self.capacity = b.alloca(I64, plan.loops), b.alloca(I64, plan.loops)
        for loop in range(plan.loops):
            b.store(b.constant(I64, 0), self.capacity, loop)
        if plan.has_dynamic_sizes:  # the caller's table has entries for the addresses
            return
        first = plan.arena + 1
        table = b.alloca(PTR, first + plan.row_buffers)
        b.call(
            b.symbols.declare("memcpy", PTR, [PTR, PTR, I64]),
            [table, entry.buffers, b.constant(I64, 8 * first)],
        )
        null = b.constant(I64, 0).cast(PTR)
        for row in range(plan.row_buffers):
            b.store(null, table, first + row)
        entry.read_from(table)

    def end(self, program: Sequence[Statement]) -> None:
        """Emit the release of growable buffers, and the return."""
        if self.entry.function is None:
            return
        b = self.entry.builder
        for row in (row for s in walk_program(program) if isinstance(s, RunLoop) for row in s.growable):
            free = b.symbols.declare("free", VOID, [PTR])
            b.call(free, [b.load(self.entry.buffers, row.stack.buffer, PTR)])
        b.ret()

    def run(self, program: Sequence[Statement]) -> None:
        """Emit statements in order; after a failed check the following ones don't run."""
        trampoline.run(self._emit(program))

    def _emit(self, program: Sequence[Statement]) -> Calls:
        parts = self._parts(program)
        if len(parts) == 1:
            return self._run_part(program)
        return self._in_order(parts, self._call_part)

    def _call_part(self, part: Sequence[Statement]) -> Calls:
        """Emit statements as a function of their own, and its call."""
        memory = self.iterations, self.capacity
        with self.entry.part([pointer for pointer in memory if pointer is not None]) as pointers:
            if pointers:
                self.iterations, self.capacity = pointers
            yield from self._run_part(part)
        self.iterations, self.capacity = memory

    def _run_part(self, part: Sequence[Statement]) -> Calls:
        """Emit statements in order."""
        return self._in_order([(statement,) for statement in part], self._run_statement)

    def _in_order(
        self, groups: Sequence[Sequence[Statement]], emit: Callable[[Sequence[Statement]], Calls]
    ) -> Calls:
        """Emit groups of statements in order.

        A kernel whose check fails continues to its end. So before the first group that writes to a variable
        after such a kernel, the status is checked. What a check guards ends with the last group, so it holds
        for these groups alone: the caller decides for its own from their statements.
        """
        inputs = self.entry.unit.plan.inputs
        may_have_failed = False
        with ExitStack() as open_blocks:
            for i, group in enumerate(groups):
                if may_have_failed and any(out.buffer < inputs for s in group for out in s.outputs):
                    self._stop_if_failed(groups[i:], open_blocks)
                    may_have_failed = False
                conditions = self.conditions
                yield from emit(group)
                if self.conditions > conditions:
                    open_blocks.enter_context(self.entry.builder.if_then(self._ok()))
                    may_have_failed = False
                elif any(fails(statement.node) for statement in unconditional(group)):
                    may_have_failed = True

    def _parts(self, program: Sequence[Statement]) -> list[Sequence[Statement]]:
        """``program``, cut where it is longer than a function should be."""
        sized = self.entry.unit.plan.has_dynamic_sizes
        parts: list[Sequence[Statement]] = []
        start, length = 0, 0
        for i, statement in enumerate(program):
            if length >= MAX_LENGTH:
                parts.append(program[start:i])
                start, length = i, 0
            length += self._length(statement) if sized or not _is_step(statement) else 0
        return [*parts, program[start:]]

    def _length(self, statement: Statement) -> int:
        """The number of statements in ``statement``, up to the length of a function."""
        if id(statement) not in self._lengths:
            for inner in reversed([*walk_program([statement])]):  # what is inside a statement follows it
                length = 1 + sum(self._lengths[id(s)] for body in bodies(inner) for s in body)
                self._lengths[id(inner)] = min(length, MAX_LENGTH)
        return self._lengths[id(statement)]

    def _stop_if_failed(self, following: Sequence[Sequence[Statement]], open_blocks: ExitStack) -> None:
        """Emit a check of the status, so that the ``following`` groups don't run after a failure.

        It is a step if all of their statements are steps; else a conditional block, which ``open_blocks``
        closes.
        """
        if self.entry.function is None and all(_is_step(s) for group in following for s in group):
            self.entry.step(StepKind.STOP)
        else:
            open_blocks.enter_context(self.entry.builder.if_then(self._ok()))

    def _run_statement(self, group: Sequence[Statement]) -> Calls:
        """Emit a group of one statement, within the bounds of its memory."""
        (statement,) = group
        self._begin(statement)
        if self.entry.unit.plan.has_dynamic_sizes:
            return self._write_sized(statement)
        return self._write_in_bounds(statement)

    def _begin(self, statement: Statement) -> None:
        """Record the node of ``statement`` for steps; in the checked mode, also for other statements."""
        unit = self.entry.unit
        unit.node = statement.node
        if unit.scratch.checked is not None and (unit.plan.has_dynamic_sizes or not _is_step(statement)):
            self.entry.step(StepKind.NOTE)

    def _write_sized(self, statement: Statement) -> Calls:
        """Emit a statement that may depend on dynamic sizes, after a check of the status.

        Memory for its outputs is allocated first, except for rows of stacks.
        """
        with self.entry.builder.if_then(self._ok()):
            buffers: dict[int, list[int]] = {}
            undecided = self.entry.unit.memory_bounds.undecided(statement)
            if isinstance(statement, ChooseBranch | RunLoop):  # its statements allocate and check its outputs
                blocks = self.entry.unit.memory_bounds.blocks
                undecided = [elements for elements in undecided if elements.buffer not in blocks]
            else:
                buffers = dynamic_buffers(statement.outputs, statement.node.outputs)
            buffers = {buffer: sizes for buffer, sizes in buffers.items() if buffer not in self.rows}
            for buffer, sizes in buffers.items():
                self.entry.allocate(buffer, sizes, statement.node)
            shapes = shapes_without_memory(statement.node)
            for shape in shapes:
                self.entry.check_size(shape, statement.node)
            if_allocated = self.entry.builder.if_then(self._ok()) if buffers or shapes else nullcontext()
            with if_allocated, self.entry.guarded(undecided, statement.node):
                yield from self._write(statement)

    def _write_in_bounds(self, statement: Statement) -> Calls:
        """Emit a statement and the checks of its memory bounds, which depend on symbolic sizes.

        What it accesses is compared with its buffers before the program runs; in a body, before it runs.
        """
        unit = self.entry.unit
        in_body = unit.parent is not None and unit.plan.argument_sizes
        with self.entry.guarded(unit.memory_bounds.undecided(statement) if in_body else (), statement.node):
            yield from self._write(statement)

    def _write(self, statement: Statement) -> Calls:
        match statement:
            case LaunchNest():
                self.entry.launch(statement)
            case LaunchPieces():
                for launch in statement.pieces:
                    self.entry.launch(launch)
            case Multiply():
                imported("dualflow.backends.llvm.product_calls").write_product(self.entry, statement)
            case ScatterRows():
                self.entry.scatter(statement)
            case CheckBounds():
                self.entry.check_bounds(statement)
            case CopyMemory():
                self.entry.move(statement)
            case RequireCondition():
                self._require(statement)
            case ChooseBranch() | RunLoop():
                yield from self._control(statement)
            case RunTasks():
                imported("dualflow.backends.llvm.task_calls").write_tasks(
                    self.entry, statement, emit_statements=_run_task, loops=self.iterations is not None
                )
            case CallRoutine():
                self._routine(statement)

    def _control(self, statement: ChooseBranch | RunLoop) -> Calls:
        unit = self.entry.unit
        outer, unit.parent = unit.parent, statement.node
        with self.entry.interval(IntervalKind.CONTROL):
            if isinstance(statement, RunLoop):
                yield from self._loop(statement)
            else:
                yield from self._choose(self._scalar(statement.number).cast(I64), statement.branches)
        unit.parent = outer

    def _routine(self, call: CallRoutine) -> None:
        match call.kind:
            case CallKind.MEASURE:
                imported("dualflow.backends.llvm.size_binding").write_bind_size(self.entry, call)
            case CallKind.SIZES:
                imported("dualflow.backends.llvm.size_binding").write_sizes(self.entry, call)
            case CallKind.POSITIONS:
                imported("dualflow.backends.llvm.position_calls").write_positions(self.entry, call)
            case CallKind.WINDOW_SUM:
                imported("dualflow.backends.llvm.window_sum_kernels").write_window_sum(self.entry, call)
            case CallKind.COLLECTIVE:
                imported("dualflow.backends.llvm.collective_calls").write_collective(self.entry, call)
            case kind:
                assert kind is CallKind.FOURIER, "host calls are between entries"
                imported("dualflow.backends.llvm.fourier_calls").write_fourier(self.entry, call)

    def _require(self, check: RequireCondition) -> None:
        """Emit a check; if it fails, write its number, and copy its values to the parameter table."""
        b, entry = self.entry.builder, self.entry
        self.conditions += 1
        values = CheckValues(
            tuple([entry.unit.table.extend([0] * -(-v.spec.nbytes // 8)) for _, v in check.reads])
        )
        entry.unit.messages.append((values, check.node))
        number = b.constant(I64, len(entry.unit.messages))
        with b.if_then(~self._scalar(check.condition)):
            copy = b.symbols.declare("memcpy", PTR, [PTR, PTR, I64])
            for index, (layout, value) in zip(values.indices, check.reads, strict=True):
                start = entry.param(layout.offset * value.spec.dtype.size)
                source = b.offset(b.load(entry.buffers, layout.buffer, PTR), start, I8)
                target = b.offset(entry.params, b.constant(I64, index), I64)
                b.call(copy, [target, source, b.constant(I64, value.spec.nbytes)])
            note_failure(b, entry.status, number)

    def _choose(self, index: EmittedValue, branches: Sequence[Sequence[Statement]]) -> Calls:
        """Emit the branch number ``index``; the last one for any other number."""
        with ExitStack() as open_blocks:
            for branch in branches[:-1]:
                otherwise = open_blocks.enter_context(self.entry.builder.two_sides(index.eq(0)))
                yield self._emit(branch)
                otherwise()
                index = index - 1
            yield self._emit(branches[-1])

    def _loop(self, loop: RunLoop) -> Calls:
        b, unit = self.entry.builder, self.entry.unit
        assert self.iterations is not None
        outer, self.outermost = self.outermost, self.outermost or loop.node
        unit.messages.append(("a signal was received", self.outermost))
        stopped = b.constant(I64, len(unit.messages))
        self._allocate_stacks(loop)
        self.run(loop.start)
        before = unit.work_ns
        count = self._trip_limit(loop)
        self._check_trip_counts(loop, count)
        last = start_timer(b)
        with b.while_loop([b.constant(I64, 0)]) as iterations:
            (iteration,) = iterations.carried
            iterations.test(self._proceeds(loop, iteration, count))
            for row in loop.memory.rows:
                self._select_row(
                    row, count - 1 - iteration if loop.backwards and count is not None else iteration
                )
            with self.entry.interval(IntervalKind.ITERATION):
                yield self._emit(loop.body)
            self._swap_buffers(loop)
            with b.if_then((iteration & (POLL_INTERVAL - 1)).eq(POLL_INTERVAL - 1)):
                poll_signals(unit.module, b, last, self.entry.status, stopped)
            iterations.next(iteration + 1)
        self.outermost = outer
        b.store(iterations.results[0], self.iterations, loop.trip_count.loop)
        trip_count = (
            unit.costs.unknown_iterations if loop.trip_count.limit is None else typical(loop.trip_count.limit)
        )
        unit.work_ns = before + (unit.work_ns - before) * trip_count

    def _allocate_stacks(self, loop: RunLoop) -> None:
        """Bind the first sizes of loop-carried values, and allocate the stacks whose length is known."""
        b = self.entry.builder
        for size in loop.memory.changing_sizes:
            imported("dualflow.backends.llvm.size_binding").bind_size(
                self.entry, size.variable, self.entry.param(size.start)
            )
        for buffer, sizes in loop.memory.stacks:
            self.entry.allocate(buffer, sizes, loop.node)
        # Rows of symbolic size may be longer than in the last run of the loop, so its capacity is invalid.
        if not is_static(row.nbytes for row in loop.growable):
            assert self.capacity is not None
            b.store(b.constant(I64, 0), self.capacity, loop.trip_count.loop)

    def _proceeds(self, loop: RunLoop, iteration: EmittedValue, count: EmittedValue | None) -> EmittedValue:
        """Emit whether an iteration runs; if so, its rows are allocated."""
        proceed = self._ok() if count is None else self._ok() & (iteration < count)
        if loop.condition is not None:
            proceed = self._evaluate_condition(loop.test, loop.condition, proceed)
        return self._grow(loop, iteration, proceed) if loop.growable else proceed

    def _swap_buffers(self, loop: RunLoop) -> None:
        """Swap the buffers of loop-carried values, and bind their new sizes."""
        if not loop.memory.changing_sizes:
            return
        b, entry = self.entry.builder, self.entry
        with b.if_then(self._ok()):
            for pair in loop.memory.double_buffers:
                size_params = [entry.unit.table.block_size_param(buffer) for buffer in pair]
                for table, indices, type in ((entry.buffers, pair, PTR), (entry.params, size_params, I64)):
                    first, second = (b.load(table, index, type) for index in indices)
                    b.store(second, table, indices[0])
                    b.store(first, table, indices[1])
            following = [entry.param(size.following) for size in loop.memory.changing_sizes]
            for size, number in zip(loop.memory.changing_sizes, following, strict=True):
                imported("dualflow.backends.llvm.size_binding").bind_size(entry, size.variable, number)

    def _trip_limit(self, loop: RunLoop) -> EmittedValue | None:
        """Emit the maximum trip count of the loop; returns None for no limit."""
        if loop.trip_count.same_as is not None:
            assert self.iterations is not None
            return self.entry.builder.load(self.iterations, loop.trip_count.same_as, I64)
        return None if loop.trip_count.limit is None else self.entry.param(loop.trip_count.limit)

    def _check_trip_counts(self, loop: RunLoop, count: EmittedValue | None) -> None:
        """Emit a check that the loops whose stacks this one reads ran ``count`` times at least."""
        if loop.trip_count.same_as is None or count is None:
            return
        assert self.iterations is not None
        for other in self.entry.unit.memory_bounds.compared_loops(loop):
            iterations = self.entry.builder.load(self.iterations, other, I64)
            self.entry.fail_if(iterations < count, OUT_OF_BOUNDS, loop.node)

    def _ok(self) -> EmittedValue:
        """Emit the condition that no check has failed."""
        return self.entry.builder.load(self.entry.status, 0, I64).eq(0)

    def _evaluate_condition(
        self, test: Sequence[Statement], condition: ValueLayout, proceed: EmittedValue
    ) -> EmittedValue:
        """Emit whether the loop proceeds: its condition, not evaluated if the loop has ended already."""

        def evaluate_condition() -> list[EmittedValue]:
            self.run(test)
            return [self._scalar(condition) & self._ok()]

        b = self.entry.builder
        return b.if_else(proceed, evaluate_condition, lambda: [proceed])[0]

    def _scalar(self, placed: ValueLayout) -> EmittedValue:
        b, entry, (layout, value) = self.entry.builder, self.entry, placed
        pointer = b.load(entry.buffers, layout.buffer, PTR)
        return b.load(pointer, entry.param(layout.offset), Type.of_dtype(value.spec.dtype.dtype))

    def _select_row(self, row: StackRow, index: EmittedValue) -> None:
        """Store the address of row ``index`` of a stack in the buffer table."""
        b, entry = self.entry.builder, self.entry
        stack = b.load(entry.buffers, row.stack.buffer, PTR)
        offset = index * entry.param(row.nbytes) + entry.param(row.stack.offset * row.dtype.size)
        b.store(b.offset(stack, offset, I8), entry.buffers, row.buffer)

    def _grow(self, loop: RunLoop, iteration: EmittedValue, proceed: EmittedValue) -> EmittedValue:
        """Grow buffers for the rows of ``iteration``; returns whether the loop proceeds."""
        entry, b, unit = self.entry, self.entry.builder, self.entry.unit
        assert self.capacity is not None
        capacity, row_bytes = b.load(self.capacity, loop.trip_count.loop, I64), loop.growable_bytes
        max_capacity = b.load(entry.params, unit.memory_param(largest(row_bytes, 1)), I64)
        unit.messages.append((memory_message(row_bytes), loop.node))
        failure = b.constant(I64, len(unit.messages))
        with b.if_then(proceed & (iteration >= capacity)):
            new_capacity = capacity.eq(0).select(b.constant(I64, INITIAL_CAPACITY), capacity * 2)
            with b.if_then(new_capacity > max_capacity):
                b.store(failure, entry.status, 0)  # no other failure precedes it, as the loop proceeds
            with b.if_then(new_capacity <= max_capacity):
                for row in loop.growable:
                    self._reallocate(row, new_capacity, failure)
                b.store(new_capacity, self.capacity, loop.trip_count.loop)
        return proceed & self._ok()

    def _reallocate(self, row: StackRow, capacity: EmittedValue, failure: EmittedValue) -> None:
        """Resize a growable buffer to ``capacity`` rows; without memory, keep it and set the status."""
        entry, b = self.entry, self.entry.builder
        realloc = b.symbols.declare("realloc", PTR, [PTR, I64])
        old = b.load(entry.buffers, row.stack.buffer, PTR)
        new = b.call(realloc, [old, capacity * entry.param(largest(row.nbytes, 1))])
        failed = new.cast(I64).eq(0)
        with b.if_then(failed):
            b.store(failure, entry.status, 0)
        with b.if_then(~failed):
            b.store(new, entry.buffers, row.stack.buffer)
