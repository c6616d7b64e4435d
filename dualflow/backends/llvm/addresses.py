"""Where elements of buffers lie, as indices that a kernel computes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from dualflow.backends.llvm.text import EmittedValue
from dualflow.schedule import loop_program as lp
from dualflow.schedule.loop_ids import LoopId
from dualflow.schedule.loop_program import LaunchParameter, Place

MANY = 3
"""So many loops outside of a row are many."""


class Addresses:
    """Indices of elements by the loops that are open.

    Where a row that a lane loop walks is told by many loops, its first index is computed once, before the
    loop, for its iterations and its masked rest, and LLVM takes it as it is. Left to itself it counts a
    pointer for the iterations, and multiplies all indices out again for the rest, of which short rows
    consist. Indices of few loops it counts for both.

    Args:
        numbers: the kernel's numbers, by place.
        loops: the index of each loop that is open.
        bound: gives the value of a bound.
    """

    def __init__(
        self,
        numbers: Sequence[EmittedValue],
        loops: Mapping[LoopId, EmittedValue],
        bound: Callable[[lp.Bound], EmittedValue],
    ) -> None:
        self._numbers, self._loops, self._bound = numbers, loops, bound
        self._rows: dict[Place, EmittedValue] = {}
        self._walked: LoopId | None = None

    def begin_rows(self, loop: lp.For) -> None:
        """Compute where the rows begin that a loop walks."""
        inside = {s.loop for s in lp.walk(loop.body) if isinstance(s, lp.For | lp.Blocks | lp.Chunks)}
        known, self._walked = self._loops.keys() - inside, loop.loop
        for statement in lp.walk(loop.body):
            if not isinstance(statement, lp.Load | lp.Store) or statement.place.begins:
                continue
            place = statement.place
            outer = [term for term in place.terms if term[0] != loop.loop]
            if place not in self._rows and len(outer) >= MANY and known.issuperset([i for i, _ in outer]):
                start = self._sum(place, outer, self._offset(place))
                assert start is not None, "there are terms"
                self._rows[place] = start.frozen()

    def end_rows(self) -> None:
        """Forget them, behind the loop."""
        self._rows = {}

    def index_of(self, place: Place) -> EmittedValue | None:
        """The index of an element by the loops of its place; None for 0."""
        row = self._rows.get(place)
        if row is None:
            return self._sum(place, place.terms, self._offset(place))
        return self._sum(place, [term for term in place.terms if term[0] == self._walked], row)

    def _offset(self, place: Place) -> EmittedValue | None:
        return None if place.offset is None else self._numbers[place.offset.number]

    def _sum(
        self, place: Place, terms: Sequence[tuple[LoopId, LaunchParameter | None]], start: EmittedValue | None
    ) -> EmittedValue | None:
        begins = {edge.loop: self._bound(edge) for edge in place.begins}
        for loop, stride in terms:
            term = self._loops[loop] - begins[loop] if loop in begins else self._loops[loop]
            if stride is not None:
                term = term * self._numbers[stride.number]
            start = term if start is None else start + term
        return start
