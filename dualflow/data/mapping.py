"""Stages that call a function for each element: map, filter, take_while, scan, ignore_errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dualflow.core.warning import warn_user
from dualflow.data.check_state import flag, number, parts, wrong_state
from dualflow.data.element import ElementLayout, Item
from dualflow.data.functions import ElementFunction
from dualflow.data.stage import (
    UNKNOWN,
    ReplayedIterator,
    Stage,
    StageIterator,
    State,
    StatelessIterator,
    UnaryStage,
)


@dataclass(frozen=True, eq=False, kw_only=True)
class MapStage(UnaryStage):
    """The result of a function for each element."""

    function: ElementFunction

    @property
    def layout(self) -> ElementLayout:
        return self.function.layout

    def start(self) -> StageIterator:
        return MapIterator(self.source.start(), self.function)


@dataclass(slots=True)
class _PendingElement:
    """An element that is left over from a block in which the function failed for another element.

    Attributes:
        before: the source's state before the block.
        index: the element's index in the block.
        item: the element.
        result: the function's result for it; None if it has not been called.
    """

    before: State
    index: int
    item: Item
    result: Item | None


class MapIterator(StatelessIterator):
    """Iterates over a function's results. If the function fails, only that element is lost."""

    def __init__(self, upstream: StageIterator, function: Callable[..., Item]) -> None:
        super().__init__(upstream)
        self._function = function
        self._left: list[_PendingElement] = []

    def next(self, count: int) -> Sequence[Item]:
        if self._left:
            return self._next_left(count)
        if count == 1:
            items = self._upstream.next(1)
            return (self._function(*items[0]),) if len(items) else ()
        before = self._upstream.get_state()
        items, function, results = self._upstream.next(count), self._function, []
        try:
            for item in items:
                results.append(function(*item))  # noqa: PERF401  # kept if a later call fails
        except Exception:
            failed = len(results)
            computed = [*results, *[None] * (len(items) - failed)]
            pairs = enumerate(zip(items, computed, strict=True))
            self._left = [_PendingElement(before, i, *pair) for i, pair in pairs if i != failed]
            raise
        return results

    def _next_left(self, count: int) -> Sequence[Item]:
        """The next results, beginning with the elements left over from a failed block."""
        first, self._left = self._left[:count], self._left[count:]
        results: list[Item] = []
        try:
            for element in first:
                if element.result is None:
                    element.result = self._function(*element.item)
                results.append(element.result)
            if len(first) < count:
                results += self.next(count - len(first))
        except Exception:
            failed = len(results)
            self._left = first[:failed] + first[failed + 1 :] + self._left
            raise
        return results

    def get_state(self) -> State:
        after = self._upstream.get_state()
        return {"after": after, "left": [[x.before, x.index] for x in self._left]} if self._left else after

    def set_state(self, state: State) -> None:
        self._left = []
        after = state
        if isinstance(state, dict):
            after, left = state.get("after"), state.get("left")
            for pair in parts(left, len(left) if isinstance(left, list) else 0):
                self._left.append(self._reread(*parts(pair, 2)))
        self._upstream.set_state(after)

    def _reread(self, before: State, index: int) -> _PendingElement:
        self._upstream.set_state(before)
        items = self._upstream.next(number(index) + 1)
        if len(items) <= index:
            raise wrong_state(index, "the index of an element before the source's end")
        return _PendingElement(before, index, items[index], None)


@dataclass(frozen=True, eq=False, kw_only=True)
class FilterStage(UnaryStage):
    """The elements for which a predicate returns True."""

    predicate: ElementFunction

    @property
    def cardinality(self) -> int:
        return UNKNOWN

    def start(self) -> StageIterator:
        return FilterIterator(self.source.start(), self.predicate)


class FilterIterator(StatelessIterator):
    """Iterates over the elements for which the predicate returns True."""

    def __init__(self, upstream: StageIterator, predicate: ElementFunction) -> None:
        super().__init__(upstream)
        self._predicate = predicate

    def next(self, count: int) -> Sequence[Item]:
        selected: list[Item] = []
        while len(selected) < count:
            items = self._upstream.next(1)
            if not items:
                break
            if self._predicate(*items[0])[0]:
                selected.append(items[0])
        return selected


@dataclass(frozen=True, eq=False, kw_only=True)
class TakeWhileStage(FilterStage):
    """The elements before the first one for which a predicate returns False."""

    def start(self) -> StageIterator:
        return TakeWhileIterator(self.source.start(), self.predicate)


class TakeWhileIterator(FilterIterator):
    """Iterates until the predicate returns False."""

    _ended = False

    def next(self, count: int) -> Sequence[Item]:
        selected: list[Item] = []
        while len(selected) < count and not self._ended:
            items = self._upstream.next(1)
            self._ended = not items or not self._predicate(*items[0])[0]
            if not self._ended:
                selected.append(items[0])
        return selected

    def get_state(self) -> State:
        return [self._ended, self._upstream.get_state()]

    def set_state(self, state: State) -> None:
        ended, upstream = parts(state, 2)
        self._ended = flag(ended)
        self._upstream.set_state(upstream)


@dataclass(frozen=True, eq=False, kw_only=True)
class ScanStage(UnaryStage):
    """A function's results for a state and each element; it returns the next state as well.

    Attributes:
        function: takes the state and an element; returns a pair of the new state and the result.
        first: the leaves of the initial state.
    """

    function: ElementFunction
    first: Item

    @property
    def layout(self) -> ElementLayout:
        layout = self.function.layout
        state, result = layout.structure.children
        return ElementLayout(result, layout.specs[state.leaves :])

    def start(self) -> StageIterator:
        return ScanIterator(self)


class ScanIterator(ReplayedIterator):
    """Iterates with a state, which is recomputed when a saved position is restored."""

    _stage: ScanStage

    def restart(self) -> None:
        self._state = self._stage.first

    def make(self, count: int) -> Sequence[Item]:
        results: list[Item] = []
        while len(results) < count and len(items := self._upstream.next(1)):
            leaves = self._stage.function(*self._state, *items[0])
            self._state = leaves[: len(self._state)]
            results.append(leaves[len(self._state) :])
        return results


@dataclass(frozen=True, eq=False, kw_only=True)
class IgnoreErrorsStage(UnaryStage):
    """The elements that can be computed without an error.

    Attributes:
        warn: whether each error is reported as a warning.
    """

    warn: bool

    @property
    def cardinality(self) -> int:
        return UNKNOWN

    def start(self) -> StageIterator:
        return IgnoreErrorsIterator(self.source.start(), self.warn)


class IgnoreErrorsIterator(StatelessIterator):
    """Iterates past elements whose computation fails."""

    def __init__(self, upstream: StageIterator, warn: bool) -> None:
        super().__init__(upstream)
        self._warn = warn

    def next(self, count: int) -> Sequence[Item]:
        elements: list[Item] = []
        while len(elements) < count:
            try:
                items = self._upstream.next(1)
            except Exception as error:
                if self._warn:
                    warn_user(f"An element of a dataset was left out: {type(error).__name__}: {error}")
                continue
            if not len(items):
                break
            elements += items
        return elements


def reduced(source: Stage, function: ElementFunction, first: Item) -> Item:
    """The final state of ``state = function(state, element)`` over all elements."""
    iterator, state = source.start(), first
    try:
        while items := iterator.next(1):
            state = function(*state, *items[0])
        return state
    finally:
        iterator.close()
