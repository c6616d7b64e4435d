"""Conditionals and loops inside each other: compiled at any depth that can be traced, in linear time."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import dualflow as df
from dualflow.core import trampoline
from dualflow.graph.encoding import encoded_graph
from dualflow.graph.options import CompileOptions
from dualflow.graph.passes.pipeline import optimise
from dualflow.schedule.host_fallback import reason_not_native
from dualflow.schedule.operands import is_control

SPEC = df.TensorSpec([2])
DEEP = 200
"""More than the recursion limit allows if a level takes five frames."""


def cond_around(inner, number):
    return lambda x: df.cond(x[0] > float(number), lambda: inner(x + 1.0), lambda: x * 2.0)


def loop_around(inner, number):
    return lambda x: df.while_loop(lambda y: y[0] < float(number), lambda y: (inner(y) + 1.0,), (x,))[0]


def nested(around, depth, innermost=lambda x: x):
    """A concrete function with ``depth`` levels, each traced when the levels inside it have been."""
    inner = df.function(innermost).get_concrete_function(SPEC)
    for number in range(depth, 0, -1):
        inner = df.function(around(inner, number)).get_concrete_function(SPEC)
    return inner


def calls_of(function):
    """The number of Python calls of ``function()``."""
    count = 0

    def profile(frame, event, argument):
        nonlocal count
        count += event == "call"

    sys.setprofile(profile)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count


def test_two_hundred_conditionals_inside_each_other_compile():
    f = nested(cond_around, DEEP)
    assert np.array_equal(f(df.constant([1.5, 0.0])), [1.5 + DEEP, DEEP])
    assert np.array_equal(f(df.constant([-5.0, 1.0])), [-10.0, 2.0])


def test_two_hundred_loops_inside_each_other_compile():
    f = nested(loop_around, DEEP)
    assert np.array_equal(f(df.constant([0.0, 0.0])), [2 * DEEP - 1, 2 * DEEP - 1])
    assert np.array_equal(f(df.constant([DEEP + 0.0, 3.0])), [DEEP, 3.0])


@pytest.mark.parametrize("around", [cond_around, loop_around])
@pytest.mark.parametrize("step", [encoded_graph, lambda graph: optimise(graph, CompileOptions())])
def test_work_grows_linearly_with_the_depth(around, step):
    few, more = (nested(around, depth).graph for depth in (20, 40))
    step(few)  # which computes what is computed once per process
    assert calls_of(lambda: step(more)) < 2.5 * calls_of(lambda: step(nested(around, 20).graph))


def test_the_reason_of_a_host_fallback_is_found_in_linear_time():
    def innermost(x):
        return df.ensure_shape(df.numpy_function(np.negative, [x], df.float32), [2])

    def calls(depth):
        graph = optimise(nested(cond_around, depth, innermost).graph, CompileOptions())
        (node,) = (n for n in graph.nodes if is_control(n))
        assert "numpy_function" in reason_not_native(node)
        return calls_of(lambda: reason_not_native(node))

    assert calls(16) < 2.5 * calls(8)


def test_an_error_closes_the_generators_that_wait_for_it():
    closed = []

    def level(number):
        try:
            yield level(number - 1) if number else 1 / 0
        finally:
            closed.append(number)

    with pytest.raises(ZeroDivisionError):
        trampoline.run(level(2))
    assert closed == [0, 1, 2]
