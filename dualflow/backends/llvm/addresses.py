"""Addresses of elements of buffers, which a kernel computes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from dualflow.backends.llvm.kernel_table import KernelArguments
from dualflow.backends.llvm.text import I64, Builder, EmittedValue
from dualflow.schedule import kernel_statements as ks
from dualflow.schedule.kernel_statements import ElementAccess
from dualflow.schedule.loop_ids import LoopId

MAX_INCREMENTED = 6
"""The maximum number of pointers that a serial loop increments; LLVM improves the addresses of others."""


class Addresses:
    """Addresses of elements from the indices of enclosing loops.

    The address at which a row starts is computed before the vector loop that accesses it, once for the vector
    iterations and the masked tail. It is frozen, or LLVM would move its terms back into the loop. So the
    addresses in the loop are such a pointer plus the index of the loop, which LLVM need not improve.

    A serial loop increments a pointer for each access, if there are few.

    Args:
        builder: emits the addresses.
        arguments: the kernel's arguments.
        loops: the index of each enclosing loop.
        bound: returns the value of a bound.
    """

    def __init__(
        self,
        builder: Builder,
        arguments: KernelArguments,
        loops: Mapping[LoopId, EmittedValue],
        bound: Callable[[ks.Bound], EmittedValue],
    ) -> None:
        self._builder, self._arguments, self._loops, self._bound = builder, arguments, loops, bound
        self._row_starts: dict[ElementAccess, EmittedValue] = {}
        self._vector_loop: LoopId | None = None
        self._incremented: dict[ElementAccess, EmittedValue] = {}

    def emit_row_starts(self, loop: ks.For) -> None:
        """Emit the addresses at which the rows start that a vector loop accesses."""
        inside = {s.loop for s in ks.walk_kernel(loop.body) if isinstance(s, ks.For | ks.Blocks | ks.Chunks)}
        outer_loops, self._vector_loop = self._loops.keys() - inside, loop.loop
        for statement in ks.walk_kernel(loop.body):
            if not isinstance(statement, ks.Load | ks.Store):
                continue
            access = statement.access
            outer = [term for term in access.terms if term[0] != loop.loop]
            if access not in self._row_starts and outer_loops.issuperset([i for i, _ in outer]):
                self._emit_row_start(access, loop.loop)

    def _emit_row_start(self, access: ElementAccess, vector_loop: LoopId) -> None:
        """Emit the address of the element at index 0 of the vector loop, unless that is the buffer's."""
        pointer = self._first_address(access, vector_loop, None)
        if pointer is not self._pointer(access):
            self._row_starts[access] = pointer.frozen()

    def emit_first_addresses(
        self, loop: ks.For, begin: EmittedValue | None
    ) -> dict[ElementAccess, EmittedValue]:
        """Emit the addresses that an innermost serial loop accesses at index ``begin``; None is 0.

        There are none if they are too many for registers.
        """
        body = list(ks.walk_kernel(loop.body))
        accesses = [s.access for s in body if isinstance(s, ks.Load | ks.Store)]
        along = [x for x in dict.fromkeys(accesses) if any(i == loop.loop for i, _ in x.terms)]
        if len(along) > MAX_INCREMENTED or any(isinstance(s, ks.MaskedLoad) for s in body):
            return {}
        return {access: self._first_address(access, loop.loop, begin) for access in along}

    def _first_address(
        self, access: ElementAccess, inner: LoopId, begin: EmittedValue | None
    ) -> EmittedValue:
        """The address of the element at index ``begin`` of the loop ``inner``; None is 0."""
        indices = {loop: self._loops[loop] for loop, _ in access.terms if loop != inner}
        if begin is not None:
            indices[inner] = begin
        elif any(edge.loop == inner for edge in access.block_starts):
            indices[inner] = self._builder.constant(I64, 0)
        start, pointer = self._sum(access, indices, self._offset(access)), self._pointer(access)
        return pointer if start is None else self._offset_by(access, pointer, start)

    def set_incremented(self, pointers: Mapping[ElementAccess, EmittedValue]) -> None:
        """Set the addresses of accesses in the current iteration of a serial loop."""
        self._incremented = dict(pointers)

    def emit_increments(self, loop: LoopId) -> list[EmittedValue]:
        """Emit the addresses of these accesses in the next iteration."""
        one = self._builder.constant(I64, 1)
        next_addresses = []
        for access, pointer in self._incremented.items():
            stride = dict(access.terms)[loop]
            step = one if stride is None else self._arguments.parameters[stride.number]
            next_addresses.append(self._offset_by(access, pointer, step).frozen())
        return next_addresses

    def _pointer(self, access: ElementAccess) -> EmittedValue:
        """The address of the buffer."""
        return self._arguments.pointers[access.buffer]

    def _offset_by(self, access: ElementAccess, pointer: EmittedValue, index: EmittedValue) -> EmittedValue:
        return self._builder.offset(pointer, index, self._arguments.elements[access.buffer])

    def discard_row_starts(self) -> None:
        """Discard the starts of rows; called at the end of their loop."""
        self._row_starts = {}

    def address_of(self, access: ElementAccess) -> tuple[EmittedValue, EmittedValue | None]:
        """A pointer, and the index of an element from there; None for 0."""
        incremented = self._incremented.get(access)
        if incremented is not None:
            return incremented, None
        pointer = self._row_starts.get(access)
        if pointer is None:
            return self._pointer(access), self._sum(access, self._loops, self._offset(access))
        along = {loop: self._loops[loop] for loop, _ in access.terms if loop == self._vector_loop}
        return pointer, self._sum(access._replace(block_starts=()), along, None)

    def row_addresses(
        self, access: ElementAccess, rows: LoopId, indices: Sequence[EmittedValue], along: LoopId
    ) -> list[EmittedValue]:
        """The addresses of elements at index 0 of the loop ``along`` and at some indices of ``rows``."""
        outer = {loop: index for loop, index in self._loops.items() if loop not in (rows, along)}
        start, pointer = self._sum(access, outer, self._offset(access)), self._pointer(access)
        starts = [self._sum(access, {rows: index}, start) for index in indices]
        return [pointer if x is None else self._offset_by(access, pointer, x).frozen() for x in starts]

    def offset_along(self, access: ElementAccess, loop: LoopId, index: EmittedValue) -> EmittedValue:
        """The offset of the element at an index of a loop from that at index 0."""
        offset = self._sum(access, {loop: index}, None)
        return self._builder.constant(I64, 0) if offset is None else offset

    def _offset(self, access: ElementAccess) -> EmittedValue | None:
        return None if access.offset is None else self._arguments.parameters[access.offset.number]

    def _sum(
        self, access: ElementAccess, indices: Mapping[LoopId, EmittedValue], start: EmittedValue | None
    ) -> EmittedValue | None:
        """``start`` plus the terms of the loops in ``indices``."""
        begins = {edge.loop: self._bound(edge) for edge in access.block_starts}
        for loop, stride in access.terms:
            if loop not in indices:
                continue
            term = indices[loop] - begins[loop] if loop in begins else indices[loop]
            if stride is not None:
                term = term * self._arguments.parameters[stride.number]
            start = term if start is None else start + term
        return start
