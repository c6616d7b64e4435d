"""Stage iterators that replace one that was closed or interrupted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dualflow.core.errors import FailedPreconditionError
from dualflow.data.stage import StageIterator, State


class ClosedIterator(StageIterator):
    """Replaces the stage iterator of a closed iterator: it has no more elements."""

    def next(self, count: int) -> Sequence[Any]:
        return ()

    def get_state(self) -> State:
        raise FailedPreconditionError(
            "The iterator is closed and has no state; call get_state() before close()."
        )

    def set_state(self, state: State) -> None:
        raise NotImplementedError("setting a state starts a new stage iterator")


class InterruptedIterator(ClosedIterator):
    """Replaces, in a forked process, a stage iterator that another thread was reading at the fork."""

    def next(self, count: int) -> Sequence[Any]:
        raise FailedPreconditionError(
            "The process was forked while another thread read this iterator; make a new one with "
            "iter(dataset), or set it to a state."
        )

    def get_state(self) -> State:
        self.next(1)
