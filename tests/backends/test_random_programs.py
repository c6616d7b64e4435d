"""Random straight-line programs: run eagerly, compiled, and interpreted node by node, they give the same.

Programs over int32 wrap and have no rounding, so they must agree to the bit whatever the compiler reorders.
Programs over float64 are made of bounded, smooth steps, so that only rounding separates their results.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import dualflow as df
from dualflow.backends.llvm import entry as native_entry
from dualflow.backends.llvm.entry import chunk_of
from dualflow.graph.cost_model import CostModel
from dualflow.graph.interpret import evaluate
from dualflow.graph.ir import verify
from dualflow.graph.options import CompileOptions
from dualflow.graph.passes.fusion_check import check_fusion
from dualflow.schedule import blocking
from dualflow.schedule.kernel import KernelLaunch

Array = np.ndarray[Any, Any]
Table = dict[str, Callable[..., Any]]
MAX_ELEMENTS = 6000
PROPERTY = settings(
    max_examples=2 * settings.default.max_examples,
    deadline=None,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.function_scoped_fixture,
    ],
)


@pytest.fixture(autouse=True, scope="module")
def _no_object_cache() -> Iterator[None]:
    """Random programs are worth nothing to later processes, but to those that share a folder on purpose."""
    with pytest.MonkeyPatch.context() as patch:
        if "DUALFLOW_CACHE_DIR" not in os.environ:
            patch.setenv("DUALFLOW_CACHE_DIR", "")
        yield


# Steps: functions of three tensors of one dtype and a number below 16, whatever the shapes.


def axes_of(x: Any, k: int) -> list[int]:
    """The axes of ``x`` that ``k`` names, all where it names none."""
    return [i for i in range(len(x.shape)) if k >> i & 1] or list(range(len(x.shape)))


def together(x: Any, y: Any) -> Any:
    """``y``, or its largest element where ``y`` and ``x`` don't broadcast to something small."""
    try:
        if math.prod(np.broadcast_shapes(x.shape, y.shape)) <= MAX_ELEMENTS:
            return y
    except ValueError:
        pass
    return largest(y, range(len(y.shape)), False)


def largest(x: Any, axes: Sequence[int], keepdims: bool) -> Any:
    """The maximum; the sum, which is zero, where there are no elements."""
    op = df.reduce_max if all(x.shape[a] for a in axes) else df.reduce_sum
    return op(x, list(axes), keepdims)


def binary(op: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    return lambda x, y, z, k: op(x, together(x, y))


def reduction(op: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, y, z, k: op(x, axes_of(x, k), bool(k & 8))


def along_an_axis(op: Callable[..., Any]) -> Callable[..., Any]:
    """``op(x, y, axis, k)`` for an ``x`` that has axes, none of them empty."""
    return lambda x, y, z, k: op(x, y, k % len(x.shape), k) if len(x.shape) and all(x.shape) else x


def transposed(x: Any, y: Any, axis: int, k: int) -> Any:
    return df.transpose(x, np.random.default_rng(k).permutation(len(x.shape)).tolist())


def reshaped(x: Any, y: Any, z: Any, k: int) -> Any:
    shapes = [(-1,), (1, *x.shape), (*x.shape, 1), (*x.shape[:1], -1), (-1, *x.shape[-1:])]
    return df.reshape(x, shapes[k % 5] if x.shape.num_elements() else (*x.shape, 1))


def sliced(x: Any, y: Any, axis: int, k: int) -> Any:
    keys = [slice(1, None), slice(None, None, -1), slice(None, None, 2), slice(5, 0, -2), -1]
    return x[(*[slice(None)] * axis, keys[k % 5])]


def joined(x: Any, y: Any, axis: int, k: int) -> Any:
    if 3 * x.shape.num_elements() > MAX_ELEMENTS:
        return x
    other = y if tuple(x.shape) == tuple(y.shape) else x + x
    return df.stack([x, other], axis) if k & 4 else df.concat([other, x, x], axis)


def padded(x: Any, y: Any, axis: int, k: int) -> Any:
    around = [[0, 0]] * len(x.shape)
    around[axis] = [k % 3, 1]
    return df.pad(x, around, constant_values=k % 2) if 4 * x.shape.num_elements() <= MAX_ELEMENTS else x


def repeated(x: Any, y: Any, z: Any, k: int) -> Any:
    return df.broadcast_to(x, (3, *x.shape)) if 3 * x.shape.num_elements() <= MAX_ELEMENTS else x


def product(x: Any, y: Any, axis: int, k: int) -> Any:
    """The matrix product with ``y`` where it fits, else with the matrix itself."""
    if len(x.shape) < 2 or max(x.shape[-2:]) * x.shape.num_elements() > MAX_ELEMENTS:
        return x
    if len(y.shape) == 2 and x.shape[-1] == y.shape[0] and y.shape[1] <= 40:
        return df.matmul(x, y)
    return df.matmul(x, x, transpose_a=bool(k & 1), transpose_b=not k & 1)


def picked(x: Any, y: Any, axis: int, k: int) -> Any:
    """Slices at places that are computed."""
    size = x.shape[axis]
    if len(y.shape) > 1 or x.shape.num_elements() // size * y.shape.num_elements() > MAX_ELEMENTS:
        return x
    return df.gather(x, df.cast(y * 7, df.int64 if k & 4 else df.int32) % size, axis=axis)


def numbered(x: Any, y: Any, axis: int, k: int) -> Any:
    """``x`` and the place of each element along an axis: a value made of positions alone."""
    places = df.eye(x.shape[-1], dtype=x.dtype) if k & 4 and len(x.shape) > 1 else x
    return binary(df.add)(x, places, None, k)


def chosen(x: Any, y: Any, z: Any, k: int) -> Any:
    larger = x > together(x, y)
    return df.where(larger, x, together(larger, z))


def centred(mean: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, y, z, k: x - mean(x, axes_of(x, k), keepdims=True)


def spread_of_centred(mean: Callable[..., Any]) -> Callable[..., Any]:
    """A reduction of what needs a reduction first."""

    def step(x: Any, y: Any, z: Any, k: int) -> Any:
        away = centred(mean)(x, y, z, k)
        return together(x, y) - away * mean(away * away, axes_of(x, k), keepdims=True)

    return step


def softmax(x: Any, y: Any, axis: int, k: int) -> Any:
    e = df.exp(x - df.reduce_max(x, axis, True))
    return e / df.reduce_sum(e, axis, True)


def normalised(x: Any, y: Any, axis: int, k: int) -> Any:
    away = x - df.reduce_mean(x, axis, True)
    return away * df.rsqrt(df.reduce_mean(away * away, axis, True) + 1.0) + together(x, y) * 0.5


ARRANGEMENTS: Table = {
    "transposed": along_an_axis(transposed),
    "reshaped": reshaped,
    "sliced": along_an_axis(sliced),
    "joined": along_an_axis(joined),
    "padded": along_an_axis(padded),
    "repeated": repeated,
    "numbered": along_an_axis(numbered),
    "largest": lambda x, y, z, k: largest(x, axes_of(x, k), bool(k & 8)),
}
WHOLE_NUMBERS: Table = ARRANGEMENTS | {
    "add": binary(df.add),
    "subtract": binary(df.subtract),
    "multiply": binary(df.multiply),
    "maximum": binary(df.maximum),
    "remainder": binary(lambda x, y: x % (y * y % 7 + 1)),
    "quotient": binary(lambda x, y: x // (y * y % 7 + 1)),
    "sum": reduction(df.reduce_sum),
    "product of all": reduction(df.reduce_prod),
    "by way of int64": lambda x, y, z, k: df.cast(df.cast(x, df.int64) * 3, df.int32),
    "odd": lambda x, y, z, k: df.cast(df.equal(x % 2, 1), df.int32),
    "any": lambda x, y, z, k: df.cast(df.reduce_any(x > 0, axes_of(x, k), bool(k & 8)), df.int32),
    "chosen": chosen,
    "centred": centred(df.reduce_sum),
    "spread": spread_of_centred(df.reduce_sum),
    "place of largest": along_an_axis(lambda x, y, axis, k: df.argmax(x, axis, df.int32)),
    "picked": along_an_axis(picked),
    "product": along_an_axis(product),
}
FRACTIONS: Table = ARRANGEMENTS | {
    "add": binary(lambda x, y: (x + y) * 0.5),
    "subtract": binary(lambda x, y: (x - y) * 0.5),
    "multiply": binary(lambda x, y: df.tanh(x) * y),
    "divide": binary(lambda x, y: x / (1.0 + y * y)),
    "wave": lambda x, y, z, k: df.sin(x * 1.5),
    "sigmoid": lambda x, y, z, k: df.sigmoid(x),
    "mean": reduction(lambda x, axes, keepdims: df.reduce_sum(x, axes, keepdims) / 1000.0),
    "softmax": along_an_axis(softmax),
    "normalised": along_an_axis(normalised),
    "centred": along_an_axis(lambda x, y, axis, k: (x - df.reduce_mean(x, axis, True)) * 0.5),
    "product": along_an_axis(lambda x, y, axis, k: product(x, y, axis, k) * 0.01),
}
# One operation of IEEE 754 each, so that rounding is the same in whatever order they run.
HALVES: Table = ARRANGEMENTS | {
    "add": binary(df.add),
    "subtract": binary(df.subtract),
    "multiply": binary(df.multiply),
    "divide": binary(df.divide),
    "root": lambda x, y, z, k: df.sqrt(df.abs(x)),
    "maximum": binary(df.maximum),
    "by way of float32": lambda x, y, z, k: df.cast(df.cast(x, df.float32) * 0.3, df.float16),
    "chosen": chosen,
    "whole": lambda x, y, z, k: df.floor(x),
}


# Programs


@dataclass(frozen=True)
class Step:
    """One line: a step, the three values it reads, counted back from the last, and its number."""

    name: str
    reads: tuple[int, int, int]
    k: int


@dataclass(frozen=True)
class Program:
    """Lines, and the values that are handed back, counted back from the last."""

    steps: tuple[Step, ...]
    results: tuple[int, ...]

    def run(self, table: Table, inputs: Sequence[Any]) -> list[Any]:
        values = list(inputs)
        for step in self.steps:
            x, y, z = (values[-1 - i % len(values)] for i in step.reads)
            value = table[step.name](x, y, z, step.k)
            values.append(value if len(value.shape) <= 4 else df.reshape(value, (-1,)))
        return [values[-1 - i % len(values)] for i in self.results]

    def __str__(self) -> str:
        lines = [f"{s.name} of values {s.reads} with {s.k}" for s in self.steps]
        return "\n".join([*lines, f"results: {self.results}"])


def programs(names: Sequence[str], most: int = 10) -> st.SearchStrategy[Program]:
    reads = st.tuples(*[st.integers(0, 5)] * 3)
    steps = st.builds(Step, st.sampled_from(sorted(names)), reads, st.integers(0, 15))
    results = st.lists(st.integers(0, 5), min_size=1, max_size=3)
    return st.builds(Program, st.lists(steps, min_size=1, max_size=most).map(tuple), results.map(tuple))


@st.composite
def shapes(draw: st.DrawFn) -> list[tuple[int, ...]]:
    """Shapes that mostly broadcast with each other."""
    n, m, k = (draw(st.sampled_from([1, 2, 3, 5, 17, 40, 0])) for _ in range(3))
    choices = [(n, m), (m,), (n, 1), (1, m), (), (m, n), (k, n, m), (k, 1, m), (n,), (n, n), (m, k)]
    return draw(st.lists(st.sampled_from(choices), min_size=1, max_size=4))


SEEDS = st.integers(0, 1000)


def whole_numbers(shape: tuple[int, ...], seed: int) -> Array:
    return np.asarray(np.random.default_rng(seed).integers(-9, 10, shape), np.int32)


def halves(shape: tuple[int, ...], seed: int) -> Array:
    return np.asarray(np.random.default_rng(seed).uniform(-9, 9, shape), np.float16)


def fractions(shape: tuple[int, ...], seed: int) -> Array:
    return np.asarray(np.random.default_rng(seed).uniform(-2, 2, shape))


def outcomes(function: Callable[..., Any], arrays: Sequence[Array]) -> list[list[Array]]:
    """The results of ``function``: eager, compiled, compiled through the fast path, and interpreted."""
    tensors = [df.constant(a) for a in arrays]
    compiled = df.function(function)
    ways = [function(*tensors), *(compiled(*tensors) for _ in range(3))]
    concrete = compiled.get_concrete_function(*tensors)
    assert check_fusion(concrete.graph, CompileOptions()) == []
    graph = concrete.optimised_graph
    verify(graph)
    return [[np.asarray(x) for x in way] for way in (*ways, evaluate(graph, arrays))]


def check_whole_numbers(program: Program, sizes: Sequence[tuple[int, ...]], seed: int) -> None:
    arrays = [whole_numbers(shape, seed + i) for i, shape in enumerate(sizes)]
    check_to_the_bit(program, WHOLE_NUMBERS, arrays)


def check_to_the_bit(program: Program, table: Table, arrays: Sequence[Array]) -> None:
    expected, *others = outcomes(lambda *xs: program.run(table, xs), arrays)
    for results in others:
        for actual, desired in zip(results, expected, strict=True):
            assert actual.dtype == desired.dtype
            np.testing.assert_array_equal(actual, desired, strict=True)


@given(programs(list(WHOLE_NUMBERS)), shapes(), SEEDS)
@PROPERTY
def test_programs_over_whole_numbers_agree_to_the_bit(
    program: Program, sizes: list[tuple[int, ...]], seed: int
) -> None:
    note(str(program))
    check_whole_numbers(program, sizes, seed)


def in_small_chunks(run: KernelLaunch, lanes: int, threads: int, costs: CostModel) -> int:
    """The chunks of a machine on which little work is worth another thread."""
    return chunk_of(run, lanes, threads, costs._replace(chunk_ns=0.05))


@given(programs(list(WHOLE_NUMBERS)), shapes(), SEEDS)
@PROPERTY
def test_however_loops_are_shared_between_threads(
    monkeypatch: pytest.MonkeyPatch, program: Program, sizes: list[tuple[int, ...]], seed: int
) -> None:
    monkeypatch.setattr(native_entry, "chunk_of", in_small_chunks)
    monkeypatch.setattr(blocking, "CHUNK_ELEMENTS", 64)
    note(str(program))
    check_whole_numbers(program, sizes, seed)


@given(programs(list(HALVES)), shapes(), SEEDS)
@settings(PROPERTY, max_examples=settings.default.max_examples // 2)
def test_programs_over_float16_agree_to_the_bit(
    program: Program, sizes: list[tuple[int, ...]], seed: int
) -> None:
    note(str(program))
    check_to_the_bit(program, HALVES, [halves(shape, seed + i) for i, shape in enumerate(sizes)])


@given(programs(list(FRACTIONS)), shapes(), SEEDS)
@PROPERTY
def test_programs_over_fractions_agree_but_for_rounding(
    program: Program, sizes: list[tuple[int, ...]], seed: int
) -> None:
    note(str(program))
    arrays = [fractions(shape, seed + i) for i, shape in enumerate(sizes)]
    expected, *others = outcomes(lambda *xs: program.run(FRACTIONS, xs), arrays)
    for results in others:
        for actual, desired in zip(results, expected, strict=True):
            assert actual.dtype == desired.dtype
            np.testing.assert_allclose(actual, desired, rtol=1e-9, atol=1e-9, strict=True)


# Programs that change variables


@dataclass(frozen=True)
class Assignment:
    """An assignment after the step `after`: the variable, and the index of its value from the last."""

    after: int
    variable: int
    value: int


def fitted(value: Any, shape: Sequence[int]) -> Any:
    """``value``, or its largest element everywhere where the shapes differ."""
    if tuple(value.shape) == tuple(shape):
        return value
    return df.broadcast_to(largest(value, range(len(value.shape)), False), shape)


def run_with_state(
    program: Program, assignments: Sequence[Assignment], variables: Sequence[Any], inputs: Sequence[Any]
) -> list[Any]:
    """The program's results; it reads the variables as they are then, and changes them on its way."""
    values = [*inputs, *(v.value() for v in variables)]
    for at in range(len(program.steps) + 1):
        for assignment in (a for a in assignments if a.after == at):
            variable = variables[assignment.variable % len(variables)]
            variable.assign(fitted(values[-1 - assignment.value % len(values)], variable.shape))
            values.append(variable.value())
        values += Program(program.steps[at : at + 1], (0,)).run(WHOLE_NUMBERS, values)[
            : at < len(program.steps)
        ]
    return [values[-1 - i % len(values)] for i in program.results]


ASSIGNMENTS = st.lists(
    st.builds(Assignment, st.integers(0, 6), st.integers(0, 3), st.integers(0, 8)), min_size=1, max_size=5
)


@given(programs(list(WHOLE_NUMBERS), 6), ASSIGNMENTS, st.sampled_from([1, 3, 17]), SEEDS)
@PROPERTY
def test_variables_change_alike_over_several_calls(
    program: Program, assignments: list[Assignment], n: int, seed: int
) -> None:
    """Swaps, transposes of themselves, old values handed back, two updates from one value: whatever comes."""
    note(str(program))
    sizes = [(n, n), (n, n), (n,), ()]
    initial = [whole_numbers(shape, seed + i) for i, shape in enumerate(sizes)]
    x = df.constant(whole_numbers((n, n), seed + 9))
    ours, theirs = ([df.Variable(a) for a in initial] for _ in range(2))
    compiled = df.function(lambda x: run_with_state(program, assignments, ours, [x]))
    handed_back: list[tuple[Any, Array]] = []
    for _ in range(4):
        reads = [(v.value(), v.numpy().copy()) for v in ours[:2]]
        expected = run_with_state(program, assignments, theirs, [x])
        actual = compiled(x)
        for tensor, desired in zip(actual, expected, strict=True):
            np.testing.assert_array_equal(tensor.numpy(), desired.numpy(), strict=True)
        for v, w in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(v.numpy(), w.numpy(), strict=True)
        handed_back += [*reads, *((t, t.numpy().copy()) for t in actual)]
    for tensor, then in handed_back:
        np.testing.assert_array_equal(tensor.numpy(), then, strict=True)
