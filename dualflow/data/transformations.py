"""Transformations for ``Dataset.apply`` that are methods of datasets, too: ``df.data.experimental``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from dualflow.core.dtypes import int64
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.tracebacks import entry
from dualflow.data.arguments import whole_number
from dualflow.data.dataset import Dataset

if TYPE_CHECKING:
    from dualflow.core.argument_types import DTypeLike, IntLike, TensorLike
    from dualflow.data.iterator import Iterator

Transformation = Callable[[Dataset], Dataset]


@entry
def bucket_by_sequence_length(
    element_length_func: Callable[..., Any],
    bucket_boundaries: Sequence[int],
    bucket_batch_sizes: Sequence[int],
    padded_shapes: object = None,
    padding_values: object = None,
    pad_to_bucket_boundary: bool = False,
    no_padding: bool = False,
    drop_remainder: bool = False,
) -> Transformation:
    """A transformation for ``apply``: :meth:`Dataset.bucket_by_sequence_length` of the same arguments.

    >>> import dualflow as df
    >>> rows = df.data.Dataset.range(1, 4).map(lambda n: df.fill([n], n))
    >>> bucket = df.data.experimental.bucket_by_sequence_length(lambda row: df.size(row), [3], [2, 2])
    >>> [batch.numpy().tolist() for batch in rows.apply(bucket)]
    [[[1, 0], [2, 2]], [[3, 3, 3]]]
    """
    return lambda dataset: dataset.bucket_by_sequence_length(
        element_length_func,
        bucket_boundaries,
        bucket_batch_sizes,
        padded_shapes,
        padding_values,
        pad_to_bucket_boundary,
        no_padding,
        drop_remainder,
    )


@entry
def group_by_window(
    key_func: Callable[..., Any],
    reduce_func: Callable[..., Any],
    window_size: IntLike | None = None,
    window_size_func: Callable[..., Any] | None = None,
) -> Transformation:
    """A transformation for ``apply``: :meth:`Dataset.group_by_window` of the same arguments.

    >>> import dualflow as df
    >>> pairs = df.data.experimental.group_by_window(lambda x: x % 2, lambda key, group: group.batch(2), 2)
    >>> [batch.numpy().tolist() for batch in df.data.Dataset.range(4).apply(pairs)]
    [[0, 2], [1, 3]]
    """
    return lambda dataset: dataset.group_by_window(key_func, reduce_func, window_size, window_size_func)


@entry
def map_and_batch(
    map_func: Callable[..., Any],
    batch_size: IntLike,
    num_parallel_batches: int | None = None,
    drop_remainder: bool = False,
    num_parallel_calls: IntLike | None = None,
) -> Transformation:
    """A transformation for ``apply``: ``dataset.map(...).batch(...)``.

    Args:
        map_func: as of :meth:`Dataset.map`.
        batch_size: the number of elements of a batch.
        num_parallel_batches: ``num_parallel_calls`` in batches; give one of the two.
        drop_remainder: whether a last batch of fewer elements is left out.
        num_parallel_calls: as of :meth:`Dataset.map`.

    Raises:
        InvalidArgumentError: ``num_parallel_calls`` and ``num_parallel_batches`` are both given.

    >>> import dualflow as df
    >>> squares = df.data.experimental.map_and_batch(lambda x: x * x, 2)
    >>> [batch.numpy().tolist() for batch in df.data.Dataset.range(3).apply(squares)]
    [[0, 1], [4]]
    """
    calls = num_parallel_calls
    if calls is not None and num_parallel_batches is not None:
        raise InvalidArgumentError(
            "map_and_batch takes num_parallel_calls or num_parallel_batches, not both."
        )
    if num_parallel_batches is not None:
        calls = num_parallel_batches * whole_number(batch_size, "batch_size")
    return lambda dataset: dataset.map(map_func, calls).batch(batch_size, drop_remainder)


@entry
def parallel_interleave(
    map_func: Callable[..., Any],
    cycle_length: IntLike,
    block_length: IntLike = 1,
    sloppy: bool = False,
    buffer_output_elements: IntLike | None = None,
    prefetch_input_elements: IntLike | None = None,
) -> Transformation:
    """A transformation for ``apply``: :meth:`Dataset.interleave` with ``cycle_length`` parallel calls.

    Args:
        map_func: returns a dataset for an element.
        cycle_length: the number of datasets that are read alternately.
        block_length: the number of consecutive elements that each gives.
        sloppy: whether elements may come in the order in which they are ready.
        buffer_output_elements, prefetch_input_elements: ignored: the buffers are as large as the cycle needs.

    >>> import dualflow as df
    >>> def twice(x):
    ...     return df.data.Dataset.from_tensors(x).repeat(2)
    >>> alternate = df.data.experimental.parallel_interleave(twice, cycle_length=2)
    >>> [int(x) for x in df.data.Dataset.range(2).apply(alternate)]
    [0, 1, 0, 1]
    """
    return lambda dataset: dataset.interleave(
        map_func, cycle_length, block_length, num_parallel_calls=cycle_length, deterministic=not sloppy
    )


@entry
def shuffle_and_repeat(
    buffer_size: IntLike, count: IntLike | None = None, seed: int | None = None
) -> Transformation:
    """A transformation for ``apply``: ``dataset.shuffle(buffer_size, seed).repeat(count)``.

    >>> import dualflow as df
    >>> numbers = df.data.Dataset.range(3).apply(df.data.experimental.shuffle_and_repeat(3, count=2))
    >>> sorted(int(x) for x in numbers)
    [0, 0, 1, 1, 2, 2]
    """
    return lambda dataset: dataset.shuffle(buffer_size, seed).repeat(count)


@entry
def scan(initial_state: object, scan_func: Callable[..., Any]) -> Transformation:
    """A transformation for ``apply``: :meth:`Dataset.scan` of the same arguments.

    >>> import dualflow as df
    >>> sums = df.data.experimental.scan(df.constant(0, df.int64), lambda total, x: (total + x, total + x))
    >>> [int(x) for x in df.data.Dataset.range(4).apply(sums)]
    [0, 1, 3, 6]
    """
    return lambda dataset: dataset.scan(initial_state, scan_func)


@entry
def take_while(predicate: Callable[..., Any]) -> Transformation:
    """A transformation for ``apply``: :meth:`Dataset.take_while` of the same argument.

    >>> import dualflow as df
    >>> small = df.data.experimental.take_while(lambda x: x < 2)
    >>> [int(x) for x in df.data.Dataset.range(9).apply(small)]
    [0, 1]
    """
    return lambda dataset: dataset.take_while(predicate)


@entry
def enumerate_dataset(start: IntLike = 0) -> Transformation:
    """A transformation for ``apply``: :meth:`Dataset.enumerate` of the same argument.

    >>> import dualflow as df
    >>> numbered = df.data.Dataset.range(5, 7).apply(df.data.experimental.enumerate_dataset())
    >>> [(int(i), int(x)) for i, x in numbered]
    [(0, 5), (1, 6)]
    """
    return lambda dataset: dataset.enumerate(start)


@entry
def ignore_errors(log_warning: bool = False) -> Transformation:
    """A transformation for ``apply``: :meth:`Dataset.ignore_errors` of the same argument.

    >>> import dualflow as df
    >>> tens = df.data.Dataset.range(-1, 2).map(lambda x: 10 // x)
    >>> [int(x) for x in tens.apply(df.data.experimental.ignore_errors())]
    [-10, 10]
    """
    return lambda dataset: dataset.ignore_errors(log_warning)


@entry
def unbatch() -> Transformation:
    """A transformation for ``apply``: :meth:`Dataset.unbatch`.

    >>> import dualflow as df
    >>> batches = df.data.Dataset.range(3).batch(2)
    >>> [int(x) for x in batches.apply(df.data.experimental.unbatch())]
    [0, 1, 2]
    """
    return lambda dataset: dataset.unbatch()


@entry
def unique() -> Transformation:
    """A transformation for ``apply``: :meth:`Dataset.unique`.

    >>> import dualflow as df
    >>> numbers = df.data.Dataset.from_tensor_slices([1, 2, 1])
    >>> [int(x) for x in numbers.apply(df.data.experimental.unique())]
    [1, 2]
    """
    return lambda dataset: dataset.unique()


@entry
def choose_from_datasets(
    datasets: Sequence[Dataset], choice_dataset: Dataset, stop_on_empty_dataset: bool = False
) -> Dataset:
    """:meth:`Dataset.choose_from_datasets` of the same arguments.

    >>> import dualflow as df
    >>> parts = [df.data.Dataset.from_tensors(x).repeat() for x in "ab"]
    >>> chosen = df.data.experimental.choose_from_datasets(parts, df.data.Dataset.range(2))
    >>> list(chosen.as_numpy_iterator())
    [b'a', b'b']
    """
    chosen: Dataset = Dataset.choose_from_datasets(datasets, choice_dataset, stop_on_empty_dataset)
    return chosen


@entry
def sample_from_datasets(
    datasets: Sequence[Dataset],
    weights: TensorLike | None = None,
    seed: int | None = None,
    stop_on_empty_dataset: bool = False,
) -> Dataset:
    """:meth:`Dataset.sample_from_datasets` of the same arguments.

    >>> import dualflow as df
    >>> parts = [df.data.Dataset.range(2), df.data.Dataset.range(5, 7)]
    >>> sorted(int(x) for x in df.data.experimental.sample_from_datasets(parts))
    [0, 1, 5, 6]
    """
    sampled: Dataset = Dataset.sample_from_datasets(datasets, weights, seed, stop_on_empty_dataset)
    return sampled


@entry
def Counter(start: IntLike = 0, step: IntLike = 1, dtype: DTypeLike = int64) -> Dataset:
    """:meth:`Dataset.counter` of the same arguments.

    >>> import dualflow as df
    >>> [int(x) for x in df.data.experimental.Counter(1, 2).take(3)]
    [1, 3, 5]
    """
    numbers: Dataset = Dataset.counter(start, step, dtype)
    return numbers


@entry
def RandomDataset(seed: int | None = None) -> Dataset:
    """:meth:`Dataset.random` of the same argument.

    >>> import dualflow as df
    >>> len(list(df.data.experimental.RandomDataset(seed=1).take(3)))
    3
    """
    numbers: Dataset = Dataset.random(seed)
    return numbers


@entry
def get_structure(dataset_or_iterator: Dataset | Iterator[Any]) -> Any:
    """The specs of the elements of a dataset or an iterator: its ``element_spec``.

    >>> import dualflow as df
    >>> df.data.experimental.get_structure(df.data.Dataset.range(3))
    TensorSpec(shape=(), dtype=tf.int64, name=None)
    """
    return dataset_or_iterator.element_spec


@entry
def save(
    dataset: Dataset,
    path: str,
    compression: str | None = None,
    shard_func: Callable[..., Any] | None = None,
    checkpoint_args: object = None,
) -> None:
    """:meth:`Dataset.save` of the same arguments.

    >>> import dualflow as df, tempfile
    >>> path = tempfile.mkdtemp() + "/numbers"
    >>> df.data.experimental.save(df.data.Dataset.range(3), path)
    >>> [int(x) for x in df.data.experimental.load(path)]
    [0, 1, 2]
    """
    dataset.save(path, compression, shard_func, checkpoint_args)


@entry
def load(
    path: str,
    element_spec: object = None,
    compression: str | None = None,
    reader_func: Callable[..., Any] | None = None,
) -> Dataset:
    """:meth:`Dataset.load` of the same arguments; :func:`save` has an example."""
    loaded: Dataset = Dataset.load(path, element_spec, compression, reader_func)
    return loaded
