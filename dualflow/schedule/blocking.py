"""Long sums by blocks: how many iterations of a reduced loop a rounding fold takes one after another.

Elements go to the accumulators of a block, those of blocks to the accumulators of a larger one, and these to
the result. Each takes about as many steps, so the error grows with a root of the number of elements.
"""

from __future__ import annotations

import math

from dualflow.core.records import NamedTuple
from dualflow.core.symbolic_sizes import typical
from dualflow.graph.column_folds import LEAST_ROWS
from dualflow.ops.op_kinds import Reduce
from dualflow.schedule.loop_ids import KernelLoop, LoopId
from dualflow.schedule.nest import Nest, NestStep

FEW = 256
"""So many steps are taken one after another, in shorter code, which is faster for short rows."""
SHORTEST = 64
"""Steps of a block at least, beside which the work between blocks is small."""
CHUNK = 1 << 14
"""Elements of one chunk of a whole reduction.

Fixed, so that results don't depend on the number of threads.
"""
MIN_CHUNKS = 8
"""The fewest chunks of folds of columns, which threads share."""


def rounds(step: NestStep) -> bool:
    """Whether ``step`` is a fold that loses more digits, the longer it is."""
    kind = step.node.op.kind
    return (
        step.reduces
        and isinstance(kind, Reduce)
        and kind.rounds
        and step.node.inputs[0].spec.dtype.is_inexact
    )


def chunks(nest: Nest, lanes: int) -> tuple[int, int]:
    """The chunks of the first loop of a whole reduction: the iterations of each, and how many there
    are."""
    inner = typical(math.prod(loop.extent for loop in nest.loops[1:]))
    size = max(1, CHUNK // max(1, inner))
    size += -size % lanes
    return size, -(-nest.loops[0].extent // size)


class ColumnChunks(NamedTuple):
    """How folds of columns go through the rows.

    Attributes:
        iterations: of the first reduced loop, in one chunk.
        number: of the chunks.
        inner: the first of the reduced loops that fold into registers; those before it are around the
            columns, and join what was folded to partial results in memory.
        width: how many columns there are.
    """

    iterations: int
    number: int
    inner: int
    width: int


def column_chunks(nest: Nest) -> ColumnChunks | None:
    """The chunks of a nest of one stage that folds columns; None for too few, or too long ones."""
    if not nest.columns or nest.stages != 1 or nest.vector is None or nest.vector >= nest.num_parallel:
        return None
    extents = [typical(loop.extent) for loop in nest.loops]
    columns = math.prod(loop.extent for loop in nest.loops[: nest.num_parallel])
    last = len(nest.loops) - 1
    inner = next(i for i in range(nest.num_parallel, last + 1) if i == last or math.prod(extents[i:]) <= FEW)
    rest = max(1, math.prod(extents[nest.num_parallel + 1 :]))
    rows = min(max(LEAST_ROWS, CHUNK // max(1, typical(columns))), FEW)
    iterations = max(1, -(-rows // rest))
    outer = iterations * math.prod(extents[nest.num_parallel + 1 : inner])
    if extents[nest.num_parallel] < MIN_CHUNKS * iterations or (inner > nest.num_parallel and outer > FEW):
        return None
    return ColumnChunks(iterations, -(-nest.loops[nest.num_parallel].extent // iterations), inner, columns)


def join_blocks(count: int) -> tuple[int, ...]:
    """The blocks in which so many partial results are joined."""
    return _levels(1, _assumed(count), 1, 1)


def block_sizes(nest: Nest, lanes: int) -> dict[LoopId, tuple[int, ...]]:
    """How far the index of a loop goes in one block of each level, the largest first.

    Loops that aren't there are taken at a stretch.
    """
    found: dict[LoopId, tuple[int, ...]] = {}
    if not any(map(rounds, nest.steps)):
        return found
    steps = 1
    for i in reversed(range(1 if nest.is_full_reduction else nest.num_parallel, len(nest.loops))):
        extent, stride = _assumed(nest.loops[i].extent), lanes if i == nest.vector else 1
        iterations = max(1, -(-extent // stride))
        if iterations * steps > FEW:
            found[i] = _levels(2, iterations, steps, stride)
            iterations, steps = -(-iterations * stride // found[i][0]), 1
        steps *= iterations
    if nest.is_full_reduction:
        stride = lanes if nest.vector == 0 else 1
        size, count = chunks(nest, lanes)
        found[0] = _levels(1, -(-size // stride), steps, stride)
        found[KernelLoop.CHUNKS] = join_blocks(count)
    return found


def _assumed(extent: int) -> int:
    """How long a loop is taken to be: one whose length only the run tells may be long."""
    return extent if type(extent) is int else CHUNK


def _levels(count: int, iterations: int, steps: int, stride: int) -> tuple[int, ...]:
    """The blocks of a loop of so many iterations, each of so many steps, by ``count`` levels."""
    root = max(SHORTEST, round((iterations * steps) ** (1 / (count + 1))))
    first = -(-root // steps)
    return tuple(first * root**level * stride for level in reversed(range(count)))
