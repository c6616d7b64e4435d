"""The work that kernels execute, counted from their loop programs, compared with the work of the graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import dualflow as df
from benchmarks.growth import STEPS as GROWTH_STEPS
from benchmarks.growth import program as growth_program
from dualflow.graph.cost_model import CPU
from dualflow.graph.ir import Graph
from dualflow.graph.options import CompileOptions
from dualflow.graph.passes.pipeline import before_fusion
from dualflow.graph.work import work
from dualflow.ops.op_kinds import Cond, Loop, MatMul
from dualflow.schedule.executed_work import distinct_work, executed_work, work_ratio
from dualflow.schedule.kernel import KernelLaunch
from dualflow.schedule.lower import lower
from dualflow.schedule.nest import Nest
from dualflow.schedule.plan import plan
from dualflow.schedule.program_statements import nests_of, statements, walk_program
from dualflow.schedule.select_kernel import kernel_launch

MAX_WORK_RATIO = 1.5
"""The most work that kernels may execute, times that of the graph."""
LANES = 16


def kernels(graph: Graph) -> Iterator[tuple[KernelLaunch, Nest]]:
    """The kernels of an optimised graph, those of loop bodies and branches included."""
    program = statements(plan(graph))
    for launch in [launch for s in walk_program(program) for launch in nests_of(s)]:
        nest = lower(*launch)
        yield kernel_launch(nest, LANES), nest


def work_before_fusion(graph: Graph) -> float:
    """The work of a trace's nodes that are no matrix products, each counted once."""
    parts = before_fusion(graph, CompileOptions())
    nodes = [n for part in parts for n in part.nodes if not isinstance(n.op.kind, MatMul | Loop | Cond)]
    return sum(map(work, nodes))


def check(f: Callable[..., Any], *specs: df.TensorSpec) -> None:
    """Each kernel is short, and all together execute little more than the graph's work."""
    concrete = df.function(f).get_concrete_function(*specs)
    pairs = list(kernels(concrete.optimised_graph))
    assert all(len(nest.steps) <= CPU.max_ops and nest.stages <= CPU.max_stages for _, nest in pairs)
    total = sum(executed_work(run) for run, _ in pairs)
    copies = sum(v.spec.shape.num_elements() or 0 for v in concrete.graph.outputs)  # of known results
    assert total <= MAX_WORK_RATIO * work_before_fusion(concrete.graph) + copies
    assert work_ratio(pairs) <= MAX_WORK_RATIO


def only(f: Callable[..., Any], *specs: df.TensorSpec) -> tuple[KernelLaunch, Nest]:
    (pair,) = kernels(df.function(f).get_concrete_function(*specs).optimised_graph)
    return pair


# Counting


def test_a_chain_of_elements_executes_each_op_for_each_element() -> None:
    run, nest = only(lambda x: (x + 1.0) * 2.0, df.TensorSpec([10, 20]))
    assert executed_work(run) == distinct_work(nest) == 2 * 200


def test_nodes_computed_in_two_stages_are_counted_twice() -> None:
    """The difference from the mean is cheaper than a scratch row."""
    run, nest = only(
        lambda x: df.abs(x - df.reduce_sum(x, 1, keepdims=True)) * 2.0 + df.reduce_max(x, 1, keepdims=True),
        df.TensorSpec([10, 20]),
    )
    assert nest.stages == 2
    assert executed_work(run) == distinct_work(nest) == 200 * (2 + 4)


def test_blocks_of_a_long_sum_are_counted_with_their_merges() -> None:
    run, nest = only(lambda x: df.reduce_sum(x * x, 1), df.TensorSpec([4, 100_000]))
    assert distinct_work(nest) == 2 * 400_000
    assert distinct_work(nest) < executed_work(run) < 1.01 * distinct_work(nest)


def test_the_join_of_partial_results_is_counted() -> None:
    run, nest = only(lambda x: df.reduce_sum(x), df.TensorSpec([1_000_000]))
    assert run.join is not None
    assert distinct_work(nest) < executed_work(run) < 1.01 * distinct_work(nest)


def test_a_value_that_each_reader_computes_again_counts_once() -> None:
    """Large arrays cost more to write and read than a product."""

    def f(x: Any, w: Any) -> Any:
        y = (x @ w) * 0.25
        return df.exp(y) @ w, y

    shape = df.TensorSpec([512, 512])
    pairs = list(kernels(df.function(f).get_concrete_function(shape, shape).optimised_graph))
    assert sum(len(nest.repeated) for _, nest in pairs) <= 1
    assert work_ratio(pairs) >= 1.0


def test_compare_and_explain_state_it() -> None:
    @df.function
    def f(x: Any) -> Any:
        for _ in range(12):
            x = x - df.reduce_mean(x, 1, keepdims=True) + 0.1
        return x

    x = df.constant(np.ones((64, 8), np.float32))
    f(x)
    report = df.compare(f, x)
    assert 1.0 < report.recomputation_ratio <= MAX_WORK_RATIO
    assert f"{report.recomputation_ratio:.2f} times the work" in report.table()
    assert f"its kernels execute {report.recomputation_ratio:.2f} times the work of their ops" in f.explain()


# Deep programs


def normalised(x: Any, axis: int) -> Any:
    centre = x - df.reduce_mean(x, axis, keepdims=True)
    return centre / df.sqrt(df.reduce_mean(centre * centre, axis, keepdims=True) + 1e-3)


DEEP_STEPS: list[Callable[[Any, Any], Any]] = [
    lambda x, y: x + y,
    lambda x, y: x * y + 0.5,
    lambda x, y: df.tanh(x * 0.5) - y,
    lambda x, y: df.exp(-x * x) * y,
    lambda x, y: x - df.reduce_mean(y, -1, keepdims=True) + 0.1,
    lambda x, y: x - df.reduce_mean(y, -2, keepdims=True) * 0.5,
    lambda x, y: x + df.nn.softmax(y, axis=-1),
    lambda x, y: df.nn.softmax(x, axis=-2) * y,
    lambda x, y: normalised(x, -1) + y,
    lambda x, y: normalised(x, -2) * 0.5,
    lambda x, y: x * 0.99 + df.reduce_sum(y) * 1e-3,
    lambda x, y: df.maximum(x, y) / (1.0 + df.reduce_max(df.abs(y), -1, keepdims=True)),
]
PROGRAM = st.lists(st.tuples(st.integers(0, len(DEEP_STEPS) - 1), st.integers(0, 3)), min_size=8, max_size=40)
SHAPES = st.sampled_from([(64, 8), (8, 64), (5, 3), (30, 33), (4, 16, 9), (200, 100)])
DEEP = settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow])


def deep(steps: list[tuple[int, int]]) -> Callable[[Any], Any]:
    """A chain whose steps read the last value and one of the four before it."""

    def run(x: Any) -> Any:
        values = [x]
        for step, back in steps:
            values.append(DEEP_STEPS[step](values[-1], values[-1 - back % len(values)]))
        return values[-1]

    return run


@given(PROGRAM, SHAPES)
@DEEP
def test_a_deep_chain_executes_about_its_work(steps: list[tuple[int, int]], shape: tuple[int, ...]) -> None:
    note(str(steps))
    check(deep(steps), df.TensorSpec(shape))


@given(PROGRAM, SHAPES)
@DEEP
def test_the_gradient_of_one_does(steps: list[tuple[int, int]], shape: tuple[int, ...]) -> None:
    note(str(steps))
    check(df.autodiff.grad(lambda x: df.reduce_sum(deep(steps)(x))), df.TensorSpec(shape))


@given(PROGRAM)
@DEEP
def test_a_map_of_one_does(steps: list[tuple[int, int]]) -> None:
    note(str(steps))
    check(df.autodiff.vmap(deep(steps)), df.TensorSpec([3, 16, 8]))


@given(PROGRAM)
@DEEP
def test_the_body_of_a_loop_does(steps: list[tuple[int, int]]) -> None:
    note(str(steps))
    body = deep(steps)

    def looped(x: Any) -> Any:
        return df.while_loop(lambda i, _: i < 5, lambda i, v: (i + 1, body(v)), (df.constant(0), x))[1]

    check(looped, df.TensorSpec([64, 8]))


@pytest.mark.parametrize("name", GROWTH_STEPS)
@pytest.mark.parametrize("gradient", [False, True])
def test_the_rows_of_the_growth_table_do(name: str, gradient: bool) -> None:
    check(growth_program(name, 40, gradient=gradient), df.TensorSpec([64, 8]))
