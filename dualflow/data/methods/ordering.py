"""Methods that select, order, cache and prefetch elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Self

from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.tracebacks import entry
from dualflow.core.tree import LEAF, Structure
from dualflow.data.arguments import buffer_size as checked_buffer_size
from dualflow.data.arguments import file_name, whole_number
from dualflow.data.caching import CacheStage
from dualflow.data.combining import ConcatenateStage, ZipStage
from dualflow.data.epochs import Epochs
from dualflow.data.methods.base import DatasetBase
from dualflow.data.methods.creating import CreationMethods
from dualflow.data.order import RepeatStage, ShardStage, SkipStage, TakeStage
from dualflow.data.prefetching import prefetched
from dualflow.data.shuffling import ShuffleStage
from dualflow.data.stage import AUTOTUNE
from dualflow.function.errors import here

if TYPE_CHECKING:
    from dualflow.core.argument_types import IntLike, TensorLike

_AUTOTUNED_SIZE: Final = 2
"""The number of elements that ``prefetch(AUTOTUNE)`` reads ahead."""


def prefetch_size(buffer_size: IntLike) -> int:
    """The number of elements to read ahead for a ``buffer_size``; 0 for no thread.

    Raises:
        InvalidArgumentError: it is negative, and not AUTOTUNE.
    """
    size = whole_number(buffer_size, "buffer_size")
    if size < AUTOTUNE:
        raise InvalidArgumentError(f"buffer_size must be >= 0, or AUTOTUNE, not {size}.{here()}")
    return _AUTOTUNED_SIZE if size == AUTOTUNE else size


@entry
class OrderingMethods(DatasetBase):
    """Transformations that don't read the values of elements."""

    __slots__ = ()

    def shuffle(
        self,
        buffer_size: IntLike,
        seed: int | None = None,
        reshuffle_each_iteration: bool | None = True,
        name: str | None = None,
    ) -> Self:
        """The elements in a random order: each is drawn from a buffer, and the next one takes its place.

        Args:
            buffer_size: how many elements the buffer holds; UNKNOWN_CARDINALITY for all. Only with all are
                all orders equally likely.
            seed: selects the stream of random numbers, together with :func:`dualflow.random.set_seed`.
                Without it, seeds are drawn when the dataset is created.
            reshuffle_each_iteration: whether each iteration over the dataset has another order.
            name: ignored; as in TensorFlow.

        Raises:
            InvalidArgumentError: ``buffer_size`` is not positive.

        If the source has random access, such as rows of arrays, the buffer holds indices.

        >>> import dualflow as df
        >>> dataset = df.data.Dataset.range(5).shuffle(5, seed=3)
        >>> sorted(dataset.as_numpy_iterator())
        [np.int64(0), np.int64(1), np.int64(2), np.int64(3), np.int64(4)]
        """
        size = checked_buffer_size(buffer_size)
        reshuffle = reshuffle_each_iteration is not False
        epochs = Epochs(None if seed is None else whole_number(seed, "seed"))
        return self.then(ShuffleStage(source=self.stage, size=size, reshuffle=reshuffle, epochs=epochs))

    def repeat(self, count: IntLike | None = None, name: str | None = None) -> Self:
        """The dataset repeated ``count`` times; endlessly if it is None or negative.

        >>> import dualflow as df
        >>> list(df.data.Dataset.range(2).repeat(2).as_numpy_iterator())
        [np.int64(0), np.int64(1), np.int64(0), np.int64(1)]
        """
        times = -1 if count is None else whole_number(count, "count")
        return self.then(RepeatStage(source=self.stage, count=max(times, -1)))

    def take(self, count: IntLike, name: str | None = None) -> Self:
        """The first ``count`` elements; all if it is negative.

        >>> import dualflow as df
        >>> list(df.data.Dataset.range(10).take(2).as_numpy_iterator())
        [np.int64(0), np.int64(1)]
        """
        return self.then(TakeStage(source=self.stage, count=whole_number(count, "count")))

    def skip(self, count: IntLike, name: str | None = None) -> Self:
        """All but the first ``count`` elements; none if it is negative.

        >>> import dualflow as df
        >>> list(df.data.Dataset.range(4).skip(2).as_numpy_iterator())
        [np.int64(2), np.int64(3)]
        """
        return self.then(SkipStage(source=self.stage, count=whole_number(count, "count")))

    def shard(self, num_shards: IntLike, index: IntLike, name: str | None = None) -> Self:
        """Every ``num_shards``-th element, from element ``index`` on: one of ``num_shards`` disjoint parts.

        Raises:
            InvalidArgumentError: ``num_shards`` is not positive, or ``index`` is not below it.

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

    def concatenate(self, dataset: object, name: str | None = None) -> Self:
        """The elements of this dataset, then those of another one.

        Raises:
            DTypeError: the elements differ in structure or dtype, or ``dataset`` is not a dataset.

        >>> import dualflow as df
        >>> list(df.data.Dataset.range(1).concatenate(df.data.Dataset.range(2)).as_numpy_iterator())
        [np.int64(0), np.int64(0), np.int64(1)]
        """
        if not isinstance(dataset, DatasetBase):
            raise DTypeError(f"concatenate takes a dataset, not {dataset!r}.{here()}")
        first, second = self.stage.layout, dataset.stage.layout
        if first.structure != second.structure or first.dtypes != second.dtypes:
            raise DTypeError(
                f"Incompatible dataset elements: {first.element_spec} vs. {second.element_spec}. Convert "
                f"them with map.{here()}"
            )
        return self.then(ConcatenateStage(first=self.stage, second=dataset.stage))

    def cache(self, filename: TensorLike = "", name: str | None = None) -> Self:
        """The same elements, cached by the first complete iteration for later ones.

        Args:
            filename: the file to cache them in; in memory if it is empty. The file appears once it is
                complete, and is read from then on, also by other processes; remove it to have it rewritten.
            name: ignored; as in TensorFlow.

        Raises:
            DTypeError: during iteration, elements that are not numbers can't be written to a file.
            DataLossError: during iteration, the file is damaged; its parts have checksums.
            InvalidArgumentError: during iteration, another version of dualflow, or a dataset of other
                elements, wrote the file; remove it.
            ResourceExhaustedError: during iteration, the disk is full. The incomplete file is removed, and
                iteration can go on.

            An iteration that stops before the end caches nothing.

        >>> import dualflow as df
        >>> dataset = df.data.Dataset.range(3).map(lambda x: x * x).cache()
        >>> [int(x) for x in dataset], [int(x) for x in dataset]
        ([0, 1, 4], [0, 1, 4])
        """
        return self.then(CacheStage(source=self.stage, file=file_name(filename)))

    def prefetch(self, buffer_size: IntLike, name: str | None = None) -> Self:
        """The same elements, prefetched by a thread of each iterator.

        Args:
            buffer_size: how many elements to prefetch; AUTOTUNE for 2, 0 for no thread.
            name: ignored; as in TensorFlow.

        Raises:
            InvalidArgumentError: ``buffer_size`` is negative.

        The thread ends when the loop does, also by ``break`` or an error. If a strategy has divided the files
        of the dataset among workers, the thread reads this worker's files.

        >>> import dualflow as df
        >>> list(df.data.Dataset.range(2).prefetch(df.data.AUTOTUNE).as_numpy_iterator())
        [np.int64(0), np.int64(1)]
        """
        size = prefetch_size(buffer_size)
        return self.then(prefetched(self.stage, size)) if size else self

    def enumerate(self, start: IntLike = 0, name: str | None = None) -> Any:
        """Pairs of a number, counted from ``start``, and an element.

        >>> import dualflow as df
        >>> [(int(i), int(x)) for i, x in df.data.Dataset.range(7, 9).enumerate(start=1)]
        [(1, 7), (2, 8)]
        """
        numbers = CreationMethods.counter.__func__(type(self), start)  # type: ignore[attr-defined]  # a class method
        pair = Structure(tuple, (), (LEAF, LEAF))
        return self.then(ZipStage(parts=(numbers.stage, self.stage), structure=pair))
