"""Stages that change which elements come, and in which order, without looking at them.

So they do the same with the numbers of elements: over a source whose elements have numbers, they run on
these, and the elements are taken at the end, a batch at a time.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from dualflow.data.rows import RowCursor
from dualflow.data.stage import INFINITE, UNKNOWN, Cursor, IndexedRows, OneToOne, OverOne, Stage, State
from dualflow.data.states import flag, number, parts


@dataclass(frozen=True, eq=False, kw_only=True)
class Reordering(OverOne):
    """A stage that doesn't look at elements."""

    def indexed(self) -> tuple[IndexedRows, Stage] | None:
        found = self.source.indexed()
        return found and (found[0], replace(self, source=found[1]))

    def start(self) -> Cursor:
        found = self.indexed()
        if found is None or found[1].source is self.source:  # type: ignore[attr-defined]  # it is of this class
            return self.run()
        return RowCursor(found[0], found[1].start())

    @abstractmethod
    def run(self) -> Cursor:
        """A run through it, whatever its elements are."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TakeStage(Reordering):
    """The first ``count`` elements; all where it is negative."""

    count: int

    @property
    def cardinality(self) -> int:
        known = self.source.cardinality
        if self.count < 0 or known == UNKNOWN:
            return known if self.count else 0
        return self.count if known == INFINITE else min(known, self.count)

    def run(self) -> Cursor:
        return self.source.start() if self.count < 0 else TakeCursor(self.source.start(), self.count)


class TakeCursor(OneToOne):
    """The first elements of a run."""

    def __init__(self, upstream: Cursor, count: int) -> None:
        super().__init__(upstream)
        self._count = self._left = count

    def pull(self, count: int) -> Sequence[Any]:
        wanted = min(count, self._left)
        if not wanted:
            return ()
        found = self._upstream.pull(wanted)
        self._left -= len(found)
        return found

    def get_state(self) -> State:
        return [self._left, self._upstream.get_state()]

    def set_state(self, state: State) -> None:
        left, upstream = parts(state, 2)
        self._left = number(left, self._count)
        self._upstream.set_state(upstream)


@dataclass(frozen=True, eq=False, kw_only=True)
class SkipStage(Reordering):
    """All but the first ``count`` elements; none where it is negative."""

    count: int

    @property
    def cardinality(self) -> int:
        known = self.source.cardinality
        if self.count < 0:
            return 0
        return known if known < 0 else max(known - self.count, 0)

    def run(self) -> Cursor:
        return SkipCursor(self.source.start(), self.count)


class SkipCursor(OneToOne):
    """A run without its beginning, which it leaves out when it is first asked."""

    def __init__(self, upstream: Cursor, count: int) -> None:
        super().__init__(upstream)
        self._count = self._left = count
        self._done = count == 0

    def pull(self, count: int) -> Sequence[Any]:
        while not self._done:  # also after an error
            skipped = self._upstream.pull(256 if self._left < 0 else min(self._left, 256))
            self._left -= len(skipped) if self._left > 0 else 0
            self._done = not self._left or not len(skipped)
        return self._upstream.pull(count)

    def get_state(self) -> State:
        begun = not self._done and self._left != self._count
        return [self._left if begun else self._done, self._upstream.get_state()]

    def set_state(self, state: State) -> None:
        done, upstream = parts(state, 2)
        self._done = done is True
        self._left = self._count if type(done) is bool else number(done, max(self._count, 0))
        self._upstream.set_state(upstream)


@dataclass(frozen=True, eq=False, kw_only=True)
class ShardStage(Reordering):
    """Every element whose number is ``index`` modulo ``shards``."""

    shards: int
    index: int

    @property
    def cardinality(self) -> int:
        known = self.source.cardinality
        return known if known < 0 else max(0, -((self.index - known) // self.shards))

    def run(self) -> Cursor:
        return ShardCursor(self.source.start(), self.shards, self.index)


class ShardCursor(OneToOne):
    """Every so many elements of a run."""

    def __init__(self, upstream: Cursor, shards: int, index: int) -> None:
        super().__init__(upstream)
        self._shards = shards
        self._index = index

    def pull(self, count: int) -> Sequence[Any]:
        return self._upstream.pull(count * self._shards)[self._index :: self._shards]


@dataclass(frozen=True, eq=False, kw_only=True)
class RepeatStage(Reordering):
    """The source so many times in turn, without end where ``count`` is negative."""

    count: int

    @property
    def cardinality(self) -> int:
        known = self.source.cardinality
        if known == 0 or self.count == 0:
            return 0
        if self.count < 0:
            return INFINITE
        return known if known < 0 else known * self.count

    def run(self) -> Cursor:
        return RepeatCursor(self.source, self.count)


class RepeatCursor(Cursor):
    """One run through a stage after the other."""

    def __init__(self, source: Stage, count: int) -> None:
        self._source = source
        self._count = self._left = count
        self._begin(source.start())  # also where no run is wanted: its state belongs to this one's

    def _begin(self, run: Cursor) -> None:
        self._current = run
        self.upstreams = (run,)
        self._empty = True

    def pull(self, count: int) -> Sequence[Any]:
        found: Sequence[Any] = ()
        while self._left and len(found) < count:
            more = self._current.pull(count - len(found))
            found = [*found, *more] if len(found) else more
            self._empty = self._empty and not len(more)
            if len(found) < count:
                self._left = 0 if self._empty else self._left - (self._left > 0)  # nothing would never end
                if self._left:
                    self._current.close()
                    self._begin(self._source.start())
        return found

    def get_state(self) -> State:
        return [self._left, self._empty, self._current.get_state()]

    def set_state(self, state: State) -> None:
        left, empty, current = parts(state, 3)
        self._current.close()
        self._begin(self._source.start())
        self._left = left if left == self._count else number(left, max(self._count, 0))
        self._empty = flag(empty)
        self._current.set_state(current)
