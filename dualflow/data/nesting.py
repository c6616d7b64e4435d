"""Stages of nested datasets: interleave (and flat_map), and windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dualflow.core.errors import DTypeError
from dualflow.core.tree import LEAF
from dualflow.data.check_state import flag, number, parts, wrong_state
from dualflow.data.element import AbstractDataset, ElementLayout, Item
from dualflow.data.functions import ElementFunction
from dualflow.data.prefetching import PrefetchStage
from dualflow.data.stage import UNKNOWN, Stage, StageIterator, State, UnaryStage


@dataclass(frozen=True, eq=False, kw_only=True)
class InterleaveStage(UnaryStage):
    """The elements of the datasets that a function returns, read from several datasets cyclically.

    Attributes:
        function: returns a dataset for an element.
        elements: the layout of the elements of the returned datasets.
        cycle: how many datasets are open at a time.
        block: how many consecutive elements are read from one.
        ahead: how many elements of each are prefetched, by a thread each; 0 for none.
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

    def start(self) -> StageIterator:
        return InterleaveIterator(self)

    def inner(self, item: Item) -> Stage:
        """The stage of the dataset for an element."""
        dataset = self.function.result(*item)
        if not isinstance(dataset, AbstractDataset):
            raise DTypeError(
                f"{self.function.name!r} must return a dataset for each element, not {dataset!r}.{self.where}"
            )
        stage: Stage = dataset.stage
        return stage if not self.ahead else PrefetchStage(source=stage, size=self.ahead, origin=self.origin)


class _Slot:
    """An open dataset of an interleave.

    Attributes:
        before: the source's state before the dataset's element.
        iterator: iterates over the dataset.
    """

    def __init__(self, before: State, iterator: StageIterator) -> None:
        self.before = before
        self.iterator = iterator


class InterleaveIterator(StageIterator):
    """Iterates over several datasets cyclically; the source's next one replaces one that has ended."""

    def __init__(self, stage: InterleaveStage) -> None:
        self._stage = stage
        self._upstream = stage.source.start()
        self.upstreams = (self._upstream,)
        self._slots: list[_Slot | None] = [None] * stage.cycle
        self._slot_index = 0
        self._num_read = 0
        self._ended = False

    def next(self, count: int) -> Sequence[Item]:
        elements: list[Item] = []
        while len(elements) < count:
            slot = self._slots[self._slot_index]
            if slot is None:
                slot = self._open()
                if slot is None:
                    if self._ended and not any(self._slots):
                        break
                    self._advance_slot()
                    continue
            limit = min(self._stage.block - self._num_read, count - len(elements))
            items = slot.iterator.next(limit)
            elements += items
            self._num_read += len(items)
            if len(items) < limit:
                slot.iterator.close()
                self._slots[self._slot_index] = None
                self._advance_slot()
            elif self._num_read == self._stage.block:
                self._advance_slot()
        return elements

    def _advance_slot(self) -> None:
        self._slot_index = (self._slot_index + 1) % len(self._slots)
        self._num_read = 0

    def _open(self) -> _Slot | None:
        """Open the source's next dataset in the current, empty slot; None if there is none."""
        if self._ended:
            return None
        before = self._upstream.get_state()
        items = self._upstream.next(1)
        if not len(items):
            self._ended = True
            return None
        slot = self._slots[self._slot_index] = _Slot(before, self._stage.inner(items[0]).start())
        return slot

    def get_state(self) -> State:
        slots = [None if s is None else [s.before, s.iterator.get_state()] for s in self._slots]
        return [self._slot_index, self._num_read, self._ended, self._upstream.get_state(), slots]

    def set_state(self, state: State) -> None:
        at, taken, ended, upstream, slots = parts(state, 5)
        self.close()
        self._slot_index = number(at, self._stage.cycle - 1)
        self._num_read = number(taken, self._stage.block)
        self._ended = flag(ended)
        self._slots = [None] * self._stage.cycle
        for place, saved in enumerate(parts(slots, self._stage.cycle)):
            if saved is not None:
                self._slots[place] = self._restored(*parts(saved, 2))
        self._upstream.set_state(upstream)

    def _restored(self, before: State, place: State) -> _Slot:
        """The dataset of the source's element after ``before``, at a saved position."""
        self._upstream.set_state(before)
        items = self._upstream.next(1)
        if not len(items):
            raise wrong_state(before, "a place before the source's end")
        iterator = self._stage.inner(items[0]).start()
        iterator.set_state(place)
        return _Slot(before, iterator)

    def close(self) -> None:
        for slot in self._slots:
            if slot is not None:
                slot.iterator.close()
        super().close()


@dataclass(frozen=True, eq=False, kw_only=True)
class WindowStage(UnaryStage):
    """Datasets of the elements of sliding windows.

    Attributes:
        size: how many elements a window has.
        shift: the distance between the beginnings of windows.
        stride: the distance between the elements of a window.
        drop_remainder: whether smaller windows at the end are dropped.
        specs: the layout of the elements, which are datasets.
        dataset_of: creates the dataset of a stage.
    """

    size: int
    shift: int
    stride: int
    drop_remainder: bool
    specs: ElementLayout
    dataset_of: Callable[[Stage], Any]

    @property
    def layout(self) -> ElementLayout:
        return self.specs

    @property
    def cardinality(self) -> int:
        count = self.source.cardinality
        if count < 0:
            return count
        span = (self.size - 1) * self.stride + 1 if self.drop_remainder else 1
        return max(0, (count - span) // self.shift + 1)

    def start(self) -> StageIterator:
        return WindowIterator(self)


@dataclass(frozen=True, eq=False, kw_only=True)
class InMemoryStage(Stage):
    """Elements in memory.

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

    def start(self) -> StageIterator:
        return InMemoryIterator(self.items)


class InMemoryIterator(StageIterator):
    """Iterates over elements in memory."""

    def __init__(self, items: Sequence[Item]) -> None:
        self._items = items
        self._position = 0

    def next(self, count: int) -> Sequence[Item]:
        elements = self._items[self._position : self._position + count]
        self._position += len(elements)
        return elements

    def get_state(self) -> State:
        return self._position

    def set_state(self, state: State) -> None:
        self._position = number(state, len(self._items))


class WindowIterator(StageIterator):
    """Iterates over windows; its state is the source's state before the buffered elements."""

    def __init__(self, stage: WindowStage) -> None:
        self._stage = stage
        self._upstream = stage.source.start()
        self.upstreams = (self._upstream,)
        self._buffer: list[tuple[State, Item]] = []
        self._skip = 0

    def next(self, count: int) -> Sequence[Item]:
        stage = self._stage
        windows: list[Item] = []
        span = (stage.size - 1) * stage.stride + 1
        while len(windows) < count:
            while self._skip and len(self._upstream.next(1)):
                self._skip -= 1
            self._skip = 0
            while len(self._buffer) < span:
                before = self._upstream.get_state()
                items = self._upstream.next(1)
                if not len(items):
                    break
                self._buffer.append((before, items[0]))
            window = [item for _, item in self._buffer[: span : stage.stride]]
            if not window or (stage.drop_remainder and len(window) < stage.size):
                break
            windows.append(self._datasets(window))
            self._skip = max(0, stage.shift - len(self._buffer))
            del self._buffer[: stage.shift]
        return windows

    def _datasets(self, window: list[Item]) -> Item:
        """A dataset of each leaf of the elements."""
        specs = self._stage.source.layout.specs
        stages = [
            InMemoryStage(
                items=[(item[i],) for item in window],
                elements=ElementLayout(LEAF, (spec,)),
                origin=self._stage.origin,
            )
            for i, spec in enumerate(specs)
        ]
        return tuple(map(self._stage.dataset_of, stages))

    def get_state(self) -> State:
        before = self._buffer[0][0] if self._buffer else self._upstream.get_state()
        return [self._skip, before]

    def set_state(self, state: State) -> None:
        skip, before = parts(state, 2)
        self._buffer = []
        self._skip = number(skip)
        self._upstream.set_state(before)
