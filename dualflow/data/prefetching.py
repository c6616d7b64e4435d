"""A stage whose source is read ahead, in a thread."""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from dualflow.data.stage import LOOK, Cursor, OverOne, State
from dualflow.data.states import flag, parts


class _Made(NamedTuple):
    """What a worker has ready: an element or an error, and where the source was behind it."""

    items: Sequence[Any]
    error: BaseException | None
    state: State


class _Shelf:
    """Where a worker leaves what it has made, up to a limit.

    A worker holds this and its source, but not the cursor that it works for, which can so be dropped.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._made: deque[_Made] = deque()
        self._changed = threading.Condition()
        self._closed = False

    def put(self, made: _Made) -> bool:
        """Leave something, once there is room; False if nobody wants it any more."""
        with self._changed:
            while len(self._made) >= self._size and not self._closed:
                self._changed.wait()
            self._made.append(made)
            self._changed.notify()
            return not self._closed

    def take(self) -> _Made | None:
        """What was left first, once there is something; None if this was closed before."""
        with self._changed:
            while not self._made:
                if self._closed:
                    return None
                self._changed.wait(LOOK)
            found = self._made.popleft()
            self._changed.notify()
            return found

    def close(self) -> None:
        """Let the worker end, after what it is at."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()


def _work(shelf: _Shelf, source: Cursor) -> None:
    """Run through ``source`` until it ends, or nobody wants more."""
    wanted = True
    while wanted:
        items: Sequence[Any] = ()
        error: BaseException | None = None
        try:
            items = source.pull(1)
        except BaseException as raised:
            error = raised
        wanted = shelf.put(_Made(items, error, source.get_state())) and bool(len(items) or error)
    source.close()


@dataclass(frozen=True, eq=False, kw_only=True)
class PrefetchStage(OverOne):
    """The same elements, of which up to ``size`` are made ahead."""

    size: int

    def start(self) -> Cursor:
        return PrefetchCursor(self)


class PrefetchCursor(Cursor):
    """A run that a thread of its own makes, from when it is first asked until it is closed or dropped."""

    def __init__(self, stage: PrefetchStage) -> None:
        self._stage = stage
        self._source: Cursor | None = stage.source.start()
        self._state: State = self._source.get_state()
        self._shelf: _Shelf | None = None
        self._kept: list[_Made] = []
        self._ended = False
        self._process = os.getpid()

    def pull(self, count: int) -> Sequence[Any]:
        if os.getpid() != self._process:  # the worker is the parent's
            self.set_state([self._ended, self._state])
        taken, self._kept = self._kept, []
        while len(taken) < count and not self._ended:
            made = (self._shelf or self._begin()).take()
            if made is None:
                break
            if made.error is not None:
                self._kept = taken  # which come after it
            if not taken:
                self._state = made.state
            if made.error is not None:
                raise made.error
            self._ended = not len(made.items)
            taken += [made] * len(made.items)
        taken, self._kept = taken[:count], taken[count:]
        if taken:
            self._state = taken[-1].state
        return [made.items[0] for made in taken]

    def _begin(self) -> _Shelf:
        shelf = self._shelf = _Shelf(self._stage.size)
        source, self._source = self._source, None
        weakref.finalize(self, shelf.close)
        threading.Thread(target=_work, args=(shelf, source), name="dualflow prefetch", daemon=True).start()
        return shelf

    def get_state(self) -> State:
        return [self._ended and not self._kept, self._state]

    def set_state(self, state: State) -> None:
        ended, self._state = parts(state, 2)
        if os.getpid() == self._process:
            self.close()
        self._process = os.getpid()
        self._shelf, self._kept = None, []
        self._ended = flag(ended)
        self._source = self._stage.source.start()
        self._source.set_state(self._state)

    def close(self) -> None:
        if self._shelf is not None:
            self._shelf.close()
        elif self._source is not None:
            self._source.close()
