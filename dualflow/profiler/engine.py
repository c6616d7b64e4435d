"""The eager engine while a profiler looks on: each op is timed.

It is the engine itself, whose class is another one for that time: all threads and tapes that hold it are
seen, and nothing is asked where no profiler runs. The class may change back in the middle of a method, so the
methods name the class below them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any, Final

from dualflow.eager.engine import EAGER, EagerEngine
from dualflow.graph.origin import caller
from dualflow.ops.record import Op
from dualflow.profiler.recorder import Recorder


class _Looking(threading.local):
    """The op that a thread runs now; what it does on the way is part of it."""

    op: Op | None = None


class _Place:
    """Where ops are noted."""

    recorder: Recorder | None = None


_LOOKING: Final = _Looking()


class TimedEagerEngine(EagerEngine):
    """Notes the time of each op with the recorder that looks on."""

    __slots__ = ()

    def unary(self, op: Op, x: Any) -> Any:
        return _timed(op, EagerEngine.unary, self, op, x)

    def binary(self, op: Op, x: Any, y: Any) -> Any:
        return _timed(op, EagerEngine.binary, self, op, x, y)

    def apply(self, op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        return _timed(op, EagerEngine.apply, self, op, inputs, attrs)

    def run(self, op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        return _timed(op, EagerEngine.run, self, op, inputs, attrs)


def _timed(op: Op, run: Callable[..., Any], *args: Any) -> Any:
    recorder, around = _Place.recorder, _LOOKING.op
    if recorder is None or around is op:
        return run(*args)
    _LOOKING.op = op
    begin = perf_counter_ns()
    try:
        return run(*args)
    finally:
        recorder.add("op", op.name, begin, perf_counter_ns(), caller())
        _LOOKING.op = around


def look(recorder: Recorder | None) -> None:
    """Let ``recorder`` note the time of each op of all threads from now on; None for no one."""
    _Place.recorder = recorder
    EAGER.__class__ = EagerEngine if recorder is None else TimedEagerEngine
