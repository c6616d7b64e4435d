"""Options of pipelines: ``df.data.Options``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from dualflow.data.stage import Cursor, OverOne, Stage


@dataclass(slots=True)
class ThreadingOptions:
    """How many threads a pipeline has.

    Attributes:
        max_intra_op_parallelism: ignored: functions use the threads that compiled code has.
        private_threadpool_size: how many calls AUTOTUNE lets run at the same time; None for as many as there
            are cores.

    >>> import dualflow as df
    >>> df.data.ThreadingOptions()
    ThreadingOptions(max_intra_op_parallelism=None, private_threadpool_size=None)
    """

    max_intra_op_parallelism: int | None = None
    private_threadpool_size: int | None = None


@dataclass(slots=True)
class Options:
    """What ``with_options`` says of the transformations that follow it.

    Attributes:
        deterministic: False lets results of parallel calls come in any order, where a ``map`` says nothing of
            it.
        threading: how many threads there are.

    >>> import dualflow as df
    >>> options = df.data.Options()
    >>> options.deterministic = False
    >>> df.data.Dataset.range(3).with_options(options).options().deterministic
    False
    """

    deterministic: bool | None = None
    threading: ThreadingOptions = field(default_factory=ThreadingOptions)

    def merge(self, options: Options) -> Options:
        """These options, with those of another object that are set in their place."""
        mine, other = self.threading, options.threading
        return Options(
            self.deterministic if options.deterministic is None else options.deterministic,
            ThreadingOptions(
                other.max_intra_op_parallelism or mine.max_intra_op_parallelism,
                other.private_threadpool_size or mine.private_threadpool_size,
            ),
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class OptionsStage(OverOne):
    """The same elements, with options for what follows."""

    options: Options

    def start(self) -> Cursor:
        return self.source.start()


def options_of(stage: Stage) -> Options:
    """The options that are set up to ``stage``; of several the last."""
    found, pending = Options(), [stage]
    while pending:
        one = pending.pop()
        if isinstance(one, OptionsStage):
            found = one.options.merge(found)
        sources: Sequence[Stage] = one.sources
        pending += sources
    return found
