"""Measures calls: time, memory and ops; resets the state that they change."""

from __future__ import annotations

import copy
import gc
import math
import random
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
from typing import Any

import numpy as np

from dualflow.core.delegating_engine import DelegatingEngine
from dualflow.core.dispatch import AbstractVariable
from dualflow.core.locks import imported
from dualflow.core.records import NamedTuple
from dualflow.eager import updates
from dualflow.eager.engine import EAGER
from dualflow.eager.tensor import wrap
from dualflow.graph.ir import Graph, Node
from dualflow.ops.record import Op

ROUND_SECONDS = 0.004
"""The shortest duration of a round of calls; a longer call is a round of its own."""

SECONDS = 0.5
"""The total time for each call to measure, if that allows two rounds."""

_MAX_ROUNDS = 60
_MIN_ROUNDS = 2


class TimedCall(NamedTuple):
    """A call to measure, ``function(*args, **kwargs)``, and a function that prepares it."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    prepare: Callable[[], None]

    def __call__(self) -> Any:
        """The result of one call, after ``prepare``."""
        self.prepare()
        return self.function(*self.args, **self.kwargs)


def best_times(calls: Sequence[TimedCall]) -> list[float]:
    """The time of each call in seconds: the best of several interleaved rounds.

    Each call has run before, so that compiling and loading are not measured.
    """
    counts, best = map(list, zip(*map(_calls_in_a_round, calls), strict=True))
    start = time.perf_counter()
    for number in range(_MAX_ROUNDS):
        if number >= _MIN_ROUNDS and time.perf_counter() - start > SECONDS * len(calls):
            break
        for i, (call, count) in enumerate(zip(calls, counts, strict=True)):
            best[i] = min(best[i], _round(call, count) / count)
    return best


def _calls_in_a_round(call: TimedCall) -> tuple[int, float]:
    """The number of calls in a round of :data:`ROUND_SECONDS`, and the time of one call."""
    count = 1
    while (seconds := _round(call, count)) < ROUND_SECONDS:
        estimate = math.ceil(count * ROUND_SECONDS / seconds) if seconds else count * 10
        count = min(max(estimate, count + 1), count * 10)
    return count, seconds / count


def _round(call: TimedCall, count: int) -> float:
    """The time of ``count`` calls in seconds, with the garbage collector disabled."""
    call.prepare()
    function, args, kwargs = call.function, call.args, call.kwargs
    collecting = gc.isenabled()
    gc.disable()
    try:
        if kwargs:
            start = time.perf_counter()
            for _ in repeat(None, count):
                function(*args, **kwargs)
        else:
            start = time.perf_counter()
            for _ in repeat(None, count):
                function(*args)
        return time.perf_counter() - start
    finally:
        if collecting:
            gc.enable()


def peak_bytes(call: TimedCall) -> int:
    """The peak memory of Python and NumPy during a call, in bytes, in excess of the memory in use before it.

    It is measured by tracemalloc, and includes the results.
    """
    call.prepare()
    running = tracemalloc.is_tracing()
    if not running:
        tracemalloc.start()
    try:
        gc.collect()
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        result = call.function(*call.args, **call.kwargs)
        _, peak = tracemalloc.get_traced_memory()
        del result
        return peak - before
    finally:
        if not running:
            tracemalloc.stop()


class CountingEngine(DelegatingEngine):
    """The eager engine, which also counts the ops that it runs."""

    __slots__ = ("ops",)

    def __init__(self) -> None:
        super().__init__(EAGER)
        self.ops: Counter[str] = Counter()

    def run(self, op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        self.ops[op.name] += 1
        return super().run(op, inputs, attrs)


class GlobalRandom:
    """The states of Python's and NumPy's global random generators at construction."""

    def __init__(self) -> None:
        self._python, self._numpy = random.getstate(), imported("numpy.random").get_state()

    def rewind(self) -> None:
        """Reset the generators to these states."""
        random.setstate(self._python)
        np.random.set_state(self._numpy)


class State:
    """The state that calls of a traced function may change: variables and random generators.

    Args:
        graph: the trace of the function.
        variables: the variables that it reads or assigns.
        others: the global generators, which it may use without a node in the trace.
    """

    def __init__(self, graph: Graph, variables: Sequence[AbstractVariable], others: GlobalRandom) -> None:
        self.variables = list({id(v): v for v in variables}.values())
        self._tensors = [EAGER.read(v) for v in self.variables]
        sources = {id(s): s for node in _nodes(graph) for s in node.attrs.values() if hasattr(s, "philox")}
        self._sources = list(sources.values())
        self._initial = [copy.deepcopy(s.philox.bit_generator.state) for s in self._sources]
        self._others = others

    def reset(self) -> None:
        """Reset the state; each variable gets a copy of its tensor, which a compiled graph may overwrite."""
        for variable, tensor in zip(self.variables, self._tensors, strict=True):
            updates.assign(variable, wrap(tensor._array.copy()))
        self._rewind()

    def restore(self) -> None:
        """Restore the state; each variable gets its original tensor."""
        for variable, tensor in zip(self.variables, self._tensors, strict=True):
            updates.assign(variable, tensor)
        self._rewind()

    def values(self) -> list[np.ndarray[Any, Any]]:
        """Copies of the current values of the variables."""
        return [EAGER.read(v)._array.copy() for v in self.variables]

    def _rewind(self) -> None:
        for source, initial in zip(self._sources, self._initial, strict=True):
            source.philox.bit_generator.state = initial
        self._others.rewind()


def _nodes(graph: Graph) -> Iterator[Node]:
    """The nodes of a graph and of the bodies inside it."""
    pending = [graph]
    while pending:
        for node in pending.pop().nodes:
            yield node
            pending += [body for _, body in node.bodies]
