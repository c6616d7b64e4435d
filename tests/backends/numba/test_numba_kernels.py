"""Numba's kernels: they compile to vector instructions, and give the same for any number of threads."""

from __future__ import annotations

import platform
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.backends.llvm.runtime import threads
from dualflow.backends.numba import kernel_source
from dualflow.backends.numba.kernel_source import MAX_INLINED_MATHS
from dualflow.backends.numba.parallel_for import parallel_for
from dualflow.backends.numba.source_files import module_of
from dualflow.backends.numba.source_lines import Lines, SourceValue
from dualflow.backends.numba.source_maths import SourceMaths
from dualflow.backends.numba.support import Support
from dualflow.core import dispatch
from dualflow.core.dtypes import float32
from dualflow.ops.op_kinds import Elementwise
from dualflow.ops.record import REGISTRY
from dualflow.scalar import evaluate, trace
from dualflow.scalar.maths import is_guarded
from dualflow.scalar.tracing import ScalarTracer

WIDE = re.compile(r"%[yz]mm\d+")
ROWS = df.TensorSpec([64, 1000])
MATHS = [
    "abs",
    "sign",
    "copysign",
    "maximum",
    "minimum",
    "floor",
    "ceil",
    "trunc",
    "round",
    "floor_divide",
    "mod",
    "fmod",
    "fma",
    "sqrt",
    "rsqrt",
    "pow",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "logaddexp",
    "sigmoid",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "atan2",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "acosh",
    "atanh",
    "erf",
    "erfc",
    "ndtr",
]
"""Ops that are functions of one to three floats."""


@pytest.fixture(autouse=True, scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    where = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DUALFLOW_CACHE_DIR", str(where))
        yield where


def assembly(f: Callable[..., Any], *specs: Any) -> str:
    """What Numba has made of the first kernel of a function."""
    concrete = df.function(f, backend="numba").get_concrete_function(*specs)
    kernel = next(iter(concrete.compiled.executable.source.context.kernels.values()))
    (text,) = module_of(kernel.file("kernel")).kernel.inspect_asm().values()
    return str(text)


def does_in_vectors(text: str, instruction: str) -> bool:
    return any(re.search(rf"\b{instruction}", line) and WIDE.search(line) for line in text.splitlines())


VECTOR_CODE: dict[str, tuple[Callable[..., Any], str]] = {
    "elements": (lambda x: x * 2.0 + 1.0, "vmulps|vfmadd"),
    "gelu": (df.nn.gelu, "vfmadd"),
    "sin": (df.sin, "vfn?madd"),
    "remainder": (lambda x: df.math.floormod(x, 3.0), "vdivps|vmulps"),
    "whole sum": (df.reduce_sum, "vaddps"),
    "sum of rows": (lambda x: df.reduce_sum(x, 1), "vaddps"),
    "sum of columns": (lambda x: df.reduce_sum(x, 0), "vaddps"),
    "product of rows": (lambda x: df.reduce_prod(x, 1), "vmulps"),
    "maximum of rows": (lambda x: df.reduce_max(x, 1), "vmaxps"),
    "minimum of columns": (lambda x: df.reduce_min(x, 0), "vcmp\\w*ps|vminps"),
    # with AVX2 four floats go with four indices
    "place in rows": (lambda x: df.argmax(x, 1), "vcmp\\w*ps|vpcmpgtq"),
    "softmax": (df.nn.softmax, "vfmadd"),
    "log_softmax of columns": (lambda x: df.nn.log_softmax(x, 0), "vfmadd"),
}
"""Functions, and the instructions that one of them has on wide registers."""
ALWAYS_RUN = {"gelu", "sum of rows", "minimum of columns", "place in rows"}
"""One of each kind: Numba takes half a second for each."""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the instructions are those of x86-64")
@pytest.mark.parametrize(
    ("f", "instruction"),
    [
        pytest.param(*case, id=name, marks=() if name in ALWAYS_RUN else pytest.mark.exhaustive)
        for name, case in VECTOR_CODE.items()
    ],
)
def test_kernels_use_vectors(f: Callable[..., Any], instruction: str) -> None:
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        if "fma" not in file.read():
            pytest.skip("this processor has no such vectors")
    assert does_in_vectors(assembly(f, ROWS), instruction)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "f",
    [
        lambda x: df.reduce_sum(x, 0),
        lambda x: df.reduce_sum(x, 1),
        df.reduce_sum,
        df.nn.softmax,
        lambda x: df.nn.softmax(x, 0),
        lambda x: df.argmax(x, 0),
        lambda x: df.reduce_sum(df.sin(x)),
    ],
    ids=["columns", "rows", "whole", "softmax", "softmax of columns", "places", "sum of sines"],
)
def test_results_are_the_same_for_any_number_of_threads(f: Callable[..., Any]) -> None:
    x = df.constant(np.random.default_rng(0).normal(size=(3000, 2003)).astype(np.float32))
    compiled = df.function(f, backend="numba")
    before = threads.num_threads()
    results = []
    try:
        for count in range(1, threads.max_threads() + 1):
            threads.set_num_threads(count)
            results.append(compiled(x).numpy())
    finally:
        threads.set_num_threads(before)
    for result in results:
        np.testing.assert_array_equal(result, results[0])


@pytest.mark.exhaustive
@pytest.mark.parametrize("shape", [(1,), (127,), (128,), (129,), (5, 300), (300, 5), (0, 4), (4, 0)])
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_a_huge_angle_among_others_is_exact(name: str, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).normal(size=shape)
    x.reshape(-1)[-1:] = 1e20
    result = df.function(getattr(df.math, name), backend="numba")(df.constant(x))
    np.testing.assert_allclose(result, getattr(np, name)(x), rtol=1e-14)


def code(ops: int) -> str:
    """The kernel of a chain of sines, as source."""

    def chain(x: Any) -> Any:
        for _ in range(ops):
            x = df.sin(x) + x
        return x

    concrete = df.function(chain, autograph=False).get_concrete_function(df.TensorSpec([100]))
    return str(concrete.source("numba")).partition("def k0")[2].partition("\ndef ")[0]


def test_a_kernel_has_one_branch_and_binds_each_name_once() -> None:
    """Numba's time for a branch, and for a name that is bound twice, goes with the kernel's length."""
    text = code(8)
    assert text.count(" if ") == code(1).count(" if ")
    bound = re.findall(r"^ +([rte]\d+) = (?!False)", text, re.MULTILINE)
    several = {name for name in bound if bound.count(name) > 1}
    assert len(several) <= 2, several  # what the strip's last loop reads back, and the guard


def test_a_kernel_of_many_calls_of_maths_calls_functions() -> None:
    """Each would be thirty lines, of which Numba takes 0.2 s to compile."""
    few, many = (len(code(ops).splitlines()) for ops in (MAX_INLINED_MATHS, 4 * MAX_INLINED_MATHS))
    assert many < few / 2


def test_a_kernel_does_not_depend_on_other_ops_of_the_same_name() -> None:
    def text() -> str:
        applied = df.function(lambda x: dispatch.current().apply(op, (x,), {}), autograph=False)
        return str(applied.get_concrete_function(df.TensorSpec([100])).source("numba"))

    op = replace(REGISTRY["sin"], kind=Elementwise(lambda m, x: x + x))
    alone = text()
    code(1)  # of an op that is called sin too, and is tried in lanes
    assert text() == alone


@pytest.mark.parametrize("name", MATHS)
def test_a_function_is_guarded_if_its_vector_code_is_inexact_for_some_operands(name: str) -> None:
    method = getattr(ScalarTracer, name)
    for count in (1, 2, 3):
        try:
            function = trace(lambda m, *xs: method(m, *xs), [float32] * count)
        except TypeError:
            continue
        maths = SourceMaths(Lines(), Support())
        maths.fallback_conditions = []
        evaluate(function, maths, [SourceValue(operand, float32) for operand in "xyz"[:count]])
        assert bool(maths.fallback_conditions) == is_guarded(function)


@pytest.mark.parametrize("tried", [0, 1])
def test_a_function_of_maths_gives_what_its_lanes_do(tried: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_source, "MAX_INLINED_MATHS", tried)
    x = np.append(np.linspace(-9, 9, 301), [1e9, np.inf, np.nan, -0.0]).astype(np.float32)
    result = df.function(df.sin, backend="numba")(df.constant(x)).numpy()
    np.testing.assert_array_max_ulp(result[:-3], np.sin(x[:-3].astype(np.float64)).astype(np.float32), 2)
    np.testing.assert_array_equal(result[-3:], np.float32([np.nan, np.nan, -0.0]))


def test_a_variable_may_be_updated_by_what_has_to_run_again() -> None:
    v = df.Variable(np.full(1000, 2.0, np.float32))
    v[500].assign(1e20)
    start = v.numpy()

    @df.function(backend="numba")
    def step() -> None:
        v.assign(df.sin(v) + v)

    step()
    np.testing.assert_allclose(v, np.sin(start.astype(float)).astype(np.float32) + start, rtol=1e-6)


@pytest.mark.parametrize("count", [1, 5, 31, 32, 33, 500])
@pytest.mark.parametrize("search", ["argmax", "argmin"])
def test_ties_and_nan_are_found_where_they_are_first(search: str, count: int) -> None:
    x = np.random.default_rng(count).integers(0, 4, (20, count)).astype(np.float32)
    x[10:, count // 2] = np.nan
    f = df.function(lambda x: (getattr(df, search)(x, 1), getattr(df, search)(x.T, 0)), backend="numba")
    for result in f(df.constant(x)):
        np.testing.assert_array_equal(result, getattr(np, search)(x, 1))


@pytest.mark.parametrize("fold", ["reduce_max", "reduce_min"])
@pytest.mark.parametrize("axis", [0, 1, None])
def test_extremes_pass_nan_and_infinities_on(fold: str, axis: int | None) -> None:
    x = np.random.default_rng(0).normal(size=(70, 300)).astype(np.float32)
    x[3, 4], x[5, 6], x[7, 8] = np.nan, np.inf, -np.inf
    result = df.function(lambda x: getattr(df, fold)(x, axis), backend="numba")(df.constant(x))
    expected = {"reduce_max": np.max, "reduce_min": np.min}[fold](x, axis)
    np.testing.assert_array_equal(result, expected)


def test_indices_outside_are_found_in_any_lane() -> None:
    f = df.function(lambda x, i: df.gather(x, i) * 2.0, backend="numba")
    x = df.range(10.0)
    np.testing.assert_array_equal(f(x, df.constant([9, 0, 3])), [18, 0, 6])
    for place in (0, 40, 99):
        indices = np.zeros(100, np.int32)
        indices[place] = 10
        with pytest.raises(df.errors.InvalidArgumentError, match="out of range"):
            f(x, df.constant(indices))


# Sharing


def test_every_chunk_runs_once() -> None:
    chunks: list[tuple[int, int]] = []
    parallel_for(lambda lo, hi: chunks.append((lo, hi)))(103, 10)
    assert sorted(chunks) == [(lo, min(lo + 10, 103)) for lo in range(0, 103, 10)]


def test_an_error_of_a_chunk_reaches_the_caller() -> None:
    def fail(lo: int, hi: int) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        parallel_for(fail)(100, 10)


def test_several_callers_share_the_threads() -> None:
    def count(_: int) -> int:
        indices: list[int] = []
        parallel_for(lambda lo, hi: indices.extend(range(lo, hi)))(1000, 7)
        return len(indices)

    with ThreadPoolExecutor(8) as callers:
        assert list(callers.map(count, range(50))) == [1000] * 50


def test_a_scatter_whose_positions_name_no_axis_adds_to_the_whole() -> None:
    f = df.function(lambda x, y: df.tensor_scatter_nd_add(x, df.zeros([2, 0], df.int32), y), backend="numba")
    np.testing.assert_array_equal(f(df.ones([3]), df.ones([2, 3])), [3, 3, 3])


def test_a_sum_does_not_depend_on_the_addresses_of_buffers() -> None:
    """LLVM tests whether loads and stores of a loop may overlap, by the distance of their addresses."""
    rows = np.random.default_rng(0).standard_normal((200, 8)).astype(np.float32)
    softmax = df.function(df.nn.softmax).get_concrete_function(df.TensorSpec([20, 8]))
    text = str(softmax.source("numba"))
    allocation = "    x2 = np.empty(n0, f32)\n"
    assert allocation in text
    module: Any = module_of(text.replace(allocation, "").replace("def k0(lo, hi, ", "def k0(lo, hi, x2, "))
    kernel = module.k0

    def results(gap: int) -> Any:
        """The results with scratch memory for a row ``gap`` elements after the input."""

        def with_scratch(lo: int, hi: int, x: Any, *others: Any) -> None:
            memory = np.concatenate([x, np.empty(gap + 8, np.float32)])
            kernel(lo, hi, memory[x.size + gap :], memory[: x.size], *others)

        module.k0 = with_scratch
        return np.concatenate([module.softmax(part)[0] for part in np.split(rows, 10)])

    distant = results(10_000)
    assert np.array_equal(results(0), distant)
    np.testing.assert_allclose(distant, df.nn.softmax(rows), rtol=1e-5)
