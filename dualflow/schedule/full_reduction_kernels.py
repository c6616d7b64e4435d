"""Kernels of full reductions: chunks of the first loop give partial results, which are combined in order.

    kernel(lo, hi, ...):                          join(...):
        Chunks: a chunk of the first loop             For chunk
            ReduceInit accumulator                        ReduceCombine accumulator, part [chunk]
            For the loops                             ReduceFinalize result = accumulator
                ReduceUpdate accumulator              Store out = result
            Store part [chunk]

The chunks have a fixed size, so the result doesn't depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence

from dualflow.core.dtypes import DType
from dualflow.schedule.blocking import chunks
from dualflow.schedule.kernel import KernelLaunch
from dualflow.schedule.kernel_statements import (
    Bound,
    Chunks,
    End,
    For,
    KernelStatement,
    Load,
    LoopKind,
    Store,
    edges_of,
)
from dualflow.schedule.kernel_writer import Accumulator, KernelWriter, carried_dtypes, combine
from dualflow.schedule.loop_ids import BlockLevel, KernelLoop
from dualflow.sizes.symbolic_sizes import typical


class FullReductionWriter(KernelWriter):
    """Writes the two kernels of a nest in which all loops are reduction loops."""

    def write_chunks(self) -> KernelLaunch:
        """The kernel of the chunks, and its second kernel, which combines their partial results."""
        dtypes = [dtype for step in self._reductions(0) for dtype in carried_dtypes(step)]
        before = tuple(self._steps_at(0))
        accumulators = [self._accumulator(s) for s in self._reductions(0)]
        iterations, count = chunks(self.nest, self.lanes)
        size, extent = self.arguments.parameter("chunk", iterations), self._extent(0)
        iteration = [*self._inits(0, accumulators)]
        begin, end = edges_of(0, BlockLevel.CHUNK)
        iteration += self._reduction(0, begin, end, 0, accumulators)
        iteration += self._horizontal(0, accumulators)
        first = len(self.arguments.buffers)
        registers = [r for accumulator in accumulators for r in accumulator]
        iteration += [Store(self._partial(first + i), r) for i, r in enumerate(registers)]
        join = FullReductionWriter(self.nest, self.lanes)._join(dtypes)
        launch = self._launch_of((*before, Chunks(0, size, extent, tuple(iteration))), count, dtypes, join)
        if type(count) is int:
            return launch
        # estimated for typical sizes: chunks are rounded up, so their work exceeds that of the loop
        executed = typical(count) * iterations / max(1, typical(self.nest.loops[0].extent))
        return launch._replace(work=launch.work * executed)

    def _join(self, dtypes: Sequence[DType]) -> KernelLaunch:
        """The second kernel, which combines the partial results in order, and stores the results."""
        first, reductions = self._buffers_used(), self._reductions(0)
        accumulators = [self._accumulator(s) for s in reductions]

        def combine_chunks(
            begin: Bound, end: Bound, accumulators: Sequence[Accumulator]
        ) -> tuple[KernelStatement, ...]:
            parts = [self._accumulator(s) for s in reductions]
            loads = [
                Load(r, self._partial(first + i)) for i, r in enumerate(r for part in parts for r in part)
            ]
            combined = [combine(s, a, b) for s, a, b in zip(reductions, accumulators, parts, strict=True)]
            return (For(KernelLoop.CHUNKS, begin, end, LoopKind.SERIAL, (*loads, *combined)),)

        body = [*self._steps_at(0), *self._stores(self._outer_stores(0)), *self._inits(0, accumulators)]
        _, chunk_count = chunks(self.nest, self.lanes)
        count = self.arguments.parameter("chunks", chunk_count)
        body += self._by_blocks(KernelLoop.CHUNKS, End.ZERO, count, 0, accumulators, combine_chunks)
        body += self._finalize(0, accumulators)
        return self._launch_of(body, 1, dtypes)
