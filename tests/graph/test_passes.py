"""All passes together: the same values, in linear time, on graphs of any depth."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dualflow as df
from dualflow.core.spec import TensorSpec
from dualflow.function.tracing.collect_results import collect
from dualflow.function.tracing.tracer import Tracer, tracing
from dualflow.graph.interpret import evaluate
from dualflow.graph.ir import verify
from dualflow.graph.options import CompileOptions
from dualflow.graph.passes.pipeline import PASSES, SIMPLIFICATIONS, optimise

OPTIONS = CompileOptions()
UNARY = [df.negative, df.abs, df.square, df.identity, lambda x: x * 1.0, lambda x: x / 4.0, lambda x: x + 0.0]
UNARY += [lambda x: df.reduce_max(x, 1, keepdims=True) - x, lambda x: df.transpose(df.transpose(x))]
UNARY += [
    lambda x: df.reshape(df.reshape(x, [-1]), [2, 3]),
    lambda x: df.cast(df.cast(x, "float64"), "float32"),
]
BINARY = [df.add, df.subtract, df.multiply, df.maximum, lambda x, y: df.where(x > y, x, -y)]
steps = st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99), st.integers(0, 99)), max_size=25)
small = st.lists(st.floats(-4, 4, width=32), min_size=6, max_size=6)


def program(choices):
    """A straight-line program of these choices: each step takes earlier values."""

    def run(x):
        values = [x, df.constant([[1.0, -0.0, 2.0]] * 2)]
        for op, a, b in choices:
            ops = UNARY if op % 2 else BINARY
            arguments = [values[i % len(values)] for i in (a, b)]
            values.append(ops[op // 2 % len(ops)](*arguments[: 1 if op % 2 else 2]))
        return values[-1], values[len(values) // 2]

    return run


def record(function, *specs):
    tracer = Tracer("program")
    with tracing(tracer):
        result = function(*map(tracer.argument, specs))
    return tracer.builder.finish(collect(result, tracer)[1], tracer.updates())


@settings(max_examples=60, deadline=None)
@given(steps, small)
def test_every_pass_keeps_every_value(choices, numbers):
    x = np.array(numbers, np.float32).reshape(2, 3)
    graph = record(program(choices), TensorSpec([2, 3]))
    expected = [y.numpy() for y in program(choices)(df.constant(x))]

    def check(name, graph):
        verify(graph)
        for mine, eager in zip(evaluate(graph, [x]), expected, strict=True):
            assert np.array_equal(mine, eager, equal_nan=True), name

    check("traced", graph)
    optimise(graph, OPTIONS, check)


def chain(length):
    def run(x):
        for i in range(length // 5):
            x = x * 1.0001 + df.sin(x) * 0.001 * float(i % 7)
        return x

    return record(run, TensorSpec([4]))


@pytest.mark.parametrize("step", PASSES, ids=lambda p: p.name)
def test_a_passs_work_grows_with_the_graph_and_no_faster(step, lines_run):
    small, large = chain(300), chain(3000)
    assert lines_run(lambda: step.function(large, OPTIONS)) < 11 * lines_run(
        lambda: step.function(small, OPTIONS)
    )


def test_no_pass_needs_a_deep_stack():
    graph = chain(10_000)
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(250)
    try:
        optimised = optimise(graph, OPTIONS)
        evaluate(optimised, [np.ones(4, np.float32)])
    finally:
        sys.setrecursionlimit(before)


def test_a_pass_run_again_changes_nothing():
    graph = optimise(
        record(program([(i, 3 * i, 5 * i) for i in range(40)]), TensorSpec([2, 3])),
        OPTIONS,
        passes=SIMPLIFICATIONS,
    )
    again = optimise(graph, OPTIONS, passes=SIMPLIFICATIONS)
    assert [n.op for n in again.nodes] == [n.op for n in graph.nodes]


def test_the_passes_report_their_reasons():
    assert all(p.name and p.reason for p in PASSES)
    assert len({p.name for p in PASSES}) == len(PASSES)


def test_the_observer_sees_each_result_in_order():
    observed = []
    result = optimise(chain(10), OPTIONS, lambda name, graph: observed.append((name, graph)))
    assert [name for name, _ in observed] == [p.name for p in PASSES]
    assert observed[-1][1] is result
