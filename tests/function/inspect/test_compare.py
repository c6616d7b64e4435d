"""``compare``: correct measurements, and no side effects on the compared program."""

from __future__ import annotations

import dataclasses
import json
import math
import random
import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dualflow as df
from dualflow.core.errors import DTypeError, FailedPreconditionError
from dualflow.core.report_text import amount, duration, size
from dualflow.core.tree import LEAF, flatten
from dualflow.function.decorator import function
from dualflow.function.inspect import measure
from dualflow.function.inspect.agreement import Difference, Outcome, compared
from dualflow.function.inspect.compare import compare
from dualflow.function.inspect.compare_report import Comparison
from dualflow.function.inspect.measurements import Costs, Fused
from dualflow.function.inspect.timeline import Timelines
from dualflow.function.run_eagerly import functions_run_eagerly, run_functions_eagerly
from dualflow.graph.analysis import Workload
from dualflow.graph.compiled import PartKind, PartReport


@pytest.fixture(autouse=True)
def short_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "SECONDS", 0.01)
    monkeypatch.setattr(measure, "ROUND_SECONDS", 0.0005)


class Step:
    """A training step of least squares with noise on its inputs."""

    def __init__(self) -> None:
        self.weight = df.Variable(np.linspace(-1, 1, 12).reshape(4, 3), dtype=df.float32, name="weight")
        self.steps = df.Variable(0, dtype=df.int64, name="steps")
        self.noise = df.random.Generator.from_seed(3)

    def __call__(self, x: Any, y: Any) -> Any:
        with df.GradientTape() as tape:
            noisy = x + 0.1 * self.noise.normal([8, 4]) + 0.1 * df.random.normal([8, 4])
            loss = df.reduce_mean((noisy @ self.weight - y) ** 2)
        self.weight.assign_sub(0.1 * tape.gradient(loss, self.weight))
        self.steps.assign_add(1)
        return loss


@pytest.fixture
def step() -> Step:
    return Step()


@pytest.fixture
def batch() -> tuple[Any, Any]:
    rng = np.random.default_rng(1)
    return df.constant(rng.standard_normal((8, 4)), df.float32), df.constant(
        rng.standard_normal((8, 3)), df.float32
    )


# No file is left


def test_comparing_a_training_step_trains_nothing(step: Step, batch: tuple[Any, Any]) -> None:
    held = [v._tensor for v in (step.weight, step.steps)]
    values = [v.numpy().copy() for v in (step.weight, step.steps)]
    compare(step, *batch)
    assert all(v._tensor is t for v, t in zip((step.weight, step.steps), held, strict=True))
    for variable, value in zip((step.weight, step.steps), values, strict=True):
        np.testing.assert_array_equal(variable.numpy(), value)


def test_a_tensor_read_from_a_variable_earlier_keeps_its_value(step: Step, batch: tuple[Any, Any]) -> None:
    before = step.weight.value()
    copy = before.numpy().copy()
    compare(function(step), *batch)
    np.testing.assert_array_equal(before.numpy(), copy)


def test_the_random_state_is_restored_after_a_comparison(step: Step, batch: tuple[Any, Any]) -> None:
    def draws() -> list[Any]:
        numbers = [step.noise.normal([3]).numpy(), df.random.normal([3]).numpy()]
        return [*numbers, np.random.random(3), random.random()]

    def seed() -> None:
        df.random.set_seed(5)
        step.noise.reset_from_seed(5)
        np.random.seed(5)
        random.seed(5)

    def noisy(x: Any, y: Any) -> Any:
        return step(x, y) + np.random.random() + random.random()

    seed()
    desired = draws()
    seed()
    compare(noisy, *batch)
    for actual, expected in zip(draws(), desired, strict=True):
        np.testing.assert_array_equal(actual, expected)


def test_state_is_put_back_when_the_function_fails(step: Step, batch: tuple[Any, Any]) -> None:
    def failing(x: Any, y: Any) -> Any:
        loss = step(x, y)
        if df.executing_eagerly():
            raise ZeroDivisionError("as it must")
        return loss

    before = step.weight.numpy().copy()
    with pytest.raises(ZeroDivisionError, match="as it must"):
        compare(failing, *batch)
    np.testing.assert_array_equal(step.weight.numpy(), before)
    assert not functions_run_eagerly()


@pytest.mark.parametrize("eagerly", [False, True])
def test_the_setting_that_functions_run_eagerly_stays(eagerly: bool) -> None:
    run_functions_eagerly(eagerly)
    try:
        report = compare(function(lambda x: df.exp(x) + 1.0), df.ones([4]))
        assert functions_run_eagerly() is eagerly
    finally:
        run_functions_eagerly(False)
    assert report.kernels == 1


def test_variables_among_the_arguments_are_put_back_too() -> None:
    counter = df.Variable([1.0, 2.0])

    def count(v: Any) -> Any:
        v.assign_add([1.0, 1.0])
        return v * 2.0

    report = compare(count, counter)
    assert report.difference.agrees
    np.testing.assert_array_equal(counter.numpy(), [1.0, 2.0])


# What is counted


def test_ops_of_the_tape_and_of_inner_functions_count_as_eager_ops() -> None:
    inner = function(lambda x: df.exp(x))

    def outer(x: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch(x)
            y = inner(x) * 2.0
        return tape.gradient(y, x)

    ops = compare(outer, df.ones([3])).eager_ops
    assert ops["exp"] == 1
    assert ops["multiply"] >= 2
    assert "call" not in ops


def test_kernels_blas_calls_and_host_calls_are_those_of_the_executable() -> None:
    f = function(lambda x: df.exp(df.sort(df.exp(x) @ x)))
    x = df.constant(np.random.default_rng(0).standard_normal((6, 6)), df.float32)
    report = compare(f, x)
    executable = f.get_concrete_function(x).compiled.executable
    assert report.kernels == len(
        f.get_concrete_function(x).compiled.backend.compile_stats(executable).kernels
    )
    assert report.blas_calls == 1
    assert report.host_calls == sum(p.kind == "numpy" for p in report.parts) > 0
    assert any("NumPy sorts" in p.reason for p in report.parts)


def test_fused_kernels_name_their_ops_and_the_users_lines() -> None:
    def gelu(x: Any) -> Any:
        half = 0.5 * x
        return half * (1.0 + df.math.erf(x))

    first = gelu.__code__.co_firstlineno
    (fused,) = compare(gelu, df.ones([64])).fused
    assert sorted(fused.ops) == ["add", "erf", "multiply", "multiply"]
    assert fused.lines == (f"test_compare.py:{first + 1}", f"test_compare.py:{first + 2}")


def test_memory_of_a_fused_chain_is_its_output() -> None:
    def chain(x: Any) -> Any:
        for _ in range(10):
            x = df.tanh(x) + 1.0
        return x

    x = df.constant(np.zeros(1 << 18), df.float32)
    report = compare(chain, x)
    assert report.graph_peak_bytes < 1.1 * x.numpy().nbytes + 4096
    assert report.eager_peak_bytes >= 2 * x.numpy().nbytes


def test_the_arena_counts_once_whether_a_call_allocates_it_or_not() -> None:
    x = df.constant(np.ones((512, 512)), df.float32)
    report = compare(lambda x: df.exp(x @ x) @ x, x)
    array = 512 * 512 * 4
    assert 2 * array <= report.graph_peak_bytes < 3.5 * array


@pytest.mark.llvm  # Numba writes its cache itself, and looks kernels up that this process has
@pytest.mark.parametrize("backend", ["llvm", "numba"])
@pytest.mark.parametrize("op", [df.linalg.inv, df.linalg.det, df.linalg.svd])
def test_a_host_call_in_a_loop_or_a_branch_is_compared(op: Any, backend: str) -> None:
    def f(xs: Any, m: Any) -> Any:
        total = df.zeros([])
        for x in xs:
            if x > 0.0:
                total = total + sum(df.reduce_sum(part) for part in df.nest.flatten(op(m + x)))
        return total

    report = compare(df.function(f, backend=backend), df.ones([5]), df.eye(2) * 2.0)
    assert report.difference.agrees
    assert report.costs.emission > 0.0


def test_costs_are_positive_and_add_up() -> None:
    costs = compare(lambda x: df.exp(x) * 3.0 + 1.0, df.ones([7])).costs
    assert min(costs.trace, costs.passes, costs.emission, costs.compilation, costs.linking) > 0
    assert costs.cold == pytest.approx(costs.warm + costs.compilation)
    assert costs.warm == pytest.approx(costs.trace + costs.passes + costs.emission + costs.linking)


@pytest.mark.llvm  # as above
def test_costs_depend_on_the_origin_of_the_code(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUALFLOW_CACHE_DIR", str(tmp_path))

    def f(x: Any) -> Any:
        return df.sin(x) * 3.25 - df.cos(x) * 1.75

    kept = function(f)
    first, again = compare(kept, df.ones([9])).costs, compare(f, df.ones([11])).costs
    assert first.source == "compiled"
    assert 0 < first.paid <= 1.01 * (first.compilation + first.linking)
    assert again.source == "process"
    assert again.paid == 0.0
    assert again.compilation > 0


# Agreement


def test_a_result_that_depends_on_eager_mode_is_reported() -> None:
    report = compare(lambda x: x + (1.0 if df.executing_eagerly() else 1.5), df.ones([3]))
    assert not report.difference.agrees
    assert report.difference.largest == 0.5
    assert "result 0" in report.difference.reason
    assert "DIFFER" in str(report)


def test_strings_are_compared() -> None:
    report = compare(lambda x: df.strings.join([x, x]), df.constant(["a", "b"]))
    assert report.difference == Difference(0.0, 0.0)
    assert "equal" in str(report)


def test_different_final_values_of_variables_are_reported() -> None:
    v = df.Variable([1.0, 2.0])

    def assign() -> None:
        v.assign([3.0, 4.0] if df.executing_eagerly() else [3.0, 8.0])

    report = compare(assign)
    assert report.difference.largest == 4.0
    assert "variable 0" in report.difference.reason


def floats(*numbers: float) -> np.ndarray:
    return np.array(numbers, np.float32)


def outcome(*results: Any) -> Outcome:
    return Outcome(flatten(list(results))[1], [np.asarray(r) for r in results], [])


@pytest.mark.parametrize(
    ("eager", "graph"),
    [
        (floats(1.0, np.nan, np.inf), floats(1.0, np.nan, np.inf)),
        (np.zeros(3), np.zeros(3)),
        (np.zeros((0, 4)), np.zeros((0, 4))),
        (np.array([True, False]), np.array([True, False])),
        (np.array([1 + 2j], np.complex64), np.array([1 + 2j], np.complex64)),
        (np.array([b"a", b"bc"], object), np.array([b"a", b"bc"], object)),
    ],
    ids=["nan and inf", "zeros", "empty", "bools", "complex", "strings"],
)
def test_equal_outcomes_agree_without_any_difference(eager: np.ndarray, graph: np.ndarray) -> None:
    assert compared(outcome(eager), outcome(graph)) == Difference(0.0, 0.0)


@pytest.mark.parametrize(
    ("eager", "graph", "largest"),
    [
        (floats(1.0), floats(np.nan), math.inf),
        (floats(np.inf), floats(-np.inf), math.inf),
        (np.array([1, 2]), np.array([1, 3]), 1.0),
        (floats(0.0), floats(1e-9), 1e-9),
        (floats(1.0), np.array([1.0]), math.inf),
        (np.zeros(3), np.zeros(4), math.inf),
        (np.array([b"a", b"bc"], object), np.array([b"a", b"b"], object), math.inf),
    ],
    ids=["nan", "infinities", "integers", "zero", "dtype", "shape", "strings"],
)
def test_different_outcomes_do_not_agree(eager: np.ndarray, graph: np.ndarray, largest: float) -> None:
    result = compared(outcome(eager), outcome(graph))
    assert not result.agrees
    assert result.largest == pytest.approx(largest)


def test_other_structures_do_not_agree() -> None:
    one = Outcome(LEAF, [np.zeros(1)], [])
    assert not compared(one, outcome(np.zeros(1))).agrees


def test_rounding_is_no_disagreement() -> None:
    x = np.random.default_rng(0).standard_normal(100).astype(np.float32)
    assert compared(outcome(x), outcome(x * np.float32(1 + 1e-6))).agrees


# CompileStats


def example(**changes: Any) -> Comparison:
    result = Comparison(
        name="step",
        arguments="images: float32[32, 64], digits: int64[32]",
        argument_bytes=0,
        eager_seconds=200e-6,
        graph_seconds=50e-6,
        eager_peak_bytes=100_000,
        graph_peak_bytes=20_000,
        eager_ops={"add": 3, "exp": 1},
        nodes=6,
        kernels=2,
        blas_calls=1,
        host_calls=0,
        fused=(Fused("k0", ("add", "exp", "add"), ("model.py:3", "model.py:4")),),
        parts=(PartReport(PartKind.NATIVE, "2 kernels"),),
        recomputation_ratio=1.25,
        tasks=0,
        workload=Workload(2.5e6, 20_000, 3, 2e6, ("matmul", "add+exp"), complete=True, cores=2),
        costs=Costs(1e-3, 2e-3, 3e-3, 30e-3, 1e-3, 31e-3, "compiled"),
        difference=Difference(1e-6, 2e-7),
        updated=("weight",),
        devices=(),
        definition=None,
        timelines=Timelines((), (), (), ()),
        pass_graphs=(),
        listing="",
    )
    return dataclasses.replace(result, **changes)


@given(st.floats(1e-7, 10), st.floats(1e-7, 10), st.floats(0, 5))
def test_the_graph_pays_exactly_after_break_even(eager: float, graph: float, compilation: float) -> None:
    costs = dataclasses.replace(example().costs, compilation=compilation)
    result = example(eager_seconds=eager, graph_seconds=graph, costs=costs)
    if eager <= graph:
        assert result.break_even is None
        return
    assert result.break_even is not None
    saved = eager - graph
    assert result.break_even * saved >= costs.cold * (1 - 1e-9)
    assert (result.break_even - 1) * saved <= costs.cold * (1 + 1e-9)
    assert result.break_even_warm is not None
    assert result.break_even_warm <= result.break_even


def test_all_figures_are_plain_data() -> None:
    report = compare(lambda x: {"y": df.exp(x), "z": [x, None]}, df.ones([3]))
    result = report.as_dict()
    assert json.loads(json.dumps(result, allow_nan=False)) == result
    assert result["break_even"] == report.break_even
    assert result["fused"] == []
    assert result["costs"]["source"] == report.costs.source


def test_infinite_figures_become_none() -> None:
    result = example(difference=Difference(math.inf, math.inf, "result 0 differs")).as_dict()
    assert result["difference"]["largest"] is None
    json.dumps(result, allow_nan=False)


def tables() -> Iterator[Comparison]:
    yield example()
    yield example(difference=Difference(0.0, 0.0), updated=())
    yield example(difference=Difference(math.inf, math.inf, "result 0 is float32[3] and float64[3]"))
    yield example(eager_seconds=1e-7, graph_seconds=3.0)
    yield example(name="a_function_with_quite_a_long_name" * 4, arguments="x: float32[1000, 1000], " * 9)
    yield example(eager_peak_bytes=0, graph_peak_bytes=0, blas_calls=1234, host_calls=1)
    names = ("matmul", "reduce_logsumexp_of_rows") * 20
    yield example(fused=tuple(Fused(f"k{i}", names, (f"a_module.py:{i}",)) for i in range(40)))
    sources = ("compiled", "disk", "process", "none")
    yield from (example(costs=dataclasses.replace(example().costs, source=s)) for s in sources)
    yield example(parts=())
    yield example(
        parts=(
            PartReport(PartKind.NUMPY, "argsort", "NumPy sorts"),
            PartReport(PartKind.PYTHON, "py_function", "Python runs it"),
        )
    )


@pytest.mark.parametrize("report", list(tables()))
def test_tables_fit_a_terminal(report: Comparison) -> None:
    lines = str(report).splitlines()
    assert max(map(len, lines)) <= 88
    assert not any(line != line.rstrip() for line in lines)


def test_the_table_reads_as_intended() -> None:
    assert str(example()).splitlines() == [
        "step(images: float32[32, 64], digits: int64[32])",
        "",
        "                          eager        graph",
        "-" * 88,
        "time per call            200 us        50 us   4 times faster",
        "peak memory            97.7 KiB     19.5 KiB   5 times less",
        "one call runs             4 ops    2 kernels   and 1 BLAS call",
        "",
        "before the first result",
        "  trace                                 1 ms   run the Python function symbolically",
        "  passes                                2 ms   rewrite and fuse the graph",
        "  plan and emit                         3 ms   place values in memory, write LLVM IR",
        "  compile                              30 ms   LLVM, in this process",
        "  link                                  1 ms   load the machine code",
        "graph pays after                   247 calls   47 when the code is on disk",
        "",
        "results           agree: 1.0e-06 apart at most, 2.0e-07 relative; 1 updated variable too",
        "graph runs        natively",
        "work              2.5 million operations in 3 steps, 19.5 KiB read and written",
        "executed          1.25 times the work of the kernels' ops, each computed once",
        "longest chain     2 million operations wait for each other: matmul, add+exp; 1.25 steps",
        "                  could run at a time, on average, on up to 2 cores",
        "fused             k0   2 add, exp  (model.py:3,4)",
    ]


def test_a_long_chain_is_reported_by_its_first_steps_and_the_last() -> None:
    path = tuple(f"op{i}" for i in range(30))
    text = " ".join(str(example(workload=Workload(30.0, 8, 30, 30.0, path, complete=True))).split())
    assert "30 operations wait for each other: op0, op1, op2, ..., op29; that is all" in text


def test_work_that_depends_on_the_run_is_reported_as_the_least() -> None:
    result = str(example(workload=Workload(640.0, 2048, 1, 640.0, ("loop",), complete=False)))
    assert "at least 640 operations in 1 step, at least 2 KiB read and written" in result
    assert "longest chain" not in result


def test_the_workload_is_that_of_the_graph_as_it_runs() -> None:
    def two_branches(x: Any) -> Any:
        return df.reduce_sum(x @ x) + df.reduce_sum(df.transpose(x) @ x)

    report = compare(two_branches, df.ones([16, 16]))
    product, kernels = 2 * 16**3, 2 * 16**2 + 1
    assert report.workload.operations == 2 * product + kernels
    assert report.workload.path[0] == "matmul"
    assert report.workload.complete
    data = report.as_dict()["workload"]
    assert data["parallelism"] == report.workload.parallelism > 1.0


def test_a_kernel_that_several_calls_share_is_one_row() -> None:
    text = str(example(fused=(Fused("k0", ("add", "exp"), ("model.py:3",)),) * 40))
    assert "fused             k0   add, exp  (model.py:3), 40 times" in text
    assert text.count("k0") == 1


def test_many_fused_kernels_are_counted_rather_than_listed() -> None:
    fused = tuple(Fused(f"k{i}", ("add", "exp"), ()) for i in range(40))
    assert "and 24 more, which as_dict() lists" in str(example(fused=fused))


# What can be compared


class Model:
    def __init__(self) -> None:
        self.scale = df.Variable(2.0)

    @function
    def scaled(self, x: Any) -> Any:
        return x * self.scale


def test_methods_can_be_compared() -> None:
    report = compare(Model().scaled, df.ones([3]))
    assert report.name == "scaled"
    assert report.difference.agrees


def test_keywords_and_python_values_go_to_the_function() -> None:
    def power(x: Any, exponent: int, *, scale: float = 1.0) -> Any:
        return scale * x**exponent

    report = compare(power, df.ones([3]), exponent=2, scale=0.5)
    assert report.arguments == "x: float32[3], exponent: 2, scale: 0.5"


def test_functions_with_an_input_signature_can_be_compared() -> None:
    f = function(lambda x: df.exp(x) + x, input_signature=[df.TensorSpec([4])])
    assert compare(f, df.ones([4])).difference.agrees


def test_a_non_function_is_refused() -> None:
    with pytest.raises(DTypeError, match="can't be called"):
        compare(3)


def test_comparing_inside_of_a_tape_or_trace_is_refused() -> None:
    with df.GradientTape(), pytest.raises(FailedPreconditionError, match="outside of functions and tapes"):
        compare(df.exp, df.ones([2]))
    with pytest.raises(FailedPreconditionError, match="outside of functions and tapes"):
        function(lambda x: compare(df.exp, x))(df.ones([2]))


# Control flow over tensors


def branching(x: Any) -> Any:
    if df.reduce_sum(x) > 2.0:
        return x * 2.0
    return x - 1.0


def repeated(x: Any) -> Any:
    while df.reduce_sum(x) < 50.0:
        x = x * 2.0
    return x


def counted(x: Any) -> Any:
    for i in df.range(3):
        x = x + df.cast(i, df.float32)
    return x


def outer(x: Any) -> Any:
    return counted(x) + 1.0


class Growing:
    """A model with a traced method and a variable that a loop assigns."""

    def __init__(self) -> None:
        self.total = df.Variable(1.0)

    @df.function
    def traced(self, x: Any) -> Any:
        while self.total < 20.0:
            self.total.assign_add(df.reduce_sum(x))
        return self.total + 0.0

    def __call__(self, x: Any) -> Any:
        return branching(x)


@pytest.mark.parametrize(
    "f",
    [
        branching,
        function(branching),
        repeated,
        function(repeated, reduce_retracing=True),
        function(repeated, input_signature=[df.TensorSpec([None])]),
        counted,
        outer,
        lambda x: x if df.reduce_sum(x) > 0.0 else -x,
        Growing().traced,
        Growing(),
    ],
)
def test_functions_with_control_flow_over_tensors_are_compared(f: Any) -> None:
    report = compare(f, df.ones([3]))
    assert report.difference.agrees
    assert report.costs.trace > 0.0


def test_the_trace_that_is_timed_is_of_the_converted_function() -> None:
    traced = function(counted)
    call = traced._signature.bind((df.ones([3]),), {})
    first, second = traced.get_concrete_function(df.ones([3])), traced.traced(call)
    assert [n.op.name for n in second.graph.nodes] == [n.op.name for n in first.graph.nodes]
    assert traced.experimental_get_tracing_count() == 1


# Measuring


def count_into(changes: list[int]) -> measure.TimedCall:
    def function() -> None:
        changes.append(1)

    return measure.TimedCall(function, (), {}, lambda: changes.append(0))


def test_every_round_is_prepared_and_calls_alternate() -> None:
    first: list[int] = []
    second: list[int] = []
    times = measure.best_times([count_into(first), count_into(second)])
    assert all(0 < t < 1 for t in times)
    assert first.count(0) >= 3
    assert second.count(0) >= 3
    assert first[0] == second[0] == 0


def test_peak_memory_counts_arrays_that_were_freed_during_the_call() -> None:
    def work() -> np.ndarray:
        first = np.ones(100_000)
        second = first + 1
        del first
        return second[:10].copy()

    result = measure.peak_bytes(measure.TimedCall(work, (), {}, lambda: None))
    assert 1_600_000 <= result < 1_700_000


def test_tracing_of_memory_that_was_on_stays_on() -> None:
    tracemalloc.start()
    try:
        measure.peak_bytes(measure.TimedCall(lambda: None, (), {}, lambda: None))
        assert tracemalloc.is_tracing()
    finally:
        tracemalloc.stop()
    measure.peak_bytes(measure.TimedCall(lambda: None, (), {}, lambda: None))
    assert not tracemalloc.is_tracing()


@given(st.floats(1e-9, 1e4))
def test_durations_keep_three_digits(seconds: float) -> None:
    number, unit = duration(seconds).split()
    factor = {"us": 1e-6, "ms": 1e-3, "s": 1.0}[unit]
    assert float(number) * factor == pytest.approx(seconds, rel=6e-3)


@given(st.integers(0, 1 << 50))
def test_sizes_keep_three_digits(nbytes: int) -> None:
    number, unit = size(nbytes).split()
    factor = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}[unit]
    assert float(number) * factor == pytest.approx(nbytes, rel=6e-3)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (duration(0.9999), "1000 ms"),
        (duration(5000.0), "5000 s"),
        (size(1_024_000), "1000 KiB"),
        (size(3 << 40), "3072 GiB"),
        (amount(999_950), "1000 thousand"),
    ],
)
def test_no_figure_has_an_exponent(text, expected) -> None:
    assert text == expected
