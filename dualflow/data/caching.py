"""A stage that caches its source's elements, in memory or in a file, once they have been read to the end."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from dualflow.core.errors import InvalidArgumentError
from dualflow.data.element import Item
from dualflow.data.element_files import ElementWriter, FileRows
from dualflow.data.stage import ReplayedIterator, StageIterator, State, UnaryStage


class CachedRun(NamedTuple):
    """All elements of the source, and the state of its iterator before the first one."""

    items: Sequence[Item]
    first_state: State


class CacheMemory:
    """The cache that all iterators over a cached dataset share.

    Attributes:
        run: the cached elements; None until an iterator has read the source to its end.
    """

    def __init__(self) -> None:
        self.run: CachedRun | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class CacheStage(UnaryStage):
    """The source's elements, computed once; cached in ``file``, or in memory if that is empty."""

    file: str
    memory: CacheMemory = field(default_factory=CacheMemory, repr=False)

    def start(self) -> StageIterator:
        return FileCacheIterator(self) if self.file else MemoryCacheIterator(self)


class MemoryCacheIterator(ReplayedIterator):
    """Iterates over the cached elements; until they are cached, over the source, caching its elements."""

    def __init__(self, stage: CacheStage) -> None:
        super().__init__(stage)
        self._memory = stage.memory
        cached = self._memory.run
        if cached is not None:
            self._first_state = cached.first_state

    def restart(self) -> None:
        self._items: list[Item] = []
        self._ended = False
        self._at = 0

    def make(self, count: int) -> Sequence[Item]:
        cached = self._memory.run
        if self._items or cached is None or cached.first_state != self._first_state:
            return self._make_more(count)
        items = cached.items[self._at : self._at + count]
        self._at += len(items)
        return items

    def _make_more(self, count: int) -> Sequence[Item]:
        if self._ended:
            return ()
        items = self._upstream.next(count)
        self._items += items
        self._ended = len(items) < count
        if self._ended and self._memory.run is None:
            self._memory.run = CachedRun(self._items, self._first_state)
        return items


class FileCacheIterator(ReplayedIterator):
    """Iterates over a complete cache file; until there is one, over the source, writing its elements.

    After an error in writing, it still returns the elements.
    """

    _stage: CacheStage

    def __init__(self, stage: CacheStage) -> None:
        self._writer: ElementWriter | None = None
        super().__init__(stage)

    def restart(self) -> None:
        self._drop()
        self._rows = self._open_file()
        self._at = 0
        self._writes = True
        self._ended = False
        self._unwritten: Sequence[Item] = ()

    def _open_file(self) -> FileRows | None:
        """The complete file, if there is one."""
        path, layout = self._stage.file, self._stage.layout
        if not os.path.exists(path):
            return None
        rows = FileRows(path)
        if not rows.has_elements_of(layout):
            raise InvalidArgumentError(
                f"The cache file {path!r} has elements of {rows.layout.element_spec!r}, but the dataset has "
                f"elements of {layout.element_spec!r}. Remove the file, or give another "
                f"name.{self._stage.where}"
            )
        return rows

    def make(self, count: int) -> Sequence[Item]:
        if self._rows is not None:
            indices = range(self._at, min(self._at + count, len(self._rows)))
            self._at = indices.stop
            return [self._rows.row(i) for i in indices]
        if len(self._unwritten):
            items, self._unwritten = self._unwritten[:count], self._unwritten[count:]
            return items if len(items) == count else [*items, *self.make(count - len(items))]
        if self._ended:
            return ()
        items = self._upstream.next(count)
        self._ended = len(items) < count
        if self._writes:
            self._write(items)
        return items

    def _write(self, items: Sequence[Item]) -> None:
        self._writes, self._unwritten = False, items
        if self._writer is None:
            self._writer = ElementWriter(self._stage.file, self._stage.layout)
        if not self._writer.is_inherited:  # in a forked process, the parent writes the file
            for item in items:
                self._writer.write(item)
            if self._ended:
                self._writer.finish()
            self._writes = True
        self._unwritten = ()

    def _drop(self) -> None:
        if self._writer is not None:
            self._writer.drop()
            self._writer = None

    def close(self) -> None:
        self._drop()
        super().close()
