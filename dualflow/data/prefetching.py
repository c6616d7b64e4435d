"""A stage that prefetches its source's elements in a thread."""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from dualflow.data.check_state import flag, parts
from dualflow.data.stage import SIGNAL_CHECK_SECONDS, Stage, StageIterator, State, UnaryStage


class _Outcome(NamedTuple):
    """An element or an error from a worker, and the source's state after it."""

    items: Sequence[Any]
    error: BaseException | None
    state: State


class _BoundedQueue:
    """The queue from a worker to its iterator.

    A worker refers to this and its source, but not to the iterator, which can so be freed.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._outcomes: deque[_Outcome] = deque()
        self._changed = threading.Condition()
        self._closed = False

    def put(self, outcome: _Outcome) -> bool:
        """Wait until the queue isn't full, and append ``outcome``; False if the queue is closed."""
        with self._changed:
            while len(self._outcomes) >= self._size and not self._closed:
                self._changed.wait()
            self._outcomes.append(outcome)
            self._changed.notify()
            return not self._closed

    def take(self) -> _Outcome | None:
        """Wait for the oldest outcome, and remove it; None if the queue is empty and closed."""
        with self._changed:
            while not self._outcomes:
                if self._closed:
                    return None
                self._changed.wait(SIGNAL_CHECK_SECONDS)
            outcome = self._outcomes.popleft()
            self._changed.notify()
            return outcome

    def close(self) -> None:
        """Let the worker end after its current element."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()


def _close(queue: _BoundedQueue, process: int) -> None:
    """Close a queue of this process; a worker may have held its lock when a child process was forked."""
    if os.getpid() == process:
        queue.close()


def _work(queue: _BoundedQueue, source: StageIterator) -> None:
    """Read ``source`` until it ends or the queue is closed."""
    running = True
    while running:
        items: Sequence[Any] = ()
        error: BaseException | None = None
        try:
            items = source.next(1)
        except BaseException as raised:
            error = raised
        running = queue.put(_Outcome(items, error, source.get_state())) and bool(len(items) or error)
    source.close()


def prefetched(stage: Stage, size: int) -> Stage:
    """``stage``, of which a thread reads up to ``size`` elements ahead.

    All workers must run their collectives in one order. So of a stage that runs some, a thread reads the
    sources that run none.
    """
    if stage.runs_collectives:
        return stage.with_sources([prefetched(source, size) for source in stage.sources])
    return PrefetchStage(source=stage, size=size)


@dataclass(frozen=True, eq=False, kw_only=True)
class PrefetchStage(UnaryStage):
    """The same elements, of which up to ``size`` are prefetched."""

    size: int

    def start(self) -> StageIterator:
        return PrefetchIterator(self)


class PrefetchIterator(StageIterator):
    """Iterates over prefetched elements; its thread runs from the first read until it is closed or freed."""

    def __init__(self, stage: PrefetchStage) -> None:
        self._stage = stage
        self._source: StageIterator | None = stage.source.start()
        self._state: State = self._source.get_state()
        self._queue: _BoundedQueue | None = None
        self._buffer: list[_Outcome] = []
        self._ended = False
        self._process = os.getpid()

    def next(self, count: int) -> Sequence[Any]:
        if os.getpid() != self._process:  # the worker is the parent's
            self.set_state([self._ended, self._state])
        buffer = self._buffer  # elements before an error or an interrupt stay in it, and come afterwards
        while len(buffer) < count and not self._ended:
            outcome = (self._queue or self._begin()).take()
            if outcome is None:
                break
            if not buffer:
                self._state = outcome.state
            if outcome.error is not None:
                raise outcome.error
            self._ended = not len(outcome.items)
            buffer += [outcome] * len(outcome.items)
        taken, self._buffer = buffer[:count], buffer[count:]
        if taken:
            self._state = taken[-1].state
        return [outcome.items[0] for outcome in taken]

    def _begin(self) -> _BoundedQueue:
        queue = self._queue = _BoundedQueue(self._stage.size)
        source, self._source = self._source, None
        weakref.finalize(self, _close, queue, self._process)
        threading.Thread(target=_work, args=(queue, source), name="dualflow prefetch", daemon=True).start()
        return queue

    def get_state(self) -> State:
        return [self._ended and not self._buffer, self._state]

    def set_state(self, state: State) -> None:
        ended, self._state = parts(state, 2)
        if os.getpid() == self._process:
            self.close()
        self._process = os.getpid()
        self._queue, self._buffer = None, []
        self._ended = flag(ended)
        self._source = self._stage.source.start()
        self._source.set_state(self._state)

    def close(self) -> None:
        if self._queue is not None:
            self._queue.close()
        elif self._source is not None:
            self._source.close()
