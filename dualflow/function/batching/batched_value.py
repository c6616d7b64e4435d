""":class:`BatchedValue`: a tensor that is shared by the batch elements, or has a batch axis."""

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
    """An operation has no batched form."""


class BatchedValue(NamedTuple):
    """A tensor, and whether it has a batch axis.

    Attributes:
        tensor: the values of all batch elements, stacked, or the value that they share.
        is_batched: whether it has a batch axis.
        is_loop_stack: whether it is a stacked output of a batched loop. Then the first axis is that of the
            iterations, and the batch axis is the second; else the batch axis is the first.
        active: for a stacked output, a bool tensor of shape (iterations, batch elements): which elements each
            iteration is for. None if each is for all.
    """

    tensor: Any
    is_batched: bool
    is_loop_stack: bool = False
    active: Any = None

    @property
    def rank(self) -> int:
        """The number of axes without the batch axis."""
        return len(self.tensor.shape) - self.is_batched

    @property
    def element_spec(self) -> TensorSpec:
        """The dtype and shape of one batch element."""
        sizes = list(self.tensor.shape)
        if self.is_batched:
            del sizes[int(self.is_loop_stack)]
        return TensorSpec.of(Shape(tuple(sizes)), self.tensor.dtype)

    @property
    def batch_axis_first(self) -> BatchedValue:
        """The value with the batch axis first."""
        if not self.is_loop_stack:
            return self
        tensor = moved_axis(self.tensor, 1, 0) if self.is_batched else self.tensor
        return BatchedValue(tensor, self.is_batched, active=self.active)

    @property
    def scan_input(self) -> Any:
        """The tensor as an input that a loop scans: the scanned axis first, then the batch axis."""
        return moved_axis(self.tensor, 1, 0) if self.is_batched and not self.is_loop_stack else self.tensor

    def with_batch_axis(self, count: int) -> Any:
        """The tensor with a batch axis of ``count`` elements, to which a shared value is broadcast."""
        return self.tensor if self.is_batched else broadcast_to(self.tensor, (count, *self.tensor.shape))

    def with_rank(self, rank: int) -> BatchedValue:
        """A batched value with axes of size 1 after the batch axis, up to ``rank``; others unchanged."""
        missing = rank - self.rank
        if not self.is_batched or missing <= 0:
            return self
        return BatchedValue(expand_dims(self.tensor, tuple(range(1, 1 + missing))), is_batched=True)


def with_common_rank(values: Sequence[BatchedValue], least: int = 0) -> list[BatchedValue]:
    """The values with axes of size 1 added, so that all have the same rank, not counting the batch axis."""
    rank = max([least, *[x.rank for x in values]])
    return [x.with_rank(rank) for x in values]


def moved_axis(tensor: Any, origin: int, target: int) -> Any:
    """``tensor`` with the axis ``origin`` moved to ``target``, the others in their order."""
    if origin == target:
        return tensor
    axes = list(range(len(tensor.shape)))
    axes.insert(target, axes.pop(origin))
    return transpose(tensor, axes)
