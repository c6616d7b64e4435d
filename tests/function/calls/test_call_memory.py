"""The memory of intermediate values: one arena for all the ways in which a graph is called."""

from __future__ import annotations

import tracemalloc

import numpy as np

import dualflow as df

SIDE = 512


def test_all_ways_of_calling_share_an_arena() -> None:
    """Calls of the function and of its trace; NumPy reports all its memory to tracemalloc."""
    f = df.function(lambda x: df.reduce_sum(x @ x @ x))
    x = df.constant(np.full((SIDE, SIDE), 1 / SIDE, np.float32))
    trace = f.get_concrete_function(x)
    f(x)
    arena = trace.memory.peak
    assert arena >= x.numpy().nbytes
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for call in (f, f, f, trace, trace, trace):
            assert abs(float(call(x)) - SIDE) < 0.01
        now, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert now - before < 1.5 * arena
