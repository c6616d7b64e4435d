"""Measures the time and the peak memory of calls after compilation."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import dualflow as df
from benchmarks.workloads import Workload
from dualflow.core.tree import leaves
from dualflow.function import Function

ENGINES = ("eager", "graph", "numpy")
SETTLE = 0.1
"""Seconds between blocks: after a product, the workers of NumPy's BLAS spin for a while on all cores."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One workload's figures by engine: seconds of the fastest block, and bytes at the peak of a call."""

    name: str
    seconds: dict[str, float]
    peak: dict[str, int]


@dataclass(frozen=True, slots=True)
class Subject:
    """A workload on one engine, with its inputs."""

    function: Callable[..., Any]
    inputs: tuple[Any, ...]

    @classmethod
    def of(cls, workload: Workload, engine: str) -> Subject:
        if engine == "numpy":
            return cls(workload.reference(), workload.inputs)
        function = workload.build()
        tensors = tuple(map(df.constant, workload.inputs))
        return cls(df.function(function) if engine == "graph" else function, tensors)

    def __call__(self) -> Any:
        return self.function(*self.inputs)

    def compile(self) -> None:
        """Trace and compile a :func:`dualflow.function`, without a call."""
        if isinstance(self.function, Function):
            _ = self.function.get_concrete_function(*self.inputs).parts


def measure(workload: Workload, rounds: int, block: float) -> Measured:
    """The time and memory of ``workload`` on each engine; the results must agree.

    Args:
        workload: the workload.
        rounds: the number of blocks of calls per engine, of which the fastest counts.
        block: the duration of a block in seconds.
    """
    subjects = {engine: Subject.of(workload, engine) for engine in ENGINES}
    _check(workload.name, {engine: subject() for engine, subject in subjects.items()})
    best = fastest(subjects, rounds, block)
    peak = {engine: _peak(Subject.of(workload, engine)) for engine in ENGINES}
    return Measured(workload.name, best, peak)


def fastest(subjects: dict[str, Subject], rounds: int, block: float) -> dict[str, float]:
    """Seconds of a call in the fastest of ``rounds`` blocks of each subject; the subjects are interleaved."""
    counts = {engine: _calls_per_block(subject, block) for engine, subject in subjects.items()}
    best = dict.fromkeys(subjects, float("inf"))
    for _ in range(rounds):
        for engine, subject in subjects.items():
            time.sleep(SETTLE)
            best[engine] = min(best[engine], _block(subject, counts[engine]) / counts[engine])
    return best


def _check(name: str, results: dict[str, Any]) -> None:
    """Raise an error if the results of an engine differ from NumPy's."""
    expected = leaves(results["numpy"])
    for engine in ("eager", "graph"):
        for x, y in zip(leaves(results[engine]), expected, strict=True):
            np.testing.assert_allclose(np.asarray(x), y, rtol=1e-3, atol=1e-4, err_msg=f"{name}, {engine}")


def _calls_per_block(subject: Subject, block: float) -> int:
    for _ in range(3):
        subject()
    return max(1, int(block / max(_block(subject, 1), 1e-7)))


def _block(subject: Subject, count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        subject()
    return time.perf_counter() - start


def _peak(subject: Subject) -> int:
    """The peak memory of calls without their inputs, in bytes, in the allocators of Python and NumPy.

    It includes the arena that a graph keeps between calls, but not the memory of the compiler.
    """
    subject.compile()
    tracemalloc.start()
    try:
        subject()
        subject()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
