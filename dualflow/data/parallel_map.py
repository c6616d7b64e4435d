"""A stage that calls its function in several threads."""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Final, NamedTuple

from dualflow.data.check_state import numbers, parts, wrong_state
from dualflow.data.element import ElementLayout, Item
from dualflow.data.functions import ElementFunction
from dualflow.data.mapping import MapIterator
from dualflow.data.stage import AUTOTUNE, SIGNAL_CHECK_SECONDS, StageIterator, State, UnaryStage

_NUM_TIMED_CALLS: Final = 4
_MIN_THREADED_SECONDS: Final = 1e-4
"""The duration in seconds from which a call runs in another thread, which costs about 20 us."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ParallelMapStage(UnaryStage):
    """A function's results, computed for several elements in parallel.

    Attributes:
        function: the function.
        calls: the number of parallel calls; ``AUTOTUNE`` for the number of cores if calls take long.
        ordered: whether the results come in the order of the elements.
    """

    function: ElementFunction
    calls: int
    ordered: bool

    @property
    def layout(self) -> ElementLayout:
        return self.function.layout

    def start(self) -> StageIterator:
        return ParallelMapIterator(self)


class _RunningCall(NamedTuple):
    """A call submitted to a thread: its number, and the source's state before its element."""

    number: int
    before: State
    result: Future[Item]


class ParallelMapIterator(StageIterator):
    """Iterates with calls in progress. If one fails, only its element is lost.

    Its state is the source's state before the oldest call in progress, and the numbers of later calls whose
    results have been returned already.
    """

    def __init__(self, stage: ParallelMapStage) -> None:
        self._stage = stage
        self._upstream = stage.source.start()
        self.upstreams = (self._upstream,)
        self._mapped = MapIterator(self._upstream, stage.function)
        self._threads: ThreadPoolExecutor | None = None
        self._calls: list[_RunningCall] = []
        self._number = 0
        self._returned: set[int] = set()
        self._timed: list[float] = []
        self._process = os.getpid()
        self._release: weakref.finalize[..., ParallelMapIterator] | None = None

    def next(self, count: int) -> Sequence[Item]:
        if os.getpid() != self._process:  # the threads are the parent's
            self.set_state(self.get_state())
        results: list[Item] = []
        taken: list[_RunningCall] = []
        try:
            while len(results) < count:
                if not self._calls and self._calls_are_short():
                    results += self._mapped.next(count - len(results))
                    break
                self._fill()
                if not self._calls:
                    break
                call = self._first()
                self._calls.remove(call)
                self._returned.add(call.number)
                results.append(call.result.result())
                taken.append(call)
        except BaseException:  # the other results come after the error
            self._calls = taken + self._calls
            self._returned.difference_update([call.number for call in taken])
            raise
        finally:
            oldest = self._calls[0].number if self._calls else self._number
            self._returned = {n for n in self._returned if n > oldest}
        return results

    @property
    def _is_timing(self) -> bool:
        """Whether the next call decides about threads, and so runs in this one."""
        return self._stage.calls == AUTOTUNE and len(self._timed) < _NUM_TIMED_CALLS

    def _calls_are_short(self) -> bool:
        """Whether threads don't pay; the first timed call, which compiles, is ignored."""
        if self._stage.calls != AUTOTUNE or self._is_timing:
            return False
        return min(self._timed[1:]) <= _MIN_THREADED_SECONDS

    def _fill(self) -> None:
        """Submit calls up to the limit."""
        limit = 1 if self._is_timing else cores() if self._stage.calls == AUTOTUNE else self._stage.calls
        while len(self._calls) < limit:
            before = self._upstream.get_state()
            items = self._upstream.next(1)
            if not len(items):
                return
            call = self._timed_call(items[0]) if self._is_timing else self._submit(items[0], limit)
            self._calls.append(_RunningCall(self._number, before, call))
            self._number += 1

    def _timed_call(self, item: Item) -> Future[Item]:
        """Call the function in this thread, and time it."""
        call: Future[Item] = Future()
        start = time.perf_counter()
        try:
            call.set_result(self._stage.function(*item))
        except Exception as error:
            call.set_exception(error)
        self._timed.append(time.perf_counter() - start)
        return call

    def _submit(self, item: Item, limit: int) -> Future[Item]:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(limit, "dualflow map")
            self._release = weakref.finalize(self, _end, self._threads)
        return self._threads.submit(self._stage.function, *item)

    def _first(self) -> _RunningCall:
        """Wait for the next result, and return its call."""
        calls = self._calls[:1] if self._stage.ordered else self._calls
        done: set[Future[Item]] = set()
        while not done:
            done = wait([call.result for call in calls], SIGNAL_CHECK_SECONDS, FIRST_COMPLETED).done
        return next(call for call in calls if call.result in done)

    def get_state(self) -> State:
        if not self._calls:
            return [self._mapped.get_state(), []]
        first = self._calls[0]
        return [first.before, sorted(n - first.number for n in self._returned)]

    def set_state(self, state: State) -> None:
        before, passed = parts(state, 2)
        numbers(passed)
        if os.getpid() == self._process:
            self._stop()
        self._process, self._threads = os.getpid(), None
        self._calls, self._returned = [], set()
        self._mapped.set_state(before)
        for number in range(max(passed, default=-1) + 1):
            place = self._upstream.get_state()
            items = self._upstream.next(1)
            if not len(items):
                raise wrong_state(passed, "numbers of elements before the source's end")
            if number not in passed:
                result: Future[Item] = Future()
                result.set_result(self._stage.function(*items[0]))
                self._calls.append(_RunningCall(self._number, place, result))
            else:
                self._returned.add(self._number)
            self._number += 1

    def _stop(self) -> None:
        if self._release is not None:
            self._release()

    def close(self) -> None:
        self._stop()
        super().close()


def cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _end(threads: ThreadPoolExecutor) -> None:
    threads.shutdown(wait=False, cancel_futures=True)
