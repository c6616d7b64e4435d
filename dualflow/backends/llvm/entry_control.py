"""Choices and loops of an entry: branches of machine code around calls, with nothing of Python between turns.

An entry with loops has a buffer table of its own: behind the program's buffers stand the addresses of the
rows that loops read and write, which move from turn to turn, and those of the stacks that grow. Grown stacks
are C's memory, which the entry frees when it ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np

from dualflow.backends.llvm import run_time_sizes
from dualflow.backends.llvm.check_values import CheckValues
from dualflow.backends.llvm.entry import Entry, Unit
from dualflow.backends.llvm.failures import note_failure
from dualflow.backends.llvm.runtime.interrupts import ask, clock
from dualflow.backends.llvm.steps import StepKind
from dualflow.backends.llvm.text import I8, I64, PTR, VOID, EmittedValue, Type
from dualflow.core.extent import typical
from dualflow.core.locks import imported
from dualflow.core.size_functions import largest
from dualflow.graph.control import memory_message
from dualflow.graph.control_spec import loop_of
from dualflow.graph.ir import Node
from dualflow.ops.forms import Choice
from dualflow.schedule.nest import Layout
from dualflow.schedule.operands import CallKind
from dualflow.schedule.order import fails
from dualflow.schedule.plan import PlannedBody, PlannedCall, StackRow, Turns

FIRST_ROWS = 64
"""For so many turns a stack that grows has room at first; then for twice as many each time."""
ASKED_TURNS = 16
"""After so many turns a loop looks whether a signal has come; a power of two."""
ASSUMED_TURNS = 1000
"""What is taken for the number of turns of a loop when a call's work is estimated, where nothing tells."""

_STEPS = {
    CallKind.KERNEL,
    CallKind.ASSEMBLY,
    CallKind.PRODUCT,
    CallKind.WINDOW_SUM,
    CallKind.SCATTER,
    CallKind.BOUNDS,
    CallKind.MOVE,
    CallKind.FOURIER,
}
"""What steps do where all sizes are known."""


def write_calls(unit: Unit, name: str, calls: Sequence[PlannedCall]) -> Entry:
    """Write the entry ``name``, which makes ``calls``."""
    entry = Entry(unit, name)
    control = _Control(entry)
    control.begin(calls)
    control.run(calls)
    control.end(calls)
    return entry


@dataclass(slots=True, eq=False)
class _Control:
    """Writes calls, and what stands around them."""

    entry: Entry
    turns: EmittedValue | None = None
    room: EmittedValue | None = None
    outermost: Node | None = None
    """The loop that is being written, of several the outermost."""

    def begin(self, calls: Sequence[PlannedCall]) -> None:
        """Make the table that rows move in, if there are loops."""
        plan, entry = self.entry.unit.plan, self.entry
        if not any(c.turns for call in calls for c in call.walk()):
            return
        b = entry.b
        self.turns, self.room = b.alloca(I64, plan.loops), b.alloca(I64, plan.loops)
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

    def end(self, calls: Sequence[PlannedCall]) -> None:
        """Free what has grown, and return."""
        if self.entry.function is None:
            return
        b = self.entry.b
        grown = [row for call in calls for c in call.walk() if c.turns for row in c.turns.grown]
        for row in grown:
            free = b.symbols.declare("free", VOID, [PTR])
            b.call(free, [b.load(self.entry.buffers, row.stack.buffer, PTR)])
        b.ret()

    def run(self, calls: Sequence[PlannedCall]) -> None:
        """Write calls in order; where one has stopped the program, those after it don't run.

        Kernels whose checks failed go on, so variables are written only behind a look at the status.
        """
        inputs, sure = self.entry.unit.plan.inputs, True
        with ExitStack() as behind_checks:
            for i, call in enumerate(calls):
                if not sure and any(layout.buffer < inputs for layout in call.outputs):
                    if self.entry.function is None and all(c.kind in _STEPS for c in calls[i:]):
                        self.entry.step(StepKind.STOP)
                    else:
                        behind_checks.enter_context(self.entry.b.if_then(self._fine()))
                    sure = True
                self._guarded(call) if self.entry.unit.sized else self._write(call)
                if any(c.kind is CallKind.CHECK for c in call.walk()):
                    behind_checks.enter_context(self.entry.b.if_then(self._fine()))
                    sure = True
                elif fails(call.node):
                    sure = False

    def _guarded(self, call: PlannedCall) -> None:
        """Write a call that may depend on sizes: where one could not be told, it doesn't run."""
        with self.entry.b.if_then(self._fine()):
            made = call.blocks_made if call.kind is not CallKind.CONTROL else {}  # which has its own calls
            for buffer, sizes in made.items():
                self.entry.make_room(buffer, sizes, call.node)
            if made:
                with self.entry.b.if_then(self._fine()):
                    self._write(call)
            else:
                self._write(call)

    def _write(self, call: PlannedCall) -> None:
        if call.turns is not None:
            self._loop(call, call.turns)
        elif isinstance(call.node.op.form, Choice):
            index = self._scalar(call.inputs[0], call.node.inputs[0].spec.dtype.dtype)
            self._choose(index.cast(I64), call.blocks)
        elif call.kind is CallKind.CHECK:
            self._check(call)
        elif call.kind is CallKind.MEASURE:
            run_time_sizes.measure(self.entry, call)
        elif call.kind is CallKind.SIZES:
            run_time_sizes.write_sizes(self.entry, call)
        elif call.kind is CallKind.POSITIONS:
            run_time_sizes.write_positions(self.entry, call)
        elif call.kind is CallKind.PRODUCT:
            imported("dualflow.backends.llvm.product_calls").write_product(self.entry, call)
        elif call.kind is CallKind.WINDOW_SUM:
            imported("dualflow.backends.llvm.window_sums").write_window_sum(self.entry, call)
        elif call.kind is CallKind.FOURIER:
            imported("dualflow.backends.llvm.fourier_calls").write_fourier(self.entry, call)
        else:
            self.entry.call(call)

    def _check(self, call: PlannedCall) -> None:
        """Where the check fails, note its number, and what its error is made of behind the parameters."""
        b, entry = self.entry.b, self.entry
        reads = list(zip(call.inputs[1:], call.node.inputs[1:], strict=True))
        kept = CheckValues(tuple([entry.unit.run([0] * -(-v.spec.nbytes // 8)) for _, v in reads]))
        entry.unit.code.messages.append((kept, call.node))
        number = b.constant(I64, len(entry.unit.code.messages))
        with b.if_then(~self._scalar(call.inputs[0], call.node.inputs[0].spec.dtype.dtype)):
            copy = b.symbols.declare("memcpy", PTR, [PTR, PTR, I64])
            for place, (layout, value) in zip(kept.places, reads, strict=True):
                start = entry.param(layout.offset * value.spec.dtype.size)
                source = b.offset(b.load(entry.buffers, layout.buffer, PTR), start, I8)
                target = b.offset(entry.params, b.constant(I64, place), I64)
                b.call(copy, [target, source, b.constant(I64, value.spec.nbytes)])
            note_failure(b, entry.status, number)

    def _choose(self, index: EmittedValue, branches: Sequence[PlannedBody]) -> None:
        """The branch of number ``index``, the last for any other number."""
        first, *others = branches
        if not others:
            self.run(first.calls)
            return

        def then() -> list[EmittedValue]:
            self.run(first.calls)
            return []

        def otherwise() -> list[EmittedValue]:
            self._choose(index - 1, others)
            return []

        self.entry.b.if_else(index.eq(0), then, otherwise)

    def _loop(self, call: PlannedCall, turns: Turns) -> None:
        b, unit = self.entry.b, self.entry.unit
        assert self.turns is not None
        outer, self.outermost = self.outermost, self.outermost or call.node
        unit.code.messages.append(("a signal has come", self.outermost))
        stopped = b.constant(I64, len(unit.code.messages))
        for size in turns.sizes:
            run_time_sizes.give(self.entry, size.extent, self.entry.param(size.start))
        for buffer, sizes in turns.stacks:
            self.entry.make_room(buffer, sizes, call.node)
        self.run(turns.start)
        before = unit.work_ns
        count, last = self._count(call, turns), clock(b)
        with b.while_loop([b.constant(I64, 0)]) as loop:
            (turn,) = loop.carried
            goes_on = self._fine() if count is None else self._fine() & (turn < count)
            if len(call.blocks) > 1:
                goes_on = self._tested(call, goes_on)
            if turns.grown:
                goes_on = self._grow(call, turns, turn, goes_on)
            loop.test(goes_on)
            for row in turns.rows:
                self._move(row, turn if not loop_of(call.node).reverse or count is None else count - 1 - turn)
            self.run(call.blocks[-1].calls)
            self._exchange(turns)
            with b.if_then((turn & (ASKED_TURNS - 1)).eq(ASKED_TURNS - 1)):
                ask(unit.module, b, last, self.entry.status, stopped)
            loop.next(turn + 1)
        self.outermost = outer
        b.store(loop.results[0], self.turns, turns.counter)
        length = loop_of(call.node).length
        unit.work_ns = before + (unit.work_ns - before) * (
            ASSUMED_TURNS if length is None else typical(length)
        )

    def _exchange(self, turns: Turns) -> None:
        """What is carried is where the turn has put it, in the size that it has got."""
        if not turns.sizes:
            return
        b, entry = self.entry.b, self.entry
        with b.if_then(self._fine()):
            for pair in turns.exchanged:
                rooms = [entry.unit.room(buffer) for buffer in pair]
                for table, places, type in ((entry.buffers, pair, PTR), (entry.params, rooms, I64)):
                    first, second = (b.load(table, place, type) for place in places)
                    b.store(second, table, places[0])
                    b.store(first, table, places[1])
            following = [entry.param(size.following) for size in turns.sizes]
            for size, number in zip(turns.sizes, following, strict=True):
                run_time_sizes.give(entry, size.extent, number)

    def _count(self, call: PlannedCall, turns: Turns) -> EmittedValue | None:
        """The largest number of turns; None for any."""
        if turns.counted is not None:
            assert self.turns is not None
            return self.entry.b.load(self.turns, turns.counted, I64)
        length = loop_of(call.node).length
        return None if length is None else self.entry.param(length)

    def _fine(self) -> EmittedValue:
        """Whether no check has failed."""
        return self.entry.b.load(self.entry.status, 0, I64).eq(0)

    def _tested(self, call: PlannedCall, goes_on: EmittedValue) -> EmittedValue:
        """Whether the loop goes on, by its condition, which is asked only where nothing else ends it."""
        test, condition = call.blocks[0], loop_of(call.node).condition
        assert condition is not None, "nothing but a condition is tested"
        dtype = condition.outputs[0].spec.dtype.dtype

        def ask() -> list[EmittedValue]:
            self.run(test.calls)
            return [self._scalar(test.results[0], dtype) & self._fine()]

        b = self.entry.b
        return b.if_else(goes_on, ask, lambda: [goes_on])[0]

    def _scalar(self, layout: Layout, dtype: np.dtype[Any]) -> EmittedValue:
        b, entry = self.entry.b, self.entry
        pointer = b.load(entry.buffers, layout.buffer, PTR)
        return b.load(pointer, entry.param(layout.offset), Type.of_dtype(dtype))

    def _move(self, row: StackRow, index: EmittedValue) -> None:
        """Point the row's buffer at row ``index`` of its stack."""
        b, entry = self.entry.b, self.entry
        stack = b.load(entry.buffers, row.stack.buffer, PTR)
        place = index * entry.param(row.nbytes) + entry.param(row.stack.offset * row.itemsize)
        b.store(b.offset(stack, place, I8), entry.buffers, row.slot)

    def _grow(
        self, call: PlannedCall, turns: Turns, turn: EmittedValue, goes_on: EmittedValue
    ) -> EmittedValue:
        """Make room for the rows of ``turn``; returns whether there is room, without which the loop ends."""
        entry, b, unit = self.entry, self.entry.b, self.entry.unit
        assert self.room is not None
        room = b.load(self.room, turns.counter, I64)
        each = sum(row.nbytes for row in turns.grown)
        most = entry.param(unit.memory_bytes // largest(each, 1))
        unit.code.messages.append((memory_message(each), call.node))
        failure = b.constant(I64, len(unit.code.messages))
        with b.if_then(goes_on & (turn >= room)):
            wanted = (room.eq(0)).select(b.constant(I64, FIRST_ROWS), room * 2)
            with b.if_then(wanted > most):
                b.store(failure, entry.status, 0)
            with b.if_then(wanted <= most):
                realloc = b.symbols.declare("realloc", PTR, [PTR, I64])
                for row in turns.grown:
                    old = b.load(entry.buffers, row.stack.buffer, PTR)
                    new = b.call(realloc, [old, wanted * entry.param(largest(row.nbytes, 1))])
                    missing = new.cast(I64).eq(0)
                    with b.if_then(missing):
                        b.store(failure, entry.status, 0)
                    with b.if_then(~missing):
                        b.store(new, entry.buffers, row.stack.buffer)
                b.store(wanted, self.room, turns.counter)
        return goes_on & self._fine()
