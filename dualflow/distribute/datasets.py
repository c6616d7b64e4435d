"""Sharding of datasets: each worker iterates over its part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.tracebacks import entry
from dualflow.data.dataset import Dataset
from dualflow.data.options import AutoShardPolicy, OptionsStage, options_of
from dualflow.data.order import ReorderingStage
from dualflow.data.prefetching import PrefetchStage
from dualflow.data.stage import Stage
from dualflow.distribute.file_shards import FileShardStage, reads_files, with_file_shard
from dualflow.distribute.row_shards import PerWorkerStage, ShardedRowsStage
from dualflow.ops.collectives.collective_ops import ReplicaGroup


@dataclass(frozen=True)
class InputContext:
    """The worker that a dataset is for: the argument of a function that creates datasets.

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


def distribute(dataset: Any, group: ReplicaGroup) -> Any:
    """The part of a dataset of batches that belongs to this worker of ``group``, by the dataset's policy.

    Raises:
        DTypeError: ``dataset`` is no dataset.
        InvalidArgumentError: its elements are no batches; or it is to be divided by files, and has none, or
            fewer than workers.
    """
    _check_dataset(dataset)
    stage: Stage = dataset.stage
    policy = _policy_of(dataset)
    if policy is AutoShardPolicy.OFF or is_distributed(dataset):
        stage = PerWorkerStage(source=stage)
    elif _divides_files(dataset, group.size):
        stage = FileShardStage(source=with_file_shard(stage, group.rank, group.size), group=group)
    elif policy is AutoShardPolicy.FILE:
        raise InvalidArgumentError(
            "AutoShardPolicy.FILE divides files, and the dataset reads none: TFRecordDataset, "
            "TextLineDataset and FixedLengthRecordDataset do, also in a flat_map or interleave of names. "
            f"Set AutoShardPolicy.DATA, which divides the rows of each batch.{stage.where}"
        )
    else:
        stage = _with_sharded_rows(stage, group.rank, group.size)
    stage.check_layout()
    return Dataset.of(stage)


def shares_batches(dataset: Any, workers: int) -> bool:
    """Whether all workers read the same batches, and each takes its share of the rows."""
    policy = _policy_of(dataset)
    if policy in (AutoShardPolicy.OFF, AutoShardPolicy.FILE) or is_distributed(dataset):
        return False
    return not _divides_files(dataset, workers)


def _divides_files(dataset: Any, workers: int) -> bool:
    """Whether workers read different files: by AutoShardPolicy.FILE, or by AUTO if there are files."""
    policy = _policy_of(dataset)
    by_files = policy is AutoShardPolicy.FILE or (policy is AutoShardPolicy.AUTO and workers > 1)
    return by_files and reads_files(dataset.stage)


def _policy_of(dataset: Any) -> AutoShardPolicy:
    return options_of(dataset.stage).experimental_distribute.auto_shard_policy


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
    """``stage`` with batches cut to this worker's rows, before transformations that don't read elements."""
    if isinstance(stage, ReorderingStage | PrefetchStage | OptionsStage):
        return stage.with_sources([_with_sharded_rows(stage.source, index, count)])
    return ShardedRowsStage(source=stage, index=index, count=count)


def _check_dataset(dataset: Any) -> None:
    if not isinstance(dataset, Dataset):
        raise DTypeError(f"A df.data.Dataset is distributed among workers, not {dataset!r}.")
