"""Sharding of batches by rows: each worker has its rows of each batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from dualflow.core.convert import Array
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.data.batching import BatchStage, GatherIterator
from dualflow.data.element import ElementLayout, Item
from dualflow.data.stage import IndexedRows, Stage, StageIterator, StatelessIterator, UnaryStage


@dataclass(frozen=True, eq=False, kw_only=True)
class PerWorkerStage(UnaryStage):
    """Marks a dataset that is this worker's already, so that it isn't divided; its elements pass through."""

    def start(self) -> StageIterator:
        return self.source.start()


@dataclass(frozen=True, eq=False, kw_only=True)
class ShardedRowsStage(PerWorkerStage):
    """The rows of each batch that belong to worker ``index`` of ``count``.

    The state of an iterator is that of the whole batches, so it can be restored with other workers.
    """

    index: int
    count: int

    @property
    def layout(self) -> ElementLayout:
        source = self.source.layout
        return ElementLayout(source.structure, tuple([self._shard_spec(spec) for spec in source.specs]))

    def _shard_spec(self, spec: Any) -> TensorSpec:
        size, *sizes = batch_sizes(spec, self)
        shard_size = None if size is None else len(shard_rows(size, self.index, self.count))
        return TensorSpec.of(Shape([shard_size, *sizes]), spec.dtype)

    def start(self) -> StageIterator:
        batch = self.source
        indexed = batch.source.indexed() if isinstance(batch, BatchStage) else None
        if indexed is None or not isinstance(batch, BatchStage):
            return _ShardedRowsIterator(self.source.start(), self)
        rows, numbers = indexed
        return GatherIterator(
            partial(self._gather_shard, rows), numbers.start(), batch.size, batch.drop_remainder
        )

    def _gather_shard(self, rows: IndexedRows, indices: Sequence[int]) -> list[Array]:
        """The worker's rows of a batch with these indices; others are not read."""
        own = shard_rows(len(indices), self.index, self.count)
        shard = indices[own.start : own.stop]
        return rows.gather(shard) if len(shard) else [leaf[:0] for leaf in rows.gather(indices[:1])]


class _ShardedRowsIterator(StatelessIterator):
    """Iterates over the worker's rows of batches."""

    def __init__(self, upstream: StageIterator, stage: ShardedRowsStage) -> None:
        super().__init__(upstream)
        self._stage = stage

    def next(self, count: int) -> Sequence[Item]:
        index, workers = self._stage.index, self._stage.count
        batches: list[Item] = []
        for batch in self._upstream.next(count):
            rows = shard_rows(len(batch[0]), index, workers)
            batches.append(tuple([leaf[rows.start : rows.stop] for leaf in batch]))
        return batches


def shard_rows(size: int, index: int, count: int) -> range:
    """The rows of a batch of ``size`` that belong to worker ``index`` of ``count``.

    >>> [len(shard_rows(10, i, 4)) for i in range(4)]
    [2, 3, 2, 3]
    """
    return range(size * index // count, size * (index + 1) // count)


def batch_sizes(spec: Any, stage: Stage) -> list[int | None]:
    """The sizes of a leaf of a batch, of which workers divide the first.

    Raises:
        InvalidArgumentError: it has no rows.
    """
    if not isinstance(spec, TensorSpec) or not spec.shape.rank:
        raise InvalidArgumentError(
            f"Workers divide the rows of batches, and {spec} has no rows: distribute a dataset of "
            f"batches, dataset.batch(n).{stage.where}"
        )
    return list(spec.shape)
