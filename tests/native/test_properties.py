"""Random straight-line programs: eager, compiled, and interpreted node by node, they give the same.

Programs over int32 wrap and have no rounding, so they must agree to the bit, whatever the compiler reorders. Programs
over floats are made of bounded, smooth steps, so that only rounding separates their results.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

import dualflow as df
from dualflow.graph.interpret import evaluate
from dualflow.graph.ir import verify

Array = np.ndarray[Any, Any]
MOST_ELEMENTS = 6000
PROPERTY = settings(
    phases=[Phase.reuse, Phase.generate, Phase.shrink],
    deadline=None, max_examples=int(__import__("os").environ.get("EX","60")), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


# The steps: functions of three tensors of one dtype and a number, whatever the shapes.


def axes_of(x: Any, knob: int) -> list[int]:
    """Some axes of ``x``, all where the number names none."""
    return [i for i in range(len(x.shape)) if knob >> i & 1] or list(range(len(x.shape)))


def axis_of(x: Any, knob: int) -> int:
    return knob % len(x.shape)


def together(x: Any, y: Any) -> Any:
    """``y``, or its sum where ``y`` and ``x`` don't broadcast to something small."""
    try:
        shape = np.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        return df.reduce_sum(y)
    return y if math.prod(shape) <= MOST_ELEMENTS else df.reduce_sum(y)


def binary(op: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    return lambda x, y, z, k: op(x, together(x, y))


def reduction(op: Callable[..., Any]) -> Callable[..., Any]:
    """A reduction over some axes; a sum where they are empty, for not all have a value then."""

    def step(x: Any, y: Any, z: Any, k: int) -> Any:
        axes = axes_of(x, k)
        safe = op if all(x.shape[a] for a in axes) else df.reduce_sum
        return safe(x, axis=axes, keepdims=bool(k & 8))

    return step


def along_axis(op: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, y, z, k: op(x, axis=axis_of(x, k)) if len(x.shape) else x


def transposed(x: Any, y: Any, z: Any, k: int) -> Any:
    order = list(range(len(x.shape)))
    return df.transpose(x, np.random.default_rng(k).permutation(order).tolist()) if order else x


def reshaped(x: Any, y: Any, z: Any, k: int) -> Any:
    shapes = [(-1,), (1, *x.shape), (*x.shape, 1), (*x.shape[:1], -1), (-1, *x.shape[-1:])]
    shape = shapes[k % 5] if x.shape.num_elements() else (*x.shape, 1)
    return df.reshape(x, shape)


def sliced(x: Any, y: Any, z: Any, k: int) -> Any:
    keys = [slice(1, None), slice(None, None, -1), slice(None, None, 2), slice(-3, None), slice(5, 0, -2)]
    if not len(x.shape):
        return x
    if k & 1 and all(x.shape):
        return x[..., k % x.shape[-1]]
    return x[(*[slice(None)] * axis_of(x, k), keys[k % 5])]


def joined(x: Any, y: Any, z: Any, k: int) -> Any:
    if not len(x.shape) or 2 * x.shape.num_elements() > MOST_ELEMENTS:
        return x
    other = y if tuple(x.shape) == tuple(y.shape) else x + x
    return (
        df.stack([x, other], axis=axis_of(x, k)) if k & 4 else df.concat([other, x, x], axis=axis_of(x, k))
    )


def padded(x: Any, y: Any, z: Any, k: int) -> Any:
    if 4 * x.shape.num_elements() > MOST_ELEMENTS or not len(x.shape):
        return x
    around = [[0, 0]] * len(x.shape)
    around[axis_of(x, k)] = [k % 3, 1]
    return df.pad(x, around, constant_values=k % 2)


def product(x: Any, y: Any, z: Any, k: int) -> Any:
    """A matrix product of ``x`` and ``y`` where they are matrices that fit, else of ``x`` and itself."""
    if len(x.shape) < 2 or max(x.shape[-2:]) ** 2 * math.prod(x.shape[:-2]) > MOST_ELEMENTS:
        return x
    fits = len(y.shape) == 2 and x.shape[-1] == y.shape[0] and y.shape[1] <= 40
    return df.matmul(x, y) if fits else df.matmul(x, x, transpose_a=bool(k & 1), transpose_b=not k & 1)


def picked(x: Any, y: Any, z: Any, k: int) -> Any:
    """Slices at computed places."""
    if not len(x.shape) or not x.shape[axis_of(x, k)] or y.shape.num_elements() > 40:
        return x
    size = x.shape[axis_of(x, k)]
    if math.prod(x.shape) // size * y.shape.num_elements() > MOST_ELEMENTS or len(y.shape) > 1:
        return x
    places = df.cast(y * 7, df.int64 if k & 4 else df.int32) % size
    return df.gather(x, places, axis=axis_of(x, k))


def numbered(x: Any, y: Any, z: Any, k: int) -> Any:
    """``x`` and positions: a generated value."""
    return x + df.cast(df.one_hot(df.cast(x, df.int32) % 3, x.shape[-1]) if k & 4 and 0 else 1, x.dtype)


def chosen(x: Any, y: Any, z: Any, k: int) -> Any:
    larger = x > together(x, y)
    return df.where(larger, x, together(larger, z))


def spread(x: Any, y: Any, z: Any, k: int) -> Any:
    """``x`` repeated along a new first axis."""
    return df.broadcast_to(x, (3, *x.shape)) if 3 * x.shape.num_elements() <= MOST_ELEMENTS else x


STRUCTURE: dict[str, Callable[..., Any]] = {
    "transposed": transposed,
    "reshaped": reshaped,
    "sliced": sliced,
    "joined": joined,
    "padded": padded,
    "spread": spread,
    "picked": picked,
    "product": product,
    "chosen": chosen,
    "sum": reduction(df.reduce_sum),
    "max": reduction(df.reduce_max),
    "min": reduction(df.reduce_min),
}
WHOLE_NUMBERS = STRUCTURE | {
    "add": binary(df.add),
    "subtract": binary(df.subtract),
    "multiply": binary(df.multiply),
    "maximum": binary(df.maximum),
    "remainder": binary(lambda x, y: df.mod(x, y * y % 7 + 1)),
    "quotient": binary(lambda x, y: x // (y * y % 7 + 1)),
    "product of all": reduction(df.reduce_prod),
    "wider": lambda x, y, z, k: df.cast(df.cast(x, df.int64) * 3, df.int32),
    "odd": lambda x, y, z, k: df.cast(df.equal(x % 2, 1), df.int32),
    "any": lambda x, y, z, k: df.cast(df.reduce_any(x > 0, axes_of(x, k), bool(k & 8)), df.int32),
    "place of max": lambda x, y, z, k: df.cast(
        df.argmax(x, axis_of(x, k)) if len(x.shape) and all(x.shape) else x, df.int32
    ),
    "centred": lambda x, y, z, k: x - df.reduce_sum(x, axes_of(x, k), keepdims=True),
    "centred twice": lambda x, y, z, k: x
    - df.reduce_sum(df.square(x - df.reduce_sum(x, axes_of(x, k), keepdims=True)), axes_of(x, k), True),
}


@dataclass(frozen=True)
class Step:
    """One line of a program: a step, the values it reads counted from the last, and its number."""

    name: str
    reads: tuple[int, int, int]
    knob: int


@dataclass(frozen=True)
class Program:
    """Lines, and which values are handed back, counted from the last."""

    steps: tuple[Step, ...]
    results: tuple[int, ...]

    def text(self, inputs: int) -> str:
        """The program as assignments."""
        lines = []
        for at, step in enumerate(self.steps, start=inputs):
            reads = ", ".join(f"v{at - 1 - i % at}" for i in step.reads)
            lines.append(f"v{at} = {step.name}({reads}, {step.knob})")
        count = inputs + len(self.steps)
        return "\n".join([*lines, "return " + ", ".join(f"v{count - 1 - i % count}" for i in self.results)])

    def run(self, table: dict[str, Callable[..., Any]], inputs: Sequence[Any]) -> list[Any]:
        pool = list(inputs)
        for step in self.steps:
            x, y, z = (pool[-1 - i % len(pool)] for i in step.reads)
            made = table[step.name](x, y, z, step.knob)
            pool.append(made if len(made.shape) <= 4 else df.reshape(made, (-1,)))
        return [pool[-1 - i % len(pool)] for i in self.results]


def programs(table: dict[str, Any], most: int = 10) -> st.SearchStrategy[Program]:
    reads = st.tuples(*[st.integers(0, 5)] * 3)
    steps = st.builds(Step, st.sampled_from(sorted(table)), reads, st.integers(0, 15))
    return st.builds(
        Program,
        st.lists(steps, min_size=1, max_size=most).map(tuple),
        st.lists(st.integers(0, 5), min_size=1, max_size=3).map(tuple),
    )


@st.composite
def shapes(draw: st.DrawFn) -> list[tuple[int, ...]]:
    """Shapes that mostly broadcast with each other."""
    n, m, k = (draw(st.sampled_from([1, 2, 3, 5, 17, 40, 0])) for _ in range(3))
    known = [(n, m), (m,), (n, 1), (1, m), (), (m, n), (k, n, m), (k, 1, m), (n,), (n, n), (m, k)]
    return draw(st.lists(st.sampled_from(known), min_size=1, max_size=4))


def whole_numbers(shape: tuple[int, ...], seed: int) -> Array:
    return np.random.default_rng(seed).integers(-9, 10, shape).astype(np.int32)


def compiled_and_eager(function: Callable[..., Any], arrays: Sequence[Array]) -> list[tuple[Array, ...]]:
    """For each result: eager, compiled, compiled again, and interpreted."""
    tensors = [df.constant(a) for a in arrays]
    traced = df.function(function)
    eager, first, again = function(*tensors), traced(*tensors), traced(*tensors)
    graph = traced.get_concrete_function(*tensors).optimised_graph
    verify(graph)
    interpreted = evaluate(graph, arrays)
    return [tuple(map(np.asarray, found)) for found in zip(eager, first, again, interpreted, strict=True)]


@given(programs(WHOLE_NUMBERS), shapes(), st.integers(0, 1000))
@PROPERTY
def test_a_program_over_whole_numbers_gives_the_same_to_the_bit(
    program: Program, sizes: list[tuple[int, ...]], seed: int
) -> None:
    note(program.text(len(sizes)))
    arrays = [whole_numbers(shape, seed + i) for i, shape in enumerate(sizes)]
    for eager, *others in compiled_and_eager(lambda *xs: program.run(WHOLE_NUMBERS, xs), arrays):
        for other in others:
            assert other.dtype == eager.dtype
            np.testing.assert_array_equal(other, eager)
