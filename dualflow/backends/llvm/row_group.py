"""Neighbouring rows of a kernel that run side by side: each has some lanes of a vector, one after another."""

from __future__ import annotations

from collections.abc import Sequence

from dualflow.backends.llvm.text import EmittedValue
from dualflow.backends.llvm.text.builder import Builder
from dualflow.core.records import dataclass


@dataclass(frozen=True, slots=True)
class RowGroup:
    """The rows of one iteration of a loop over rows.

    A value of each row is a vector with a lane for each; a value of each element is a vector in which the
    ``lanes`` of the first row come first.

    Attributes:
        loop: over the rows.
        indices: of the rows; the last one may come several times.
        lanes: of one row.
    """

    loop: int
    indices: tuple[EmittedValue, ...]
    lanes: int

    @property
    def count(self) -> int:
        return len(self.indices)

    @property
    def width(self) -> int:
        """The lanes of all rows."""
        return self.count * self.lanes

    def index(self, b: Builder) -> EmittedValue:
        """The index of each row."""
        return joined_scalars(b, self.indices)

    def spread(self, value: EmittedValue) -> EmittedValue:
        """A value of each row, in all lanes of that row."""
        if value.type.lanes != self.count:
            return value
        return value.shuffle([lane // self.lanes for lane in range(self.width)])

    def tiled(self, value: EmittedValue) -> EmittedValue:
        """The lanes of one row, for each of the rows."""
        return value.shuffle([*range(self.lanes)] * self.count)

    def row(self, value: EmittedValue, number: int) -> EmittedValue:
        """The lanes of one row."""
        return value.shuffle(range(number * self.lanes, (number + 1) * self.lanes))


def concatenated(vectors: Sequence[EmittedValue]) -> EmittedValue:
    """The lanes of vectors, whose number is a power of two, as one vector."""
    pieces = list(vectors)
    while len(pieces) > 1:
        lanes = 2 * pieces[0].type.lanes
        pieces = [
            left.shuffle(range(lanes), right) for left, right in zip(pieces[::2], pieces[1::2], strict=True)
        ]
    return pieces[0]


def joined_scalars(b: Builder, scalars: Sequence[EmittedValue]) -> EmittedValue:
    """Scalars of one type as the lanes of a vector."""
    vector = EmittedValue(b, scalars[0].type.vector(len(scalars)), "poison")
    for lane, scalar in enumerate(scalars):
        vector = vector.insert(lane, scalar)
    return vector


def halves_of_each(value: EmittedValue, rows: int, lanes: int) -> tuple[EmittedValue, EmittedValue]:
    """The first and the second ``lanes`` of the lanes of each row."""
    first, second = (
        [2 * lanes * row + begin + lane for row in range(rows) for lane in range(lanes)]
        for begin in (0, lanes)
    )
    if len(first) == 1:
        return value.lane(first[0]), value.lane(second[0])
    return value.shuffle(first), value.shuffle(second)
