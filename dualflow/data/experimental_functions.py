"""Functions of datasets that are not methods: ``df.data.experimental``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dualflow.core.dtypes import int64
from dualflow.core.errors import DTypeError, FailedPreconditionError
from dualflow.core.tracebacks import entry
from dualflow.data.arguments import whole_number
from dualflow.data.check_state import flag, number, parts
from dualflow.data.dataset import Dataset
from dualflow.data.element import Item
from dualflow.data.functions import DebugMode
from dualflow.data.iterator import Iterator
from dualflow.data.optional import Optional
from dualflow.data.stage import INFINITE, StageIterator, State, StatelessIterator, UnaryStage
from dualflow.data.tracing import TracedIterator
from dualflow.eager.tensor import EagerTensor

if TYPE_CHECKING:
    from dualflow.core.argument_types import DTypeLike, IntLike


@entry
def cardinality(dataset: Dataset) -> EagerTensor:
    """``dataset.cardinality()``.

    >>> import dualflow as df
    >>> int(df.data.experimental.cardinality(df.data.Dataset.range(3)))
    3
    """
    return dataset.cardinality()


@entry
def get_single_element(dataset: Dataset) -> Any:
    """The element of a dataset that has one, as :meth:`Dataset.get_single_element`.

    >>> import dualflow as df
    >>> int(df.data.experimental.get_single_element(df.data.Dataset.range(7, 8)))
    7
    """
    return dataset.get_single_element()


@entry
def enable_debug_mode() -> None:
    """Run the functions of datasets created from now on in Python, without tracing.

    Breakpoints and prints in them are then reached for each element.

    >>> import dualflow as df
    >>> df.data.experimental.enable_debug_mode()  # doctest: +SKIP
    """
    DebugMode.on = True


@entry
def dense_to_ragged_batch(
    batch_size: IntLike, drop_remainder: bool = False, row_splits_dtype: DTypeLike = int64
) -> Callable[[Dataset], Dataset]:
    """A transformation for ``apply``: ``dataset.ragged_batch(...)``.

    >>> import dualflow as df
    >>> rows = df.data.Dataset.range(3).map(lambda n: df.range(n))
    >>> batches = rows.apply(df.data.experimental.dense_to_ragged_batch(3))
    >>> [batch.to_list() for batch in batches]
    [[[], [0], [0, 1]]]
    """
    return lambda dataset: dataset.ragged_batch(batch_size, drop_remainder, row_splits_dtype)


@entry
def assert_cardinality(expected_cardinality: IntLike) -> Callable[[Dataset], Dataset]:
    """A transformation for ``apply`` that declares the number of elements of a dataset.

    Args:
        expected_cardinality: the number, or INFINITE_CARDINALITY.

    Raises:
        FailedPreconditionError: during iteration, there are more or fewer.

    >>> import dualflow as df
    >>> even = df.data.Dataset.range(6).filter(lambda x: x % 2 == 0)
    >>> len(even.apply(df.data.experimental.assert_cardinality(3)))
    3
    """
    count = whole_number(expected_cardinality, "expected_cardinality")

    def apply(dataset: Dataset) -> Dataset:
        asserted: Dataset = dataset.then(AssertedStage(source=dataset.stage, count=count))
        return asserted

    return apply


@entry
def get_next_as_optional(iterator: Iterator[Any]) -> Optional:
    """The next element of an iterator, or nothing at its end.

    Args:
        iterator: what ``iter(dataset)`` returns.

    Returns:
        A :class:`dualflow.experimental.Optional`.

    Raises:
        DTypeError: ``iterator`` is something else.

    >>> import dualflow as df
    >>> optional = df.data.experimental.get_next_as_optional(iter(df.data.Dataset.range(3)))
    >>> optional.get_value().numpy()
    np.int64(0)
    """
    if not isinstance(iterator, Iterator | TracedIterator):
        raise DTypeError(f"An iterator was expected, as iter(dataset) returns it, not {iterator!r}.")
    return iterator.get_next_as_optional()


@dataclass(frozen=True, eq=False, kw_only=True)
class AssertedStage(UnaryStage):
    """Passes the elements through, and declares their number to be ``count``."""

    count: int

    @property
    def cardinality(self) -> int:
        return self.count

    def start(self) -> StageIterator:
        return AssertedIterator(self)


class AssertedIterator(StatelessIterator):
    """Counts the elements, and raises an error if their number isn't the declared one."""

    def __init__(self, stage: AssertedStage) -> None:
        super().__init__(stage.source.start())
        self._stage = stage
        self._num_read = 0
        self._ended = False

    def next(self, count: int) -> Sequence[Item]:
        if self._ended:
            return ()
        expected, where = self._stage.count, self._stage.where
        elements = self._upstream.next(count)
        self._num_read += len(elements)
        if expected != INFINITE and self._num_read > expected:
            raise FailedPreconditionError(
                f"Input dataset was expected to contain {expected} elements but contained at least "
                f"{self._num_read}.{where}"
            )
        self._ended = len(elements) < count
        if self._ended and self._num_read != expected:
            declared = "an infinite number of" if expected == INFINITE else expected
            raise FailedPreconditionError(
                f"Input dataset was expected to contain {declared} elements but contained only "
                f"{self._num_read}.{where}"
            )
        return elements

    def get_state(self) -> State:
        return [self._num_read, self._ended, self._upstream.get_state()]

    def set_state(self, state: State) -> None:
        num_read, ended, upstream = parts(state, 3)
        self._num_read, self._ended = number(num_read), flag(ended)
        self._upstream.set_state(upstream)
