"""What iterators have in the place of a run that is over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dualflow.core.errors import FailedPreconditionError
from dualflow.data.stage import Cursor, State


class ClosedCursor(Cursor):
    """The run of an iterator that was closed: it has ended."""

    def pull(self, count: int) -> Sequence[Any]:
        return ()

    def get_state(self) -> State:
        raise FailedPreconditionError(
            "The iterator is closed, and is nowhere; take its state before close()."
        )

    def set_state(self, state: State) -> None:
        raise NotImplementedError("an iterator that is set to a state begins a new run")


class InterruptedCursor(ClosedCursor):
    """The run of a forked process's iterator that another thread of the parent was reading at the fork."""

    def pull(self, count: int) -> Sequence[Any]:
        raise FailedPreconditionError(
            "The process was forked while another thread read this iterator; make a new one with "
            "iter(dataset), or set it to a state."
        )

    def get_state(self) -> State:
        self.pull(1)
