"""Stages that keep earlier elements: groups by a key, no element twice, batches of another size."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dualflow.data.element import ElementLayout, Item, leading, trailing
from dualflow.data.functions import ElementFunction
from dualflow.data.nesting import KeptStage
from dualflow.data.stage import UNKNOWN, Cursor, OverOne, Replayed, Stage


@dataclass(frozen=True, eq=False, kw_only=True)
class GroupByWindowStage(OverOne):
    """What a function makes of so many elements of one key.

    Attributes:
        key: gives the key of an element.
        made: gives a dataset for a key and the dataset of a group.
        elements: the layout of the elements of these.
        size: how many elements of a key make a group.
        nest: makes the dataset of a stage.
    """

    key: ElementFunction
    made: ElementFunction
    elements: ElementLayout
    size: Callable[[int], int]
    nest: Callable[[Stage], Any]

    @property
    def layout(self) -> ElementLayout:
        return self.elements

    @property
    def cardinality(self) -> int:
        return UNKNOWN

    def start(self) -> Cursor:
        return GroupByWindowCursor(self)


class GroupByWindowCursor(Replayed):
    """A run that keeps elements until there are enough of their key; what is left comes by rising key."""

    def __init__(self, stage: GroupByWindowStage) -> None:
        super().__init__(stage.source.start())
        self._stage = stage
        self.restart()

    def restart(self) -> None:
        self._groups: dict[int, list[Item]] = {}
        self._ready: deque[Item] = deque()
        self._ended = False

    def make(self, count: int) -> Sequence[Item]:
        while len(self._ready) < count and not self._ended:
            items = self._upstream.pull(1)
            if not len(items):
                self._ended = True
                for key in sorted(self._groups):
                    self._emit(key)
                break
            key = int(self._stage.key(*items[0])[0])
            group = self._groups.setdefault(key, [])
            group.append(items[0])
            if len(group) >= self._stage.size(key):
                self._emit(key)
        return [self._ready.popleft() for _ in range(min(count, len(self._ready)))]

    def _emit(self, key: int) -> None:
        group = KeptStage(
            items=self._groups.pop(key), elements=self._stage.source.layout, origin=self._stage.origin
        )
        cursor = self._stage.made.result(np.array(key, np.int64), self._stage.nest(group)).stage.start()
        while len(items := cursor.pull(64)):
            self._ready += items
        cursor.close()


@dataclass(frozen=True, eq=False, kw_only=True)
class UniqueStage(OverOne):
    """The elements that are unlike all before them."""

    @property
    def cardinality(self) -> int:
        return UNKNOWN

    def start(self) -> Cursor:
        return UniqueCursor(self)


class UniqueCursor(Replayed):
    """A run that remembers what it has given."""

    def __init__(self, stage: UniqueStage) -> None:
        super().__init__(stage.source.start())
        self.restart()

    def restart(self) -> None:
        self._seen: set[tuple[Any, ...]] = set()

    def make(self, count: int) -> Sequence[Item]:
        found: list[Item] = []
        while len(found) < count and len(items := self._upstream.pull(1)):
            key = tuple([(x.shape, x.tobytes() if x.dtype.kind in "biufcV" else x.item()) for x in items[0]])
            if key not in self._seen:
                self._seen.add(key)
                found.append(items[0])
        return found


@dataclass(frozen=True, eq=False, kw_only=True)
class RebatchStage(OverOne):
    """The rows of batches in batches of other sizes, which come in turns.

    Attributes:
        sizes: the sizes.
        whole: whether what is left at the end is dropped.
    """

    sizes: tuple[int, ...]
    whole: bool

    @property
    def layout(self) -> ElementLayout:
        known = self.source.layout
        size = self.sizes[0] if self.whole and len(set(self.sizes)) == 1 else None
        return ElementLayout(known.structure, tuple([leading(trailing(s), size) for s in known.specs]))

    @property
    def cardinality(self) -> int:
        return UNKNOWN

    def start(self) -> Cursor:
        return RebatchCursor(self)


class RebatchCursor(Replayed):
    """A run that keeps the rows of batches until there are enough of them."""

    def __init__(self, stage: RebatchStage) -> None:
        super().__init__(stage.source.start())
        self._stage = stage
        self.restart()

    def restart(self) -> None:
        self._kept: list[Item] = []
        self._rows = 0
        self._turn = 0

    def make(self, count: int) -> Sequence[Item]:
        found: list[Item] = []
        while len(found) < count:
            size = self._stage.sizes[self._turn % len(self._stage.sizes)]
            while self._rows < size and len(items := self._upstream.pull(1)):
                self._kept.append(items[0])
                self._rows += len(items[0][0])
            taken = min(size, self._rows)
            if not taken or (self._stage.whole and taken < size):
                break
            whole = [np.concatenate(column) for column in zip(*self._kept, strict=True)]
            found.append(tuple([x[:taken] for x in whole]))
            self._rows -= taken
            self._kept = [tuple([x[taken:] for x in whole])] if self._rows else []
            self._turn += 1
        return found
