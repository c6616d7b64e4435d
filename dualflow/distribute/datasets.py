"""Sharding of datasets: each worker iterates over its part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from dualflow.core.convert import Array
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.core.tracebacks import entry
from dualflow.data.batching import BatchStage, GatherIterator
from dualflow.data.dataset import Dataset
from dualflow.data.element import ElementLayout, Item
from dualflow.data.options import AutoShardPolicy, OptionsStage, options_of
from dualflow.data.order import ReorderingStage
from dualflow.data.prefetching import PrefetchStage
from dualflow.data.stage import IndexedRows, Stage, StageIterator, StatelessIterator, UnaryStage


@dataclass(frozen=True)
class InputContext:
    """The worker for which a function of ``Strategy.distribute_datasets_from_function`` creates a dataset.

    Args:
        num_input_pipelines: the number of workers.
        input_pipeline_id: the number of this worker, from 0.
        num_replicas_in_sync: the number of replicas.

    >>> import dualflow as df
    >>> df.distribute.InputContext(num_replicas_in_sync=2).get_per_replica_batch_size(64)
    32
    """

    num_input_pipelines: int = 1
    input_pipeline_id: int = 0
    num_replicas_in_sync: int = 1

    @entry
    def get_per_replica_batch_size(self, global_batch_size: int) -> int:
        """The batch size of a replica.

        Args:
            global_batch_size: the batch size of all replicas together.

        Returns:
            An int.

        Raises:
            InvalidArgumentError: the number of replicas does not divide it.

        >>> import dualflow as df
        >>> df.distribute.InputContext().get_per_replica_batch_size(64)
        64
        """
        if global_batch_size % self.num_replicas_in_sync:
            raise InvalidArgumentError(
                f"A batch of {global_batch_size} elements can't be divided among "
                f"{self.num_replicas_in_sync} replicas; choose a multiple."
            )
        return global_batch_size // self.num_replicas_in_sync


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

    def _shard_spec(self, spec: Any) -> Any:
        if not isinstance(spec, TensorSpec) or not spec.shape.rank:
            raise InvalidArgumentError(
                f"Workers divide the rows of batches, and {spec} has no rows: distribute a dataset of "
                f"batches, dataset.batch(n).{self.where}"
            )
        size = spec.shape[0]
        shard_size = None if size is None else len(shard_rows(size, self.index, self.count))
        return TensorSpec.of(Shape([shard_size, *spec.shape[1:]]), spec.dtype)

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


def distribute(dataset: Any, index: int, count: int) -> Any:
    """The part of a dataset of batches that belongs to worker ``index`` of ``count``.

    Raises:
        DTypeError: ``dataset`` is no dataset.
        InvalidArgumentError: its elements are no batches, or its options divide files.
    """
    _check_dataset(dataset)
    policy = options_of(dataset.stage).experimental_distribute.auto_shard_policy
    if policy is AutoShardPolicy.FILE:
        raise InvalidArgumentError(
            "AutoShardPolicy.FILE: files are divided by distribute_datasets_from_function, with "
            "Dataset.list_files(...).shard(context.num_input_pipelines, context.input_pipeline_id)."
        )
    if policy is AutoShardPolicy.OFF or is_distributed(dataset):
        stage: Stage = PerWorkerStage(source=dataset.stage)
    else:
        stage = _with_sharded_rows(dataset.stage, index, count)
    _ = stage.layout  # which raises for elements without rows
    return Dataset.of(stage)


def from_function(dataset_fn: Callable[[InputContext], Any], context: InputContext) -> Any:
    """The dataset that ``dataset_fn`` returns for this worker.

    Raises:
        DTypeError: it returns something else.
    """
    dataset = dataset_fn(context)
    _check_dataset(dataset)
    return Dataset.of(PerWorkerStage(source=dataset.stage))


def is_distributed(dataset: Any) -> bool:
    """Whether each worker has its own part of a dataset, so that it isn't divided again."""
    pending: list[Stage] = [dataset.stage]
    while pending:
        stage = pending.pop()
        if isinstance(stage, PerWorkerStage):
            return True
        pending += stage.sources
    return False


def _with_sharded_rows(stage: Stage, index: int, count: int) -> Stage:
    """``stage`` with batches of this worker's rows: divided before stages that don't read the batches."""
    if isinstance(stage, ReorderingStage | PrefetchStage | OptionsStage):
        return stage.with_sources([_with_sharded_rows(stage.source, index, count)])
    return ShardedRowsStage(source=stage, index=index, count=count)


def _check_dataset(dataset: Any) -> None:
    if not isinstance(dataset, Dataset):
        raise DTypeError(f"A df.data.Dataset is distributed among workers, not {dataset!r}.")
