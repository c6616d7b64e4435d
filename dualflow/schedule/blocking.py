"""Blocks of reduction loops: long floating-point reductions have an accumulator for each block of iterations.

The accumulators of blocks are combined in those of larger blocks, and these in the result. Each level takes
about the same number of steps, so the rounding error grows with a root of the number of elements, as in a
pairwise sum.
"""

from __future__ import annotations

import math

from dualflow.core.records import NamedTuple
from dualflow.graph.column_reductions import MIN_ROWS
from dualflow.ops.op_kinds import Reduce
from dualflow.schedule.loop_ids import KernelLoop, LoopId
from dualflow.schedule.nest import Nest, NestStep
from dualflow.sizes.symbolic_sizes import bounds, typical

MAX_UNBLOCKED_STEPS = 256
"""Reductions of up to this number of iterations have no blocks: their code is shorter, and then faster."""
MIN_BLOCK_STEPS = 64
"""The minimum block size, so that combining blocks costs little compared with a block."""
CHUNK_ELEMENTS = 1 << 14
"""The elements of one chunk of a full reduction.

It is fixed, so that results don't depend on the number of threads.
"""
MIN_CHUNKS = 8
"""The smallest number of chunks of a reduction over columns, which are divided among threads."""


def accumulates_rounding_error(step: NestStep) -> bool:
    """Whether ``step`` is a reduction whose rounding error grows with the number of elements."""
    kind = step.node.op.kind
    return (
        step.reduces
        and isinstance(kind, Reduce)
        and kind.rounds
        and step.node.inputs[0].spec.dtype.is_inexact
    )


def chunks(nest: Nest, lanes: int) -> tuple[int, int]:
    """The iterations of a chunk, and the number of chunks, of the first loop of a full reduction."""
    inner = typical(math.prod(loop.extent for loop in nest.loops[1:]))
    size = max(1, CHUNK_ELEMENTS // max(1, inner))
    size += -size % lanes
    return size, -(-nest.loops[0].extent // size)


class ColumnChunks(NamedTuple):
    """The chunks of rows in a reduction over columns.

    Attributes:
        iterations: the iterations of the first reduction loop in one chunk.
        number: the number of chunks.
        inner: the first of the reduction loops that accumulate in registers. Those before it are around the
            columns, and their results are combined with partial results in memory.
        width: the number of columns.
    """

    iterations: int
    number: int
    inner: int
    width: int


def column_chunks(nest: Nest) -> ColumnChunks | None:
    """The chunks of a nest of one stage that reduces over columns; None if chunks are too few or too long."""
    if (
        not nest.reduces_columns
        or nest.stages != 1
        or nest.vector is None
        or nest.vector >= nest.num_parallel
    ):
        return None
    first, extents = nest.num_parallel, [typical(loop.extent) for loop in nest.loops]
    columns = math.prod(loop.extent for loop in nest.loops[:first])
    last = len(nest.loops) - 1
    inner = next(
        i for i in range(first, last + 1) if i == last or math.prod(extents[i:]) <= MAX_UNBLOCKED_STEPS
    )
    inner_steps = max(1, math.prod(extents[first + 1 :]))
    rows = min(max(MIN_ROWS, CHUNK_ELEMENTS // max(1, typical(columns))), MAX_UNBLOCKED_STEPS)
    iterations = max(1, -(-rows // inner_steps))
    has_too_few_chunks = extents[first] < MIN_CHUNKS * iterations
    is_too_long = inner > first and iterations * math.prod(extents[first + 1 : inner]) > MAX_UNBLOCKED_STEPS
    if has_too_few_chunks or is_too_long:
        return None
    return ColumnChunks(iterations, -(-nest.loops[first].extent // iterations), inner, columns)


def combine_block_sizes(num_partials: int) -> tuple[int, ...]:
    """The sizes of the blocks in which partial results are combined."""
    return _levels(1, _typical_extent(num_partials), 1, 1)


def block_sizes(nest: Nest, lanes: int) -> dict[LoopId, tuple[int, ...]]:
    """The block sizes of loops, one for each level, the largest first; other loops have no blocks."""
    blocks: dict[LoopId, tuple[int, ...]] = {}
    if not any(map(accumulates_rounding_error, nest.steps)):
        return blocks
    steps = 1
    for i in reversed(range(1 if nest.is_full_reduction else nest.num_parallel, len(nest.loops))):
        extent, stride = _typical_extent(nest.loops[i].extent), lanes if i == nest.vector else 1
        iterations = max(1, -(-extent // stride))
        if iterations * steps > MAX_UNBLOCKED_STEPS:
            blocks[i] = _levels(2, iterations, steps, stride)
            iterations, steps = -(-iterations * stride // blocks[i][0]), 1
        steps *= iterations
    if nest.is_full_reduction:
        stride = lanes if nest.vector == 0 else 1
        size, count = chunks(nest, lanes)
        blocks[0] = _levels(1, -(-size // stride), steps, stride)
        blocks[KernelLoop.CHUNKS] = combine_block_sizes(count)
    return blocks


def _typical_extent(extent: int) -> int:
    """The loop extent; if it is symbolic its upper bound, but at most a large number."""
    if type(extent) is int:
        return extent
    _, most = bounds(extent)
    return CHUNK_ELEMENTS if most is None else min(most, CHUNK_ELEMENTS)


def _levels(num_levels: int, iterations: int, steps: int, stride: int) -> tuple[int, ...]:
    """The sizes of levels of blocks, for a loop of ``iterations`` of ``steps`` each, the largest first.

    The innermost blocks have about ``root`` steps, and a block of each other level has ``root`` blocks of the
    next one, where ``root = (iterations * steps) ** (1 / (num_levels + 1))``. So all levels do about the same
    number of additions in sequence.
    """
    root = max(MIN_BLOCK_STEPS, round((iterations * steps) ** (1 / (num_levels + 1))))
    innermost = -(-root // steps)
    return tuple(innermost * root**level * stride for level in reversed(range(num_levels)))
