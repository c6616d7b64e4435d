"""Groups of adjacent short rows that a kernel computes in one vector, each in some of its lanes."""

from __future__ import annotations

from collections.abc import Sequence

from dualflow.backends.llvm.text import EmittedValue
from dualflow.backends.llvm.text.builder import Builder
from dualflow.core.records import dataclass


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Adjacent short rows that share one vector, each in ``lanes`` of its lanes: one iteration of a loop.

    A value of each row is a vector with one lane for each row; a value of each element is a vector in which
    the ``lanes`` of the first row come first.

    Attributes:
        loop: the loop over the rows.
        indices: the indices of the rows; the last one may be repeated.
        lanes: the number of lanes of a row.
    """

    loop: int
    indices: tuple[EmittedValue, ...]
    lanes: int

    @property
    def count(self) -> int:
        return len(self.indices)

    @property
    def width(self) -> int:
        """The number of lanes of all rows."""
        return self.count * self.lanes

    def index(self, b: Builder) -> EmittedValue:
        """The index of each row."""
        return joined_scalars(b, self.indices)

    def spread(self, value: EmittedValue) -> EmittedValue:
        """A value of each row, broadcast to the lanes of the row."""
        if value.type.lanes != self.count:
            return value
        return value.shuffle([lane // self.lanes for lane in range(self.width)])

    def tiled(self, value: EmittedValue) -> EmittedValue:
        """The lanes of one row, repeated for each row."""
        return value.shuffle([*range(self.lanes)] * self.count)

    def row(self, value: EmittedValue, number: int) -> EmittedValue:
        """The lanes of one row."""
        return value.shuffle(range(number * self.lanes, (number + 1) * self.lanes))


def joined_scalars(b: Builder, scalars: Sequence[EmittedValue]) -> EmittedValue:
    """A vector of scalars of one type."""
    vector = EmittedValue(b, scalars[0].type.vector(len(scalars)), "poison")
    for lane, scalar in enumerate(scalars):
        vector = vector.insert(lane, scalar)
    return vector


def halves_of_each(value: EmittedValue, rows: int, lanes: int) -> tuple[EmittedValue, EmittedValue]:
    """The first and the second half of the lanes of each row."""
    first, second = (
        [2 * lanes * row + begin + lane for row in range(rows) for lane in range(lanes)]
        for begin in (0, lanes)
    )
    if len(first) == 1:
        return value.lane(first[0]), value.lane(second[0])
    return value.shuffle(first), value.shuffle(second)
