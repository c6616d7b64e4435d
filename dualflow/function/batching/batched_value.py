"""A value of a function that runs over rows: the same for all of them, or one for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.records import NamedTuple
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.ops.arrangement import expand_dims, transpose
from dualflow.ops.broadcasting import broadcast_to


class UnbatchableError(InvalidArgumentError):
    """What a function does can't be done for all rows at once."""


class BatchedValue(NamedTuple):
    """A tensor.

    Attributes:
        tensor: all rows stacked along the first axis, where there is one for each; else what all rows share.
        by_row: whether there is one for each row.
        of_iterations: whether it is what the iterations of a loop gave, stacked: then rows lie along the
        second axis.
        active: of what iterations gave, which rows each iteration is for, a row an iteration; None where each
        is for all.
    """

    tensor: Any
    by_row: bool
    of_iterations: bool = False
    active: Any = None

    @property
    def rank(self) -> int:
        """The number of axes of one row."""
        return len(self.tensor.shape) - self.by_row

    @property
    def row_spec(self) -> TensorSpec:
        """What one row is."""
        sizes = list(self.tensor.shape)
        if self.by_row:
            del sizes[int(self.of_iterations)]
        return TensorSpec.of(Shape(tuple(sizes)), self.tensor.dtype)

    @property
    def rows_first(self) -> BatchedValue:
        """The same with the rows along the first axis."""
        if not self.of_iterations:
            return self
        tensor = moved_axis(self.tensor, 1, 0) if self.by_row else self.tensor
        return BatchedValue(tensor, self.by_row, active=self.active)

    @property
    def iteration_by_iteration(self) -> Any:
        """A stack with its own first axis first: each row of that is one for each row, or shared."""
        return moved_axis(self.tensor, 1, 0) if self.by_row and not self.of_iterations else self.tensor

    def stacked(self, count: int) -> Any:
        """One for each of ``count`` rows, stacked."""
        return self.tensor if self.by_row else broadcast_to(self.tensor, (count, *self.tensor.shape))

    def with_rank(self, rank: int) -> BatchedValue:
        """Rows of at least ``rank`` axes, with axes of size 1 first; what all rows share stays as it is."""
        missing = rank - self.rank
        if not self.by_row or missing <= 0:
            return self
        return BatchedValue(expand_dims(self.tensor, tuple(range(1, 1 + missing))), True)


def with_common_rank(values: Sequence[BatchedValue], least: int = 0) -> list[BatchedValue]:
    """The values with as many axes, behind that of the rows, as the one that has most."""
    rank = max([least, *[x.rank for x in values]])
    return [x.with_rank(rank) for x in values]


def moved_axis(tensor: Any, origin: int, target: int) -> Any:
    """``tensor`` with one of its axes in another place, the others in their order."""
    if origin == target:
        return tensor
    axes = list(range(len(tensor.shape)))
    axes.insert(target, axes.pop(origin))
    return transpose(tensor, axes)
