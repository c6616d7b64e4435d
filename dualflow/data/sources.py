"""Stages without a source: where elements come from."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from dualflow.core.errors import FailedPreconditionError
from dualflow.data.element import ElementLayout, Item
from dualflow.data.rows import RowCursor
from dualflow.data.stage import INFINITE, UNKNOWN, Cursor, IndexedRows, Stage, State
from dualflow.data.states import number, wrong_state


@dataclass(frozen=True, eq=False, kw_only=True)
class NumbersStage(Stage):
    """The integers from 0 to ``count``, as the numbers of rows; without end where it is ``INFINITE``."""

    count: int

    @property
    def layout(self) -> ElementLayout:
        raise NotImplementedError("the numbers of rows are no elements")

    @property
    def cardinality(self) -> int:
        return self.count

    def start(self) -> Cursor:
        return NumberCursor(self.count)


class NumberCursor(Cursor):
    """A run through integers."""

    def __init__(self, count: int) -> None:
        self._count = count if count != INFINITE else 1 << 62
        self._at = 0

    def pull(self, count: int) -> Sequence[int]:
        begun = self._at
        end = begun + count
        if end > self._count:
            end = self._count
        self._at = end
        return range(begun, end)

    def get_state(self) -> State:
        return self._at

    def set_state(self, state: State) -> None:
        self._at = number(state, self._count)


@dataclass(frozen=True, eq=False, kw_only=True)
class RowsStage(Stage):
    """Elements that have numbers, from the first to the last.

    Attributes:
        rows: finds them.
        count: how many there are.
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

    def start(self) -> Cursor:
        return RowCursor(self.rows, NumberCursor(self.count))

    def indexed(self) -> tuple[IndexedRows, Stage]:
        return self.rows, NumbersStage(count=self.count, origin=self.origin)

    def describe(self) -> str:
        return f"Rows[{self.count}]"


@dataclass(frozen=True, eq=False, kw_only=True)
class IteratedStage(Stage):
    """What a function that is called for each run iterates over.

    Attributes:
        iterate: returns a new iterator of elements.
        elements: their layout.
        count: how many there are, if that is known.
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

    def start(self) -> Cursor:
        return IteratedCursor(self.iterate)


class IteratedCursor(Cursor):
    """A run through an iterator; it goes to a state of the iterator's own, or by leaving elements out."""

    def __init__(self, iterate: Callable[[], Iterator[Item]]) -> None:
        self._iterate = iterate
        self._iterator: Iterator[Item] | None = None
        self._count = 0

    def pull(self, count: int) -> Sequence[Item]:
        if self._iterator is None:
            self._iterator = self._iterate()
        found = list(itertools.islice(self._iterator, count))
        self._count += len(found)
        return found

    def get_state(self) -> State:
        return self._count

    def set_state(self, state: State) -> None:
        count = number(state)
        self.close()
        self._iterator = self._iterate()
        self._count = sum(1 for _ in itertools.islice(self._iterator, count))
        if self._count < count:
            raise wrong_state(state, f"a number up to {self._count}, how many elements there are,")

    def close(self) -> None:
        """End a generator, so that its ``finally`` clauses run."""
        end = getattr(self._iterator, "close", None)
        if end is not None:
            end()


@dataclass(frozen=True, eq=False, kw_only=True)
class UnknownStage(Stage):
    """A dataset of which only the layout is known: what functions of datasets are tried with."""

    elements: ElementLayout

    @property
    def layout(self) -> ElementLayout:
        return self.elements

    @property
    def cardinality(self) -> int:
        return UNKNOWN

    def start(self) -> Cursor:
        raise FailedPreconditionError(
            "A function of elements is called once before there is an element, to see what it returns; a "
            "dataset that it is given can't be iterated in Python then. Use its methods, such as "
            f"reduce.{self.where}"
        )
