"""Sources: stages that don't read from others."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from dualflow.core.errors import FailedPreconditionError
from dualflow.data.check_state import number, wrong_state
from dualflow.data.element import ElementLayout, Item
from dualflow.data.rows import RowIterator
from dualflow.data.stage import INFINITE, UNKNOWN, IndexedRows, Stage, StageIterator, State


@dataclass(frozen=True, eq=False, kw_only=True)
class NumbersStage(Stage):
    """The integers below ``count``, as indices of rows; endless if it is ``INFINITE``."""

    count: int

    @property
    def layout(self) -> ElementLayout:
        raise NotImplementedError("indices of rows are not elements")

    @property
    def cardinality(self) -> int:
        return self.count

    @property
    def yields_indices(self) -> bool:
        return True

    def start(self) -> StageIterator:
        return NumberIterator(self.count)


class NumberIterator(StageIterator):
    """Iterates over integers."""

    def __init__(self, count: int) -> None:
        self._count = count if count != INFINITE else 1 << 62
        self._at = 0

    def next(self, count: int) -> Sequence[int]:
        start = self._at
        end = start + count
        if end > self._count:
            end = self._count
        self._at = end
        return range(start, end)

    def get_state(self) -> State:
        return self._at

    def set_state(self, state: State) -> None:
        self._at = number(state, self._count)


@dataclass(frozen=True, eq=False, kw_only=True)
class RowsStage(Stage):
    """Elements with random access.

    Attributes:
        rows: the elements by index.
        count: their number.
        elements: their layout.
    """

    rows: IndexedRows
    count: int
    elements: ElementLayout

    @property
    def layout(self) -> ElementLayout:
        return self.elements

    @property
    def cardinality(self) -> int:
        return self.count

    def start(self) -> StageIterator:
        return RowIterator(self.rows, NumberIterator(self.count))

    def indexed(self) -> tuple[IndexedRows, Stage]:
        return self.rows, NumbersStage(count=self.count, origin=self.origin)

    def describe(self) -> str:
        return f"Rows[{self.count}]"


@dataclass(frozen=True, eq=False, kw_only=True)
class IteratedStage(Stage):
    """The elements of iterators that a function returns.

    Attributes:
        iterate: returns a new iterator over the elements.
        elements: their layout.
        count: their number, if it is known.
    """

    iterate: Callable[[], Iterator[Item]]
    elements: ElementLayout
    count: int = UNKNOWN

    @property
    def layout(self) -> ElementLayout:
        return self.elements

    @property
    def cardinality(self) -> int:
        return self.count

    def start(self) -> StageIterator:
        return FunctionIterator(self.iterate)


class FunctionIterator(StageIterator):
    """Iterates over a Python iterator; a state is restored by skipping elements."""

    def __init__(self, iterate: Callable[[], Iterator[Item]]) -> None:
        self._iterate = iterate
        self._iterator: Iterator[Item] | None = None
        self._count = 0

    def next(self, count: int) -> Sequence[Item]:
        if self._iterator is None:
            self._iterator = self._iterate()
        elements = list(itertools.islice(self._iterator, count))
        self._count += len(elements)
        return elements

    def get_state(self) -> State:
        return self._count

    def set_state(self, state: State) -> None:
        count = number(state)
        self.close()
        self._iterator = self._iterate()
        self._count = sum(1 for _ in itertools.islice(self._iterator, count))
        if self._count < count:
            raise wrong_state(state, f"a number up to {self._count}, the number of elements,")

    def close(self) -> None:
        """Close a generator, so that its ``finally`` clauses run."""
        end = getattr(self._iterator, "close", None)
        if end is not None:
            end()


@dataclass(frozen=True, eq=False, kw_only=True)
class UnknownStage(Stage):
    """A dataset of a known layout without elements, for tracing functions of datasets."""

    elements: ElementLayout

    @property
    def layout(self) -> ElementLayout:
        return self.elements

    @property
    def cardinality(self) -> int:
        return UNKNOWN

    def start(self) -> StageIterator:
        raise FailedPreconditionError(
            "A function of elements is called once before there is an element, to find the layout of its "
            "results; its dataset can't be iterated in Python then. Use the dataset's methods, such as "
            f"reduce.{self.where}"
        )
