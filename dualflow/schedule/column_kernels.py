"""Kernels of reductions over columns: chunks of rows give partial results of all columns, combined in order.

    kernel(lo, hi, ...):                          join(lo, hi, ...):
        Chunks: a chunk of rows                 For column in lo .. hi
            For column                                For chunk
                For row in the chunk                    ReduceCombine accumulator, part [chunk, column]
                    ReduceUpdate accumulator          Store out [column] = accumulator
                Store part [chunk, column]

If several loops run over the rows, the outer ones run around the columns, and each of their iterations loads
and stores the partial results: so the rows of one iteration stay in a cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from dualflow.core.dtypes import DType
from dualflow.schedule.blocking import ColumnChunks, combine_block_sizes
from dualflow.schedule.kernel import KernelLaunch
from dualflow.schedule.kernel_statements import (
    Blocks,
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
from dualflow.schedule.loop_ids import BlockLevel, KernelLoop, LoopId
from dualflow.schedule.lower import stage_steps
from dualflow.sizes.symbolic_sizes import typical


class ColumnWriter(KernelWriter):
    """Writes the kernel of a nest of one stage that reduces over columns."""

    def write_columns(self, chunking: ColumnChunks) -> KernelLaunch:
        """The kernel: each chunk of the first reduction loop computes partial results of all columns.

        Rows of many columns are read in memory order; work-items reduce a column each, with the same bits.
        """
        nest, self.blocks = self.nest, {}  # a chunk is short
        self._buffers_used()
        reductions, size = self._reductions(0), self.arguments.parameter("chunk", chunking.iterations)
        dtypes = [dtype for step in reductions for dtype in carried_dtypes(step)]
        first = nest.num_parallel
        edges = edges_of(first, BlockLevel.CHUNK)
        before = tuple(self._steps_at(0))
        single_pass = chunking.inner == first and typical(chunking.width) < nest.costs.min_wide_columns
        if single_pass or self.by_work_items:
            if not single_pass:
                self.blocks = self._blocks_of_rows(chunking)
            whole = chunking._replace(inner=first)
            iteration = self._each_column(0, lambda: self._column(whole, edges, single_pass=True))
        else:
            inits = self._each_column(0, lambda: self._init_partials())
            if chunking.inner == first:
                row_block = edges_of(first, 0)
                rows = self.arguments.parameter("rows", nest.costs.rows_at_once)
                columns = self._each_column(0, lambda: self._column(chunking, row_block))
                iteration = (*inits, Blocks(first, 0, *edges, rows, columns))
            else:
                iteration = (*inits, *self._rows_of_columns(first, edges, chunking))
        chunks = Chunks(first, size, self._extent(first), iteration)
        join = ColumnWriter(nest, self.lanes)._join_columns(dtypes, chunking)
        return self._launch_of((*before, chunks), chunking.number, dtypes, join, chunking.width)

    def _blocks_of_rows(self, chunking: ColumnChunks) -> dict[LoopId, tuple[int, ...]]:
        """The blocks of rows whose sums are added to those of a column, where several rows run together."""
        first = self.nest.num_parallel
        if chunking.inner == first:
            return {first: (self.nest.costs.rows_at_once,)}
        return {chunking.inner - 1: (1,)}

    def _rows_of_columns(
        self, loop: int, ends: tuple[Bound, Bound], chunking: ColumnChunks
    ) -> tuple[KernelStatement, ...]:
        """Reduction loop ``loop`` and those inside it, around a loop over the columns."""

        def inside() -> tuple[KernelStatement, ...]:
            if loop + 1 < chunking.inner:
                return self._rows_of_columns(loop + 1, (End.ZERO, self._extent(loop + 1)), chunking)
            inner_ends = End.ZERO, self._extent(chunking.inner)
            return self._each_column(0, lambda: self._column(chunking, inner_ends))

        return (self._loop(loop, *ends, inside),)

    def _each_column(
        self, loop: int, inside: Callable[[], Iterable[KernelStatement]]
    ) -> tuple[KernelStatement, ...]:
        """``inside`` for each iteration of the parallel loops from ``loop`` on."""
        if loop == self.nest.num_parallel:
            return tuple(inside())
        return (
            self._loop(
                loop,
                End.ZERO,
                self._extent(loop),
                lambda: (*self._steps_at(loop + 1), *self._each_column(loop + 1, inside)),
            ),
        )

    def _init_partials(self) -> Iterator[KernelStatement]:
        """Store the initial partial results of a column."""
        accumulators = [self._accumulator(s) for s in self._reductions(0)]
        yield from self._inits(0, accumulators)
        yield from self._store_partials(accumulators)

    def _column(
        self, chunking: ColumnChunks, ends: tuple[Bound, Bound], *, single_pass: bool = False
    ) -> Iterator[KernelStatement]:
        """Run the inner reduction loops of a column, and combine their results with its partial results.

        With ``single_pass``, there are no earlier partial results to combine with.
        """
        nest, reductions = self.nest, self._reductions(0)
        accumulators = [self._accumulator(s) for s in reductions]
        for step in stage_steps(nest, 0):
            if nest.num_parallel < step.depth <= chunking.inner and not step.reduces:
                yield from self._step(step, 0)
        yield from self._inits(0, accumulators)
        yield from self._reduction(chunking.inner, *ends, 0, accumulators)
        if not single_pass:
            previous, combined = ([self._accumulator(s) for s in reductions] for _ in range(2))
            yield from self._inits(0, combined)
            yield from self._load_partials(previous)
            yield from self._combined(combined, previous)
            yield from self._combined(combined, accumulators)
            accumulators = combined
        yield from self._store_partials(accumulators)

    def _combined(
        self, into: Sequence[Accumulator], parts: Sequence[Accumulator]
    ) -> Iterator[KernelStatement]:
        for step, accumulator, part in zip(self._reductions(0), into, parts, strict=True):
            yield combine(step, accumulator, part)

    def _store_partials(self, accumulators: Sequence[Accumulator]) -> Iterator[KernelStatement]:
        first = self._buffers_used()
        for i, register in enumerate(r for accumulator in accumulators for r in accumulator):
            yield Store(self._partial(first + i), register)

    def _load_partials(self, accumulators: Sequence[Accumulator]) -> Iterator[KernelStatement]:
        first = self._buffers_used()
        for i, register in enumerate(r for accumulator in accumulators for r in accumulator):
            yield Load(register, self._partial(first + i))

    def _join_columns(self, dtypes: Sequence[DType], chunking: ColumnChunks) -> KernelLaunch:
        """For each column, combine the partial results in order, finalize the reductions, run the stores."""
        reductions = self._reductions(0)
        self._buffers_used()
        self.blocks = {KernelLoop.CHUNKS: combine_block_sizes(chunking.number)}
        count = self.arguments.parameter("chunks", chunking.number)

        def combine_chunks(
            begin: Bound, end: Bound, accumulators: Sequence[Accumulator]
        ) -> tuple[KernelStatement, ...]:
            parts = [self._accumulator(s) for s in reductions]
            body = (*self._load_partials(parts), *self._combined(accumulators, parts))
            return (For(KernelLoop.CHUNKS, begin, end, LoopKind.SERIAL, body),)

        def inside() -> Iterator[KernelStatement]:
            accumulators = [self._accumulator(s) for s in reductions]
            yield from self._stores(self._outer_stores(0))
            yield from self._inits(0, accumulators)
            yield from self._by_blocks(KernelLoop.CHUNKS, End.ZERO, count, 0, accumulators, combine_chunks)
            yield from self._finalize(0, accumulators)

        body = (*self._steps_at(0), *self._parallel(0, inside))
        launch = self._launch_of(body, self.nest.loops[0].extent, dtypes)
        return launch._replace(work=float(typical(chunking.width * chunking.number)))
