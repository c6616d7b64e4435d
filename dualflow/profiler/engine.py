"""The classes of the eager engines while a profiler runs: they time each op."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any, Final

from dualflow.eager.device_engine import ON_GPU, DeviceEngine
from dualflow.eager.engine import EagerEngine
from dualflow.eager.engine_class import ENGINE_CLASS
from dualflow.eager.kernel_slot import Computation, computation_name
from dualflow.graph.origin import caller
from dualflow.ops.record import Op
from dualflow.profiler.recorder import Recorder


class _CurrentOp(threading.local):
    """The op, or the function of ops, that a thread is running; its nested calls are part of it."""

    computation: Computation | None = None


class _Target:
    """The active recorder of ops, if any."""

    recorder: Recorder | None = None


_CURRENT: Final = _CurrentOp()


class TimedEagerEngine(EagerEngine):
    """Records the time of each op outside of blocks on a GPU."""

    __slots__ = ()

    def unary(self, op: Op, x: Any) -> Any:
        return _timed(op, ENGINE_CLASS.untimed.unary, self, op, x)

    def binary(self, op: Op, x: Any, y: Any) -> Any:
        return _timed(op, ENGINE_CLASS.untimed.binary, self, op, x, y)

    def apply(self, op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        return _timed(op, ENGINE_CLASS.untimed.apply, self, op, inputs, attrs)

    def run(self, op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        return _timed(op, ENGINE_CLASS.untimed.run, self, op, inputs, attrs)


class TimedDeviceEngine(DeviceEngine):
    """Records the time of each op in blocks on a GPU: until the device has accepted it, with transfers."""

    __slots__ = ()

    def run(self, op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        return _timed(op, DeviceEngine.run, self, op, inputs, attrs)

    def composite(self, rule: Callable[..., Any], x: Any, attrs: dict[str, Any]) -> Any:
        return _timed(rule, DeviceEngine.composite, self, rule, x, attrs)

    def generated(
        self, rule: Callable[..., Any], inputs: tuple[Any, ...], count: int, attrs: dict[str, Any]
    ) -> Any:
        return _timed(rule, DeviceEngine.generated, self, rule, inputs, count, attrs)


def _timed(what: Computation, run: Callable[..., Any], *args: Any) -> Any:
    recorder, around = _Target.recorder, _CURRENT.computation
    if recorder is None or around is what:
        return run(*args)
    _CURRENT.computation = what
    begin = perf_counter_ns()
    try:
        return run(*args)
    finally:
        recorder.add("op", computation_name(what), begin, perf_counter_ns(), caller())
        _CURRENT.computation = around


def record_ops(recorder: Recorder | None) -> None:
    """Record the time of each op of all threads with ``recorder``, from now on; None to stop."""
    _Target.recorder = recorder
    ENGINE_CLASS.set_timed(None if recorder is None else TimedEagerEngine)
    ON_GPU.__class__ = DeviceEngine if recorder is None else TimedDeviceEngine
