"""Tiled kernels of nests that read a tensor across its rows, as a transpose does.

In such a tensor, the contiguous axis belongs to another loop than the vector loop. Each tile is first copied
to scratch memory with these two axes exchanged, so that it is contiguous along the vector loop:

    For each chunk of the loop that is contiguous in the tensor
        For the other loops
            For each chunk of the vector loop
                TransposedTile tile
                For the contiguous loop
                    For the vector loop
                        Load tile, ...
"""

from __future__ import annotations

from collections.abc import Iterator

from dualflow.core.records import NamedTuple
from dualflow.ops.op_kinds import Gather
from dualflow.schedule.kernel import KernelLaunch
from dualflow.schedule.kernel_statements import (
    Blocks,
    Chunks,
    Edge,
    ElementAccess,
    End,
    For,
    KernelStatement,
    LaunchParameter,
    Load,
    LoopKind,
    ScratchBuffer,
    TransposedTile,
    edges_of,
)
from dualflow.schedule.kernel_writer import KernelWriter
from dualflow.schedule.loop_ids import BlockLevel
from dualflow.schedule.nest import Access, Nest
from dualflow.sizes.symbolic_sizes import typical


class Tiling(NamedTuple):
    """The loads that are transposed tile by tile, and the loop along which they are contiguous."""

    loop: int
    accesses: tuple[Access, ...]


def tiling(nest: Nest) -> Tiling | None:
    """The tiling of ``nest``; None if it reads along its vector loop, or steps are at several depths."""
    vector, last = nest.vector, len(nest.loops) - 1
    if vector is None or vector != last or nest.num_parallel != len(nest.loops) or not last:
        return None
    if any(s.depth not in (0, len(nest.loops)) or isinstance(s.node.op.kind, Gather) for s in nest.steps):
        return None
    if any(s.depth != len(nest.loops) for s in nest.stores):
        return None
    by_loop: dict[int, dict[Access, None]] = {}
    for access in (o.access for step in nest.steps for o in step.operands if o.access is not None):
        if access.strides[vector] in (0, 1) or access.dtype.kind == "c":
            continue
        for loop in range(last):
            if access.strides[loop] == 1:
                by_loop.setdefault(loop, {})[access] = None
    tiled = [loop for loop in by_loop if typical(nest.loops[loop].extent) >= nest.costs.min_tiled]
    if not tiled or typical(nest.loops[vector].extent) < nest.costs.min_tiled:
        return None
    loop = max(tiled, key=lambda loop: len(by_loop[loop]))
    return Tiling(loop, tuple(by_loop[loop]))


class TileWriter(KernelWriter):
    """Writes the kernel of a tiled nest."""

    def write_tiles(self, by: Tiling) -> KernelLaunch:
        """The kernel, with its arguments."""
        nest, vector = self.nest, len(self.nest.loops) - 1
        first = self._buffers_used()
        side = self.arguments.parameter("side", nest.costs.tile_side)
        tiles = {access: first + i for i, access in enumerate(by.accesses)}
        memory = [ScratchBuffer(tile, access.dtype, (side, side)) for access, tile in tiles.items()]
        before = tuple(self._steps_at(0))
        level = BlockLevel.CHUNK if by.loop == 0 else 0
        down = edges_of(by.loop, level)
        across = edges_of(vector, 0)
        inner = self._tile(tiles, down, across, side)
        chunks: tuple[KernelStatement, ...] = (
            Blocks(vector, 0, End.ZERO, self._extent(vector), side, inner),
        )
        if by.loop:
            chunks = (Blocks(by.loop, 0, End.ZERO, self._extent(by.loop), side, chunks),)
        for loop in reversed([i for i in range(vector) if i != by.loop]):
            begin, end = (End.LOW, End.HIGH) if loop == 0 else (End.ZERO, self._extent(loop))
            chunks = (For(loop, begin, end, LoopKind.SERIAL, chunks),)
        total = nest.loops[0].extent
        if by.loop == 0:
            chunks = (Chunks(0, side, self._extent(0), chunks),)
            total = -(-total // nest.costs.tile_side)
        if any(loop.extent == 0 for loop in nest.loops):
            total = 0
        return self._launch_of((*memory, *before, *chunks), total)

    def _tile(
        self,
        tiles: dict[Access, int],
        down: tuple[Edge, Edge],
        across: tuple[Edge, Edge],
        side: LaunchParameter,
    ) -> tuple[KernelStatement, ...]:
        """The copies of one tile, and the nest's loops over it."""
        nest, (first, _), (along, _) = self.nest, down, across
        copies = [
            TransposedTile(tile, self._element(access), down, across, side) for access, tile in tiles.items()
        ]

        def iteration() -> Iterator[KernelStatement]:
            for access, tile in tiles.items():
                register = self._register(access.dtype)
                self.env[access] = register
                terms = (first.loop, side), (along.loop, None)
                yield Load(register, ElementAccess(tile, terms, block_starts=(first, along)))
            for step in nest.steps:
                if step.depth:
                    yield from self._step(step, 0)
            yield from self._stores(nest.stores)

        lanes = self._loop(first.loop, *down, lambda: (self._loop(along.loop, *across, iteration),))
        return (*copies, lanes)
