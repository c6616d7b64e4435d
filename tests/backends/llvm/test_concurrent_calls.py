"""Calls of a graph that run at the same time: the same bits as in order, on any number of threads."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dualflow as df
from dualflow.backends.llvm.backend import build, compile_stats
from dualflow.backends.llvm.executable import Executable
from dualflow.backends.llvm.runtime import threads
from dualflow.backends.llvm.steps import PFOR, POOL, StepKind
from dualflow.backends.llvm.timed_run import TimedExecutable
from dualflow.core.errors import InternalError
from dualflow.function.calls.compiled_graph import CompiledGraph
from dualflow.graph.capabilities import Capabilities
from dualflow.graph.compiled import TimedKind
from dualflow.graph.cost_model import CostModel
from dualflow.graph.options import CompileOptions
from dualflow.graph.passes.pipeline import optimise
from dualflow.schedule.plan import footprint
from dualflow.schedule.program_statements import RunTasks, statements, walk_program
from dualflow.schedule.race_check import require_no_races
from dualflow.sizes.symbolic_sizes import typical

Array = np.ndarray[Any, Any]

SLOW = CostModel(addition_ns=1000.0, product_ns=1000.0, chunk_ns=500_000.0)
"""Costs with which calls are worth a thread, but not to be split."""
SIZE = 8
SPEC = df.TensorSpec([SIZE, SIZE])


def normal(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng([seed, *shape]).normal(size=shape).astype(np.float32)


def built(
    function: Callable[..., Any],
    *specs: df.TensorSpec,
    concurrent_calls: int = 4,
    build_executable: Callable[..., Executable] = build,
) -> Any:
    """The program of a function in which even small calls run concurrently."""
    options = CompileOptions(
        cost_model=SLOW, capabilities=Capabilities(concurrent_calls=concurrent_calls), checking=True
    )
    graph = df.function(function).get_concrete_function(*specs).graph
    return build_executable(optimise(graph, options), options)


def regions(executable: Executable) -> list[RunTasks]:
    return [s for s in walk_program(statements(executable.plan)) if isinstance(s, RunTasks)]


def bytes_of(arrays: list[Array]) -> list[bytes]:
    return [array.tobytes() for array in arrays]


@contextmanager
def thread_limit(count: int) -> Iterator[None]:
    before = threads.num_threads()
    threads.set_num_threads(count)
    try:
        yield
    finally:
        threads.set_num_threads(before)


def branches(x: Any, *weights: Any) -> Any:
    return [df.tanh(x @ w) @ w for w in weights]


# Which calls are in a region


def test_independent_products_are_tasks_of_one_region() -> None:
    (region,) = regions(built(lambda x: (x @ x, df.transpose(x) @ x), SPEC))
    assert [len(task) for task in region.tasks] == [1, 1]
    assert [task.before for task in region.region.tasks] == [(), ()]


def test_a_step_that_needs_two_results_is_a_task_after_both() -> None:
    (region,) = regions(built(lambda x: df.nn.softmax((x @ x) @ (df.transpose(x) @ x)) @ x, SPEC))
    assert [task.before for task in region.region.tasks] == [(), (), (0, 1)]


def test_a_chain_has_no_region_and_the_program_that_it_has_without_threads() -> None:
    def chain(x: Any) -> Any:
        return df.nn.softmax(df.tanh(x @ x) @ x) @ x

    alone, several = (built(chain, SPEC, concurrent_calls=n) for n in (1, 4))
    assert not regions(several)
    assert several.program.sources == alone.program.sources
    assert several.image.params.tolist() == alone.image.params.tolist()


def test_calls_that_are_short_stay_in_order() -> None:
    options = CompileOptions(capabilities=Capabilities(concurrent_calls=4))
    graph = df.function(lambda x: (x @ x, df.transpose(x) @ x)).get_concrete_function(SPEC).graph
    assert not build(optimise(graph, options), options).plan.regions


def test_calls_that_split_well_over_threads_stay_in_order() -> None:
    options = CompileOptions(
        cost_model=SLOW._replace(chunk_ns=1000.0), capabilities=Capabilities(concurrent_calls=2)
    )
    graph = df.function(lambda x: (x @ x, df.transpose(x) @ x)).get_concrete_function(SPEC).graph
    assert not build(optimise(graph, options), options).plan.regions


def test_numpy_calls_and_loops_are_between_regions() -> None:
    def around(x: Any) -> Any:
        a, b = x @ x, df.transpose(x) @ x
        c = df.sort(a + b)
        return c @ a, c @ b

    executable = built(around, SPEC)
    assert len(regions(executable)) == 2
    assert len(executable.image.parts) == 3


def test_the_time_of_a_region_is_that_of_no_single_op() -> None:
    timed = built(lambda x: (x @ x, df.transpose(x) @ x), SPEC, build_executable=TimedExecutable)
    timed.run([normal(SIZE, SIZE)])
    assert [(step.kind, step.node) for step in timed.times] == [(TimedKind.NATIVE, None)]


def test_the_body_of_a_loop_has_regions() -> None:
    def loop(x: Any) -> Any:
        for _ in df.range(3):
            x = df.tanh(x @ x) @ x + df.sin(df.transpose(x) @ x) @ x
        return x

    assert len(regions(built(loop, SPEC))) == 1


def test_a_budget_of_memory_keeps_the_order() -> None:
    graph = df.function(lambda x: (x @ x, df.transpose(x) @ x)).get_concrete_function(SPEC).graph
    options = CompileOptions(
        cost_model=SLOW, capabilities=Capabilities(concurrent_calls=4), memory_budget=1 << 20
    )
    assert not build(optimise(graph, options), options).plan.regions


def test_tasks_that_access_the_same_bytes_are_refused() -> None:
    executable = built(lambda x: df.nn.softmax((x @ x) @ (df.transpose(x) @ x)) @ x, SPEC)
    (region,) = regions(executable)
    unordered = tuple([task._replace(before=()) for task in region.region.tasks])
    race = region._replace(region=region.region._replace(tasks=unordered))
    with pytest.raises(InternalError, match=r"matmul and matmul may run at the same time, but both access"):
        require_no_races([race], executable.plan.workspace)


def test_a_report_of_memory_counts_that_of_threads() -> None:
    executable = built(lambda x: [df.tanh(df.nn.softmax(y) @ y) @ y for y in (x, df.transpose(x))], SPEC)
    assert regions(executable)
    capabilities = Capabilities(concurrent_calls=4)
    memory = footprint(executable.graph, capabilities, in_order=False, costs=SLOW)
    threads_bytes = max(r.region.threads * r.region.task_bytes for r in regions(executable))
    assert threads_bytes
    assert memory.arena == executable.plan.arena_bytes + threads_bytes


# Results


@st.composite
def programs(draw: st.DrawFn) -> Callable[[Any], list[Any]]:
    """Programs of products, nests and concatenations of matrices, most of them used several times."""
    count = draw(st.integers(2, 14))
    steps = [
        (
            draw(st.sampled_from(["product", "transposed", "nest", "softmax", "concat", "sum"])),
            draw(st.integers(0, i)),
            draw(st.integers(0, i)),
        )
        for i in range(count)
    ]
    results = draw(st.lists(st.integers(0, count), min_size=1, max_size=4))

    def program(x: Any) -> list[Any]:
        values = [x]
        for kind, i, j in steps:
            a, b = values[i], values[j]
            if kind == "product":
                y = a @ b
            elif kind == "transposed":
                y = df.matmul(a, b, transpose_b=True)
            elif kind == "nest":
                y = df.tanh(a) * 0.5 + b
            elif kind == "softmax":
                y = df.nn.softmax(a)
            elif kind == "concat":
                y = df.concat([df.tanh(a)[: SIZE // 2], (b @ a)[SIZE // 2 :]], 0)
            else:
                y = a + df.reduce_sum(b, axis=0, keepdims=True)
            values.append(df.tanh(y))
        return [values[i] for i in results]

    return program


@given(programs())
def test_random_programs_have_the_same_bits_in_order_and_concurrently(program: Any) -> None:
    x = normal(SIZE, SIZE)
    in_order, concurrent = (built(program, SPEC, concurrent_calls=n) for n in (1, 4))
    require_no_races(statements(concurrent.plan), concurrent.plan.workspace)
    expected = bytes_of(in_order.run([x]))
    for _ in range(3):
        assert bytes_of(concurrent.run([x])) == expected


def test_results_are_the_same_on_every_number_of_threads() -> None:
    weights = [normal(64, 64, seed=i) for i in range(12)]
    specs = [df.TensorSpec([64, 64])] * 13
    inputs = [normal(64, 64), *weights]
    expected = bytes_of(built(branches, *specs, concurrent_calls=1).run(inputs))
    executable = built(branches, *specs)
    for count in range(1, threads.max_threads() + 1):
        with thread_limit(count):
            for _ in range(20):
                assert bytes_of(executable.run(inputs)) == expected


def test_a_pool_of_more_workers_than_cores_computes_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = [normal(32, 32, seed=i) for i in range(24)]
    specs, inputs = [df.TensorSpec([32, 32])] * 25, [normal(32, 32), *weights]
    expected = bytes_of(built(branches, *specs, concurrent_calls=1).run(inputs))
    executable = built(branches, *specs, concurrent_calls=8)
    pool = threads.create_pool(7)
    executable.params[POOL], executable.params[PFOR] = pool.address, pool.pfor
    for _ in range(50):
        assert bytes_of(executable.run(inputs)) == expected


def test_scratch_memory_of_products_is_that_of_the_thread() -> None:
    """Long products pack a factor into scratch memory."""
    specs = [df.TensorSpec([64, 700])] + [df.TensorSpec([700, 64])] * 6
    inputs = [normal(64, 700), *(normal(700, 64, seed=i) for i in range(6))]

    def products(x: Any, *weights: Any) -> Any:
        return [df.nn.softmax(x @ w) for w in weights]

    expected = bytes_of(built(products, *specs, concurrent_calls=1).run(inputs))
    executable = built(products, *specs)
    assert executable.image.arena_bytes > executable.plan.arena_bytes
    for _ in range(20):
        assert bytes_of(executable.run(inputs)) == expected


def test_a_loop_with_regions_has_the_same_bits() -> None:
    def loop(x: Any) -> Any:
        for _ in df.range(20):
            x = df.tanh(df.tanh(x @ x) @ x + df.sin(df.transpose(x) @ x) @ x)
        return x

    x = normal(SIZE, SIZE)
    assert bytes_of(built(loop, SPEC).run([x])) == bytes_of(built(loop, SPEC, concurrent_calls=1).run([x]))


def test_two_threads_that_call_at_once_get_their_own_results() -> None:
    specs = [df.TensorSpec([48, 48])] * 7
    executable = built(branches, *specs)
    weights = [normal(48, 48, seed=i) for i in range(6)]
    inputs = [[normal(48, 48, seed=100 + i), *weights] for i in range(4)]
    expected = [bytes_of(executable.run(x)) for x in inputs]
    wrong: list[int] = []

    def call(number: int) -> None:
        wrong.extend(
            number for _ in range(50) if bytes_of(executable.run(inputs[number])) != expected[number]
        )

    callers = [threading.Thread(target=call, args=(i,)) for i in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
def test_a_forked_child_runs_regions() -> None:
    executable, x = built(lambda x: (x @ x, df.transpose(x) @ x), SPEC), normal(SIZE, SIZE)
    expected = bytes_of(executable.run([x]))
    child = os.fork()
    if not child:
        os._exit(0 if bytes_of(executable.run([x])) == expected else 1)
    assert os.waitpid(child, 0)[1] == 0


# Symbolic sizes


def built_for_all_sizes(function: Callable[..., Any], *specs: df.TensorSpec, **changes: Any) -> Executable:
    """One program for all sizes of a function, in which calls of 64 rows run concurrently."""
    capabilities = Capabilities(**{"concurrent_calls": 4, **changes})
    graph = df.function(function).get_concrete_function(*specs).graph
    costs = SLOW._replace(chunk_ns=8 * SLOW.chunk_ns)  # of as many rows as tasks are formed for
    compiled = CompiledGraph(
        graph, CompileOptions(cost_model=costs, capabilities=capabilities, checking=True)
    )
    assert compiled.serves_all_sizes
    executable: Executable = compiled.executable
    return executable


ROWS = df.TensorSpec([None, SIZE])
WEIGHT = df.TensorSpec([SIZE, SIZE])


def two_branches(x: Any, a: Any, b: Any) -> Any:
    return [df.tanh(df.nn.softmax(x @ w) @ w) @ w for w in (a, b)] + [x @ a @ b]


def test_one_program_serves_all_sizes_with_the_same_bits() -> None:
    in_order, concurrent = (
        built_for_all_sizes(two_branches, ROWS, WEIGHT, WEIGHT, concurrent_calls=n) for n in (1, 4)
    )
    assert regions(concurrent)
    weights = [normal(SIZE, SIZE, seed=i) for i in (1, 2)]
    for rows in (1, 3, 64, 65, 1, 0, 300):
        inputs = [normal(rows, SIZE), *weights]
        assert bytes_of(concurrent.run(inputs)) == bytes_of(in_order.run(inputs))


def test_each_call_decides_by_its_sizes_how_many_threads_run_tasks() -> None:
    (region,) = regions(built_for_all_sizes(two_branches, ROWS, WEIGHT, WEIGHT))
    used = {rows: typical(region.region.call_threads, rows) for rows in (0, 1, 64, 100_000)}
    assert used == {0: 1, 1: 1, 64: region.region.threads, 100_000: 1}
    assert region.region.threads > 1


def test_a_region_of_static_sizes_may_be_in_a_program_of_symbolic_ones() -> None:
    def program(x: Any, a: Any) -> Any:
        left, right = df.nn.softmax(a @ a), df.nn.softmax(df.transpose(a) @ a)
        return df.sort(x) @ df.tanh(left @ a) @ df.tanh(right @ a)

    wide = df.TensorSpec([16, 16])
    columns = df.TensorSpec([None, 16])
    in_order, concurrent = (built_for_all_sizes(program, columns, wide, concurrent_calls=n) for n in (1, 4))
    assert regions(concurrent)
    for rows in (2, 7):
        inputs = [normal(rows, 16), normal(16, 16)]
        assert bytes_of(concurrent.run(inputs)) == bytes_of(in_order.run(inputs))


def test_branches_in_a_program_of_symbolic_sizes_run_in_order() -> None:
    def branch(x: Any, a: Any) -> Any:
        if df.reduce_sum(x) > 0.0:
            return (a @ a) @ df.nn.softmax(df.transpose(a) @ a)
        return a

    assert not regions(built_for_all_sizes(branch, ROWS, WEIGHT))


# Variables and failures


def test_a_variable_is_written_after_those_that_read_its_old_value() -> None:
    v = df.Variable(normal(SIZE, SIZE))

    def step(x: Any) -> Any:
        y, z = x @ v, df.transpose(x) @ v
        v.assign_add(x)
        return y, z

    x = normal(SIZE, SIZE, seed=1)
    in_order, concurrent = (built(step, SPEC, concurrent_calls=n) for n in (1, 4))
    runs = []
    for executable in (in_order, concurrent):
        old = normal(SIZE, SIZE)
        runs.append([*bytes_of(executable.run([x, old])), old.tobytes()])
    assert runs[0] == runs[1]
    assert regions(concurrent)


def test_the_first_of_several_failed_checks_is_reported_and_variables_are_kept() -> None:
    v = df.Variable(normal(SIZE, SIZE))

    @df.function
    def step(x: Any, first: Any, second: Any) -> Any:
        a = df.gather(x @ x, first)
        b = df.gather(df.transpose(x) @ x, second)
        v.assign(a + b)
        return a @ b

    options = CompileOptions(cost_model=SLOW, capabilities=Capabilities(concurrent_calls=4), checking=True)
    index = df.TensorSpec([SIZE], df.int32)
    executable = build(optimise(step.get_concrete_function(SPEC, index, index).graph, options), options)
    assert regions(executable)
    inside, outside = np.arange(SIZE, dtype=np.int32), np.full(SIZE, 99, np.int32)
    x, old = normal(SIZE, SIZE), normal(SIZE, SIZE, seed=2)
    kept = old.copy()
    lines = set()
    for first, second in ((outside, outside), (outside, inside), (inside, outside)):
        for _ in range(10):
            with pytest.raises(df.errors.InvalidArgumentError) as error:
                executable.run([x, first, second, old])
            lines.add((first is outside, str(error.value)))
            np.testing.assert_array_equal(old, kept)
    assert len(lines) == 2, "one for each gather"


# The step


def test_a_region_is_one_step_of_the_program() -> None:
    executable = built(lambda x: (x @ x, df.transpose(x) @ x), SPEC)
    kinds = [step.kind for step in executable.program.steps]
    assert kinds.count(StepKind.TASKS) == 1
    assert kinds.count(StepKind.PRODUCT) == 2


def test_reports_count_the_tasks() -> None:
    executable = built(lambda x: (x @ x, df.transpose(x) @ x), SPEC)
    assert executable.parts[0].what == "0 kernels, 1 matrix product routine, 2 concurrent tasks"
    assert compile_stats(executable).tasks == 2
    assert compile_stats(built(lambda x: x @ x, SPEC)).tasks == 0


@settings(max_examples=8)
@given(st.integers(1, 3), st.integers(1, 24))
def test_tasks_of_a_wide_graph_all_run(depth: int, width: int) -> None:
    def wide(x: Any) -> Any:
        values = [x + float(i) for i in range(width)]
        for _ in range(depth):
            values = [df.tanh(v @ x) for v in values]
        return sum(values)

    x = 0.1 * normal(4, 4)
    spec = df.TensorSpec([4, 4])
    assert bytes_of(built(wide, spec).run([x])) == bytes_of(built(wide, spec, concurrent_calls=1).run([x]))
