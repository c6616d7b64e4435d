"""Which elements come, and in which order."""

from __future__ import annotations

from typing import Any, Final, Self

from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.tracebacks import entry
from dualflow.core.tree import LEAF, Structure
from dualflow.data.arguments import buffer_size as checked_buffer_size
from dualflow.data.arguments import file_name, whole_number
from dualflow.data.caching import CacheStage
from dualflow.data.combining import ConcatenateStage, ZipStage
from dualflow.data.epochs import Epochs
from dualflow.data.methods.base import StageHolder
from dualflow.data.methods.making import MakingMethods
from dualflow.data.order import RepeatStage, ShardStage, SkipStage, TakeStage
from dualflow.data.prefetching import PrefetchStage
from dualflow.data.shuffling import ShuffleStage
from dualflow.data.stage import AUTOTUNE
from dualflow.function.errors import here

_READY: Final = 2


@entry
class OrderingMethods(StageHolder):
    """Transformations that don't look at elements."""

    __slots__ = ()

    def shuffle(
        self,
        buffer_size: Any,
        seed: int | None = None,
        reshuffle_each_iteration: bool | None = True,
        name: str | None = None,
    ) -> Self:
        """The elements in a random order: each is drawn from a buffer, into which the next one goes.

        Args:
            buffer_size: how many elements the buffer holds; all with UNKNOWN_CARDINALITY. Orders are all
                equally likely only where it holds all.
            seed: makes the order that of a stream of its own, with :func:`dualflow.random.set_seed`. Without
                it, the order is drawn when the dataset is made.
            reshuffle_each_iteration: whether each run through the dataset has another order.
            name: ignored; as in TensorFlow.

        Raises:
            InvalidArgumentError: ``buffer_size`` is not positive.

        Where elements have numbers, as rows of arrays do, the buffer holds numbers.

        >>> import dualflow as df
        >>> dataset = df.data.Dataset.range(5).shuffle(5, seed=3)
        >>> sorted(dataset.as_numpy_iterator())
        [np.int64(0), np.int64(1), np.int64(2), np.int64(3), np.int64(4)]
        """
        size = checked_buffer_size(buffer_size)
        again = reshuffle_each_iteration is not False
        epochs = Epochs(None if seed is None else whole_number(seed, "seed"))
        return self.then(ShuffleStage(source=self.stage, size=size, again=again, epochs=epochs))

    def repeat(self, count: Any = None, name: str | None = None) -> Self:
        """The dataset ``count`` times in turn; without end where it is None or negative.

        >>> import dualflow as df
        >>> list(df.data.Dataset.range(2).repeat(2).as_numpy_iterator())
        [np.int64(0), np.int64(1), np.int64(0), np.int64(1)]
        """
        times = -1 if count is None else whole_number(count, "count")
        return self.then(RepeatStage(source=self.stage, count=max(times, -1)))

    def take(self, count: Any, name: str | None = None) -> Self:
        """The first ``count`` elements; all where it is negative.

        >>> import dualflow as df
        >>> list(df.data.Dataset.range(10).take(2).as_numpy_iterator())
        [np.int64(0), np.int64(1)]
        """
        return self.then(TakeStage(source=self.stage, count=whole_number(count, "count")))

    def skip(self, count: Any, name: str | None = None) -> Self:
        """All but the first ``count`` elements; none where it is negative.

        >>> import dualflow as df
        >>> list(df.data.Dataset.range(4).skip(2).as_numpy_iterator())
        [np.int64(2), np.int64(3)]
        """
        return self.then(SkipStage(source=self.stage, count=whole_number(count, "count")))

    def shard(self, num_shards: Any, index: Any, name: str | None = None) -> Self:
        """Every ``num_shards``-th element, from number ``index`` on: one of several parts without overlap.

        Raises:
            InvalidArgumentError: there is no such part.

        >>> import dualflow as df
        >>> list(df.data.Dataset.range(10).shard(3, 1).as_numpy_iterator())
        [np.int64(1), np.int64(4), np.int64(7)]
        """
        shards, place = whole_number(num_shards, "num_shards"), whole_number(index, "index")
        if shards < 1:
            raise InvalidArgumentError(
                f"Number of shards must be greater than zero (currently num_shards = {shards}).{here()}"
            )
        if not 0 <= place < shards:
            raise InvalidArgumentError(
                f"Index must be between 0 and {shards - 1} (currently index = {place}).{here()}"
            )
        return self.then(ShardStage(source=self.stage, shards=shards, index=place))

    def concatenate(self, dataset: Any, name: str | None = None) -> Self:
        """The elements of this dataset, then those of another one.

        Raises:
            DTypeError: their elements differ in structure or dtype, or it is no dataset.

        >>> import dualflow as df
        >>> list(df.data.Dataset.range(1).concatenate(df.data.Dataset.range(2)).as_numpy_iterator())
        [np.int64(0), np.int64(0), np.int64(1)]
        """
        if not isinstance(dataset, StageHolder):
            raise DTypeError(f"concatenate takes a dataset, not {dataset!r}.{here()}")
        first, second = self.stage.layout, dataset.stage.layout
        kinds = [[getattr(s, "dtype", None) for s in x.specs] for x in (first, second)]
        if first.structure != second.structure or kinds[0] != kinds[1]:
            raise DTypeError(
                f"Incompatible dataset elements: {first.element_spec} vs. {second.element_spec}. Make them "
                "alike "
                f"with map.{here()}"
            )
        return self.then(ConcatenateStage(first=self.stage, second=dataset.stage))

    def cache(self, filename: Any = "", name: str | None = None) -> Self:
        """The same elements, kept once a run has come to the end, so that later runs make none.

        Args:
            filename: where to keep them; in memory without it. The file gets its name once it is complete,
                and is read from then on, also by other processes; remove it to have it written again.
            name: ignored; as in TensorFlow.

        Raises:
            DTypeError: in the loop, where elements that are no numbers are to be written to a file.
            DataLossError: in the loop, where the file is damaged; its parts have checksums.
            InvalidArgumentError: in the loop, where another version wrote it, which has to be removed.
            ResourceExhaustedError: in the loop, where the disk is full. Nothing is left of the file, and the
                elements come nevertheless.

        A run that is left before the end keeps nothing.

        >>> import dualflow as df
        >>> dataset = df.data.Dataset.range(3).map(lambda x: x * x).cache()
        >>> [int(x) for x in dataset], [int(x) for x in dataset]
        ([0, 1, 4], [0, 1, 4])
        """
        return self.then(CacheStage(source=self.stage, file=file_name(filename)))

    def prefetch(self, buffer_size: Any, name: str | None = None) -> Self:
        """The same elements, made ahead in a thread of the loop's own.

        Args:
            buffer_size: how many may be ready; AUTOTUNE for 2, 0 for no thread.
            name: ignored; as in TensorFlow.

        Raises:
            InvalidArgumentError: ``buffer_size`` is negative.

        The thread ends when the loop does, also by ``break`` or an error.

        >>> import dualflow as df
        >>> list(df.data.Dataset.range(2).prefetch(df.data.AUTOTUNE).as_numpy_iterator())
        [np.int64(0), np.int64(1)]
        """
        size = whole_number(buffer_size, "buffer_size")
        if size < AUTOTUNE:
            raise InvalidArgumentError(f"buffer_size must be >= 0, or AUTOTUNE, not {size}.{here()}")
        size = _READY if size == AUTOTUNE else size
        return self.then(PrefetchStage(source=self.stage, size=size)) if size else self

    def enumerate(self, start: Any = 0, name: str | None = None) -> Self:
        """Pairs of a number, counted from ``start``, and an element.

        >>> import dualflow as df
        >>> [(int(i), int(x)) for i, x in df.data.Dataset.range(7, 9).enumerate(start=1)]
        [(1, 7), (2, 8)]
        """
        numbers = MakingMethods.counter.__func__(type(self), start)  # type: ignore[attr-defined]  # a class method
        pair = Structure(tuple, (), (LEAF, LEAF))
        return self.then(ZipStage(parts=(numbers.stage, self.stage), structure=pair))
