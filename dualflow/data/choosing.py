"""A stage that takes each element from one of several stages, by indices; and rows of random indices."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.locks import imported
from dualflow.data.check_state import flag, parts
from dualflow.data.element import ElementLayout, Item, covering_spec
from dualflow.data.stage import UNKNOWN, Stage, StageIterator, State


@dataclass(frozen=True, eq=False, kw_only=True)
class ChooseStage(Stage):
    """The elements of several stages, in an order that a stage of indices determines.

    Attributes:
        choices: an index into ``parts`` for each element.
        parts: the stages to choose from.
        stop: whether it ends when a chosen part has ended; otherwise that choice is skipped.
    """

    choices: Stage
    parts: tuple[Stage, ...]
    stop: bool

    @property
    def sources(self) -> tuple[Stage, ...]:
        return self.choices, *self.parts

    def with_sources(self, sources: Sequence[Stage]) -> Stage:
        return replace(self, choices=sources[0], parts=tuple(sources[1:]))

    @property
    def layout(self) -> ElementLayout:
        common = self.parts[0].layout
        for part in self.parts[1:]:
            common = ElementLayout(
                common.structure, tuple(map(covering_spec, common.specs, part.layout.specs))
            )
        return common

    @property
    def cardinality(self) -> int:
        return UNKNOWN

    def start(self) -> StageIterator:
        return ChooseIterator(self)


class ChooseIterator(StageIterator):
    """Iterates over several iterators by indices, until all have ended."""

    def __init__(self, stage: ChooseStage) -> None:
        self._stage = stage
        self._choices, *self._parts = [s.start() for s in stage.sources]
        self.upstreams = (self._choices, *self._parts)
        self._has_more = [True] * len(self._parts)
        self._ended = False

    def next(self, count: int) -> Sequence[Item]:
        elements: list[Item] = []
        while len(elements) < count and not self._ended:
            numbers = self._choices.next(1) if any(self._has_more) else ()
            if not len(numbers):
                self._ended = True
                break
            index = int(numbers[0][0])
            if not 0 <= index < len(self._parts):
                raise InvalidArgumentError(
                    f"A choice must be the index of one of {len(self._parts)} datasets, not "
                    f"{index}.{self._stage.where}"
                )
            items = self._parts[index].next(1) if self._has_more[index] else ()
            elements += items
            self._has_more[index] = bool(len(items))
            self._ended = self._stage.stop and not len(items)
        return elements

    def get_state(self) -> State:
        return [self._ended, list(self._has_more), [c.get_state() for c in self.upstreams]]

    def set_state(self, state: State) -> None:
        ended, has_more, part_states = parts(state, 3)
        self._ended = flag(ended)
        self._has_more = list(map(flag, parts(has_more, len(self._parts))))
        for iterator, part_state in zip(self.upstreams, parts(part_states, len(self.upstreams)), strict=True):
            iterator.set_state(part_state)


@dataclass(frozen=True, slots=True, eq=False)
class RandomRows:
    """Random numbers by position: 32-bit integers, or indices drawn by weight.

    They are words of a Philox generator (Salmon et al., 2011, "Parallel random numbers: as easy as 1, 2, 3"),
    so any of them can be computed alone.

    Attributes:
        seeds: the seeds of the generator.
        weights: the weight of each index; empty for integers.
    """

    seeds: Sequence[int]
    weights: tuple[float, ...] = ()

    def row(self, index: int) -> Item:
        """One number, from the first word of the stream whose counter is ``index``."""
        word = int(imported("numpy.random").Philox(key=self._key(), counter=index).random_raw(1)[0])
        if not self.weights:
            return (np.array(word & 0xFFFFFFFF, np.int64),)
        bounds = list(itertools.accumulate(self.weights))
        return (np.array(min(bisect.bisect(bounds, word / 2**64 * bounds[-1]), len(bounds) - 1), np.int64),)

    def gather(self, indices: Sequence[int]) -> list[np.ndarray]:
        return [np.stack([self.row(i)[0] for i in indices])]

    def _key(self) -> int:
        return (self.seeds[0] & (1 << 64) - 1) | (self.seeds[1] & (1 << 64) - 1) << 64
