"""A kernel, and a launch of it: the kernel with its arguments."""

from __future__ import annotations

from typing import TypeGuard

import numpy as np

from dualflow.core.dtypes import DType
from dualflow.core.records import NamedTuple
from dualflow.schedule.kernel_statements import (
    Chunks,
    End,
    For,
    KernelStatement,
    LoopKind,
    Once,
    ReduceHorizontal,
    RowGroups,
    walk_kernel,
)
from dualflow.schedule.loop_ids import LoopId
from dualflow.sizes.size_scalars import SizeScalar


class Kernel(NamedTuple):
    """Statements that run for the indices ``lo`` to ``hi`` of the outermost loop, or of its chunks.

    Attributes:
        buffers: the dtypes of the buffers that are arguments; scratch buffers come after them.
        scalars: the dtypes of the scalar arguments.
        parameters: the number of launch parameters.
        is_long: whether it has many ops, so that its code should be short rather than unrolled.
        body: the statements.
    """

    buffers: tuple[DType, ...]
    scalars: tuple[DType, ...]
    parameters: int
    is_long: bool
    body: tuple[KernelStatement, ...]

    @property
    def lane_loop(self) -> LoopId | None:
        """The loop whose iterations may run in the lanes of vectors; None if no loop may."""
        return next((s.loop for s in walk_kernel(self.body) if _runs_by_lanes(s)), None)

    @property
    def reduces_lanes(self) -> bool:
        """Whether the lanes are combined at the end, as the lane loop is a reduction loop."""
        return any(isinstance(statement, ReduceHorizontal) for statement in walk_kernel(self.body))

    @property
    def outermost(self) -> For | Chunks | RowGroups | None:
        """The loop over the kernel's range; None for a kernel of scalars, which runs once."""
        for statement in self.body:
            if isinstance(statement, Chunks) or (
                isinstance(statement, For | RowGroups) and statement.begin is End.LOW
            ):
                return statement
        return None


class Argument(NamedTuple):
    """A buffer of the program as an argument of a kernel: from element ``offset`` on, of ``dtype``."""

    buffer: int
    offset: int
    dtype: DType


class KernelLaunch(NamedTuple):
    """A launch of a kernel: the kernel with its arguments.

    Attributes:
        kernel: the kernel.
        buffers, scalars, parameters: its arguments.
        total: the trip count of its outermost loop, or the number of its chunks.
        work: the work of all iterations, in additions.
        partials: the dtypes of the buffers of partial results, which come after ``buffers``.
        join: the launch that combines the partial results afterwards; None if there are none. That of a scan
            is followed by another one.
        partial_size: the number of elements that each chunk has in a buffer of partial results.
    """

    kernel: Kernel
    buffers: tuple[Argument, ...]
    scalars: tuple[np.generic | SizeScalar, ...]
    parameters: tuple[int, ...]
    total: int
    work: float
    partials: tuple[DType, ...] = ()
    join: KernelLaunch | None = None
    partial_size: int = 1

    @property
    def constants(self) -> tuple[np.generic, ...] | None:
        """The scalars; None if sizes determine one of them."""
        constants = tuple([x for x in self.scalars if not isinstance(x, SizeScalar)])
        return constants if len(constants) == len(self.scalars) else None


def _runs_by_lanes(statement: KernelStatement) -> TypeGuard[For | Once]:
    return isinstance(statement, Once) or (isinstance(statement, For) and statement.kind is LoopKind.LANES)
