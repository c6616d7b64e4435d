"""Stages whose functions give a dataset for each element: one after the other, or in turns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dualflow.core.errors import DTypeError
from dualflow.core.tree import LEAF
from dualflow.data.element import AbstractDataset, ElementLayout, Item
from dualflow.data.functions import ElementFunction
from dualflow.data.prefetching import PrefetchStage
from dualflow.data.stage import UNKNOWN, Cursor, OverOne, Stage, State
from dualflow.data.states import flag, number, parts, wrong_state


@dataclass(frozen=True, eq=False, kw_only=True)
class InterleaveStage(OverOne):
    """The elements of the datasets that a function gives, some datasets at a time.

    Attributes:
        function: gives a dataset for an element.
        elements: the layout of the elements of these.
        cycle: how many datasets are read in turns.
        block: how many elements of one come in a row.
        ahead: how many elements of each are made ahead, in a thread each; 0 for none.
    """

    function: ElementFunction
    elements: ElementLayout
    cycle: int
    block: int
    ahead: int = 0

    @property
    def layout(self) -> ElementLayout:
        return self.elements

    @property
    def cardinality(self) -> int:
        return 0 if self.source.cardinality == 0 else UNKNOWN

    def start(self) -> Cursor:
        return InterleaveCursor(self)

    def inner(self, item: Item) -> Stage:
        """The stage of the dataset for an element."""
        found = self.function.result(*item)
        if not isinstance(found, AbstractDataset):
            raise DTypeError(
                f"{self.function.name!r} must return a dataset for each element, not {found!r}.{self.where}"
            )
        stage: Stage = found.stage
        return stage if not self.ahead else PrefetchStage(source=stage, size=self.ahead, origin=self.origin)


class _Slot:
    """One of the datasets that are read in turns.

    Attributes:
        before: where the source was before it gave the dataset's element.
        cursor: the run through the dataset.
    """

    def __init__(self, before: State, cursor: Cursor) -> None:
        self.before = before
        self.cursor = cursor


class InterleaveCursor(Cursor):
    """Runs through several datasets in turns; where one ends, the next of the source's takes its place."""

    def __init__(self, stage: InterleaveStage) -> None:
        self._stage = stage
        self._upstream = stage.source.start()
        self.upstreams = (self._upstream,)
        self._slots: list[_Slot | None] = [None] * stage.cycle
        self._at = 0
        self._taken = 0
        self._ended = False

    def pull(self, count: int) -> Sequence[Item]:
        found: list[Item] = []
        while len(found) < count:
            slot = self._slots[self._at]
            if slot is None:
                slot = self._open()
                if slot is None:
                    if self._ended and not any(self._slots):
                        break
                    self._go_on()
                    continue
            wanted = min(self._stage.block - self._taken, count - len(found))
            items = slot.cursor.pull(wanted)
            found += items
            self._taken += len(items)
            if len(items) < wanted:
                slot.cursor.close()
                self._slots[self._at] = None
                self._go_on()
            elif self._taken == self._stage.block:
                self._go_on()
        return found

    def _go_on(self) -> None:
        self._at = (self._at + 1) % len(self._slots)
        self._taken = 0

    def _open(self) -> _Slot | None:
        """Begin the source's next dataset in the empty place; None where there is none."""
        if self._ended:
            return None
        before = self._upstream.get_state()
        items = self._upstream.pull(1)
        if not len(items):
            self._ended = True
            return None
        slot = self._slots[self._at] = _Slot(before, self._stage.inner(items[0]).start())
        return slot

    def get_state(self) -> State:
        slots = [None if s is None else [s.before, s.cursor.get_state()] for s in self._slots]
        return [self._at, self._taken, self._ended, self._upstream.get_state(), slots]

    def set_state(self, state: State) -> None:
        at, taken, ended, upstream, slots = parts(state, 5)
        self.close()
        self._at = number(at, self._stage.cycle - 1)
        self._taken = number(taken, self._stage.block)
        self._ended = flag(ended)
        self._slots = [None] * self._stage.cycle
        for place, saved in enumerate(parts(slots, self._stage.cycle)):
            if saved is not None:
                self._slots[place] = self._restored(*parts(saved, 2))
        self._upstream.set_state(upstream)

    def _restored(self, before: State, place: State) -> _Slot:
        """The dataset of the element after ``before`` in the source, at a saved place."""
        self._upstream.set_state(before)
        items = self._upstream.pull(1)
        if not len(items):
            raise wrong_state(before, "a place before the source's end")
        cursor = self._stage.inner(items[0]).start()
        cursor.set_state(place)
        return _Slot(before, cursor)

    def close(self) -> None:
        for slot in self._slots:
            if slot is not None:
                slot.cursor.close()
        super().close()


@dataclass(frozen=True, eq=False, kw_only=True)
class WindowStage(OverOne):
    """Datasets of some elements in a row each.

    Attributes:
        size: how many elements a window has.
        shift: how far the next one begins behind it.
        stride: how far its elements are apart.
        whole: whether smaller ones at the end are dropped.
        specs: of the datasets.
        nest: makes the dataset of a stage.
    """

    size: int
    shift: int
    stride: int
    whole: bool
    specs: ElementLayout
    nest: Callable[[Stage], Any]

    @property
    def layout(self) -> ElementLayout:
        return self.specs

    @property
    def cardinality(self) -> int:
        known = self.source.cardinality
        if known < 0:
            return known
        span = (self.size - 1) * self.stride + 1 if self.whole else 1
        return max(0, (known - span) // self.shift + 1)

    def start(self) -> Cursor:
        return WindowCursor(self)


@dataclass(frozen=True, eq=False, kw_only=True)
class KeptStage(Stage):
    """Elements that are in memory.

    Attributes:
        items: the elements.
        elements: their layout.
    """

    items: Sequence[Item]
    elements: ElementLayout

    @property
    def layout(self) -> ElementLayout:
        return self.elements

    @property
    def cardinality(self) -> int:
        return len(self.items)

    def start(self) -> Cursor:
        return KeptCursor(self.items)


class KeptCursor(Cursor):
    """A run through elements that are in memory."""

    def __init__(self, items: Sequence[Item]) -> None:
        self._items = items
        self._at = 0

    def pull(self, count: int) -> Sequence[Item]:
        found = self._items[self._at : self._at + count]
        self._at += len(found)
        return found

    def get_state(self) -> State:
        return self._at

    def set_state(self, state: State) -> None:
        self._at = number(state, len(self._items))


class WindowCursor(Cursor):
    """A run through windows; its place is where the source was before the elements that it keeps."""

    def __init__(self, stage: WindowStage) -> None:
        self._stage = stage
        self._upstream = stage.source.start()
        self.upstreams = (self._upstream,)
        self._kept: list[tuple[State, Item]] = []
        self._skip = 0

    def pull(self, count: int) -> Sequence[Item]:
        stage = self._stage
        found: list[Item] = []
        span = (stage.size - 1) * stage.stride + 1
        while len(found) < count:
            while self._skip and len(self._upstream.pull(1)):
                self._skip -= 1
            self._skip = 0
            while len(self._kept) < span:
                before = self._upstream.get_state()
                items = self._upstream.pull(1)
                if not len(items):
                    break
                self._kept.append((before, items[0]))
            window = [item for _, item in self._kept[: span : stage.stride]]
            if not window or (stage.whole and len(window) < stage.size):
                break
            found.append(self._datasets(window))
            self._skip = max(0, stage.shift - len(self._kept))
            del self._kept[: stage.shift]
        return found

    def _datasets(self, window: list[Item]) -> Item:
        """One dataset for each leaf of the elements."""
        specs = self._stage.source.layout.specs
        made = [
            KeptStage(
                items=[(item[i],) for item in window],
                elements=ElementLayout(LEAF, (spec,)),
                origin=self._stage.origin,
            )
            for i, spec in enumerate(specs)
        ]
        return tuple(map(self._stage.nest, made))

    def get_state(self) -> State:
        before = self._kept[0][0] if self._kept else self._upstream.get_state()
        return [self._skip, before]

    def set_state(self, state: State) -> None:
        skip, before = parts(state, 2)
        self._kept = []
        self._skip = number(skip)
        self._upstream.set_state(before)
