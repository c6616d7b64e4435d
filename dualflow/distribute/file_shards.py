"""Sharding of datasets by files: each worker reads its own files, and divides their batches.

The rules are TensorFlow's (grappler's auto_shard, and rebatching): a worker reads every ``count``-th file.
Each batch is divided into as many parts as there are workers, which follow one another, so that a batch of
all workers together has the size of one batch of the program. A worker whose files have ended continues with
batches without rows until those of all have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.data.check_state import parts
from dualflow.data.element import AbstractDataset, ElementLayout, Item
from dualflow.data.nesting import InterleaveStage
from dualflow.data.optional import empty_leaf
from dualflow.data.order import ShardStage
from dualflow.data.stage import UNKNOWN, ReplayedIterator, Stage, StageIterator, State
from dualflow.data.text_files import FilesStage
from dualflow.distribute.row_shards import PerWorkerStage, batch_sizes, shard_rows
from dualflow.ops.collectives.collective_ops import ReplicaGroup


def reads_files(stage: Stage) -> bool:
    """Whether all elements of a stage come from files, which can be divided among workers."""
    if isinstance(stage, FilesStage) or _opens_files(stage):
        return True
    return bool(stage.sources) and all(map(reads_files, stage.sources))


def with_file_shard(stage: Stage, index: int, count: int) -> Stage:
    """``stage``, which reads files, over those of worker ``index`` of ``count``.

    Raises:
        InvalidArgumentError: there are fewer files than workers.
    """
    if isinstance(stage, FilesStage):
        if isinstance(stage.names, Stage):
            return replace(stage, names=_name_shard(stage.names, index, count))
        _check_number(len(stage.names), count, stage)
        return replace(stage, names=stage.names[index::count])
    if _opens_files(stage):
        return stage.with_sources([_name_shard(stage.sources[0], index, count)])
    return stage.with_sources([with_file_shard(source, index, count) for source in stage.sources])


def _opens_files(stage: Stage) -> bool:
    """Whether ``stage`` is an interleave of a function that opens files."""
    if not isinstance(stage, InterleaveStage) or not stage.function.has_layout:
        return False
    opened = stage.function.trace_for_result()
    return isinstance(opened, AbstractDataset) and reads_files(opened.stage)


def _name_shard(names: Stage, index: int, count: int) -> Stage:
    number = names.cardinality
    if number == UNKNOWN:
        number = len(names.start().next(count))
    if number >= 0:
        _check_number(number, count, names)
    return ShardStage(source=names, shards=count, index=index)


def _check_number(files: int, workers: int, stage: Stage) -> None:
    if files < workers:
        raise InvalidArgumentError(
            f"{files} file{'s' * (files != 1)} can't be divided among {workers} workers "
            "(AutoShardPolicy.FILE, or AUTO with files): write more files, or set "
            "options.experimental_distribute.auto_shard_policy = "
            f"df.data.experimental.AutoShardPolicy.DATA, which divides the rows of each batch.{stage.where}"
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class FileShardStage(PerWorkerStage):
    """The batches of this worker's files, each divided into as many parts as there are workers.

    Attributes:
        group: the workers.
    """

    group: ReplicaGroup

    @property
    def layout(self) -> ElementLayout:
        source = self.source.layout
        return ElementLayout(source.structure, tuple([self._part_spec(spec) for spec in source.specs]))

    def _part_spec(self, spec: Any) -> TensorSpec:
        return TensorSpec.of(Shape([None, *batch_sizes(spec, self)[1:]]), spec.dtype)

    @property
    def cardinality(self) -> int:
        return UNKNOWN

    @property
    def runs_collectives(self) -> bool:
        return True

    def start(self) -> StageIterator:
        return FileShardIterator(self)


class FileShardIterator(ReplayedIterator):
    """Iterates over the parts of batches, until those of all workers have ended.

    Each call exchanges the number of parts that the workers have. The state is a number of parts, which is
    the same for all workers, so a checkpoint that one of them writes serves all.
    """

    _stage: FileShardStage

    def restart(self) -> None:
        self._pending: list[Item] = []

    def make(self, count: int) -> Sequence[Item]:
        workers = self._stage.group.size
        while len(self._pending) < count and len(items := self._upstream.next(1)):
            rows = [shard_rows(len(items[0][0]), i, workers) for i in range(workers)]
            self._pending += [tuple([leaf[r.start : r.stop] for leaf in items[0]]) for r in rows]
        own, self._pending = self._pending[:count], self._pending[count:]
        counts = self._stage.group.row_counts(np.array([len(own)]), self._stage.layout.specs[0])
        most = int(counts.max())
        return [*own, *[self._without_rows() for _ in range(most - len(own))]]

    def _without_rows(self) -> Item:
        return tuple([empty_leaf(spec)[:0] for spec in self._stage.layout.specs])

    def get_state(self) -> State:
        return [self._stage.group.size, super().get_state()]

    def set_state(self, state: State) -> None:
        workers, position = parts(state, 2)
        if workers != self._stage.group.size:
            raise InvalidArgumentError(
                f"The position is one in the files of {workers} workers, and this job has "
                f"{self._stage.group.size}, which read other files: begin a new iterator, or divide the data "
                "with AutoShardPolicy.DATA."
            )
        super().set_state(position)
