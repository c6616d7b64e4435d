"""Memory that a nest needs beside its buffers: partial results of blocks, and rows kept between stages."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from dualflow.ops import maths_reference
from dualflow.ops.forms import Fold
from dualflow.schedule.nest import Nest

ALIGNMENT = 64
BLOCK = 1 << 14
"""Elements of one block of a whole reduction.

Fixed, so that results don't depend on the number of threads.
"""


@dataclass(frozen=True, slots=True)
class Workspace:
    """Where a nest's own memory lies in the arena.

    Attributes:
        buffer: the arena's place in the buffer table.
        start: the first byte.
        block: turns of the first loop in one block of a whole reduction, ``blocks`` how many there are.
        parts: accumulators of a whole reduction.
        rows: bytes from the start of a slot to each kept row.
        stride: bytes of one slot.
    """

    buffer: int = 0
    start: int = 0
    block: int = 0
    blocks: int = 0
    parts: int = 0
    rows: tuple[int, ...] = ()
    stride: int = 0

    def params(self) -> Iterator[tuple[object, int]]:
        """The run-time parameters by which a kernel finds its memory."""
        if self.parts:
            yield "block", self.block
            yield "blocks", self.blocks
            for i in range(self.parts):
                yield ("partial", i), self.start + i * self.blocks * 8
        for i, row in enumerate(self.rows):
            yield ("cache", i), self.start + row
        if self.rows:
            yield "cache stride", self.stride

    def placed(self, buffer: int, start: int) -> Workspace:
        """The same memory at its place in the arena."""
        return replace(self, buffer=buffer, start=start)

    def nbytes(self, slots: int) -> int:
        """Bytes in all, for so many threads."""
        return self.parts * self.blocks * 8 + (self.stride * slots if self.rows else 0)


def workspace(nest: Nest, lanes: int) -> Workspace:
    """The memory ``nest`` needs, before it has a place in the arena."""
    if nest.whole:
        parts = _accumulators(nest)
        inner = math.prod(loop.extent for loop in nest.loops[1:])
        block = max(1, BLOCK // max(1, inner))
        block += -block % lanes
        return Workspace(block=block, blocks=-(-nest.loops[0].extent // block), parts=parts)
    inner = math.prod(loop.extent for loop in nest.loops if loop.reduced) + lanes
    sizes = [_aligned(inner * v.spec.dtype.size) for v in nest.cached]
    rows = tuple(sum(sizes[:i]) for i in range(len(sizes)))
    return Workspace(rows=rows, stride=sum(sizes))


def _accumulators(nest: Nest) -> int:
    """How many values the folds of a whole reduction carry."""
    folds = ((s.node.op.form, s.node.inputs[0].spec.dtype) for s in nest.steps if s.folds)
    return sum(len(f.start(maths_reference, dtype)) for f, dtype in folds if isinstance(f, Fold))


def _aligned(nbytes: int) -> int:
    return -(-nbytes // ALIGNMENT) * ALIGNMENT
