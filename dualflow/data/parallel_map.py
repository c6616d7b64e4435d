"""A stage whose function is called in several threads at once."""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Final, NamedTuple

from dualflow.data.element import ElementLayout, Item
from dualflow.data.functions import ElementFunction
from dualflow.data.mapping import MapCursor
from dualflow.data.stage import AUTOTUNE, LOOK, Cursor, OverOne, State
from dualflow.data.states import numbers, parts, wrong_state

_TIMED: Final = 4
_WORTH: Final = 1e-4
"""Seconds from which on a call is worth being handed to another thread, which takes some 20 us."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ParallelMapStage(OverOne):
    """What a function gives for each element, called for several elements at once.

    Attributes:
        function: the function.
        calls: how many at once; ``AUTOTUNE`` for as many as there are cores, if a call takes long.
        ordered: whether the results come in the order of the elements.
    """

    function: ElementFunction
    calls: int
    ordered: bool

    @property
    def layout(self) -> ElementLayout:
        return self.function.layout

    def start(self) -> Cursor:
        return ParallelMapCursor(self)


class _RunningCall(NamedTuple):
    """A call that was handed to a thread: its number, and where the source was before its element."""

    number: int
    before: State
    result: Future[Item]


class ParallelMapCursor(Cursor):
    """A run with calls under way. Where one fails, only its element is lost.

    Its place is where the source was before the first of these, and which later ones have been handed out.
    """

    def __init__(self, stage: ParallelMapStage) -> None:
        self._stage = stage
        self._upstream = stage.source.start()
        self.upstreams = (self._upstream,)
        self._mapped = MapCursor(self._upstream, stage.function)
        self._threads: ThreadPoolExecutor | None = None
        self._calls: list[_RunningCall] = []
        self._number = 0
        self._passed: set[int] = set()
        self._timed: list[float] = []
        self._process = os.getpid()
        self._release: weakref.finalize[..., ParallelMapCursor] | None = None

    def pull(self, count: int) -> Sequence[Item]:
        if os.getpid() != self._process:  # the threads are the parent's
            self.set_state(self.get_state())
        if self._stage.calls == AUTOTUNE and not self._calls and not self._long():
            return self._here(count)
        results: list[Item] = []
        taken: list[_RunningCall] = []
        try:
            while len(results) < count:
                self._fill()
                if not self._calls:
                    break
                call = self._first()
                self._calls.remove(call)
                self._passed.add(call.number)
                results.append(call.result.result())
                taken.append(call)
        except BaseException:  # the others come after it
            self._calls = taken + self._calls
            self._passed.difference_update([call.number for call in taken])
            raise
        finally:
            oldest = self._calls[0].number if self._calls else self._number
            self._passed = {n for n in self._passed if n > oldest}
        return results

    def _long(self) -> bool:
        """Whether calls take so long that threads are worth it; the first, which compiles, doesn't count."""
        return len(self._timed) == _TIMED and min(self._timed[1:]) > _WORTH

    def _here(self, count: int) -> Sequence[Item]:
        """The next results, computed in this thread and timed."""
        if len(self._timed) == _TIMED:
            return self._mapped.pull(count)
        found: list[Item] = []
        while len(found) < count and len(self._timed) < _TIMED:
            items = self._upstream.pull(1)
            if not len(items):
                return found
            begun = time.perf_counter()
            found.append(self._stage.function(*items[0]))
            self._timed.append(time.perf_counter() - begun)
        return found if len(found) == count else [*found, *self.pull(count - len(found))]

    def _fill(self) -> None:
        """Hand out calls until as many are under way as there may be."""
        limit = self._limit
        while len(self._calls) < limit:
            before = self._upstream.get_state()
            items = self._upstream.pull(1)
            if not len(items):
                return
            if self._threads is None:
                self._threads = ThreadPoolExecutor(limit, "dualflow map")
                self._release = weakref.finalize(self, _end, self._threads)
            call = self._threads.submit(self._stage.function, *items[0])
            self._calls.append(_RunningCall(self._number, before, call))
            self._number += 1

    @property
    def _limit(self) -> int:
        return cores() if self._stage.calls == AUTOTUNE else self._stage.calls

    def _first(self) -> _RunningCall:
        """The call whose result comes next, once it is there."""
        calls = self._calls[:1] if self._stage.ordered else self._calls
        done: set[Future[Item]] = set()
        while not done:
            done = wait([call.result for call in calls], LOOK, FIRST_COMPLETED).done
        return next(call for call in calls if call.result in done)

    def get_state(self) -> State:
        if not self._calls:
            return [self._mapped.get_state(), []]
        first = self._calls[0]
        return [first.before, sorted(n - first.number for n in self._passed)]

    def set_state(self, state: State) -> None:
        before, passed = parts(state, 2)
        numbers(passed)
        if os.getpid() == self._process:
            self._stop()
        self._process, self._threads = os.getpid(), None
        self._calls, self._passed = [], set()
        self._mapped.set_state(before)
        for number in range(max(passed, default=-1) + 1):
            place = self._upstream.get_state()
            items = self._upstream.pull(1)
            if not len(items):
                raise wrong_state(passed, "numbers of elements before the source's end")
            if number not in passed:
                result: Future[Item] = Future()
                result.set_result(self._stage.function(*items[0]))
                self._calls.append(_RunningCall(self._number, place, result))
            else:
                self._passed.add(self._number)
            self._number += 1

    def _stop(self) -> None:
        if self._release is not None:
            self._release()

    def close(self) -> None:
        self._stop()
        super().close()


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _end(threads: ThreadPoolExecutor) -> None:
    threads.shutdown(wait=False, cancel_futures=True)
