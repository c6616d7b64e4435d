"""Kernels of folds of columns: chunks of rows give partial results of all columns, joined in order.

    kernel(lo, hi, ...):                          join(lo, hi, ...):
        Chunks: a chunk of rows                 For column in lo .. hi
            For column                                For chunk
                For row in the chunk                    ReduceCombine accumulator, part [chunk, column]
                    ReduceUpdate accumulator          Store out [column] = accumulator
                Store part [chunk, column]

Where rows are those of several loops, the outer ones run around the columns, and partial results are loaded
and stored at each of their iterations: so all that is read at a time stays in a cache.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence

from dualflow.core.dtypes import DType
from dualflow.core.symbolic_sizes import typical
from dualflow.schedule.blocking import ColumnChunks, join_blocks
from dualflow.schedule.kernels import Accumulator, KernelWriter, carried_dtypes, merge
from dualflow.schedule.loop_ids import BlockLevel, KernelLoop
from dualflow.schedule.loop_program import (
    Blocks,
    Bound,
    Chunks,
    Edge,
    End,
    For,
    Load,
    LoopKind,
    Place,
    Run,
    Statement,
    Store,
)
from dualflow.schedule.lower import stage_steps


class ColumnWriter(KernelWriter):
    """Writes a nest of one stage whose folds are of columns."""

    def columns(self, by: ColumnChunks) -> Run:
        """Each chunk of the first reduced loop gives partial results of all columns."""
        nest, self.blocks = self.nest, {}  # a chunk is short
        self._buffers_used()
        folds, size = self._folds(0), self.given.number("chunk", by.iterations)
        dtypes = [dtype for step in folds for dtype in carried_dtypes(step)]
        edges = (
            Edge(nest.num_parallel, BlockLevel.CHUNK, False),
            Edge(nest.num_parallel, BlockLevel.CHUNK, True),
        )
        before = tuple(self._steps_at(0))
        if by.inner == nest.num_parallel and typical(by.width) < nest.costs.wide_row:
            iteration = self._each_column(0, lambda: self._column(by, edges, alone=True))
        elif by.inner == nest.num_parallel:
            few = Edge(nest.num_parallel, 0, False), Edge(nest.num_parallel, 0, True)
            rows = self.given.number("rows", nest.costs.rows_at_once)
            each = self._each_column(0, lambda: self._column(by, few))
            begun = self._each_column(0, lambda: self._begun())
            iteration = (*begun, Blocks(nest.num_parallel, 0, *edges, rows, each))
        else:
            iteration = (
                *self._each_column(0, lambda: self._begun()),
                *self._rows_of_columns(nest.num_parallel, edges, by),
            )
        chunks = Chunks(nest.num_parallel, size, self._extent(nest.num_parallel), iteration)
        join = ColumnWriter(nest, self.lanes)._join_columns(dtypes, by)
        return self._made((*before, chunks), by.number, dtypes, join, by.width)

    def _rows_of_columns(self, at: int, ends: tuple[Bound, Bound], by: ColumnChunks) -> tuple[Statement, ...]:
        """The reduced loops around the columns, from ``at`` on."""

        def inside() -> tuple[Statement, ...]:
            if at + 1 < by.inner:
                return self._rows_of_columns(at + 1, (End.ZERO, self._extent(at + 1)), by)
            return self._each_column(0, lambda: self._column(by, (End.ZERO, self._extent(by.inner))))

        return (self._loop(at, *ends, inside),)

    def _each_column(self, at: int, inside: Callable[[], Iterable[Statement]]) -> tuple[Statement, ...]:
        """``inside`` for each iteration of the kept loops from ``at`` on."""
        if at == self.nest.num_parallel:
            return tuple(inside())
        return (
            self._loop(
                at,
                End.ZERO,
                self._extent(at),
                lambda: (*self._steps_at(at + 1), *self._each_column(at + 1, inside)),
            ),
        )

    def _begun(self) -> Iterator[Statement]:
        """The partial results of a column at their beginning."""
        accumulators = [self._accumulator(s) for s in self._folds(0)]
        yield from self._starts(0, accumulators)
        yield from self._parts_stored(accumulators)

    def _column(
        self, by: ColumnChunks, ends: tuple[Bound, Bound], *, alone: bool = False
    ) -> Iterator[Statement]:
        """The inner reduced loops of a column, and what they fold to, joined to its partial results.

        Where the loops are ``alone``, what they fold to is the partial result.
        """
        nest, folds = self.nest, self._folds(0)
        accumulators = [self._accumulator(s) for s in folds]
        for step in stage_steps(nest, 0):
            if nest.num_parallel < step.level <= by.inner and not step.reduces:
                yield from self._step(step, 0)
        yield from self._starts(0, accumulators)
        yield from self._reduced(by.inner, *ends, 0, accumulators)
        if not alone:
            before, both = ([self._accumulator(s) for s in folds] for _ in range(2))
            yield from self._starts(0, both)
            yield from self._parts_loaded(before)
            yield from self._merges(both, before)
            yield from self._merges(both, accumulators)
            accumulators = both
        yield from self._parts_stored(accumulators)

    def _merges(self, into: Sequence[Accumulator], parts: Sequence[Accumulator]) -> Iterator[Statement]:
        for step, accumulator, part in zip(self._folds(0), into, parts, strict=True):
            yield merge(step, accumulator, part)

    def _parts_stored(self, accumulators: Sequence[Accumulator]) -> Iterator[Statement]:
        for i, register in enumerate(r for accumulator in accumulators for r in accumulator):
            yield Store(self._part(i), register)

    def _parts_loaded(self, accumulators: Sequence[Accumulator]) -> Iterator[Statement]:
        for i, register in enumerate(r for accumulator in accumulators for r in accumulator):
            yield Load(register, self._part(i))

    def _part(self, number: int) -> Place:
        """A partial result of this chunk and column."""
        kept = [loop.extent for loop in self.nest.loops[: self.nest.num_parallel]]
        distances = [math.prod(kept[i + 1 :]) for i in range(len(kept))]
        terms = [(i, None if n == 1 else self._stride(("part", i), n)) for i, n in enumerate(distances)]
        share = KernelLoop.CHUNKS, self._stride("chunk", math.prod(kept))
        return Place(self._buffers_used() + number, (share, *terms))

    def _join_columns(self, dtypes: Sequence[DType], by: ColumnChunks) -> Run:
        """For each column, join the partial results in order, finish the folds, and store what is kept."""
        folds = self._folds(0)
        self._buffers_used()
        self.blocks = {KernelLoop.CHUNKS: join_blocks(by.number)}
        count = self.given.number("chunks", by.number)

        def run(begin: Bound, end: Bound, accumulators: Sequence[Accumulator]) -> tuple[Statement, ...]:
            parts = [self._accumulator(s) for s in folds]
            body = (*self._parts_loaded(parts), *self._merges(accumulators, parts))
            return (For(KernelLoop.CHUNKS, begin, end, LoopKind.SERIAL, body),)

        def inside() -> Iterator[Statement]:
            accumulators = [self._accumulator(s) for s in folds]
            yield from self._stores(self._kept_stores(0))
            yield from self._starts(0, accumulators)
            yield from self._by_blocks(KernelLoop.CHUNKS, End.ZERO, count, 0, accumulators, run)
            yield from self._finish(0, accumulators)

        body = (*self._steps_at(0), *self._kept(0, inside))
        made = self._made(body, self.nest.loops[0].extent, dtypes)
        return made._replace(work=float(typical(by.width * by.number)))
