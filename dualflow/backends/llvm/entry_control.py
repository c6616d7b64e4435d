"""Conditionals and loops of an entry: branches of machine code around calls, with nothing of Python between
iterations.

An entry with loops has a buffer table of its own: behind the program's buffers stand the addresses of the
rows that loops read and write, which move between iterations, and those of the stacks that grow. Grown stacks
are C's memory, which the entry frees when it ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, nullcontext

from dualflow.backends.llvm import run_time_sizes
from dualflow.backends.llvm.check_values import CheckValues
from dualflow.backends.llvm.entry import Entry, Unit
from dualflow.backends.llvm.failures import note_failure
from dualflow.backends.llvm.runtime.interrupts import poll_signals, start_timer
from dualflow.backends.llvm.steps import StepKind
from dualflow.backends.llvm.text import I8, I64, PTR, VOID, EmittedValue, Type
from dualflow.core.locks import imported
from dualflow.core.size_functions import largest
from dualflow.core.symbolic_sizes import is_static, typical
from dualflow.graph.control import memory_message
from dualflow.graph.ir import Node
from dualflow.schedule.call_reports import OUT_OF_BOUNDS
from dualflow.schedule.operands import CallKind
from dualflow.schedule.order import fails
from dualflow.schedule.planned import StackRow, dynamic_buffers
from dualflow.schedule.statements import (
    INITIAL_CAPACITY,
    CallRoutine,
    CheckBounds,
    ChooseBranch,
    CopyMemory,
    Launch,
    LaunchPieces,
    Multiply,
    RequireCondition,
    RunLoop,
    ScatterRows,
    Statement,
    ValueLayout,
    walk,
)

POLL_INTERVAL = 16
"""Iterations of a loop between two checks for a signal; a power of two."""

_STEPS = (Launch, LaunchPieces, Multiply, ScatterRows, CheckBounds, CopyMemory)
"""What steps do where all sizes are known,"""
_STEP_KINDS = (CallKind.WINDOW_SUM, CallKind.FOURIER)
"""and the routines that they call."""


def write_entry(unit: Unit, name: str, program: Sequence[Statement]) -> Entry:
    """Write the entry ``name``, which does what the statements of ``program`` say."""
    entry = Entry(unit, name)
    control = _Control(entry)
    control.begin(program)
    control.run(program)
    control.end(program)
    return entry


def _is_step(statement: Statement) -> bool:
    """Whether a step does what ``statement`` says, where all sizes are known."""
    if isinstance(statement, CallRoutine):
        return statement.kind in _STEP_KINDS
    return isinstance(statement, _STEPS)


class _Control:
    """Writes statements, and what stands around them.

    Attributes:
        entry: what they are written to.
        iterations: the numbers of iterations that loops have made.
        room: for how many iterations their stacks that grow have room.
        outermost: the loop that is being written, of several the outermost.
        rows: the buffers that are rows of stacks: addresses inside another buffer's memory.
    """

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self.iterations: EmittedValue | None = None
        self.room: EmittedValue | None = None
        self.outermost: Node | None = None
        self.rows: frozenset[int] = frozenset()

    def begin(self, program: Sequence[Statement]) -> None:
        """Make the table that rows move in, if there are loops."""
        plan, entry = self.entry.unit.plan, self.entry
        loops = [s for s in walk(program) if isinstance(s, RunLoop)]
        if not loops:
            return
        self.rows = frozenset(row.slot for loop in loops for row in loop.rows)
        b = entry.b
        self.iterations, self.room = b.alloca(I64, plan.loops), b.alloca(I64, plan.loops)
        for loop in range(plan.loops):
            b.store(b.constant(I64, 0), self.room, loop)
        if entry.unit.sized:  # the caller's table has room for the addresses, of each call
            return
        first = plan.arena + 1
        own = b.alloca(PTR, first + plan.slots)
        b.call(
            b.symbols.declare("memcpy", PTR, [PTR, PTR, I64]),
            [own, entry.buffers, b.constant(I64, 8 * first)],
        )
        nothing = b.constant(I64, 0).cast(PTR)
        for slot in range(plan.slots):
            b.store(nothing, own, first + slot)
        entry.read_from(own)

    def end(self, program: Sequence[Statement]) -> None:
        """Free what has grown, and return."""
        if self.entry.function is None:
            return
        b = self.entry.b
        for row in (row for s in walk(program) if isinstance(s, RunLoop) for row in s.growable):
            free = b.symbols.declare("free", VOID, [PTR])
            b.call(free, [b.load(self.entry.buffers, row.stack.buffer, PTR)])
        b.ret()

    def run(self, program: Sequence[Statement]) -> None:
        """Write statements in order; where one has stopped the program, those after it don't run.

        Kernels whose checks failed go on, so variables are written only behind a look at the status.
        """
        inputs, sure = self.entry.unit.plan.inputs, True
        with ExitStack() as behind_checks:
            for i, statement in enumerate(program):
                if not sure and any(layout.buffer < inputs for layout in statement.outputs):
                    if self.entry.function is None and all(map(_is_step, program[i:])):
                        self.entry.step(StepKind.STOP)
                    else:
                        behind_checks.enter_context(self.entry.b.if_then(self._fine()))
                    sure = True
                self._begin(statement)
                self._guarded(statement) if self.entry.unit.sized else self._write(statement)
                if any(isinstance(s, RequireCondition) for s in walk((statement,))):
                    behind_checks.enter_context(self.entry.b.if_then(self._fine()))
                    sure = True
                elif fails(statement.node):
                    sure = False

    def _begin(self, statement: Statement) -> None:
        """Note whose work the next steps are; in the checked mode, also of what is no step."""
        unit = self.entry.unit
        unit.node = statement.node
        if unit.workspace is not None and (unit.sized or not _is_step(statement)):
            self.entry.step(StepKind.NOTE)

    def _guarded(self, statement: Statement) -> None:
        """Write a statement that may depend on sizes: where one could not be told, it doesn't run.

        It begins with memory for its outputs. A row of a stack has none of its own: it lies in the stack.
        """
        with self.entry.b.if_then(self._fine()):
            made: dict[int, list[int]] = {}
            if not isinstance(statement, ChooseBranch | RunLoop):  # which have their own statements
                made = dynamic_buffers(statement.outputs, statement.node.outputs)
            made = {buffer: sizes for buffer, sizes in made.items() if buffer not in self.rows}
            for buffer, sizes in made.items():
                self.entry.make_room(buffer, sizes, statement.node)
            undecided = self.entry.unit.bounds.undecided(statement)
            room = self.entry.b.if_then(self._fine()) if made else nullcontext()
            with room, self.entry.inside(undecided, statement.node):
                self._write(statement)

    def _write(self, statement: Statement) -> None:
        match statement:
            case Launch():
                self.entry.launch(statement)
            case LaunchPieces():
                for launch in statement.pieces:
                    self.entry.launch(launch)
            case Multiply():
                imported("dualflow.backends.llvm.product_calls").write_product(self.entry, statement)
            case ScatterRows():
                self.entry.scatter(statement)
            case CheckBounds():
                self.entry.bounds(statement)
            case CopyMemory():
                self.entry.move(statement)
            case RequireCondition():
                self._require(statement)
            case ChooseBranch() | RunLoop():
                self._control(statement)
            case CallRoutine():
                self._routine(statement)

    def _control(self, statement: ChooseBranch | RunLoop) -> None:
        unit = self.entry.unit
        outer, unit.around = unit.around, statement.node
        if isinstance(statement, RunLoop):
            self._loop(statement)
        else:
            self._choose(self._scalar(statement.number).cast(I64), statement.branches)
        unit.around = outer

    def _routine(self, call: CallRoutine) -> None:
        match call.kind:
            case CallKind.MEASURE:
                run_time_sizes.measure(self.entry, call)
            case CallKind.SIZES:
                run_time_sizes.write_sizes(self.entry, call)
            case CallKind.POSITIONS:
                run_time_sizes.write_positions(self.entry, call)
            case CallKind.WINDOW_SUM:
                imported("dualflow.backends.llvm.window_sums").write_window_sum(self.entry, call)
            case kind:
                assert kind is CallKind.FOURIER, "host calls stand between entries"
                imported("dualflow.backends.llvm.fourier_calls").write_fourier(self.entry, call)

    def _require(self, check: RequireCondition) -> None:
        """Where the check fails, note its number, and what its error is made of behind the parameters."""
        b, entry = self.entry.b, self.entry
        kept = CheckValues(tuple([entry.unit.run([0] * -(-v.spec.nbytes // 8)) for _, v in check.reads]))
        entry.unit.messages.append((kept, check.node))
        number = b.constant(I64, len(entry.unit.messages))
        with b.if_then(~self._scalar(check.condition)):
            copy = b.symbols.declare("memcpy", PTR, [PTR, PTR, I64])
            for place, (layout, value) in zip(kept.places, check.reads, strict=True):
                start = entry.param(layout.offset * value.spec.dtype.size)
                source = b.offset(b.load(entry.buffers, layout.buffer, PTR), start, I8)
                target = b.offset(entry.params, b.constant(I64, place), I64)
                b.call(copy, [target, source, b.constant(I64, value.spec.nbytes)])
            note_failure(b, entry.status, number)

    def _choose(self, index: EmittedValue, branches: Sequence[Sequence[Statement]]) -> None:
        """The branch of number ``index``, the last for any other number."""
        first, *others = branches
        if not others:
            self.run(first)
            return

        def then() -> list[EmittedValue]:
            self.run(first)
            return []

        def otherwise() -> list[EmittedValue]:
            self._choose(index - 1, others)
            return []

        self.entry.b.if_else(index.eq(0), then, otherwise)

    def _loop(self, loop: RunLoop) -> None:
        b, unit = self.entry.b, self.entry.unit
        assert self.iterations is not None
        outer, self.outermost = self.outermost, self.outermost or loop.node
        unit.messages.append(("a signal has come", self.outermost))
        stopped = b.constant(I64, len(unit.messages))
        for size in loop.sizes:
            run_time_sizes.give(self.entry, size.variable, self.entry.param(size.start))
        for buffer, sizes in loop.stacks:
            self.entry.make_room(buffer, sizes, loop.node)
        if not is_static(
            row.nbytes for row in loop.growable
        ):  # rows may be longer than when the loop last ran
            assert self.room is not None
            b.store(b.constant(I64, 0), self.room, loop.counter)
        self.run(loop.start)
        before = unit.work_ns
        count, last = self._count(loop), start_timer(b)
        with b.while_loop([b.constant(I64, 0)]) as iterations:
            (iteration,) = iterations.carried
            goes_on = self._fine() if count is None else self._fine() & (iteration < count)
            if loop.condition is not None:
                goes_on = self._tested(loop.test, loop.condition, goes_on)
            if loop.growable:
                goes_on = self._grow(loop, iteration, goes_on)
            iterations.test(goes_on)
            for row in loop.rows:
                self._move(row, count - 1 - iteration if loop.backwards and count is not None else iteration)
            self.run(loop.body)
            self._exchange(loop)
            with b.if_then((iteration & (POLL_INTERVAL - 1)).eq(POLL_INTERVAL - 1)):
                poll_signals(unit.module, b, last, self.entry.status, stopped)
            iterations.next(iteration + 1)
        self.outermost = outer
        b.store(iterations.results[0], self.iterations, loop.counter)
        made = unit.costs.unknown_iterations if loop.length is None else typical(loop.length)
        unit.work_ns = before + (unit.work_ns - before) * made

    def _exchange(self, loop: RunLoop) -> None:
        """What is carried is where the iteration has put it, in the size that it has got."""
        if not loop.sizes:
            return
        b, entry = self.entry.b, self.entry
        with b.if_then(self._fine()):
            for pair in loop.exchanged:
                rooms = [entry.unit.room(buffer) for buffer in pair]
                for table, places, type in ((entry.buffers, pair, PTR), (entry.params, rooms, I64)):
                    first, second = (b.load(table, place, type) for place in places)
                    b.store(second, table, places[0])
                    b.store(first, table, places[1])
            following = [entry.param(size.following) for size in loop.sizes]
            for size, number in zip(loop.sizes, following, strict=True):
                run_time_sizes.give(entry, size.variable, number)

    def _count(self, loop: RunLoop) -> EmittedValue | None:
        """The largest number of iterations; None for any."""
        if loop.counted is not None:
            assert self.iterations is not None
            b = self.entry.b
            count = b.load(self.iterations, loop.counted, I64)
            for other in self.entry.unit.bounds.compared_loops(loop):
                self.entry.fail_if(b.load(self.iterations, other, I64) < count, OUT_OF_BOUNDS, loop.node)
            return count
        return None if loop.length is None else self.entry.param(loop.length)

    def _fine(self) -> EmittedValue:
        """Whether no check has failed."""
        return self.entry.b.load(self.entry.status, 0, I64).eq(0)

    def _tested(
        self, test: Sequence[Statement], condition: ValueLayout, goes_on: EmittedValue
    ) -> EmittedValue:
        """Whether the loop goes on, by its condition, which is asked only where nothing else ends it."""

        def ask() -> list[EmittedValue]:
            self.run(test)
            return [self._scalar(condition) & self._fine()]

        b = self.entry.b
        return b.if_else(goes_on, ask, lambda: [goes_on])[0]

    def _scalar(self, placed: ValueLayout) -> EmittedValue:
        b, entry, (layout, value) = self.entry.b, self.entry, placed
        pointer = b.load(entry.buffers, layout.buffer, PTR)
        return b.load(pointer, entry.param(layout.offset), Type.of_dtype(value.spec.dtype.dtype))

    def _move(self, row: StackRow, index: EmittedValue) -> None:
        """Point the row's buffer at row ``index`` of its stack."""
        b, entry = self.entry.b, self.entry
        stack = b.load(entry.buffers, row.stack.buffer, PTR)
        place = index * entry.param(row.nbytes) + entry.param(row.stack.offset * row.dtype.size)
        b.store(b.offset(stack, place, I8), entry.buffers, row.slot)

    def _grow(self, loop: RunLoop, iteration: EmittedValue, goes_on: EmittedValue) -> EmittedValue:
        """Make room for the rows of ``iteration``; returns whether there is room, without which the loop
        ends."""
        entry, b, unit = self.entry, self.entry.b, self.entry.unit
        assert self.room is not None
        room, each = b.load(self.room, loop.counter, I64), loop.growable_bytes
        most = entry.param(unit.memory_bytes // largest(each, 1))
        unit.messages.append((memory_message(each), loop.node))
        failure = b.constant(I64, len(unit.messages))
        with b.if_then(goes_on & (iteration >= room)):
            wanted = (room.eq(0)).select(b.constant(I64, INITIAL_CAPACITY), room * 2)
            with b.if_then(wanted > most):
                b.store(failure, entry.status, 0)
            with b.if_then(wanted <= most):
                realloc = b.symbols.declare("realloc", PTR, [PTR, I64])
                for row in loop.growable:
                    old = b.load(entry.buffers, row.stack.buffer, PTR)
                    new = b.call(realloc, [old, wanted * entry.param(largest(row.nbytes, 1))])
                    missing = new.cast(I64).eq(0)
                    with b.if_then(missing):
                        b.store(failure, entry.status, 0)
                    with b.if_then(~missing):
                        b.store(new, entry.buffers, row.stack.buffer)
                b.store(wanted, self.room, loop.counter)
        return goes_on & self._fine()
