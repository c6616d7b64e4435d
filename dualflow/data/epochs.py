"""The numbers of runs through shuffled stages, which are shared by all iterators over a dataset."""

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
    """Numbers the runs through a shuffled stage, each of which has an order of its own.

    Attributes:
        seeds: what its orders are made of, with the run's number.
        next: the number of the run that begins next.
    """

    def __init__(self, seed: int | None) -> None:
        if seed is None:
            self.seeds = [int(x) for x in STREAMS.shared.philox.integers(0, 1 << 63, 2)]
        else:
            self.seeds = [(STREAMS.seed or 0) & _WORD, seed & _WORD]
        self.next = 0

    def begin(self) -> int:
        """The number of a new run."""
        with _lock.lock:
            self._log_change()
            number = self.next
            self.next += 1
        return number

    def restore(self, seeds: Sequence[int], following: int) -> None:
        """Continue with the seeds and the number of a saved state."""
        with _lock.lock:
            self._log_change(restored=True)
            self.seeds, self.next = list(seeds), following

    def _log_change(self, restored: bool = False) -> None:
        changes = _changes.get()
        if changes is not None:
            change = changes.setdefault(id(self), _Change(self, self.seeds, self.next))
            change.restored |= restored


@dataclass(slots=True)
class _Change:
    """What epochs were before a block of :func:`restoring_epochs` changed them, and whether it set them."""

    epochs: Epochs
    seeds: list[int]
    next: int
    restored: bool = False

    def undo(self) -> None:
        self.epochs.seeds, self.epochs.next = self.seeds, self.next


_changes: Final[ContextVar[dict[int, _Change] | None]] = ContextVar("dualflow_epoch_changes", default=None)


@contextmanager
def restoring_epochs() -> Iterator[None]:
    """The block that restores an iterator: epochs are those of the state then, and as before if it fails.

    Runs that begin while it makes elements again count only where the state has set the number before.
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
