"""A kernel's statements become LLVM IR: one function that runs a range of its outermost loop.

    void kernel(ptr context, i64 lo, i64 hi, i64 slot)

``context`` holds three pointers: the buffer table, the kernel's own numbers, the status word. Whatever
depends on sizes, and which buffers there are, is read from those numbers, so the text depends on the
statements alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np

from dualflow.backends.llvm.addresses import Addresses
from dualflow.backends.llvm.failures import note_failure
from dualflow.backends.llvm.kernel_table import KERNEL_ARGS, is_large, read
from dualflow.backends.llvm.maths.namespace import Maths
from dualflow.backends.llvm.runtime.interrupts import ask, clock
from dualflow.backends.llvm.text import BOOL, I64, VOID, EmittedValue, LlvmModule, Type
from dualflow.backends.llvm.text.builder import CountedTurn
from dualflow.backends.llvm.text.squares import transposed
from dualflow.core.dtypes import DType
from dualflow.graph.scalar_functions import ReductionFunctions
from dualflow.scalar import ScalarFunction, evaluate
from dualflow.schedule import loop_program as lp
from dualflow.schedule.loop_program import (
    Bounds,
    Let,
    LoopKind,
    Number,
    Place,
    Register,
    Repeat,
    Run,
    Statement,
)

TURNED = 16
"""So many rows of a tile are transposed at a time."""
ASKED_TURNS = 1 << 16
"""After so many turns a loop over scalars looks whether a signal has come; a power of two."""
OUTSIDE = "an index is out of range for the axis it picks from; it is 0 to its size less 1."


class KernelCheck(NamedTuple):
    """What it means that a kernel has failed, and the statement that has."""

    message: str
    statement: Let | Bounds | Repeat


class _ElementMaths(Maths):
    """The maths namespace inside a kernel: numbers are constants, an element knows its place."""

    def __init__(self, emitter: KernelEmitter) -> None:
        super().__init__(emitter.module, inline=not emitter.large)
        self._emitter = emitter
        self.let: Let

    def constant(self, number: float, dtype: DType) -> EmittedValue:
        """A number of a dtype."""
        return self._emitter.b.constant(Type.of_dtype(dtype.dtype), number)

    def index(self, axis: int) -> EmittedValue:
        """The element's position along an axis of the output, an int64."""
        loop = self.let.positions[axis]
        return self._emitter.zero if loop is None else self._emitter.position(loop)

    def check(self, ok: EmittedValue, message: str) -> None:
        """Stop the graph with ``message`` unless ``ok`` holds in every lane that is live."""
        self._emitter.fail_unless(ok, message, self.let)


class KernelEmitter:
    """Emits one kernel as the function ``name``; lane loops run ``lanes`` turns at once.

    Attributes:
        large: whether rows have one masked loop instead of a full loop and a masked tail: half the code.
        checks: what the numbers mean that it leaves in the status, counted from that of the first check.
        mask: the live lanes, None where all are.
    """

    def __init__(self, module: LlvmModule, run: Run, name: str, lanes: int) -> None:
        self.module, self.run, self.kernel = module, run, run.kernel
        self.large = is_large(run)
        self.checks: dict[KernelCheck, int] = {}
        lane_loops = (
            s for s in lp.walk(run.kernel.body) if isinstance(s, lp.For) and s.kind is LoopKind.LANES
        )
        first = next(lane_loops, None)
        self.lane_loop = None if first is None else first.loop
        self.lanes = 1 if first is None else lanes
        function = module.function(name, VOID, KERNEL_ARGS)
        self.b = function.builder
        self.zero = self.b.constant(I64, 0)
        self.mask: EmittedValue | None = None
        self._outermost: Repeat | None = None
        self._registers: dict[int, EmittedValue] = {}
        self._index: dict[int, EmittedValue] = {}
        self._edges: dict[tuple[int, int], tuple[EmittedValue, EmittedValue]] = {}
        context, self._low, self._high, slot = function.args
        self._given = read(self.b, context, slot, run)
        self._addresses = Addresses(self._given.numbers, self._index, self._bound)
        self.m = _ElementMaths(self)

    def emit(self) -> None:
        """Write the function."""
        self._statements(self.kernel.body)
        self.b.ret()

    # Loops

    def _statements(self, statements: Sequence[Statement]) -> None:
        for statement in statements:
            _EMITTERS[type(statement)](self, statement)

    def _for(self, loop: lp.For) -> None:
        """One loop; by lanes, the last ones masked, where it is the lane loop."""
        start, stop, registers = self._bound(loop.begin), self._bound(loop.end), lp.carried(loop.body)
        if loop.kind is LoopKind.SERIAL:
            self._turn(loop, self.b.loop(start, stop, 1, self._values(registers)), registers)
        elif self.large:
            turns = self.b.loop(start, stop, self.lanes, self._values(registers))
            self._turn(loop, turns, registers, stop)
        else:
            full = stop & -self.lanes if start is self.zero else start + ((stop - start) & -self.lanes)
            self._addresses.begin_rows(loop)
            self._turn(loop, self.b.loop(start, full, self.lanes, self._values(registers)), registers)
            self._turn(loop, self.b.at_most_once(full, stop, self._values(registers)), registers, stop)
            self._addresses.end_rows()

    def _turn(
        self,
        loop: lp.For,
        turns: AbstractContextManager[CountedTurn],
        registers: Sequence[Register],
        stop: EmittedValue | None = None,
    ) -> None:
        """What a loop does in each of its turns; if there is a ``stop``, in the lanes below that."""
        outer = self.mask
        with turns as turn:
            self._index[loop.loop] = turn.index
            self._set(registers, turn.carried)
            if stop is not None:
                self.mask = self.b.first_lanes(stop - turn.index, self.lanes)
            self._statements(loop.body)
            turn.next(*self._values(registers))
        self._set(registers, turn.results)
        self.mask = outer

    def _blocks(self, blocks: lp.Blocks) -> None:
        stop, size = self._bound(blocks.end), self._bound(blocks.size)
        registers = lp.carried(blocks.body)
        with self.b.loop(self._bound(blocks.begin), stop, size, self._values(registers)) as turn:
            self._set(registers, turn.carried)
            self._stretch((blocks.loop, blocks.level), turn.index, size, stop)
            self._statements(blocks.body)
            turn.next(*self._values(registers))
        self._set(registers, turn.results)

    def _shares(self, shares: lp.Shares) -> None:
        size, extent = self._given.numbers[shares.size.place], self._given.numbers[shares.extent.place]
        with self.b.loop(self._low, self._high) as turn:
            self._index[lp.SHARE] = turn.index
            self._stretch((shares.loop, lp.SHARE), turn.index * size, size, extent)
            self._statements(shares.body)

    def _stretch(
        self, key: tuple[int, int], begin: EmittedValue, size: EmittedValue, stop: EmittedValue
    ) -> None:
        end = begin + size
        self._edges[key] = begin, (end < stop).select(end, stop)

    def _bound(self, bound: lp.Bound) -> EmittedValue:
        if isinstance(bound, Number):
            return self._given.numbers[bound.place]
        if isinstance(bound, lp.Edge):
            return self._edges[bound.loop, bound.level][bound.end]
        return {lp.End.ZERO: self.zero, lp.End.LOW: self._low, lp.End.HIGH: self._high}[bound]

    def position(self, loop: int) -> EmittedValue:
        """The index of a loop, for each lane of the lane loop."""
        index = self._index[loop]
        if loop != self.lane_loop:
            return index
        return index.splat(self.lanes) + self.b.iota(I64.vector(self.lanes))

    # Values

    def _values(self, registers: Sequence[Register]) -> list[EmittedValue]:
        return [self._registers[r.number] for r in registers]

    def _set(self, registers: Sequence[Register], values: Sequence[EmittedValue]) -> None:
        for register, value in zip(registers, values, strict=True):
            self._registers[register.number] = value

    def _operand(self, operand: lp.Operand) -> EmittedValue:
        if isinstance(operand, Register):
            return self._registers[operand.number]
        if isinstance(operand, lp.Scalar):
            return (
                self._constant(self.run.scalars[operand.place])
                if self.large
                else self._given.scalars[operand.place]
            )
        return self._constant(operand.value)

    def _constant(self, number: np.generic) -> EmittedValue:
        return self.b.constant(Type.of_dtype(number.dtype), number.item())

    def _let(self, let: Let) -> None:
        self.m.let = let
        self._set([let.register], self._computed(let.function, [self._operand(o) for o in let.operands]))

    def _computed(self, function: ScalarFunction, operands: Sequence[EmittedValue]) -> list[EmittedValue]:
        return evaluate(function, self.m, operands)

    # Folds

    def _fold_start(self, fold: lp.FoldStart) -> None:
        self._set(fold.accumulator, [x.splat(self.lanes) for x in self._computed(fold.reduction.init, ())])

    def _fold_step(self, fold: lp.FoldStep) -> None:
        before, value = self._values(fold.accumulator), self._operand(fold.value).splat(self.lanes)
        position = [self._place_in(fold.reduced)] if fold.reduction.placed else []
        updated = self._computed(fold.reduction.update, [*before, value, *position])
        after = [new.splat(self.lanes) for new in updated]
        if self.mask is not None and any(loop == self.lane_loop for loop, _ in fold.reduced):
            after = [self.mask.select(new, old) for new, old in zip(after, before, strict=True)]
        self._set(fold.accumulator, after)

    def _place_in(self, index: Sequence[tuple[int, Number]]) -> EmittedValue:
        """The element's place along the reduced loops, for each lane."""
        (first, _), *rest = index
        place = self.position(first)
        for loop, extent in rest:
            place = place * self._given.numbers[extent.place] + self.position(loop)
        return place.splat(self.lanes)

    def _fold_merge(self, fold: lp.FoldMerge) -> None:
        left, right = self._values(fold.accumulator), self._values(fold.other)
        self._set(fold.accumulator, self._combined(fold.reduction, left, right))

    def _combined(
        self, reduction: ReductionFunctions, left: Sequence[EmittedValue], right: Sequence[EmittedValue]
    ) -> list[EmittedValue]:
        return self._computed(reduction.combine, [*left, *right])

    def _fold_across(self, fold: lp.FoldAcross) -> None:
        lanes, values = self.lanes, self._values(fold.accumulator)
        while lanes > 1:
            lanes //= 2
            values = self._combined(
                fold.reduction, *([_lanes_from(v, at, lanes) for v in values] for at in (0, lanes))
            )
        self._set(fold.accumulator, values)

    def _fold_finish(self, fold: lp.FoldFinish) -> None:
        self._set([fold.register], self._computed(fold.reduction.finalize, self._values(fold.accumulator)))

    # Choices and loops over scalars

    def _choose(self, choose: lp.Choose) -> None:
        self._set(choose.registers, self._chosen(self._operand(choose.choice), choose.branches))

    def _chosen(self, index: EmittedValue, branches: Sequence[lp.Branch]) -> list[EmittedValue]:
        first, *others = branches
        if not others:
            return self._branch(first)
        return self.b.if_else(
            index.eq(0), lambda: self._branch(first), lambda: self._chosen(index - 1, others)
        )

    def _branch(self, branch: lp.Branch) -> list[EmittedValue]:
        self._statements(branch.body)
        return [self._operand(o) for o in branch.results]

    def _repeat(self, repeat: Repeat) -> None:
        b, last, count = self.b, clock(self.b), len(repeat.registers)
        outer, self._outermost = self._outermost, self._outermost or repeat
        stopped = self._number(KernelCheck("a signal has come", self._outermost))
        fine = b.constant(BOOL, True)
        with b.while_loop([*map(self._operand, repeat.starts), self.zero, fine]) as loop:
            *carried, turns, alive = loop.carried
            self._set(repeat.registers, carried)
            (goes_on,) = self._branch(repeat.condition)
            goes_on = goes_on & alive
            loop.test(
                goes_on
                if repeat.limit is None
                else goes_on & (turns < self._given.numbers[repeat.limit.place])
            )
            after = self._branch(repeat.body)

            def ask_python() -> list[EmittedValue]:
                ask(self.module, b, last, self._given.status, stopped)
                return [b.load(self._given.status, 0, I64).eq(0)]

            (alive,) = b.if_else((turns & (ASKED_TURNS - 1)).eq(ASKED_TURNS - 1), ask_python, lambda: [fine])
            loop.next(*after, turns + 1, alive)
        self._outermost = outer
        self._set(repeat.registers, loop.results[:count])

    # Memory

    def _load(self, load: lp.Load) -> None:
        type = Type.of_dtype(load.register.dtype.dtype)
        pointer, index, steps = self._place(load.place)
        mask = None if load.place.buffer in self._given.own else self.mask
        if not self._follows(load.place):
            value = self.b.load(pointer, index, type)
        elif steps is None:
            value = self.b.load(pointer, index, type.vector(self.lanes), mask)
        else:
            value = self.b.gather(pointer, steps + index, type.vector(self.lanes), mask)
        self._registers[load.register.number] = value

    def _store(self, store: lp.Store) -> None:
        value, (pointer, index, steps) = self._operand(store.value), self._place(store.place)
        if not self._follows(store.place):
            self.b.store(value, pointer, index)
            return
        value = value.splat(self.lanes)
        if steps is None:
            # A row of the kernel's own has room behind its end for the lanes that are off.
            self.b.store(value, pointer, index, None if store.place.buffer in self._given.own else self.mask)
        else:
            self.b.scatter(value, pointer, steps + index, self.mask)

    def _turned(self, turned: lp.Turned) -> None:
        """A tile by squares that are transposed in registers, its last rows once more where it is cut short.

        Where it ends within a square, more elements are written than the tile has; its memory has room.
        """
        (across, end), (down, last) = (
            [self._bound(edge) for edge in e] for e in (turned.across, turned.down)
        )
        loops = turned.across[0].loop, turned.down[0].loop
        type, side = self._memory_type(turned.place), self._given.numbers[turned.side.place]
        width, pointer = 128 // type.bits, self._given.pointers[turned.row]

        def square(column: EmittedValue, row: EmittedValue, mask: EmittedValue | None) -> None:
            pieces = []
            for i in range(TURNED):
                at = column + i
                self._index[loops[0]] = (at < end).select(at, end - 1)
                self._index[loops[1]] = row
                source, index, _ = self._place(turned.place)
                pieces.append(self.b.load(source, index, type.vector(width), mask))
            for i, piece in enumerate(transposed(pieces)):
                self.b.store(piece, pointer, (row - down + i) * side + (column - across))

        with self.b.loop(across, end, TURNED) as outer:
            full = down + ((last - down) & -width)
            with self.b.loop(down, full, width) as inner:
                square(outer.index, inner.index, None)
            with self.b.at_most_once(full, last) as inner:
                square(outer.index, inner.index, self.b.first_lanes(last - inner.index, width))

    def _memory_type(self, place: Place) -> Type:
        """What the elements at ``place`` are in memory."""
        return Type.of_dtype(self.kernel.buffers[place.buffer].dtype).memory

    def _row(self, row: lp.ScratchRow) -> None:
        """The row's address is among those that the function begins with."""

    def _bounds(self, bounds: Bounds) -> None:
        position = self._operand(bounds.position)
        position = position.cast(I64.vector(position.type.lanes))
        inside = (position >= 0) & (position < self._given.numbers[bounds.extent.place])
        self.fail_unless(inside, OUTSIDE, bounds)
        self._set((bounds.register, bounds.inside), (position, inside))

    def _guarded(self, guarded: lp.Guarded) -> None:
        register, place = guarded.load.register, guarded.load.place
        inside, type = self._registers[guarded.inside.number], Type.of_dtype(register.dtype.dtype)
        pointer, index, steps = self._place(place)
        follows, lanes = self._follows(place), self.lanes
        if index.type.lanes == 1 and not follows:
            (value,) = self.b.if_else(
                inside,
                lambda: [self.b.load(pointer, index, type.memory)],
                lambda: [self.b.constant(type.memory, 0)],
            )
            self._registers[register.number] = value.cast(type)
            return
        inside = inside.splat(lanes) if self.mask is None else inside.splat(lanes) & self.mask
        if follows and steps is None and index.type.lanes == 1:
            value = self.b.load(pointer, index, type.vector(lanes), inside)
        else:
            if follows and steps is None:
                steps = self.b.iota(I64.vector(lanes))
            where = index.splat(lanes) if steps is None else index.splat(lanes) + steps
            value = self.b.gather(pointer, where, type.vector(lanes), inside)
        self._registers[register.number] = value

    def _follows(self, place: Place) -> bool:
        """Whether each lane has an element of its own."""
        return any(loop == self.lane_loop for loop, _ in place.terms)

    def _place(self, place: Place) -> tuple[EmittedValue, EmittedValue, EmittedValue | None]:
        """The buffer, the index of the first lane's element, and the steps of lanes that stand apart."""
        index, steps = self._addresses.index_of(place), None
        for loop, stride in place.terms:
            if stride is not None and loop == self.lane_loop:
                steps = self.b.iota(I64.vector(self.lanes)) * self._given.numbers[stride.place]
        if place.picked is not None:
            position, distance = place.picked
            picked = self._registers[position.number] * self._given.numbers[distance.place]
            index = picked if index is None else index + picked
        return self._given.pointers[place.buffer], self.zero if index is None else index, steps

    # Failures

    def _number(self, check: KernelCheck) -> EmittedValue:
        """What the status is where that has happened."""
        return self._given.first_check + self.checks.setdefault(check, len(self.checks))

    def fail_unless(self, ok: EmittedValue, message: str, statement: Let | Bounds) -> None:
        """Note in the status word that a check failed, unless it holds in every live lane."""
        if ok.text == "true":
            return
        number, failed = self._number(KernelCheck(message, statement)), ~ok
        if self.mask is not None and ok.type.lanes == self.lanes:
            failed = failed & self.mask
        with self.b.if_then(failed.any()):
            note_failure(self.b, self._given.status, number)


def _lanes_from(value: EmittedValue, start: int, count: int) -> EmittedValue:
    return value.lane(start) if count == 1 else value.shuffle(range(start, start + count))


_EMITTERS: dict[type, Callable[[KernelEmitter, Any], None]] = {
    lp.For: KernelEmitter._for,
    lp.Blocks: KernelEmitter._blocks,
    lp.Shares: KernelEmitter._shares,
    lp.Let: KernelEmitter._let,
    lp.Choose: KernelEmitter._choose,
    lp.Repeat: KernelEmitter._repeat,
    lp.Load: KernelEmitter._load,
    lp.Store: KernelEmitter._store,
    lp.Bounds: KernelEmitter._bounds,
    lp.Guarded: KernelEmitter._guarded,
    lp.Turned: KernelEmitter._turned,
    lp.FoldStart: KernelEmitter._fold_start,
    lp.FoldStep: KernelEmitter._fold_step,
    lp.FoldMerge: KernelEmitter._fold_merge,
    lp.FoldAcross: KernelEmitter._fold_across,
    lp.FoldFinish: KernelEmitter._fold_finish,
    lp.ScratchRow: KernelEmitter._row,
}
