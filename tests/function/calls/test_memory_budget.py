"""``df.function(memory_budget=...)``: same bits, less memory, and errors with the smallest budget."""

from __future__ import annotations

import inspect
import json
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dualflow as df
from dualflow.function.options import bytes_of

N = 32


def numbers(*shape: int, dtype: str = "float32") -> np.ndarray:
    return np.random.default_rng(shape).normal(size=shape).astype(dtype)


MIXING = numbers(N, N)


def bits(results: Any) -> list[bytes]:
    return [x.numpy().tobytes() for x in df.nest.flatten(results)]


def slopes(x: Any, iterations: int = 8) -> Any:
    """A value and its gradient: products that are residuals."""
    with df.GradientTape() as tape:
        tape.watch(x)
        y = x
        for _ in range(iterations):
            y = df.sin(y @ x) + y
        loss = df.reduce_sum(y)
    return loss, tape.gradient(loss, x)


def memory(f: Any, *args: Any) -> Any:
    return f.get_concrete_function(*args).memory


def least(f: Callable[..., Any], *args: Any, **options: Any) -> int:
    """The smallest budget that ``f`` can keep, from its error."""
    with pytest.raises(df.errors.ResourceExhaustedError, match=r"\((\d+) bytes\)") as caught:
        memory(df.function(f, memory_budget=1, **options), *args)
    return int(str(caught.value).split(" bytes)")[0].rpartition("(")[2])


def products(x: Any) -> Any:
    """A gradient that needs nearly no kernels."""
    with df.GradientTape() as tape:
        tape.watch(x)
        y = x
        for _ in range(8):
            y = y @ x
    return tape.gradient(y, x)


def products_of_rows(x: Any) -> Any:
    """A gradient whose intermediate values have a row for each of ``x``."""
    with df.GradientTape() as tape:
        tape.watch(x)
        y = x
        for _ in range(6):
            y = df.sin(y @ MIXING) + y
        loss = df.reduce_sum(y)
    return tape.gradient(loss, x)


@pytest.mark.parametrize("backend", ["llvm", "numba", "numpy"])
def test_each_backend_keeps_a_budget_without_a_change_of_a_bit(backend: str) -> None:
    x = df.constant(numbers(N, N))
    free = df.function(products, backend=backend)
    less = df.function(products, backend=backend, memory_budget=int(0.7 * memory(free, x).peak))
    assert bits(less(x)) == bits(free(x))
    report = memory(less, x)
    assert report.peak <= report.budget
    assert report.recomputed
    assert 0.0 < report.extra_work < 1.0


@settings(max_examples=5, deadline=None)
@given(data=st.data())
def test_programs_at_any_possible_budget_have_the_same_bits(data: st.DataObject) -> None:
    """Layers drawn at random, forward and back, with updates, between the smallest budget and none."""
    layers = data.draw(st.lists(st.sampled_from(list(LAYERS)), min_size=3, max_size=5))
    weights = [df.Variable(numbers(8, 8)) for _ in layers]
    start = [w.numpy() for w in weights]

    def step(x: Any) -> Any:
        with df.GradientTape() as tape:
            y = x
            for name, w in zip(layers, weights, strict=True):
                y = LAYERS[name](y, w)
            loss = df.reduce_mean(df.square(y))
        grads = tape.gradient(loss, weights)
        for w, g in zip(weights, grads, strict=True):
            w.assign_sub(0.1 * g)
        return loss, y, grads[0]

    x = df.constant(numbers(8, 8))
    most, fewest = memory(df.function(step), x).peak, least(step, x)
    results = []
    for budget in (None, fewest, (most + fewest) // 2):
        for w, value in zip(weights, start, strict=True):
            w.assign(value)
        f = df.function(step, memory_budget=budget)
        results.append(bits([f(x), f(x), weights]))
        assert budget is None or memory(f, x).peak <= budget
    assert results[1] == results[0]
    assert results[2] == results[0]


LAYERS: dict[str, Callable[[Any, Any], Any]] = {
    "product": lambda x, w: df.tanh(x @ w),
    "attention": lambda x, w: df.nn.softmax(x @ df.transpose(x @ w)) @ x,
    "norm": lambda x, w: (x - df.reduce_mean(x, -1, keepdims=True)) * w,
    "columns": lambda x, w: x / (1.0 + df.reduce_sum(df.abs(x), 0, keepdims=True)) + w,
    "gelu": lambda x, w: df.nn.gelu(x @ w) + x,
    "turned": lambda x, w: df.reshape(df.transpose(df.reshape(x * w, [2, 4, 8]), [1, 0, 2]), [8, 8]),
    "pieces": lambda x, w: df.concat([df.exp(-(x[:4] ** 2)), (x @ w)[4:]], 0),
    "cond": lambda x, w: df.where(x > 0.0, x @ w, w),
}


def test_a_budget_that_is_not_needed_changes_nothing() -> None:
    x = df.constant(numbers(N, N))
    free, roomy = df.function(slopes), df.function(slopes, memory_budget="1GB")
    assert str(roomy.get_concrete_function(x).optimised_graph) == str(
        free.get_concrete_function(x).optimised_graph
    )
    assert memory(roomy, x).recomputed == ()


def test_an_impossible_budget_reports_the_smallest_which_is_possible() -> None:
    x = df.constant(numbers(N, N))
    fewest = least(slopes, x)
    assert memory(df.function(slopes, memory_budget=fewest), x).peak == fewest
    with pytest.raises(df.errors.ResourceExhaustedError, match="takes") as caught:
        df.function(slopes, memory_budget=fewest - 1)(x)
    lines, first = inspect.getsourcelines(slopes)
    message = str(caught.value)
    assert "'slopes' can't run in a memory_budget of" in message
    assert f"{fewest} bytes" in message
    where = int(message.rpartition(", line ")[2].split(",")[0])
    assert f'File "{__file__}"' in message
    assert first < where < first + len(lines)


def test_status_and_the_report_list_what_runs_again() -> None:
    x = df.constant(numbers(N, N))
    f = df.function(slopes, memory_budget=int(0.6 * memory(df.function(slopes), x).peak))
    f(x)
    report = memory(f, x)
    assert f"    memory: {report}" in f.status()
    assert "at the peak of a call, of a budget of" in str(report)
    assert f"{len(report.recomputed)} steps run again" in str(report)
    assert all(__file__ in line for line in report.recomputed)
    assert "memory:" not in df.function(slopes).get_concrete_function(x).status()


def test_random_numbers_are_drawn_once() -> None:
    def noisy(x: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch(x)
            y = x
            for i in range(5):
                y = df.sin(y @ x) * df.random.uniform([N, N])
                y *= df.random.stateless_uniform([N, N], [i, 1])
            loss = df.reduce_sum(y)
        return loss, tape.gradient(loss, x), df.random.uniform([])

    x, results = df.constant(numbers(N, N)), []
    for budget in (None, least(noisy, x)):
        df.random.set_seed(3)
        f = df.function(noisy, memory_budget=budget)
        results.append(bits([f(x), f(x), df.random.uniform([])]))
    assert results[0] == results[1]


def test_variables_are_read_before_they_are_written() -> None:
    """A recomputation from a variable uses its old value, although the update precedes it."""
    w = df.Variable(numbers(N, N))

    def step(x: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch(x)
            y = df.sin(x @ w)
            for _ in range(6):
                y = df.sin(y @ w) + y
            loss = df.reduce_sum(y)
        w.assign(df.cos(w))
        by_x = tape.gradient(loss, x)
        w.assign_add(by_x)
        return by_x

    x, start, results = df.constant(numbers(N, N)), w.numpy(), []
    for budget in (None, least(step, x)):
        w.assign(start)
        f = df.function(step, memory_budget=budget)
        results.append(bits([f(x), f(x), w]))
    assert results[0] == results[1]


def test_a_call_that_fails_changes_no_variable() -> None:
    w = df.Variable(numbers(N, N))

    def step(x: Any, limit: Any) -> Any:
        loss, slope = slopes(x)
        w.assign_sub(slope)
        df.debugging.assert_less(loss, limit)
        return loss

    x = df.constant(numbers(N, N))
    f = df.function(step, memory_budget=least(step, x, df.constant(0.0)))
    before = bits(w)
    with pytest.raises(df.errors.InvalidArgumentError):
        f(x, df.constant(-1e30))
    assert bits(w) != before
    w.assign_add(slopes(x)[1])
    f(x, df.constant(1e30))


def test_loops_and_conds_are_part_of_the_plan() -> None:
    def f(x: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch(x)
            y = x
            for _ in range(3):
                y = df.sin(y @ x)
                y = df.cond(df.reduce_sum(y) > 0.0, lambda y=y: y @ x, lambda y=y: df.cos(y))
            for _ in df.range(3):
                y = df.tanh(y @ x)
            loss = df.reduce_sum(y)
        return tape.gradient(loss, x)

    x = df.constant(numbers(N, N))
    assert bits(df.function(f, memory_budget=least(f, x))(x)) == bits(df.function(f)(x))
    assert least(f, x) < memory(df.function(f), x).peak


def test_dynamic_sizes_are_planned_for_those_of_a_call() -> None:
    f = df.function(
        lambda x: df.reduce_sum(df.sin(x @ df.transpose(x)) @ df.cos(x @ df.transpose(x))),
        input_signature=[df.TensorSpec([None, N])],
        memory_budget=50_000,
    )
    f(df.ones([64, N]))
    assert memory(f).peak <= 50_000
    with pytest.raises(df.errors.ResourceExhaustedError, match="memory_budget"):
        f(df.ones([128, N]))


def test_calls_that_fit_into_the_budget_share_a_program() -> None:
    x = df.ones([N, N])
    peak = memory(df.function(products_of_rows), x).peak
    signature = [df.TensorSpec([None, N])]
    free = df.function(products_of_rows, input_signature=signature)
    less = df.function(products_of_rows, input_signature=signature, memory_budget=int(0.85 * peak))
    for n in (N, 1, N // 2, N - 1, 0, 2):
        x = df.constant(numbers(n, N))
        assert bits(less(x)) == bits(free(x))
        assert less.get_concrete_function().memory.peak <= 0.85 * peak
    (trace,) = less.concrete_functions
    assert len(trace._specialisations) == 1


def test_larger_sizes_have_programs_that_compute_more_again() -> None:
    """Sizes in any order: each call keeps the budget, and has the bits of calls without one."""
    budget = int(0.85 * memory(df.function(products_of_rows), df.ones([N, N])).peak)
    free, less = df.function(products_of_rows), df.function(products_of_rows, memory_budget=budget)
    for n in (4, N // 2, N, 3, N + 1, N, 5):
        x = df.constant(numbers(n, N))
        assert bits(less(x)) == bits(free(x))
    traces = [c for c in less.concrete_functions if c._variants is not None]
    assert len(traces) == 1
    assert 2 <= len(traces[0]._specialisations) <= 3
    with pytest.raises(df.errors.ResourceExhaustedError, match="memory_budget"):
        less(df.ones([4 * N, N]))
    assert bits(less(x)) == bits(free(x))


def test_a_loop_whose_rows_numpy_reads_and_no_plan_can_count_is_refused_by_its_line() -> None:
    def slope(x: Any, n: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch(x)
            y = df.while_loop(
                lambda i, y: i < n, lambda i, y: (i + 1, df.sort(x, 0, "DESCENDING") * y), (df.constant(0), x)
            )[1]
            total = df.reduce_sum(y)
        return tape.gradient(total, x)

    x, n = df.constant(numbers(4, 3)), df.constant(2)
    np.testing.assert_allclose(df.function(slope)(x, n), slope(x, n), rtol=1e-5)
    with pytest.raises(df.errors.FailedPreconditionError, match=r"of the result of loop depends") as caught:
        df.function(slope, memory_budget="1MB")(x, n)
    assert __file__ in str(caught.value)


def test_where_a_tape_watches_both_ways_keep_the_budget() -> None:
    def forward(x: Any) -> Any:
        y = x
        for _ in range(4):
            y = df.sin(y @ x)
        return df.reduce_sum(y)

    x = df.constant(numbers(N, N))
    results = []
    for budget in (None, 8 * 4 * N * N):
        f = df.function(forward, memory_budget=budget)
        with df.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        results.append(bits([y, tape.gradient(y, x)]))
    assert results[0] == results[1]


def taped(f: Callable[..., Any], x: Any, matrix: Any, sources: int = 2) -> list[bytes]:
    with df.GradientTape() as tape:
        tape.watch([x, matrix])
        y = f(x, matrix)
    return bits([y, tape.gradient(y, [x, matrix][:sources])])


def rows_times(x: Any, matrix: Any) -> Any:
    y = x
    for _ in range(4):
        y = df.sin(y @ matrix)
    return df.reduce_sum(y)


@pytest.mark.llvm
def test_under_a_tape_calls_that_fit_into_the_budget_share_a_program() -> None:
    """Larger ones have programs of their own, or an error; the gradients of some inputs are those of all."""
    signature = [df.TensorSpec([None, N]), df.TensorSpec([N, N])]
    free = df.function(rows_times, input_signature=signature)
    less = df.function(rows_times, input_signature=signature, memory_budget=int(7.3 * 4 * N * N))
    matrix = df.constant(MIXING)
    for n in (N // 2, 1, N, 0, 2, N + 1, 5):
        x = df.constant(numbers(n, N))
        assert taped(less, x, matrix) == taped(free, x, matrix)
        assert taped(less, x, matrix, 1) == taped(free, x, matrix)[:2]
    (trace,) = less.concrete_functions
    assert len(trace._specialisations) <= 2
    x = df.constant(numbers(4 * N, N))
    with pytest.raises(df.errors.ResourceExhaustedError, match="memory_budget"):
        taped(less, x, matrix)


@pytest.mark.llvm
def test_a_tape_of_a_small_call_keeps_its_gradient_while_larger_calls_get_programs() -> None:
    signature = [df.TensorSpec([None, N]), df.TensorSpec([N, N])]
    less = df.function(rows_times, input_signature=signature, memory_budget=int(7.3 * 4 * N * N))
    matrix, results = df.constant(MIXING), []
    inputs = [df.constant(numbers(n, N)) for n in (3, N, 7)]
    tapes = [df.GradientTape() for _ in inputs]
    for tape, x in zip(tapes, inputs, strict=True):
        with tape:
            tape.watch(x)
            y = less(x, matrix)
        results.append(y)
    for tape, x, y in zip(tapes, inputs, results, strict=True):
        assert bits([y, tape.gradient(y, x)]) == taped(df.function(rows_times), x, matrix, 1)


def test_threads_share_a_function_with_a_budget() -> None:
    x = df.constant(numbers(N, N))
    f = df.function(slopes, memory_budget=least(slopes, x))
    expected, results = bits(df.function(slopes)(x)), []
    threads = [threading.Thread(target=lambda: results.append(bits(f(x)))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 4


class Model:
    """An object with a traced method."""

    @df.function(memory_budget="2 MiB")
    def call(self, x: Any) -> Any:
        return slopes(x)


def test_methods_and_copies_have_the_budget() -> None:
    x = df.constant(numbers(N, N))
    assert memory(Model().call, x).budget == 2 << 20
    assert memory(pickle.loads(pickle.dumps(budgeted)), x).budget == 1_500_000


budgeted = df.function(slopes, memory_budget="1.5MB")


@pytest.mark.parametrize(
    ("text", "nbytes"),
    [
        (7, 7),
        ("7", 7),
        ("12B", 12),
        ("2GB", 2 * 10**9),
        ("1 kib", 1024),
        ("0.5 MiB", 1 << 19),
        ("1TB", 10**12),
    ],
)
def test_budgets_are_bytes_or_text(text: int | str, nbytes: int) -> None:
    assert bytes_of(text) == nbytes


MEASURED = """
import json
from pathlib import Path
import numpy as np
import dualflow as df

def step(x):
    with df.GradientTape() as tape:
        tape.watch(x)
        y = x
        for _ in range(6):
            y = df.tanh(y * 1.01) * df.reduce_max(y)
    return tape.gradient(y, x)

def kept(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(name))

x = df.constant(np.ones(1 << 21, np.float32))
for budget in (None, "52MB"):
    concrete = df.function(step, memory_budget=budget).get_concrete_function(x)
    concrete.status()
    before = kept("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    concrete(x)
    print(json.dumps([concrete.memory.peak, kept("VmHWM") - before]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's count of a process's memory")
def test_a_process_takes_what_was_planned() -> None:
    env = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "100000"}  # what is freed goes back to the system
    run = subprocess.run(
        [sys.executable, "-c", MEASURED], capture_output=True, text=True, check=True, env=env
    )
    free, less = map(json.loads, run.stdout.splitlines())
    for planned, measured in (free, less):
        assert measured == pytest.approx(planned, rel=0.1)
    assert less[1] < 0.7 * free[1]


def test_a_tape_keeps_the_budget_of_a_call_whose_sizes_have_a_plan_of_their_own():
    """The plan for all sizes takes more than the budget, and the output's shape is known at run time."""
    x = df.ones([32_769], df.float64)
    f = df.function(
        lambda x: df.tile(x * 1.0, [2]),
        memory_budget="1MB",
        input_signature=[df.TensorSpec([None], df.float64)],
    )
    with df.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    np.testing.assert_array_equal(tape.gradient(y, x), np.full(32_769, 2.0))
