"""A stage that keeps its source's elements, in memory or in a file, once a run has come to the end."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field

from dualflow.data.element import Item
from dualflow.data.element_files import ElementWriter, FileRows
from dualflow.data.stage import Cursor, OverOne, Replayed, State


class KeptElements:
    """The elements of a complete run, and where the source was before them.

    Attributes:
        items: None until there was such a run.
        begun: the source's state at the beginning.
    """

    def __init__(self) -> None:
        self.items: Sequence[Item] | None = None
        self.begun: State = None


@dataclass(frozen=True, eq=False, kw_only=True)
class CacheStage(OverOne):
    """The source's elements, made once; in the file of this name where it isn't empty."""

    file: str
    kept: KeptElements = field(default_factory=KeptElements, repr=False)

    def start(self) -> Cursor:
        return FileCacheCursor(self) if self.file else MemoryCacheCursor(self)


class MemoryCacheCursor(Replayed):
    """A run through what is kept; else through the source, whose elements it keeps at the end."""

    def __init__(self, stage: CacheStage) -> None:
        super().__init__(stage.source.start())
        self._kept = stage.kept
        if self._kept.items is not None:
            self._begun = self._kept.begun
        self.restart()

    def restart(self) -> None:
        self._items: list[Item] = []
        self._ended = False
        self._at = 0

    def make(self, count: int) -> Sequence[Item]:
        kept = self._kept
        if self._items or kept.items is None or kept.begun != self._begun:
            return self._make_more(count)
        found = kept.items[self._at : self._at + count]
        self._at += len(found)
        return found

    def _make_more(self, count: int) -> Sequence[Item]:
        if self._ended:
            return ()
        found = self._upstream.pull(count)
        self._items += found
        self._ended = len(found) < count
        if self._ended and self._kept.items is None:
            self._kept.items, self._kept.begun = self._items, self._begun
        return found


class FileCacheCursor(Replayed):
    """A run through a complete file; else through the source, which writes one."""

    def __init__(self, stage: CacheStage) -> None:
        super().__init__(stage.source.start())
        self._stage = stage
        self._writer: ElementWriter | None = None
        self.restart()

    def restart(self) -> None:
        self._drop()
        self._rows = FileRows(self._stage.file) if os.path.exists(self._stage.file) else None
        self._at = 0

    def make(self, count: int) -> Sequence[Item]:
        if self._rows is not None:
            end = min(self._at + count, len(self._rows))
            places = range(self._at, end)
            self._at = end
            return [self._rows.row(i) for i in places]
        if self._at < 0:
            return ()
        if self._writer is None:
            self._writer = ElementWriter(self._stage.file, self._stage.layout)
        found = self._upstream.pull(count)
        for item in found:
            self._writer.write(item)
        if len(found) < count:
            self._writer.finish()
            self._at = -1
        return found

    def _drop(self) -> None:
        if self._writer is not None:
            self._writer.drop()
            self._writer = None

    def close(self) -> None:
        self._drop()
        super().close()
