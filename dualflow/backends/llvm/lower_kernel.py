"""Lowers a kernel's statements to LLVM IR: one function that runs a range of its outermost loop::

    void kernel(ptr context, i64 lo, i64 hi, i64 thread)

``context`` has three pointers: the buffer table, the kernel's slice of the parameter table, the status word.
``thread`` selects the scratch memory.
Sizes and indices of buffers are parameters, so the text depends on the statements alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from dualflow.backends.llvm.kernel_values import KernelCheck, KernelValues
from dualflow.backends.llvm.maths.vector_maths import Maths
from dualflow.backends.llvm.row_group import RowGroup, halves_of_each
from dualflow.backends.llvm.row_prefetch import gathered_rows
from dualflow.backends.llvm.runtime.interrupts import poll_signals, start_timer
from dualflow.backends.llvm.text import BOOL, I64, EmittedValue, LlvmModule
from dualflow.backends.llvm.text.builder import CountedIteration
from dualflow.backends.llvm.text.tile_transpose import concatenated
from dualflow.graph.scalar_functions import ReductionFunctions
from dualflow.scalar import ScalarFunction, evaluate
from dualflow.schedule import kernel_statements as ks
from dualflow.schedule.invariants import invariants_first
from dualflow.schedule.kernel import Kernel, KernelLaunch
from dualflow.schedule.kernel_statements import (
    Compute,
    KernelStatement,
    LaunchParameter,
    LoopKind,
    Register,
    Repeat,
)
from dualflow.schedule.lanes import REGISTER_BITS
from dualflow.schedule.loop_ids import BlockId, BlockLevel, KernelLoop

POLL_INTERVAL = 1 << 16
"""Iterations of a loop over scalars between two checks for a signal; a power of two."""


class _ElementMaths(Maths):
    """Emits scalar ops inside a kernel, and those that need its loops: an element's index, and checks."""

    def __init__(self, emitter: KernelEmitter) -> None:
        super().__init__(emitter.module, not emitter.is_long, emitter.builder)
        self._emitter = emitter
        self.statement: Compute

    def index(self, axis: int) -> EmittedValue:
        """The element's index along an axis of the output, an int64."""
        loop = self.statement.positions[axis]
        return self._emitter.zero if loop is None else self._emitter.position(loop)

    def check(self, ok: EmittedValue, message: str) -> None:
        """Emit a check that fails with ``message`` unless ``ok`` is true in all active lanes."""
        self._emitter.fail_unless(ok, message, self.statement)


class KernelEmitter(KernelValues):
    """Emits one kernel as the function ``name``; vector loops have ``lanes`` lanes.

    This class emits loops, reductions and conditionals; registers, loop indices and accesses to elements are
    in :class:`KernelValues`.
    """

    def __init__(self, module: LlvmModule, launch: KernelLaunch, name: str, lanes: int) -> None:
        super().__init__(module, launch, name, lanes)
        self._outermost: Repeat | None = None
        self.m = _ElementMaths(self)

    def emit(self) -> None:
        """Emit the function."""
        self._statements(_loops_of(self.kernel))
        self.builder.ret()

    # Loops

    def _statements(self, statements: Sequence[KernelStatement]) -> None:
        for statement in statements:
            _EMITTERS[type(statement)](self, statement)

    def _for(self, loop: ks.For) -> None:
        """Emit a loop; a vector loop has a masked tail, or is masked completely. Requires begin <= end."""
        start, stop = self._bound(loop.begin), self._bound(loop.end)
        registers = ks.carried(loop.body)
        if loop.kind is LoopKind.SERIAL:
            self._serial_loop(loop, start, stop, registers)
            return
        self._addresses.emit_row_starts(loop)
        if self.is_long:
            iterations = self.builder.loop(start, stop, self.lanes, self._values(registers), frozen=True)
            self._iteration(loop, iterations, registers, stop)
        else:
            full = stop & -self.lanes if start is self.zero else start + ((stop - start) & -self.lanes)
            iterations = self.builder.loop(start, full, self.lanes, self._values(registers), frozen=True)
            self._iteration(loop, iterations, registers)
            self._tail(loop, full, stop, registers)
        self._addresses.discard_row_starts()

    def _serial_loop(
        self, loop: ks.For, start: EmittedValue, stop: EmittedValue, registers: Sequence[Register]
    ) -> None:
        """Emit a loop over single indices; an innermost one increments addresses."""
        is_outer = any(isinstance(s, ks.For | ks.Blocks | ks.Once) for s in ks.walk_kernel(loop.body))
        first: dict[ks.ElementAccess, EmittedValue] = {}
        if not is_outer and self.group is None:
            first = self._addresses.emit_first_addresses(loop, None if start is self.zero else start)
        carried, count = self._values(registers), len(registers)
        # without increments, LLVM replaces products of the index and strides by some
        is_frozen = is_outer or bool(first)
        with self.builder.loop(start, stop, 1, [*carried, *first.values()], frozen=is_frozen) as iteration:
            self._index[loop.loop] = iteration.index
            self._set(registers, iteration.carried[:count])
            self._addresses.set_incremented(dict(zip(first, iteration.carried[count:], strict=True)))
            for row in gathered_rows(loop.body):
                self._prefetch_row(row, loop.loop, stop)
            self._statements(loop.body)
            iteration.next(*self._values(registers), *self._addresses.emit_increments(loop.loop))
        self._addresses.set_incremented({})
        self._set(registers, iteration.results[:count])

    def _tail(
        self, loop: ks.For, begin: EmittedValue, stop: EmittedValue, registers: Sequence[Register]
    ) -> None:
        """Emit the masked tail of a vector loop, in several vectors if registers are narrower than its lanes.

        Vectors beyond ``stop`` are skipped.
        """
        lanes, carried = self.lanes, self._values(registers)
        by_vector = []
        with self._narrowed(self._tail_lanes):
            for first in range(0, lanes, self.lanes):
                if self.lanes < lanes:
                    self._set(registers, [x.shuffle(range(first, first + self.lanes)) for x in carried])
                start = begin + first if first else begin
                once = self.builder.at_most_once(start, stop, self._values(registers))
                self._iteration(loop, once, registers, stop)
                by_vector.append(self._values(registers))
        self._set(registers, [concatenated(pieces) for pieces in zip(*by_vector, strict=True)])

    @contextmanager
    def _narrowed(self, lanes: int) -> Iterator[None]:
        """A context in which vectors have ``lanes`` lanes."""
        outer = self.lanes
        self.lanes = lanes
        try:
            yield
        finally:
            self.lanes = outer

    @property
    def _tail_lanes(self) -> int:
        """The lanes of a vector of the tail: fewer than the loop's if those need a wider register."""
        bits = self.module.vector_bits
        if not self.kernel.reduces_lanes or bits >= REGISTER_BITS:
            return self.lanes
        return min(self.lanes, max(self.lanes * bits // REGISTER_BITS, bits // 32))

    def _iteration(
        self,
        loop: ks.For,
        iterations: AbstractContextManager[CountedIteration],
        registers: Sequence[Register],
        stop: EmittedValue | None = None,
    ) -> None:
        """Emit the body of a loop; masked by the lanes below ``stop``, if there is one."""
        outer = self.mask
        with iterations as iteration:
            self._index[loop.loop] = iteration.index
            self._set(registers, iteration.carried)
            if stop is not None:
                self.mask = self.builder.first_lanes(stop - iteration.index, self.lanes)
            self._statements(loop.body)
            iteration.next(*self._values(registers))
        self._set(registers, iteration.results)
        self.mask = outer

    def _blocks(self, blocks: ks.Blocks) -> None:
        stop, size = self._bound(blocks.end), self._bound(blocks.size)
        registers = ks.carried(blocks.body)
        start, carried = self._bound(blocks.begin), self._values(registers)
        with self.builder.loop(start, stop, size, carried, frozen=True) as iteration:
            self._set(registers, iteration.carried)
            self._set_edges((blocks.loop, blocks.level), iteration.index, size, stop)
            self._statements(blocks.body)
            iteration.next(*self._values(registers))
        self._set(registers, iteration.results)

    def _chunks(self, chunks: ks.Chunks) -> None:
        size = self._arguments.parameters[chunks.size.number]
        extent = self._arguments.parameters[chunks.extent.number]
        with self.builder.loop(self._low, self._high, frozen=True) as iteration:
            self._index[KernelLoop.CHUNKS] = iteration.index
            self._set_edges((chunks.loop, BlockLevel.CHUNK), iteration.index * size, size, extent)
            self._statements(chunks.body)

    def _row_groups(self, rows: ks.RowGroups) -> None:
        """Emit a loop over groups of rows; the last group may repeat the last row."""
        start, stop = self._bound(rows.begin), self._bound(rows.end)
        with self.builder.loop(start, stop, rows.width, frozen=True) as iteration:
            following = [iteration.index + i for i in range(1, rows.width)]
            indices = (iteration.index, *[(i < stop).select(i, stop - 1) for i in following])
            self.group = RowGroup(rows.loop, indices, self.lanes)
            self._index[rows.loop] = iteration.index
            self._statements(rows.body)
        self.group = None

    def _once(self, once: ks.Once) -> None:
        """Emit the body of a row that fits in one vector."""
        self._index[once.loop], self._along_row = self.zero, True
        if not once.full:
            self._row_mask = self.builder.first_lanes(
                self._arguments.parameters[once.extent.number], self.lanes
            )
            self.mask = self._row_mask if self.group is None else self.group.tiled(self._row_mask)
        self._statements(once.body)
        self.mask, self._row_mask, self._along_row = None, None, False

    def _set_edges(self, key: BlockId, begin: EmittedValue, size: EmittedValue, stop: EmittedValue) -> None:
        end = begin + size
        self._edges[key] = begin, (end < stop).select(end, stop)

    # Values

    def _compute(self, compute: Compute) -> None:
        self.m.statement = compute
        self._set(
            [compute.register], self._results(compute.function, [self._operand(o) for o in compute.operands])
        )

    def _results(self, function: ScalarFunction, operands: Sequence[EmittedValue]) -> list[EmittedValue]:
        return evaluate(function, self.m, operands)

    # Reductions

    def _reduce_init(self, statement: ks.ReduceInit) -> None:
        self._set(
            statement.accumulator, [x.splat(self._width) for x in self._results(statement.reduction.init, ())]
        )

    def _reduce_update(self, statement: ks.ReduceUpdate) -> None:
        before, value = self._values(statement.accumulator), self._operand(statement.value).splat(self._width)
        position = [self._linear_index(statement.reduced)] if statement.reduction.needs_position else []
        updated = self._results(statement.reduction.update, [*before, value, *position])
        after = [new.splat(self._width) for new in updated]
        if self.mask is not None and any(loop == self.lane_loop for loop, _ in statement.reduced):
            after = [self.mask.select(new, old) for new, old in zip(after, before, strict=True)]
        self._set(statement.accumulator, after)

    def _linear_index(self, index: Sequence[tuple[int, LaunchParameter]]) -> EmittedValue:
        """The element's linear index over the reduced loops, for each lane."""
        (first, _), *others = index
        linear = self.position(first)
        for loop, extent in others:
            linear = linear * self._arguments.parameters[extent.number] + self.position(loop)
        return linear.splat(self._width)

    def _reduce_combine(self, statement: ks.ReduceCombine) -> None:
        left, right = self._values(statement.accumulator), self._values(statement.other)
        self._set(statement.accumulator, self._combined(statement.reduction, left, right))

    def _combined(
        self, reduction: ReductionFunctions, left: Sequence[EmittedValue], right: Sequence[EmittedValue]
    ) -> list[EmittedValue]:
        return self._results(reduction.combine, [*left, *right])

    def _reduce_horizontal(self, statement: ks.ReduceHorizontal) -> None:
        lanes, values = self.lanes, self._values(statement.accumulator)
        rows = 1 if self.group is None else self.group.count
        while lanes > 1:
            lanes //= 2
            halves = [halves_of_each(v, rows, lanes) for v in values]
            values = self._combined(statement.reduction, [v for v, _ in halves], [v for _, v in halves])
        self._set(statement.accumulator, values)

    def _reduce_finalize(self, statement: ks.ReduceFinalize) -> None:
        self._set(
            [statement.register],
            self._results(statement.reduction.finalize, self._values(statement.accumulator)),
        )

    # Conditionals and loops over scalars

    def _choose(self, choose: ks.Choose) -> None:
        self._set(choose.registers, self._chosen(self._operand(choose.selector), choose.branches))

    def _chosen(self, index: EmittedValue, branches: Sequence[ks.Branch]) -> list[EmittedValue]:
        first, *others = branches
        if not others:
            return self._branch(first)
        return self.builder.if_else(
            index.eq(0), lambda: self._branch(first), lambda: self._chosen(index - 1, others)
        )

    def _branch(self, branch: ks.Branch) -> list[EmittedValue]:
        self._statements(branch.body)
        return [self._operand(o) for o in branch.results]

    def _repeat(self, repeat: Repeat) -> None:
        builder = self.builder
        last_poll = start_timer(builder)
        outer = self._outermost
        self._outermost = outer or repeat
        signal_check = self._number(KernelCheck("a signal was received", self._outermost))
        true = builder.constant(BOOL, True)
        with builder.while_loop([*map(self._operand, repeat.starts), self.zero, true]) as loop:
            *carried, iterations, no_failure = loop.carried
            self._set(repeat.registers, carried)
            (condition,) = self._branch(repeat.condition)
            condition = condition & no_failure
            if repeat.limit is not None:
                condition = condition & (iterations < self._arguments.parameters[repeat.limit.number])
            loop.test(condition)
            next_values = self._branch(repeat.body)

            def poll() -> list[EmittedValue]:
                poll_signals(self.module, builder, last_poll, self._arguments.status, signal_check)
                return [builder.load(self._arguments.status, 0, I64).eq(0)]

            (no_failure,) = builder.if_else(
                (iterations & (POLL_INTERVAL - 1)).eq(POLL_INTERVAL - 1), poll, lambda: [true]
            )
            loop.next(*next_values, iterations + 1, no_failure)
        self._outermost = outer
        self._set(repeat.registers, loop.results[: len(repeat.registers)])


def _loops_of(kernel: Kernel) -> tuple[KernelStatement, ...]:
    """The statements of a kernel; its bounds checks are outside the loops that they don't depend on."""
    if any(isinstance(s, ks.BoundsCheck) for s in ks.walk_kernel(kernel.body)):
        return invariants_first(kernel).body
    return kernel.body


_EMITTERS: dict[type, Callable[[KernelEmitter, Any], None]] = {
    ks.For: KernelEmitter._for,
    ks.Blocks: KernelEmitter._blocks,
    ks.Chunks: KernelEmitter._chunks,
    ks.RowGroups: KernelEmitter._row_groups,
    ks.Once: KernelEmitter._once,
    ks.Compute: KernelEmitter._compute,
    ks.Choose: KernelEmitter._choose,
    ks.Repeat: KernelEmitter._repeat,
    ks.Load: KernelEmitter._load,
    ks.Store: KernelEmitter._store,
    ks.BoundsCheck: KernelEmitter._bounds,
    ks.MaskedLoad: KernelEmitter._masked_load,
    ks.TransposedTile: KernelEmitter._transposed_tile,
    ks.ReduceInit: KernelEmitter._reduce_init,
    ks.ReduceUpdate: KernelEmitter._reduce_update,
    ks.ReduceCombine: KernelEmitter._reduce_combine,
    ks.ReduceHorizontal: KernelEmitter._reduce_horizontal,
    ks.ReduceFinalize: KernelEmitter._reduce_finalize,
    ks.ScratchBuffer: KernelEmitter._scratch_buffer,
}
