"""Shuffling with a buffer, from which the next element is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

import numpy as np

from dualflow.core.convert import Array
from dualflow.core.locks import imported
from dualflow.data.check_state import number, numbers, parts, wrong_state
from dualflow.data.epochs import Epochs
from dualflow.data.order import ReorderingStage
from dualflow.data.stage import UNKNOWN, ReplayedIterator, StageIterator, State

_BLOCK: Final = 1024
"""The number of indices that are read, or of positions that are drawn, at once."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ShuffleStage(ReorderingStage):
    """The elements in a random order, drawn from a buffer of ``size``; of all elements if it is ``UNKNOWN``.

    Attributes:
        reshuffle: whether each iteration has an order of its own.
        epochs: counts the iterations.
    """

    size: int
    reshuffle: bool
    epochs: Epochs = field(repr=False)

    def iterate(self) -> StageIterator:
        return ShuffleIterator(self)


class ShuffleIterator(ReplayedIterator):
    """Draws the next element from a buffer, and replaces it by the source's next one.

    After the source's end, the elements in the buffer come in one random order.
    """

    _stage: ShuffleStage

    def __init__(self, stage: ShuffleStage) -> None:
        self._size = stage.size
        self._epoch: int | None = None
        super().__init__(stage)

    def restart(self) -> None:
        if self._epoch is None:  # the epochs of sources begin first
            self._epoch = self._stage.epochs.begin() if self._stage.reshuffle else 0
        random = imported("numpy.random")
        self._bits = random.Philox(random.SeedSequence([*self._stage.epochs.seeds, self._epoch]))
        self._positions: list[int] = []
        self._buffer: Sequence[Any] = []
        self._is_full = False
        self._order: Array | None = None
        self._at = 0

    def make(self, count: int) -> Sequence[Any]:
        if not self._is_full:
            self._fill()
        if self._order is not None:
            return self._remaining(count)
        items = self._upstream.next(count)
        drawn: list[Any] = []
        if len(items):
            buffer = self._buffer = self._buffer if isinstance(self._buffer, list) else list(self._buffer)
            for x, place in zip(items, self._draw(len(items)), strict=True):
                drawn.append(buffer[place])
                buffer[place] = x
        if len(items) == count:
            return drawn
        self._end()
        remaining = self._remaining(count - len(drawn))
        return [*drawn, *remaining] if drawn else remaining

    def _fill(self) -> None:
        """Read the source's first elements, up to the buffer's size; resumes after an error."""
        if self._stage.yields_indices and self._size != UNKNOWN:
            self._buffer = self._upstream.next(self._size)
        else:
            buffer = self._buffer = list(self._buffer)
            block = _BLOCK if self._stage.yields_indices else 1  # others of a failing block may be lost
            while len(buffer) != self._size and len(items := self._upstream.next(block)):
                buffer.extend(items)  # which may be an array
        self._is_full = True

    def _remaining(self, count: int) -> Sequence[Any]:
        """The next elements of the buffer after the source's end, in their random order."""
        buffer, order = self._buffer, self._order
        assert order is not None, "it was drawn"
        positions = order[self._at : self._at + count]
        self._at += len(positions)
        if isinstance(buffer, range) and buffer == range(len(buffer)):  # the numbers of all rows
            return cast("Sequence[int]", positions)
        return [buffer[i] for i in positions]

    def _draw(self, count: int) -> list[int]:
        """Random positions in the buffer, drawn in blocks: the same for any sequence of counts."""
        while len(self._positions) < count:
            words = self._bits.random_raw(_BLOCK) % np.uint64(self._size)
            self._positions = words.tolist()[::-1] + self._positions
        taken = self._positions[len(self._positions) - count :]
        del self._positions[len(self._positions) - count :]
        return taken[::-1]

    def _end(self) -> None:
        """Draw a permutation of the remaining elements, which is the same in all versions of NumPy."""
        self._order = np.argsort(self._bits.random_raw(len(self._buffer)), kind="stable")

    def get_state(self) -> State:
        epochs = self._stage.epochs
        return [epochs.seeds, self._epoch, epochs.next, *super().get_state()]

    def set_state(self, state: State) -> None:
        if not isinstance(state, list | tuple) or len(state) not in (5, 6):
            raise wrong_state(state, "a list of 5")
        seeds, epoch, next_epoch, *place = state
        self._epoch = number(epoch)
        self._stage.epochs.restore(numbers(parts(seeds, 2)), number(next_epoch))
        super().set_state(place)
