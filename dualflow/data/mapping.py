"""Stages that call a function for each element: what it gives, or the elements that it chooses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dualflow.core.warning import warn_user
from dualflow.data.element import ElementLayout, Item
from dualflow.data.functions import ElementFunction
from dualflow.data.stage import UNKNOWN, Cursor, OneToOne, OverOne, Replayed, Stage, State
from dualflow.data.states import flag, number, parts, wrong_state


@dataclass(frozen=True, eq=False, kw_only=True)
class MapStage(OverOne):
    """What a function gives for each element."""

    function: ElementFunction

    @property
    def layout(self) -> ElementLayout:
        return self.function.layout

    def start(self) -> Cursor:
        return MapCursor(self.source.start(), self.function)


@dataclass(slots=True)
class _LeftElement:
    """An element that was pulled together with one for which the function failed.

    Attributes:
        before: where the source was before the elements that were pulled together.
        place: which of these it is.
        item: the element.
        result: what the function returned for it; None where it has not been called.
    """

    before: State
    place: int
    item: Item
    result: Item | None


class MapCursor(OneToOne):
    """What a function gives for the elements of a run. Where it fails, only that element is lost."""

    def __init__(self, upstream: Cursor, function: ElementFunction) -> None:
        super().__init__(upstream)
        self._function = function
        self._left: list[_LeftElement] = []

    def pull(self, count: int) -> Sequence[Item]:
        if self._left:
            return self._pull_left(count)
        if count == 1:
            items = self._upstream.pull(1)
            return (self._function(*items[0]),) if len(items) else ()
        before = self._upstream.get_state()
        items, function, results = self._upstream.pull(count), self._function, []
        try:
            for item in items:
                results.append(function(*item))  # noqa: PERF401  # kept where a later one fails
        except Exception:
            failed = len(results)
            made = [*results, *[None] * (len(items) - failed)]
            pulled = zip(items, made, strict=True)
            self._left = [_LeftElement(before, i, *pair) for i, pair in enumerate(pulled) if i != failed]
            raise
        return results

    def _pull_left(self, count: int) -> Sequence[Item]:
        """The next results, first those of the elements that are left of a failure."""
        first, self._left = self._left[:count], self._left[count:]
        results: list[Item] = []
        try:
            for element in first:
                if element.result is None:
                    element.result = self._function(*element.item)
                results.append(element.result)
            if len(first) < count:
                results += self.pull(count - len(first))
        except Exception:
            failed = len(results)
            self._left = first[:failed] + first[failed + 1 :] + self._left
            raise
        return results

    def get_state(self) -> State:
        after = self._upstream.get_state()
        return {"after": after, "left": [[x.before, x.place] for x in self._left]} if self._left else after

    def set_state(self, state: State) -> None:
        self._left = []
        after = state
        if isinstance(state, dict):
            after, left = state.get("after"), state.get("left")
            for pair in parts(left, len(left) if isinstance(left, list) else 0):
                self._left.append(self._pulled_again(*parts(pair, 2)))
        self._upstream.set_state(after)

    def _pulled_again(self, before: State, place: int) -> _LeftElement:
        self._upstream.set_state(before)
        items = self._upstream.pull(number(place) + 1)
        if len(items) <= place:
            raise wrong_state(place, "the place of an element before the source's end")
        return _LeftElement(before, place, items[place], None)


@dataclass(frozen=True, eq=False, kw_only=True)
class FilterStage(OverOne):
    """The elements for which a function gives True."""

    predicate: ElementFunction

    @property
    def cardinality(self) -> int:
        return UNKNOWN

    def start(self) -> Cursor:
        return FilterCursor(self.source.start(), self.predicate)


class FilterCursor(OneToOne):
    """The elements of a run that a function chooses."""

    def __init__(self, upstream: Cursor, predicate: ElementFunction) -> None:
        super().__init__(upstream)
        self._predicate = predicate

    def pull(self, count: int) -> Sequence[Item]:
        found: list[Item] = []
        while len(found) < count:
            items = self._upstream.pull(1)
            if not items:
                break
            if self._predicate(*items[0])[0]:
                found.append(items[0])
        return found


@dataclass(frozen=True, eq=False, kw_only=True)
class TakeWhileStage(FilterStage):
    """The elements before the first for which a function gives False."""

    def start(self) -> Cursor:
        return TakeWhileCursor(self.source.start(), self.predicate)


class TakeWhileCursor(FilterCursor):
    """The beginning of a run, up to the first element that a function refuses."""

    _ended = False

    def pull(self, count: int) -> Sequence[Item]:
        found: list[Item] = []
        while len(found) < count and not self._ended:
            items = self._upstream.pull(1)
            self._ended = not items or not self._predicate(*items[0])[0]
            if not self._ended:
                found.append(items[0])
        return found

    def get_state(self) -> State:
        return [self._ended, self._upstream.get_state()]

    def set_state(self, state: State) -> None:
        ended, upstream = parts(state, 2)
        self._ended = flag(ended)
        self._upstream.set_state(upstream)


@dataclass(frozen=True, eq=False, kw_only=True)
class ScanStage(OverOne):
    """What a function gives for each element and a state, which it also gives anew.

    Attributes:
        function: of the state and an element; returns a pair of the new state and the result.
        first: the leaves of the first state.
    """

    function: ElementFunction
    first: Item

    @property
    def layout(self) -> ElementLayout:
        known = self.function.layout
        state, result = known.structure.children
        return ElementLayout(result, known.specs[state.leaves :])

    def start(self) -> Cursor:
        return ScanCursor(self)


class ScanCursor(Replayed):
    """A run with a state, which is computed again where it goes on from a saved place."""

    def __init__(self, stage: ScanStage) -> None:
        super().__init__(stage.source.start())
        self._stage = stage
        self.restart()

    def restart(self) -> None:
        self._state = self._stage.first

    def make(self, count: int) -> Sequence[Item]:
        found: list[Item] = []
        for item in self._upstream.pull(count):
            made = self._stage.function(*self._state, *item)
            self._state = made[: len(self._state)]
            found.append(made[len(self._state) :])
        return found


@dataclass(frozen=True, eq=False, kw_only=True)
class WithoutErrorsStage(OverOne):
    """The elements that can be made.

    Attributes:
        warn: whether each error is told as a warning.
    """

    warn: bool

    @property
    def cardinality(self) -> int:
        return UNKNOWN

    def start(self) -> Cursor:
        return WithoutErrorsCursor(self.source.start(), self.warn)


class WithoutErrorsCursor(OneToOne):
    """A run that goes on behind elements whose making fails."""

    def __init__(self, upstream: Cursor, warn: bool) -> None:
        super().__init__(upstream)
        self._warn = warn

    def pull(self, count: int) -> Sequence[Item]:
        found: list[Item] = []
        while len(found) < count:
            try:
                items = self._upstream.pull(1)
            except Exception as error:
                if self._warn:
                    warn_user(f"An element of a dataset was left out: {type(error).__name__}: {error}")
                continue
            if not len(items):
                break
            found += items
        return found


def reduced(source: Stage, function: ElementFunction, first: Item) -> Item:
    """The last state of a function of a state and an element, over all elements."""
    cursor, state = source.start(), first
    try:
        while items := cursor.pull(1):
            state = function(*state, *items[0])
        return state
    finally:
        cursor.close()
