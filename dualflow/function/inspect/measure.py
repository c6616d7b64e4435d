"""Measuring calls: time, memory, the ops that run, and putting back what they change."""

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
from dualflow.core.records import NamedTuple
from dualflow.eager import updates
from dualflow.eager.engine import EAGER
from dualflow.eager.tensor import wrap
from dualflow.graph.ir import Graph, Node
from dualflow.ops.record import Op

ROUND_SECONDS = 0.004
"""How long a round of calls lasts at least; a longer call is a round of its own."""

SECONDS = 0.5
"""How long each of the calls to be timed goes on in all, unless that is too short for two rounds."""

_MOST_ROUNDS = 60
_FEWEST_ROUNDS = 2


class TimedCall(NamedTuple):
    """Something to measure: ``function(*args, **kwargs)``, and what runs before each measurement of it."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    prepare: Callable[[], None]

    def __call__(self) -> Any:
        """One call, prepared."""
        self.prepare()
        return self.function(*self.args, **self.kwargs)


def best_times(calls: Sequence[TimedCall]) -> list[float]:
    """Seconds that each call takes: the best of several rounds, which take turns.

    Each has run before, so that nothing is compiled or loaded any more.
    """
    counts, best = map(list, zip(*map(_calls_in_a_round, calls), strict=True))
    begun = time.perf_counter()
    for number in range(_MOST_ROUNDS):
        if number >= _FEWEST_ROUNDS and time.perf_counter() - begun > SECONDS * len(calls):
            break
        for i, (call, count) in enumerate(zip(calls, counts, strict=True)):
            best[i] = min(best[i], _round(call, count) / count)
    return best


def _calls_in_a_round(call: TimedCall) -> tuple[int, float]:
    """How many calls last long enough, and the seconds of one as far as that shows."""
    count = 1
    while (taken := _round(call, count)) < ROUND_SECONDS:
        wanted = math.ceil(count * ROUND_SECONDS / taken) if taken else count * 10
        count = min(max(wanted, count + 1), count * 10)
    return count, taken / count


def _round(call: TimedCall, count: int) -> float:
    """Seconds for ``count`` calls, without interruption by the garbage collector."""
    call.prepare()
    function, args, kwargs = call.function, call.args, call.kwargs
    collecting = gc.isenabled()
    gc.disable()
    try:
        if kwargs:
            begun = time.perf_counter()
            for _ in repeat(None, count):
                function(*args, **kwargs)
        else:
            begun = time.perf_counter()
            for _ in repeat(None, count):
                function(*args)
        return time.perf_counter() - begun
    finally:
        if collecting:
            gc.enable()


def peak_bytes(call: TimedCall) -> int:
    """The most bytes that Python and NumPy held during a call beyond those before it, results included.

    Python's tracemalloc counts them.
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


class Counting(DelegatingEngine):
    """The eager engine, with a count of the ops it runs."""

    __slots__ = ("ops",)

    def __init__(self) -> None:
        super().__init__(EAGER)
        self.ops: Counter[str] = Counter()

    def run(self, op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        self.ops[op.name] += 1
        return super().run(op, inputs, attrs)


class GlobalRandom:
    """Python's and NumPy's own random numbers, as they are when this is made."""

    def __init__(self) -> None:
        self._python, self._numpy = random.getstate(), np.random.get_state()

    def rewind(self) -> None:
        """Let them go on from there."""
        random.setstate(self._python)
        np.random.set_state(self._numpy)


class State:
    """What calls of a traced function may change: variables, and generators of random numbers.

    Args:
        graph: the function's trace.
        variables: those that it reads or assigns.
        others: the generators that it may draw from behind the trace's back.
    """

    def __init__(self, graph: Graph, variables: Sequence[AbstractVariable], others: GlobalRandom) -> None:
        self.variables = list({id(v): v for v in variables}.values())
        self._tensors = [EAGER.read(v) for v in self.variables]
        sources = {id(s): s for node in _nodes(graph) for s in node.attrs.values() if hasattr(s, "philox")}
        self._sources = list(sources.values())
        self._drawn = [copy.deepcopy(s.philox.bit_generator.state) for s in self._sources]
        self._others = others

    def renew(self) -> None:
        """Everything as it was at first; each variable holds a copy that a compiled graph may overwrite."""
        for variable, tensor in zip(self.variables, self._tensors, strict=True):
            updates.assign(variable, wrap(tensor._array.copy()))
        self._rewind()

    def restore(self) -> None:
        """Everything as it was at first; each variable holds the very tensor that it held."""
        for variable, tensor in zip(self.variables, self._tensors, strict=True):
            updates.assign(variable, tensor)
        self._rewind()

    def values(self) -> list[np.ndarray[Any, Any]]:
        """What the variables hold now, copied."""
        return [EAGER.read(v)._array.copy() for v in self.variables]

    def _rewind(self) -> None:
        for source, drawn in zip(self._sources, self._drawn, strict=True):
            source.philox.bit_generator.state = drawn
        self._others.rewind()


def _nodes(graph: Graph) -> Iterator[Node]:
    """The nodes of a graph and of the bodies inside it."""
    pending = [graph]
    while pending:
        for node in pending.pop().nodes:
            yield node
            pending += [body for _, body in node.bodies]
