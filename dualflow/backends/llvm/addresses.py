"""Indices of elements of buffers, which a kernel computes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from dualflow.backends.llvm.text import EmittedValue
from dualflow.schedule import kernel_statements as ks
from dualflow.schedule.kernel_statements import ElementAccess, LaunchParameter
from dualflow.schedule.loop_ids import LoopId

HOISTED_TERMS = 3
"""The number of outer loops from which the first index of a row is hoisted out of the vector loop."""


class Addresses:
    """Indices of elements from the indices of enclosing loops.

    If a vector loop accesses a row whose first index depends on many outer loops, that index is computed once
    before the loop, for the vector iterations and the masked tail, and frozen. Otherwise LLVM would increment
    a pointer in the vector loop, and recompute the products for the tail, which is all of a short row. With
    few outer loops LLVM handles both.

    Args:
        parameters: the kernel's launch parameters.
        loops: the index of each enclosing loop.
        bound: returns the value of a bound.
    """

    def __init__(
        self,
        parameters: Sequence[EmittedValue],
        loops: Mapping[LoopId, EmittedValue],
        bound: Callable[[ks.Bound], EmittedValue],
    ) -> None:
        self._parameters, self._loops, self._bound = parameters, loops, bound
        self._row_starts: dict[ElementAccess, EmittedValue] = {}
        self._vector_loop: LoopId | None = None

    def emit_row_starts(self, loop: ks.For) -> None:
        """Emit the indices at which the rows start that a vector loop accesses."""
        inside = {s.loop for s in ks.walk_kernel(loop.body) if isinstance(s, ks.For | ks.Blocks | ks.Chunks)}
        outer_loops, self._vector_loop = self._loops.keys() - inside, loop.loop
        for statement in ks.walk_kernel(loop.body):
            if not isinstance(statement, ks.Load | ks.Store) or statement.access.block_starts:
                continue
            access = statement.access
            outer = [term for term in access.terms if term[0] != loop.loop]
            if (
                access not in self._row_starts
                and len(outer) >= HOISTED_TERMS
                and outer_loops.issuperset([i for i, _ in outer])
            ):
                start = self._sum(access, outer, self._offset(access))
                assert start is not None, "there are terms"
                self._row_starts[access] = start.frozen()

    def discard_row_starts(self) -> None:
        """Discard the hoisted starts of rows; called at the end of their loop."""
        self._row_starts = {}

    def index_of(self, access: ElementAccess) -> EmittedValue | None:
        """The index of an element; None for 0."""
        row = self._row_starts.get(access)
        if row is None:
            return self._sum(access, access.terms, self._offset(access))
        return self._sum(access, [term for term in access.terms if term[0] == self._vector_loop], row)

    def _offset(self, access: ElementAccess) -> EmittedValue | None:
        return None if access.offset is None else self._parameters[access.offset.number]

    def _sum(
        self,
        access: ElementAccess,
        terms: Sequence[tuple[LoopId, LaunchParameter | None]],
        start: EmittedValue | None,
    ) -> EmittedValue | None:
        begins = {edge.loop: self._bound(edge) for edge in access.block_starts}
        for loop, stride in terms:
            term = self._loops[loop] - begins[loop] if loop in begins else self._loops[loop]
            if stride is not None:
                term = term * self._parameters[stride.number]
            start = term if start is None else start + term
        return start
