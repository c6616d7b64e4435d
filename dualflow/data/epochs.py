"""Epoch numbers of shuffled stages, shared by all iterators over a dataset."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

from dualflow.core.locks import SharedLock
from dualflow.ops.random_numbers.streams import STREAMS

_WORD: Final = (1 << 64) - 1
_lock: Final = SharedLock()


class Epochs:
    """Counts the iterations over a shuffled stage; each has an order of its own.

    Attributes:
        seeds: the seeds of all orders; with the epoch's number they determine an order.
        next: the number of the next epoch.
    """

    def __init__(self, seed: int | None) -> None:
        if seed is None:
            self.seeds = [int(x) for x in STREAMS.shared.philox.integers(0, 1 << 63, 2)]
        else:
            self.seeds = [(STREAMS.seed or 0) & _WORD, seed & _WORD]
        self.next = 0

    def begin(self) -> int:
        """Begin an epoch, and return its number."""
        with _lock.lock:
            self._log_change()
            number = self.next
            self.next += 1
        return number

    def restore(self, seeds: Sequence[int], next_epoch: int) -> None:
        """Set the seeds and the number of the next epoch to those of a saved state."""
        with _lock.lock:
            self._log_change(restored=True)
            self.seeds, self.next = list(seeds), next_epoch

    def _log_change(self, restored: bool = False) -> None:
        changes = _changes.get()
        if changes is not None:
            change = changes.setdefault(id(self), _Change(self, self.seeds, self.next))
            change.restored |= restored


@dataclass(slots=True)
class _Change:
    """The seeds and the number of an :class:`Epochs` at the first change in :func:`restoring_epochs`.

    Attributes:
        restored: whether the block has set them to those of a saved state.
    """

    epochs: Epochs
    seeds: list[int]
    next: int
    restored: bool = False

    def undo(self) -> None:
        self.epochs.seeds, self.epochs.next = self.seeds, self.next


_changes: Final[ContextVar[dict[int, _Change] | None]] = ContextVar("dualflow_epoch_changes", default=None)


@contextmanager
def restoring_epochs() -> Iterator[None]:
    """A context manager that sets epochs to those of a restored state, and undoes that after an error.

    Epochs that begin while elements are recomputed count only after the state has set their number.
    """
    changes: dict[int, _Change] = {}
    token = _changes.set(changes)
    failed = True
    try:
        yield
        failed = False
    finally:
        _changes.reset(token)
        with _lock.lock:
            for change in changes.values():
                if failed or not change.restored:
                    change.undo()
