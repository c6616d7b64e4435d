"""A call for which there is not enough memory changes no variable."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

PROGRAM = """
import json, resource
import numpy as np
import dualflow as df

n, v = df.Variable(0), df.Variable(df.zeros([4]))

@df.function
def large(x):
    n.assign_add(1)
    v.assign_add(df.ones([4]))
    return df.ones([20_000_000]) * df.cast(n, df.float32) + x

@df.function
def with_python(x):
    n.assign_add(1)
    y = df.py_function(lambda a: a, [x], df.float32)
    v.assign_add(df.ones([4]))
    return df.ones([20_000_000]) * y

x = df.constant(1.0)
results = large(x), large(x), with_python(x)  # what is freed would be there for the next call
with open("/proc/self/statm") as file:
    held = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (held + (30 << 20), resource.RLIM_INFINITY))
refused = 0
for call in (large, large, with_python, df.function(lambda x: large(x))):
    try:
        call(x)
    except MemoryError:
        refused += 1
print(json.dumps([refused, int(n), v.numpy().tolist()]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits the memory of a process")
def test_a_call_that_gets_no_memory_changes_nothing(forked_answer: Callable[..., Any]) -> None:
    assert forked_answer(PROGRAM) == [4, 3, [3.0, 3.0, 3.0, 3.0]]
