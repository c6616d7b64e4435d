"""A stage that takes each element from one of several datasets, by numbers or by chance."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dualflow.core.errors import InvalidArgumentError
from dualflow.data.element import ElementLayout, Item, relaxed
from dualflow.data.stage import UNKNOWN, Cursor, Stage, State
from dualflow.data.states import flag, parts


@dataclass(frozen=True, eq=False, kw_only=True)
class ChooseStage(Stage):
    """Elements of several parts.

    Attributes:
        choices: numbers of parts, one for each element.
        parts: what is chosen from.
        stop: whether the end of a part that is chosen ends all; otherwise the number is passed over.
    """

    choices: Stage
    parts: tuple[Stage, ...]
    stop: bool

    @property
    def sources(self) -> tuple[Stage, ...]:
        return self.choices, *self.parts

    def over(self, sources: Sequence[Stage]) -> Stage:
        return replace(self, choices=sources[0], parts=tuple(sources[1:]))

    @property
    def layout(self) -> ElementLayout:
        found = self.parts[0].layout
        for part in self.parts[1:]:
            found = ElementLayout(found.structure, tuple(map(relaxed, found.specs, part.layout.specs)))
        return found

    @property
    def cardinality(self) -> int:
        return UNKNOWN

    def start(self) -> Cursor:
        return ChooseCursor(self)


class ChooseCursor(Cursor):
    """A run through several others, by numbers; it ends when all have ended."""

    def __init__(self, stage: ChooseStage) -> None:
        self._stage = stage
        self._choices, *self._parts = [s.start() for s in stage.sources]
        self.upstreams = (self._choices, *self._parts)
        self._left = [True] * len(self._parts)
        self._ended = False

    def pull(self, count: int) -> Sequence[Item]:
        found: list[Item] = []
        while len(found) < count and not self._ended:
            numbers = self._choices.pull(1) if any(self._left) else ()
            if not len(numbers):
                self._ended = True
                break
            place = int(numbers[0][0])
            if not 0 <= place < len(self._parts):
                raise InvalidArgumentError(
                    f"A choice is the number of one of {len(self._parts)} datasets, not "
                    f"{place}.{self._stage.where}"
                )
            items = self._parts[place].pull(1) if self._left[place] else ()
            found += items
            self._left[place] = bool(len(items))
            self._ended = self._stage.stop and not len(items)
        return found

    def get_state(self) -> State:
        return [self._ended, list(self._left), [c.get_state() for c in self.upstreams]]

    def set_state(self, state: State) -> None:
        ended, left, places = parts(state, 3)
        self._ended = flag(ended)
        self._left = list(map(flag, parts(left, len(self._parts))))
        for cursor, place in zip(self.upstreams, parts(places, len(self.upstreams)), strict=True):
            cursor.set_state(place)


@dataclass(frozen=True, slots=True, eq=False)
class DrawnRows:
    """Numbers that seeds and their place decide: integers of 32 bits, or numbers of parts by weight.

    Attributes:
        seeds: of the numbers.
        weights: of the parts; empty for integers.
    """

    seeds: Sequence[int]
    weights: tuple[float, ...] = ()

    def row(self, index: int) -> Item:
        """One number: the word of a stream that begins with its place."""
        word = int(np.random.Philox(key=self._key(), counter=index).random_raw(1)[0])
        if not self.weights:
            return (np.array(word & 0xFFFFFFFF, np.int64),)
        bounds = list(itertools.accumulate(self.weights))
        return (np.array(min(bisect.bisect(bounds, word / 2**64 * bounds[-1]), len(bounds) - 1), np.int64),)

    def gather(self, indices: Sequence[int]) -> list[np.ndarray]:
        return [np.stack([self.row(i)[0] for i in indices])]

    def _key(self) -> int:
        return (self.seeds[0] & (1 << 64) - 1) | (self.seeds[1] & (1 << 64) - 1) << 64
