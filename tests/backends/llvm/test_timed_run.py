"""Programs with a clock: they compute the same as those without, and count each run of each step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dualflow as df
from dualflow.backends.llvm import backend
from dualflow.backends.llvm.timed_run import TimedExecutable
from dualflow.graph.compiled import StepTime, TimedKind
from dualflow.graph.ir import Graph
from dualflow.graph.options import CompileOptions
from dualflow.graph.passes.pipeline import optimise

OPTIONS = CompileOptions("llvm", checking=True)
SQUARE, COUNT = df.TensorSpec([6, 6]), df.TensorSpec([], df.int32)


def optimised(function: Callable[..., Any], *specs: df.TensorSpec) -> Graph:
    return optimise(df.function(function).get_concrete_function(*specs).graph, OPTIONS)


def scaled(x: Any, count: Any) -> Any:
    for _ in df.range(count):
        x = df.tanh(x @ x)
        if df.reduce_sum(x) > 0.0:
            x = x @ x * 0.5
    return x, df.reduce_max(x)


def rows(x: Any, count: Any) -> Any:
    return df.map_fn(lambda row: df.cumsum(df.sin(row)), x), df.cast(count, df.float32) * df.norm(x)


@pytest.mark.parametrize("function", [scaled, rows])
def test_a_clock_changes_no_result(function: Callable[..., Any]) -> None:
    graph = optimised(function, SQUARE, COUNT)
    arrays = [np.linspace(-1.0, 1.0, 36, dtype=np.float32).reshape(6, 6), np.array(5, np.int32)]
    plain, timed = (build(graph, OPTIONS).run(arrays) for build in (backend.build, TimedExecutable))
    assert [x.tobytes() for x in plain] == [x.tobytes() for x in timed]


def power(x: Any, count: Any) -> Any:
    for _ in df.range(count):
        x = df.tanh(x @ x)
    return x


@pytest.fixture(scope="module")
def loop() -> TimedExecutable:
    """A loop whose trip count is an argument."""
    return TimedExecutable(optimised(power, SQUARE, COUNT), OPTIONS)


def steps_of(times: list[StepTime]) -> list[StepTime]:
    """The steps, and those inside them."""
    return [inner for step in times for inner in (step, *steps_of(list(step.steps)))]


@given(st.integers(0, 40))
def test_steps_of_a_loop_run_once_for_each_iteration(loop: TimedExecutable, count: int) -> None:
    loop.run([np.eye(6, dtype=np.float32), np.array(count, np.int32)])
    (control,) = [step for step in loop.times if step.kind is TimedKind.CONTROL]
    assert control.iterations == count
    assert {s.runs for s in control.steps if s.kind is TimedKind.PRODUCT} == ({count} if count else set())


@given(st.integers(1, 40))
def test_a_step_takes_no_longer_than_what_contains_it(loop: TimedExecutable, count: int) -> None:
    loop.run([np.eye(6, dtype=np.float32), np.array(count, np.int32)])
    for step in steps_of(loop.times):
        assert 0 <= sum(inner.seconds for inner in step.steps) <= step.seconds * (1 + 1e-9)
        assert 0 <= step.slowest <= step.seconds * (1 + 1e-9)


def test_a_second_call_counts_from_zero(loop: TimedExecutable) -> None:
    for _ in range(2):
        loop.run([np.eye(6, dtype=np.float32), np.array(3, np.int32)])
    assert [step.iterations for step in loop.times if step.kind is TimedKind.CONTROL] == [3]


def test_the_work_of_reading_the_clock_is_proportional_to_the_steps(
    lines_run: Callable[[Callable[[], Any]], int],
) -> None:
    def lines(count: int) -> int:
        def sorts(x: Any) -> Any:
            for _ in range(count):
                x = df.sort(df.sin(x))
            return x

        timed = TimedExecutable(optimised(sorts, SQUARE), OPTIONS)
        arrays = [np.eye(6, dtype=np.float32)]
        timed.run(arrays)
        return lines_run(lambda: timed.run(arrays))

    assert lines(40) < 2.2 * lines(20)
