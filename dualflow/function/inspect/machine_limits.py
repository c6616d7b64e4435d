"""The measured limits of this machine: memory bandwidth and peak rate of operations."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from dualflow.core.records import NamedTuple
from dualflow.eager.tensor import wrap
from dualflow.function.decorator import function

_ELEMENTS: Final = 1 << 24
"""Elements of the measured arrays: 64 MB each, larger than caches."""
_SIDE: Final = 1024
"""Rows and columns of the measured matrices."""
_RUNS: Final = 4


class MachineLimits(NamedTuple):
    """Limits of this machine, with as many threads as dualflow uses.

    Attributes:
        bandwidth: bytes per second that a kernel reads and writes in memory.
        peak: operations per second of a matrix product of float32, two for each product of two numbers.
    """

    bandwidth: float
    peak: float


@functools.cache
def machine_limits() -> MachineLimits:
    """The limits, measured once per process, in about 0.2 seconds."""
    array = wrap(np.ones(_ELEMENTS, np.float32))
    matrix = wrap(np.ones((_SIDE, _SIDE), np.float32))
    copy = function(lambda x: x + 1.0, name="bandwidth", autograph=False)
    product = function(lambda x: x @ x, name="peak", autograph=False)
    return MachineLimits(
        bandwidth=2 * array.spec.nbytes / _best_seconds(copy, array),
        peak=2 * float(_SIDE) ** 3 / _best_seconds(product, matrix),
    )


def _best_seconds(run: Callable[[Any], Any], argument: Any) -> float:
    run(argument)  # compiles
    seconds = []
    for _ in range(_RUNS):
        start = time.perf_counter()
        run(argument)
        seconds.append(time.perf_counter() - start)
    return min(seconds)
