"""Options of input pipelines: ``df.data.Options``."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field

from dualflow.data.stage import Stage, StageIterator, UnaryStage


@dataclass(slots=True)
class ThreadingOptions:
    """The numbers of threads of a pipeline.

    Attributes:
        max_intra_op_parallelism: ignored: functions use the thread pool of compiled code.
        private_threadpool_size: how many calls run at the same time with AUTOTUNE; None for the number of
            cores.

    >>> import dualflow as df
    >>> df.data.ThreadingOptions()
    ThreadingOptions(max_intra_op_parallelism=None, private_threadpool_size=None)
    """

    max_intra_op_parallelism: int | None = None
    private_threadpool_size: int | None = None


class AutoShardPolicy(enum.Enum):
    """How ``Strategy.experimental_distribute_dataset`` divides a dataset among workers.

    OFF leaves each worker the whole dataset; DATA and HINT divide the rows of each batch; FILE divides files;
    AUTO divides files if all elements come from files, else rows.

    >>> import dualflow as df
    >>> df.data.experimental.AutoShardPolicy.DATA.value
    2
    """

    OFF = -1
    AUTO = 0
    FILE = 1
    DATA = 2
    HINT = 3


@dataclass(slots=True)
class DistributeOptions:
    """How a dataset is divided among the workers of ``df.distribute``.

    Attributes:
        auto_shard_policy: what is divided.
        num_devices: ignored.

    >>> import dualflow as df
    >>> df.data.experimental.DistributeOptions().auto_shard_policy
    <AutoShardPolicy.AUTO: 0>
    """

    auto_shard_policy: AutoShardPolicy = AutoShardPolicy.AUTO
    num_devices: int | None = None


@dataclass(slots=True)
class Options:
    """The options that ``with_options`` sets for the transformations after it.

    Attributes:
        deterministic: False allows any order of the results of parallel calls, unless the ``map`` has its own
            ``deterministic``.
        threading: the numbers of threads.
        experimental_distribute: how workers divide the dataset.

    >>> import dualflow as df
    >>> options = df.data.Options()
    >>> options.deterministic = False
    >>> df.data.Dataset.range(3).with_options(options).options().deterministic
    False
    """

    deterministic: bool | None = None
    threading: ThreadingOptions = field(default_factory=ThreadingOptions)
    experimental_distribute: DistributeOptions = field(default_factory=DistributeOptions)

    def merge(self, options: Options) -> Options:
        """These options, overridden by those that are set in ``options``."""
        mine, other = self.threading, options.threading
        return Options(
            self.deterministic if options.deterministic is None else options.deterministic,
            ThreadingOptions(
                other.max_intra_op_parallelism or mine.max_intra_op_parallelism,
                other.private_threadpool_size or mine.private_threadpool_size,
            ),
            _distribution(self.experimental_distribute, options.experimental_distribute),
        )


def _distribution(mine: DistributeOptions, other: DistributeOptions) -> DistributeOptions:
    return mine if other.auto_shard_policy is AutoShardPolicy.AUTO else other


@dataclass(frozen=True, eq=False, kw_only=True)
class OptionsStage(UnaryStage):
    """The same elements, with options for the stages after it."""

    options: Options

    def start(self) -> StageIterator:
        return self.source.start()


def options_of(stage: Stage) -> Options:
    """The options set by ``stage`` and the stages before it; later ones override earlier ones."""
    merged, pending = Options(), [stage]
    while pending:
        current = pending.pop()
        if isinstance(current, OptionsStage):
            merged = current.options.merge(merged)
        sources: Sequence[Stage] = current.sources
        pending += sources
    return merged
