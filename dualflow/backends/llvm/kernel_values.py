"""The values of a kernel that is being emitted: registers, loop indices, and accesses of buffers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from dualflow.backends.llvm.addresses import Addresses
from dualflow.backends.llvm.failures import note_failure
from dualflow.backends.llvm.kernel_table import KERNEL_ARGS, code_constants, is_long, load_arguments
from dualflow.backends.llvm.row_group import RowGroup, joined_scalars
from dualflow.backends.llvm.row_prefetch import (
    DISTANCE,
    GatheredRow,
    is_worth_prefetching,
    prefetch_row,
)
from dualflow.backends.llvm.text import I64, VOID, EmittedValue, LlvmModule, Type
from dualflow.backends.llvm.text.tile_transpose import concatenated, transposed
from dualflow.core.records import NamedTuple
from dualflow.schedule import kernel_statements as ks
from dualflow.schedule.kernel import KernelLaunch
from dualflow.schedule.kernel_statements import (
    BoundsCheck,
    Compute,
    ElementAccess,
    LaunchParameter,
    Register,
    Repeat,
)
from dualflow.schedule.loop_ids import BlockId, LoopId

TILE_ROWS = 16
"""The number of rows of a tile that are transposed at once."""


class KernelCheck(NamedTuple):
    """A check of a kernel: its message and its statement."""

    message: str
    statement: Compute | BoundsCheck | Repeat


class KernelValues:
    """The values of one kernel, the function ``name``, whose lane loops run ``lanes`` iterations at once.

    Attributes:
        is_long: whether the kernel is long. Then a vector loop is one masked loop, not a full loop and a
            masked tail, which halves the code.
        checks: the number of each check, from 0.
        mask: the active lanes; None for all.
        group: the rows that are computed together here; None for one row.
    """

    def __init__(self, module: LlvmModule, launch: KernelLaunch, name: str, lanes: int) -> None:
        self.module, self.launch, self.kernel = module, launch, launch.kernel
        self.is_long, self._constants = is_long(launch), code_constants(launch)
        self.checks: dict[KernelCheck, int] = {}
        self.lane_loop = launch.kernel.lane_loop
        self.lanes = 1 if self.lane_loop is None else lanes
        function = module.function(name, VOID, KERNEL_ARGS)
        self.builder = function.builder
        self.zero = self.builder.constant(I64, 0)
        self.mask: EmittedValue | None = None
        self.group: RowGroup | None = None
        self._row_mask: EmittedValue | None = None
        self._along_row = False
        self._registers: dict[int, EmittedValue] = {}
        self._index: dict[LoopId, EmittedValue] = {}
        self._edges: dict[BlockId, tuple[EmittedValue, EmittedValue]] = {}
        context, self._low, self._high, thread = function.args
        self._arguments = load_arguments(self.builder, context, thread, launch)
        self._addresses = Addresses(self.builder, self._arguments, self._index, self._bound)

    def _bound(self, bound: ks.Bound) -> EmittedValue:
        if isinstance(bound, LaunchParameter):
            return self._arguments.parameters[bound.number]
        if isinstance(bound, ks.Edge):
            return self._edges[bound.loop, bound.level][bound.end]
        return {ks.End.ZERO: self.zero, ks.End.LOW: self._low, ks.End.HIGH: self._high}[bound]

    # Registers

    def _values(self, registers: Sequence[Register]) -> list[EmittedValue]:
        return [self._registers[r.number] for r in registers]

    def _set(self, registers: Sequence[Register], values: Sequence[EmittedValue]) -> None:
        for register, value in zip(registers, values, strict=True):
            self._registers[register.number] = value

    def _operand(self, operand: ks.Operand) -> EmittedValue:
        if isinstance(operand, Register):
            return self._aligned(self._registers[operand.number])
        if isinstance(operand, ks.Scalar):
            if self._constants is not None:
                return self._constant(self._constants[operand.number])
            return self._arguments.scalars[operand.number]
        return self._constant(operand.value)

    def _aligned(self, value: EmittedValue) -> EmittedValue:
        """A value of each row, broadcast to the lanes of its row if values are of each element."""
        return value if self.group is None or not self._along_row else self.group.spread(value)

    def _constant(self, number: np.generic) -> EmittedValue:
        return self.builder.constant(Type.of_dtype(number.dtype), number.item())

    @property
    def _width(self) -> int:
        """The number of lanes of a value that has one element per lane."""
        return self.lanes if self.group is None else self.group.width

    def position(self, loop: LoopId) -> EmittedValue:
        """The iteration index of ``loop``: in a vectorised loop a vector, with the index of each lane."""
        group, index = self.group, self._index[loop]
        if group is not None and loop == group.loop:
            return self._aligned(group.index(self.builder))
        if loop != self.lane_loop:
            return index
        lanes = index.splat(self.lanes) + self.builder.iota(I64.vector(self.lanes))
        return lanes if group is None else group.tiled(lanes)

    # Memory

    def _load(self, load: ks.Load) -> None:
        type, access = Type.of_dtype(load.register.dtype.dtype), load.access
        group, along = self.group, self._varies_by_lane(access)
        if group is None:
            value = self._loaded(access, type, self.mask)
        elif any(loop == group.loop for loop, _ in access.terms):
            pieces = [self._loaded(access, type, self._row_mask) for _ in self._each_row(group)]
            value = concatenated(pieces) if along else joined_scalars(self.builder, pieces)
        else:
            value = self._loaded(access, type, self._row_mask)
            value = group.tiled(value) if along else value
        self._registers[load.register.number] = value

    def _loaded(self, access: ElementAccess, type: Type, mask: EmittedValue | None) -> EmittedValue:
        """Load the elements of one row, or the element that all lanes share."""
        pointer, index, steps = self._access(access)
        if not self._varies_by_lane(access):
            return self.builder.load(pointer, index, type)
        if steps is None:
            mask = None if access.buffer in self._arguments.scratch else mask
            return self.builder.load(pointer, index, type.vector(self.lanes), mask)
        return self.builder.gather(pointer, steps + index, type.vector(self.lanes), mask)

    def _each_row(self, group: RowGroup) -> Iterator[int]:
        """Iterate over the rows of a group, with the loop index set to that of the row."""
        for number, index in enumerate(group.indices):
            self._index[group.loop] = index
            yield number

    def _store(self, store: ks.Store) -> None:
        group, value, along = self.group, self._operand(store.value), self._varies_by_lane(store.access)
        if group is None:
            self._store_elements(store.access, value, self.mask)
            return
        value = value.splat(group.width if along else group.count)
        for number in self._each_row(group):
            self._store_elements(
                store.access, group.row(value, number) if along else value.lane(number), self._row_mask
            )

    def _store_elements(self, access: ElementAccess, value: EmittedValue, mask: EmittedValue | None) -> None:
        """Store the elements of one row, or a single element."""
        pointer, index, steps = self._access(access)
        if not self._varies_by_lane(access):
            self.builder.store(value, pointer, index)
        elif steps is None:
            # Scratch buffers are padded for lanes that are masked off.
            mask = None if access.buffer in self._arguments.scratch else mask
            self.builder.store(value.splat(self.lanes), pointer, index, mask)
        else:
            self.builder.scatter(value.splat(self.lanes), pointer, steps + index, mask)

    def _transposed_tile(self, tile: ks.TransposedTile) -> None:
        """Emit a transposed copy of a tile by square tiles in registers; the last rows may be repeated.

        A partial square stores more elements than the tile has; the scratch buffer is padded.
        """
        (across, end), (down, last) = ([self._bound(edge) for edge in e] for e in (tile.across, tile.down))
        loops = tile.across[0].loop, tile.down[0].loop
        type, side = self._memory_type(tile.access), self._arguments.parameters[tile.side.number]
        width, pointer = 128 // type.bits, self._arguments.pointers[tile.tile]

        def square(
            rows: list[EmittedValue], column: EmittedValue, row: EmittedValue, mask: EmittedValue | None
        ) -> None:
            index = self._addresses.offset_along(tile.access, loops[1], row)
            pieces = [self.builder.load(source, index, type.vector(width), mask) for source in rows]
            for i, piece in enumerate(transposed(pieces)):
                self.builder.store(piece, pointer, (row - down + i) * side + (column - across))

        with self.builder.loop(across, end, TILE_ROWS) as outer:
            column, final = outer.index, end - 1
            positions = [column + i for i in range(TILE_ROWS)]
            indices = [(at < end).select(at, final) for at in positions]
            rows = self._addresses.row_addresses(tile.access, loops[0], indices, loops[1])
            full = down + ((last - down) & -width)
            with self.builder.loop(down, full, width) as inner:
                square(rows, column, inner.index, None)
            with self.builder.at_most_once(full, last) as inner:
                square(rows, column, inner.index, self.builder.first_lanes(last - inner.index, width))

    def _memory_type(self, access: ElementAccess) -> Type:
        """The type of the elements of an access in memory."""
        return Type.of_dtype(self.kernel.buffers[access.buffer].dtype).memory

    def _scratch_buffer(self, scratch: ks.ScratchBuffer) -> None:
        """Emit nothing: the buffer's address is loaded at the beginning of the function."""

    def _bounds(self, bounds: BoundsCheck) -> None:
        position = self._operand(bounds.position)
        position = position.cast(I64.vector(position.type.lanes))
        inside = (position >= 0) & (position < self._arguments.parameters[bounds.extent.number])
        self.fail_unless(inside, ks.OUT_OF_RANGE, bounds)
        self._set((bounds.register, bounds.inside), (position, inside))

    def _masked_load(self, masked: ks.MaskedLoad) -> None:
        register, access = masked.load.register, masked.load.access
        inside, type = self._registers[masked.inside.number], Type.of_dtype(register.dtype.dtype)
        pointer, index, steps = self._access(access)
        varies, lanes = self._varies_by_lane(access), self.lanes
        if index.type.lanes == 1 and not varies:
            (value,) = self.builder.if_else(
                inside,
                lambda: [self.builder.load(pointer, index, type.memory)],
                lambda: [self.builder.constant(type.memory, 0)],
            )
            self._registers[register.number] = value.cast(type)
            return
        inside = inside.splat(lanes) if self.mask is None else inside.splat(lanes) & self.mask
        if varies and steps is None and index.type.lanes == 1:
            value = self.builder.load(pointer, index, type.vector(lanes), inside)
        else:
            if varies and steps is None:
                steps = self.builder.iota(I64.vector(lanes))
            indices = index.splat(lanes) if steps is None else index.splat(lanes) + steps
            value = self.builder.gather(pointer, indices, type.vector(lanes), inside)
        self._registers[register.number] = value

    def _prefetch_row(self, row: GatheredRow, loop: LoopId, stop: EmittedValue) -> None:
        """Emit prefetches of the row that ``loop``, which ends at ``stop``, gathers some iterations later."""
        builder, element = self.builder, self._memory_type(row.access)
        stride, rows, width = [self._bound(bound) for bound in (row.stride, row.check.extent, row.lanes.end)]
        row_bytes = width * element.nbytes
        with builder.if_then(is_worth_prefetching(rows * stride * element.nbytes, row_bytes)):
            now, later = self._index[loop], self._index[loop] + DISTANCE
            self._index[loop] = later = (later < stop).select(later, stop - 1)
            index = self._loaded(row.load.access, Type.of_dtype(row.load.register.dtype.dtype), None)
            (start,) = self._addresses.row_addresses(row.access, loop, [later], row.lanes.loop)
            self._index[loop] = now
            prefetch_row(builder, builder.offset(start, index.cast(I64) * stride, element), row_bytes)

    def _varies_by_lane(self, access: ElementAccess) -> bool:
        """Whether the access depends on the vector loop, so each lane has its own element."""
        return any(loop == self.lane_loop for loop, _ in access.terms)

    def _access(self, access: ElementAccess) -> tuple[EmittedValue, EmittedValue, EmittedValue | None]:
        """A pointer, the index of the first lane from there, and offsets of lanes if not contiguous."""
        (pointer, index), steps = self._addresses.address_of(access), None
        for loop, stride in access.terms:
            if stride is not None and loop == self.lane_loop:
                steps = self.builder.iota(I64.vector(self.lanes)) * self._arguments.parameters[stride.number]
        if access.gather_index is not None:
            position, distance = access.gather_index
            gathered = self._registers[position.number] * self._arguments.parameters[distance.number]
            index = gathered if index is None else index + gathered
        return pointer, self.zero if index is None else index, steps

    # Failures

    def _number(self, check: KernelCheck) -> EmittedValue:
        """The number that the status has if this check fails."""
        return self._arguments.first_check + self.checks.setdefault(check, len(self.checks))

    def fail_unless(self, ok: EmittedValue, message: str, statement: Compute | BoundsCheck) -> None:
        """Emit a check that sets the status unless ``ok`` is true in all active lanes."""
        if ok.text == "true":
            return
        number, failed = self._number(KernelCheck(message, statement)), ~ok
        if self.mask is not None and ok.type.lanes == self._width:
            failed = failed & self.mask
        with self.builder.if_then(failed.any()):
            note_failure(self.builder, self._arguments.status, number)
