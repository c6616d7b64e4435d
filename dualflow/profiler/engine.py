"""The eager engine while a profiler runs: times each op.

The class of the engine object is replaced for that time: so all threads and tapes that refer to it are
profiled, and without a profiler there is no cost. The class may change back during a method, so methods name
their base class instead of ``super()``.
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


class _CurrentOp(threading.local):
    """The op that a thread is running; nested ops are part of it."""

    op: Op | None = None


class _Target:
    """The active recorder of ops, if any, and the engine's class without one."""

    recorder: Recorder | None = None
    unprofiled: type[EagerEngine] = EagerEngine


_CURRENT: Final = _CurrentOp()


class TimedEagerEngine(EagerEngine):
    """Records the time of each op."""

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
    recorder, around = _Target.recorder, _CURRENT.op
    if recorder is None or around is op:
        return run(*args)
    _CURRENT.op = op
    begin = perf_counter_ns()
    try:
        return run(*args)
    finally:
        recorder.add("op", op.name, begin, perf_counter_ns(), caller())
        _CURRENT.op = around


def record_ops(recorder: Recorder | None) -> None:
    """Record the time of each op of all threads with ``recorder``, from now on; None to stop."""
    if EAGER.__class__ is not TimedEagerEngine:
        _Target.unprofiled = EAGER.__class__
    _Target.recorder = recorder
    EAGER.__class__ = _Target.unprofiled if recorder is None else TimedEagerEngine
