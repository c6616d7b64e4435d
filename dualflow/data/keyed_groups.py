"""Stages that buffer elements: group_by_window, unique, rebatch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dualflow.core.convert import Array
from dualflow.core.errors import InvalidArgumentError
from dualflow.data.batching import row_count
from dualflow.data.element import ElementLayout, Item, with_new_axis, without_first_axis
from dualflow.data.functions import ElementFunction
from dualflow.data.nesting import InMemoryStage
from dualflow.data.stage import UNKNOWN, ReplayedIterator, Stage, StageIterator, UnaryStage


@dataclass(frozen=True, eq=False, kw_only=True)
class GroupByWindowStage(UnaryStage):
    """The elements of datasets that a function returns for groups of elements with equal keys.

    Attributes:
        key: returns the key of an element.
        reduction: returns a dataset for a key and the dataset of a group.
        elements: the layout of the elements of the returned datasets.
        size: returns the size of a group for a key.
        dataset_of: creates the dataset of a stage.
    """

    key: ElementFunction
    reduction: ElementFunction
    elements: ElementLayout
    size: Callable[[int], int]
    dataset_of: Callable[[Stage], Any]

    @property
    def layout(self) -> ElementLayout:
        return self.elements

    @property
    def cardinality(self) -> int:
        return UNKNOWN

    def start(self) -> StageIterator:
        return GroupByWindowIterator(self)


class GroupByWindowIterator(ReplayedIterator):
    """Buffers elements until a group is full; incomplete groups come at the end, by ascending key.

    The dataset of one group is read to its end before the source is read further.
    """

    _stage: GroupByWindowStage

    def __init__(self, stage: GroupByWindowStage) -> None:
        self._reduced: StageIterator | None = None
        super().__init__(stage)

    def restart(self) -> None:
        self._close_reduced()
        self._groups: dict[int, list[Item]] = {}
        self._ended = False

    def make(self, count: int) -> Sequence[Item]:
        elements: list[Item] = []
        while len(elements) < count:
            if self._reduced is None:
                key = self._next_key()
                if key is None:
                    break
                self._reduced = self._reduction(key)
            elements += self._reduced.next(count - len(elements))
            if len(elements) < count:
                self._close_reduced()
        return elements

    def _next_key(self) -> int | None:
        """The key of the next group to reduce: a full one, or any at the end of the source; None after it."""
        while not self._ended:
            items = self._upstream.next(1)
            if not len(items):
                self._ended = True
                break
            key = int(self._stage.key(*items[0])[0])
            group = self._groups.setdefault(key, [])
            group.append(items[0])
            if len(group) >= self._stage.size(key):
                return key
        return min(self._groups, default=None)

    def _reduction(self, key: int) -> StageIterator:
        """An iterator over the dataset that the user's function returns for a group."""
        stage = self._stage
        items = self._groups.pop(key)
        group = InMemoryStage(items=items, elements=stage.source.layout, origin=stage.origin)
        dataset = stage.reduction.result(np.array(key, np.int64), stage.dataset_of(group))
        iterator: StageIterator = dataset.stage.start()
        return iterator

    def _close_reduced(self) -> None:
        """Close the iterator over the dataset of the current group, if there is one."""
        if self._reduced is not None:
            self._reduced.close()
            self._reduced = None

    def close(self) -> None:
        self._close_reduced()
        super().close()


@dataclass(frozen=True, eq=False, kw_only=True)
class UniqueStage(UnaryStage):
    """The first of each set of equal elements."""

    @property
    def cardinality(self) -> int:
        return UNKNOWN

    def start(self) -> StageIterator:
        return UniqueIterator(self)


class UniqueIterator(ReplayedIterator):
    """Iterates over elements that differ from all earlier ones."""

    def restart(self) -> None:
        self._keys: set[tuple[Any, ...]] = set()

    def make(self, count: int) -> Sequence[Item]:
        elements: list[Item] = []
        while len(elements) < count and len(items := self._upstream.next(1)):
            key = tuple([(x.shape, _hashable(x)) for x in items[0]])
            if key not in self._keys:
                self._keys.add(key)
                elements.append(items[0])
        return elements


@dataclass(frozen=True, eq=False, kw_only=True)
class RebatchStage(UnaryStage):
    """A stage that splits and joins batches to batches of other sizes.

    Attributes:
        sizes: the sizes, which are used cyclically.
        drop_remainder: whether a smaller last batch is dropped.
    """

    sizes: tuple[int, ...]
    drop_remainder: bool

    @property
    def layout(self) -> ElementLayout:
        source = self.source.layout
        size = self.sizes[0] if self.drop_remainder and len(set(self.sizes)) == 1 else None
        return ElementLayout(
            source.structure, tuple([with_new_axis(without_first_axis(s), size) for s in source.specs])
        )

    @property
    def cardinality(self) -> int:
        return UNKNOWN

    def start(self) -> StageIterator:
        return RebatchIterator(self)


class RebatchIterator(ReplayedIterator):
    """Buffers the rows of batches until a new batch is full."""

    _stage: RebatchStage

    def restart(self) -> None:
        self._buffer: list[Item] = []
        self._rows = 0
        self._batches = 0

    def make(self, count: int) -> Sequence[Item]:
        batches: list[Item] = []
        while len(batches) < count:
            size = self._stage.sizes[self._batches % len(self._stage.sizes)]
            while self._rows < size and len(items := self._upstream.next(1)):
                rows = row_count(items[0], "rebatch", self._stage.where)
                self._check_row_shapes(items[0])
                self._buffer.append(items[0])
                self._rows += rows
            taken = min(size, self._rows)
            if not taken or (self._stage.drop_remainder and taken < size):
                break
            columns = [_joined(parts) for parts in zip(*self._buffer, strict=True)]
            batches.append(tuple([x[:taken] for x in columns]))
            self._rows -= taken
            self._buffer = [tuple([x[taken:] for x in columns])] if self._rows else []
            self._batches += 1
        return batches

    def _check_row_shapes(self, item: Item) -> None:
        for component, (x, y) in enumerate(zip(self._buffer[0], item, strict=True) if self._buffer else ()):
            if x.shape[1:] != y.shape[1:]:
                raise InvalidArgumentError(
                    f"rebatch can't join batches whose rows differ in shape in component {component}: "
                    f"{x.shape[1:]} and {y.shape[1:]}. Give them the same shape with map.{self._stage.where}"
                )


def _hashable(array: Array) -> Any:
    """The content of an array as a key: bytes, or a tuple of strings."""
    return tuple(array.ravel().tolist()) if array.dtype.kind == "O" else array.tobytes()


def _joined(parts: Sequence[Array]) -> Array:
    """The rows of ``parts`` as one array; a single part is not copied."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
