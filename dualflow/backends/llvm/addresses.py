"""Addresses of elements of buffers, which a kernel computes: the arithmetic that its loops need not repeat.

The address of an :class:`ElementAccess` is affine in the indices of the loops around it::

    pointer of the buffer + offset + sum of (index - begin of the block) * stride

Computed in full for each access, it costs a multiplication and an addition for each loop. LLVM would hoist
some of it, but not the same terms out of a vector loop and out of its masked tail. So :class:`Addresses` has
three ways, by the innermost loop around an access:

* a vector loop: all terms but its own are summed before it. This is the *row start*; in the loop, the address
  is the row start plus the index;
* a serial loop without loops inside: the address is carried from iteration to iteration, and each adds the
  stride to it;
* otherwise: in full.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from dualflow.backends.llvm.kernel_table import KernelArguments
from dualflow.backends.llvm.text import I64, Builder, EmittedValue
from dualflow.schedule import kernel_statements as ks
from dualflow.schedule.kernel_statements import ElementAccess
from dualflow.schedule.loop_ids import LoopId

MAX_INCREMENTED = 6
"""The maximum number of pointers that a serial loop increments; LLVM improves the addresses of others."""


class Addresses:
    """Emits the addresses of elements from the indices of the loops around them.

    Pointers that are computed before a loop are frozen, or LLVM would move their terms back into it.

    Args:
        builder: emits the addresses.
        arguments: the kernel's arguments.
        loops: the index of each enclosing loop; it changes as loops are emitted.
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
        self._row_starts: dict[ElementAccess, EmittedValue] = {}  # none where it is the buffer's pointer
        self._vector_loop: LoopId | None = None
        self._incremented: dict[ElementAccess, EmittedValue] = {}  # in the current iteration

    def address_of(self, access: ElementAccess) -> tuple[EmittedValue, EmittedValue | None]:
        """A pointer, and the index of an element from there, None for 0."""
        if access in self._incremented:
            return self._incremented[access], None
        start = self._row_starts.get(access)
        if start is None:
            return self._pointer(access), self._index(access, self._loops)
        in_row = {loop: self._loops[loop] for loop, _ in access.terms if loop == self._vector_loop}
        return start, self._sum(access._replace(block_starts=()), in_row, None)

    # Vector loops

    def emit_row_starts(self, loop: ks.For) -> None:
        """Emit the row starts of the accesses in a vector loop, before it.

        Accesses that depend on a loop inside it, whose index has no value yet, are computed in full.
        """
        inside = {s.loop for s in ks.walk_kernel(loop.body) if isinstance(s, ks.For | ks.Blocks | ks.Chunks)}
        outer_loops, self._vector_loop = self._loops.keys() - inside, loop.loop
        for access in _accesses(loop):
            outer = [term_loop for term_loop, _ in access.terms if term_loop != loop.loop]
            if access not in self._row_starts and outer_loops.issuperset(outer):
                start = self._address_at(access, loop.loop, None)
                if start is not self._pointer(access):
                    self._row_starts[access] = start.frozen()

    def discard_row_starts(self) -> None:
        """Discard the row starts after their loop and its tail."""
        self._row_starts = {}

    # Serial loops

    def emit_first_addresses(
        self, loop: ks.For, begin: EmittedValue | None
    ) -> dict[ElementAccess, EmittedValue]:
        """Emit the addresses of the first iteration of a serial loop, before it; ``begin`` None is 0.

        There are none if they are too many for registers.
        """
        along = [
            access
            for access in dict.fromkeys(_accesses(loop))
            if any(term_loop == loop.loop for term_loop, _ in access.terms)
        ]
        has_masks = any(isinstance(s, ks.MaskedLoad) for s in ks.walk_kernel(loop.body))
        if len(along) > MAX_INCREMENTED or has_masks:
            return {}
        return {access: self._address_at(access, loop.loop, begin) for access in along}

    def set_incremented(self, pointers: Mapping[ElementAccess, EmittedValue]) -> None:
        """Set the addresses of the current iteration; there are none after the loop."""
        self._incremented = dict(pointers)

    def emit_increments(self, loop: LoopId) -> list[EmittedValue]:
        """Emit the addresses of the next iteration, in the order of those of the first."""
        one = self._builder.constant(I64, 1)
        next_addresses = []
        for access, pointer in self._incremented.items():
            stride = dict(access.terms)[loop]
            step = one if stride is None else self._arguments.parameters[stride.number]
            next_addresses.append(self._moved(access, pointer, step).frozen())
        return next_addresses

    # Tiles and prefetches

    def row_addresses(
        self, access: ElementAccess, rows: LoopId, indices: Sequence[EmittedValue], along: LoopId
    ) -> list[EmittedValue]:
        """The addresses of elements at index 0 of the loop ``along`` and at some indices of ``rows``."""
        outer = {loop: index for loop, index in self._loops.items() if loop not in (rows, along)}
        start, pointer = self._index(access, outer), self._pointer(access)
        starts = [self._sum(access, {rows: index}, start) for index in indices]
        return [pointer if x is None else self._moved(access, pointer, x).frozen() for x in starts]

    def offset_along(self, access: ElementAccess, loop: LoopId, index: EmittedValue) -> EmittedValue:
        """The offset of the element at an index of a loop from that at index 0."""
        offset = self._sum(access, {loop: index}, None)
        return self._builder.constant(I64, 0) if offset is None else offset

    # Sums

    def _address_at(self, access: ElementAccess, inner: LoopId, index: EmittedValue | None) -> EmittedValue:
        """The address of the element at an index of the loop ``inner``, None for 0."""
        indices = {loop: self._loops[loop] for loop, _ in access.terms if loop != inner}
        if index is not None:
            indices[inner] = index
        elif any(edge.loop == inner for edge in access.block_starts):
            indices[inner] = self._builder.constant(I64, 0)  # minus the begin of the block
        start, pointer = self._index(access, indices), self._pointer(access)
        return pointer if start is None else self._moved(access, pointer, start)

    def _index(self, access: ElementAccess, indices: Mapping[LoopId, EmittedValue]) -> EmittedValue | None:
        """The index of an element in its buffer at ``indices``, and at 0 of all other loops; None for 0."""
        offset = access.offset
        return self._sum(
            access, indices, None if offset is None else self._arguments.parameters[offset.number]
        )

    def _sum(
        self, access: ElementAccess, indices: Mapping[LoopId, EmittedValue], start: EmittedValue | None
    ) -> EmittedValue | None:
        """``start`` plus the terms of the loops in ``indices``; None for 0."""
        begins = {edge.loop: self._bound(edge) for edge in access.block_starts}
        for loop, stride in access.terms:
            if loop not in indices:
                continue
            term = indices[loop] - begins[loop] if loop in begins else indices[loop]
            if stride is not None:
                term = term * self._arguments.parameters[stride.number]
            start = term if start is None else start + term
        return start

    def _pointer(self, access: ElementAccess) -> EmittedValue:
        """The address of the buffer."""
        return self._arguments.pointers[access.buffer]

    def _moved(self, access: ElementAccess, pointer: EmittedValue, count: EmittedValue) -> EmittedValue:
        """``pointer`` plus ``count`` elements of the buffer."""
        return self._builder.offset(pointer, count, self._arguments.elements[access.buffer])


def _accesses(loop: ks.For) -> Iterator[ElementAccess]:
    """The accesses of the loads and stores in a loop."""
    return (s.access for s in ks.walk_kernel(loop.body) if isinstance(s, ks.Load | ks.Store))
