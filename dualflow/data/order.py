"""Stages that select or reorder elements without reading their values: take, skip, shard, repeat.

They work on the indices of elements as well: over a source with random access they select indices, and
the elements are gathered at the end, a batch at a time.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from dualflow.data.check_state import flag, number, parts
from dualflow.data.rows import RowIterator
from dualflow.data.stage import (
    INFINITE,
    UNKNOWN,
    IndexedRows,
    Stage,
    StageIterator,
    State,
    StatelessIterator,
    UnaryStage,
)

_MAX_BLOCK: Final = 256
"""The number of elements that are read at once to be skipped."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ReorderingStage(UnaryStage):
    """A stage that doesn't read the values of elements."""

    def indexed(self) -> tuple[IndexedRows, Stage] | None:
        source = self.source.indexed()
        return source and (source[0], replace(self, source=source[1]))

    def start(self) -> StageIterator:
        indexed = self.indexed()
        if indexed is None or indexed[1].source is self.source:  # type: ignore[attr-defined]  # it is of this class
            return self.iterate()
        return RowIterator(indexed[0], indexed[1].start())

    @property
    def yields_indices(self) -> bool:
        return self.source.yields_indices

    @abstractmethod
    def iterate(self) -> StageIterator:
        """Iterate over the source's elements, or over their indices."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TakeStage(ReorderingStage):
    """The first ``count`` elements; all if it is negative."""

    count: int

    @property
    def cardinality(self) -> int:
        available = self.source.cardinality
        if self.count < 0 or available == UNKNOWN:
            return available if self.count else 0
        return self.count if available == INFINITE else min(available, self.count)

    def iterate(self) -> StageIterator:
        return self.source.start() if self.count < 0 else TakeIterator(self.source.start(), self.count)


class TakeIterator(StatelessIterator):
    """Iterates over the first elements."""

    def __init__(self, upstream: StageIterator, count: int) -> None:
        super().__init__(upstream)
        self._count = self._left = count

    def next(self, count: int) -> Sequence[Any]:
        limit = min(count, self._left)
        if not limit:
            return ()
        elements = self._upstream.next(limit)
        self._left -= len(elements)
        return elements

    def get_state(self) -> State:
        return [self._left, self._upstream.get_state()]

    def set_state(self, state: State) -> None:
        left, upstream = parts(state, 2)
        self._left = number(left, self._count)
        self._upstream.set_state(upstream)


@dataclass(frozen=True, eq=False, kw_only=True)
class SkipStage(ReorderingStage):
    """All but the first ``count`` elements; none if it is negative."""

    count: int

    @property
    def cardinality(self) -> int:
        available = self.source.cardinality
        if self.count < 0:
            return 0
        return available if available < 0 else max(available - self.count, 0)

    def iterate(self) -> StageIterator:
        block = _MAX_BLOCK if self.yields_indices else 1  # others of a failing block may be lost
        return SkipIterator(self.source.start(), self.count, block)


class SkipIterator(StatelessIterator):
    """Skips the first elements when it is first read."""

    def __init__(self, upstream: StageIterator, count: int, block: int) -> None:
        super().__init__(upstream)
        self._count = self._left = count
        self._block = block
        self._done = count == 0

    def next(self, count: int) -> Sequence[Any]:
        while not self._done:  # resumes after an error
            skipped = self._upstream.next(self._block if self._left < 0 else min(self._left, self._block))
            self._left -= len(skipped) if self._left > 0 else 0
            self._done = not self._left or not len(skipped)
        return self._upstream.next(count)

    def get_state(self) -> State:
        begun = not self._done and self._left != self._count
        return [self._left if begun else self._done, self._upstream.get_state()]

    def set_state(self, state: State) -> None:
        done, upstream = parts(state, 2)
        self._done = done is True
        self._left = self._count if type(done) is bool else number(done, max(self._count, 0))
        self._upstream.set_state(upstream)


@dataclass(frozen=True, eq=False, kw_only=True)
class ShardStage(ReorderingStage):
    """The elements whose index is ``index`` modulo ``shards``."""

    shards: int
    index: int

    @property
    def cardinality(self) -> int:
        available = self.source.cardinality
        return available if available < 0 else max(0, -((self.index - available) // self.shards))

    def iterate(self) -> StageIterator:
        return ShardIterator(self.source.start(), self.shards, self.index)


class ShardIterator(StatelessIterator):
    """Iterates over every ``shards``-th element."""

    def __init__(self, upstream: StageIterator, shards: int, index: int) -> None:
        super().__init__(upstream)
        self._shards = shards
        self._index = index

    def next(self, count: int) -> Sequence[Any]:
        selected: list[Any] = []
        while len(selected) < count:
            groups = min(count - len(selected), max(1, _MAX_BLOCK // self._shards))
            block = self._upstream.next(groups * self._shards)
            selected.extend(block[self._index :: self._shards])  # which may be an array
            if len(block) < groups * self._shards:
                break
        return selected


@dataclass(frozen=True, eq=False, kw_only=True)
class RepeatStage(ReorderingStage):
    """The source repeated ``count`` times; endlessly if it is negative."""

    count: int

    @property
    def cardinality(self) -> int:
        available = self.source.cardinality
        if available == 0 or self.count == 0:
            return 0
        if self.count < 0:
            return INFINITE
        return available if available < 0 else available * self.count

    def iterate(self) -> StageIterator:
        return RepeatIterator(self.source, self.count)


class RepeatIterator(StageIterator):
    """Iterates over the source repeatedly."""

    def __init__(self, source: Stage, count: int) -> None:
        self._source = source
        self._count = self._left = count
        self._begin(source.start())  # also for a count of 0, since its state is part of this iterator's

    def _begin(self, iterator: StageIterator) -> None:
        self._current = iterator
        self.upstreams = (iterator,)
        self._empty = True

    def next(self, count: int) -> Sequence[Any]:
        elements: Sequence[Any] = ()
        while self._left and len(elements) < count:
            items = self._current.next(count - len(elements))
            elements = [*elements, *items] if len(elements) else items
            self._empty = self._empty and not len(items)
            if len(elements) < count:
                # an empty source ends an endless repeat
                self._left = 0 if self._empty else self._left - (self._left > 0)
                if self._left:
                    self._current.close()
                    self._begin(self._source.start())
        return elements

    def get_state(self) -> State:
        return [self._left, self._empty, self._current.get_state()]

    def set_state(self, state: State) -> None:
        left, empty, current = parts(state, 3)
        self._current.close()
        self._begin(self._source.start())
        self._left = left if left == self._count else number(left, max(self._count, 0))
        self._empty = flag(empty)
        self._current.set_state(current)
