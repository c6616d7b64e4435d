"""Kernels of scans along long rows on a device: chunks of a row run side by side.

    totals:                    each chunk             before:                each row
        Chunks of the row                                 ReduceInit sum
            For the other loops                           For chunk
                ReduceInit total                              Load total [chunk]
                For the scanned loop                          Store sum [chunk], in place of the total
                    ReduceUpdate total                        ReduceCombine sum, total
                Store total [chunk]
    scan:
        Chunks of the row
            For the other loops
                ReduceInit sum; ReduceCombine sum, the sum before the chunk
                For the scanned loop, as in a scan without chunks

A chunk has a fixed size. So the order of a sum depends on nothing but the length of the row, and a row of one
chunk has the bits of a scan without chunks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator

from dualflow.core.dtypes import DType
from dualflow.graph.ir import Node
from dualflow.graph.scalar_functions import reduction_of
from dualflow.schedule.kernel import KernelLaunch
from dualflow.schedule.kernel_statements import (
    Chunks,
    Edge,
    End,
    For,
    KernelStatement,
    Load,
    LoopKind,
    ReduceInit,
    Store,
    edges_of,
)
from dualflow.schedule.kernel_writer import carried_dtypes, combine
from dualflow.schedule.loop_ids import BlockLevel, KernelLoop
from dualflow.schedule.nest import Nest
from dualflow.schedule.scan_kernels import ScanWriter

SCAN_CHUNK = 1024
"""The elements of a chunk."""


def is_long_scan(nest: Nest) -> bool:
    """Whether a scan is along rows of several chunks, or of a number that is known at run time."""
    if nest.num_parallel == len(nest.loops):
        return False
    extent = nest.loops[nest.num_parallel].extent
    return type(extent) is not int or extent > SCAN_CHUNK


def chunked_scan(nest: Nest, lanes: int, node: Node) -> KernelLaunch:
    """The launch of the totals, which is followed by those of the sums before each chunk, and of the scan."""
    totals, before, scan = (ChunkedScanWriter(nest, lanes, node) for _ in range(3))
    return totals.write_totals()._replace(join=before.write_before()._replace(join=scan.write_chunked_scan()))


class ChunkedScanWriter(ScanWriter):
    """Writes one of the kernels of a scan in chunks."""

    def write_totals(self) -> KernelLaunch:
        """The kernel of the totals."""
        (step,), scanned = self.nest.steps, self.nest.num_parallel
        accumulator = self._accumulator(step)

        def total() -> Iterator[KernelStatement]:
            yield ReduceInit(accumulator, reduction_of(self.node), self.node)
            yield self._loop(scanned, *self._edges(), lambda: self._update(step, accumulator))
            first = len(self.arguments.buffers)
            yield from (Store(self._partial(first + i), r) for i, r in enumerate(accumulator))

        return self._chunk_launch(total)

    def write_before(self) -> KernelLaunch:
        """The kernel that replaces each total by the sum of those before it."""
        (step,) = self.nest.steps
        total, before, reduction = self._accumulator(step), self._accumulator(step), reduction_of(self.node)
        count = self.arguments.parameter("chunks", self._chunk_count())

        def sums() -> Iterator[KernelStatement]:
            yield ReduceInit(before, reduction, self.node)
            body: tuple[KernelStatement, ...] = (
                *(Load(r, self._partial(i)) for i, r in enumerate(total)),
                *(Store(self._partial(i), r) for i, r in enumerate(before)),
                combine(step, before, total),
            )
            yield For(KernelLoop.CHUNKS, End.ZERO, count, LoopKind.SERIAL, body)

        rows = self.nest.loops[0].extent if self.nest.num_parallel else 1
        return self._launch_of(self._each_row(sums), 0 if self._is_empty else rows, self._dtypes())

    def write_chunked_scan(self) -> KernelLaunch:
        """The kernel of the scan, which begins each chunk with the sum before it."""
        (step,), reduction = self.nest.steps, reduction_of(self.node)
        first = self._buffers_used()

        def scan() -> Iterator[KernelStatement]:
            before, accumulator = self._accumulator(step), self._accumulator(step)
            yield ReduceInit(accumulator, reduction, self.node)
            yield from (Load(r, self._partial(first + i)) for i, r in enumerate(before))
            yield combine(step, accumulator, before)
            yield self._scan_loop(accumulator, *self._edges())

        return self._chunk_launch(scan)

    # Loops

    def _chunk_launch(self, body: Callable[[], Iterable[KernelStatement]]) -> KernelLaunch:
        """The launch of a kernel with ``body`` for each chunk of each row."""
        scanned = self.nest.num_parallel
        size = self.arguments.parameter("chunk", SCAN_CHUNK)
        rows = self._each_row(body, begin=End.ZERO)
        chunks = Chunks(scanned, size, self._extent(scanned), rows)
        count = 0 if self._is_empty else self._chunk_count()
        return self._launch_of((chunks,), count, self._dtypes(), partial_size=self._rows())

    def _edges(self) -> tuple[Edge, Edge]:
        """The edges of the current chunk."""
        scanned = self.nest.num_parallel
        return edges_of(scanned, BlockLevel.CHUNK)

    # Partial results

    def _dtypes(self) -> tuple[DType, ...]:
        (step,) = self.nest.steps
        return carried_dtypes(step)

    def _chunk_count(self) -> int:
        return -(-self.nest.loops[self.nest.num_parallel].extent // SCAN_CHUNK)

    def _rows(self) -> int:
        """The number of rows: of the iterations of all parallel loops."""
        return math.prod(loop.extent for loop in self.nest.loops[: self.nest.num_parallel])
