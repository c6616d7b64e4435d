"""``vmap`` over a number of elements that is known only when the function runs, by one program for all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualflow as df

vmap = df.autodiff.vmap
MATRIX = np.random.default_rng(0).standard_normal((4, 3))
COUNTS = (3, 0, 1, 2, 31, 33)


def halved_while_large(row: Any) -> Any:
    (small,) = df.while_loop(lambda v: df.reduce_sum(df.abs(v)) > 1.0, lambda v: (v * 0.5,), (row,))
    return small


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "elementwise": lambda x: vmap(lambda row: df.tanh(row) * row[0])(x),
    "a product with a shared matrix": lambda x: vmap(lambda row: df.linalg.matvec(df.transpose(MATRIX), row))(
        x
    ),
    "a host call": lambda x: vmap(df.sort)(x),
    "a convolution": lambda x: vmap(
        lambda row: df.nn.conv1d(row[None, :, None], MATRIX[:, None, :], 1, "SAME")[0]
    )(x),
    "slices and concatenation": lambda x: vmap(lambda row: df.concat([row[1:], row[:2] ** 2], 0))(x),
    "a loop": lambda x: vmap(halved_while_large)(x),
    "a scan": lambda x: vmap(lambda row: df.scan(lambda a, b: a * 0.5 + b, row))(x),
    "a branch": lambda x: vmap(lambda row: df.cond(row[0] > 0.0, lambda: row * 2.0, lambda: -row))(x),
    "a gradient": lambda x: vmap(df.autodiff.grad(lambda row: df.reduce_sum(df.sin(row) ** 2)))(x),
    "vmap in vmap": lambda x: vmap(lambda row: vmap(lambda e: e * df.reduce_sum(row))(row))(x),
    "another axis": lambda x: vmap(lambda row: row * df.reduce_max(row), 0, 1)(x),
    "a structure, with a result that is shared": lambda x: vmap(
        lambda d: (d["a"] + d["b"], df.ones([2], df.float64))
    )({"a": x, "b": x * x}),
    "a loop over the elements": lambda x: df.vectorized_map(
        lambda row: df.reduce_sum(df.boolean_mask(row, row > 0.0) ** 2), x, warn=False
    ),
}


def rows(count: int) -> df.Tensor:
    return df.constant(np.random.default_rng(count).standard_normal((count, 4)))


def with_gradient(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def both(x: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch(x)
            values = function(x)
            total = df.add_n([df.reduce_sum(df.sin(y)) for y in df.nest.flatten(values)])
        return values, tape.gradient(total, x, unconnected_gradients="zero")

    return both


@pytest.mark.llvm  # other backends may have a program for each shape
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_gradients_are_those_of_eager_calls_by_one_program(name: str) -> None:
    both = with_gradient(FUNCTIONS[name])
    compiled = df.function(both, input_signature=[df.TensorSpec([None, 4], df.float64)])
    for count in COUNTS:
        x = rows(count)
        for result, expected in zip(df.nest.flatten(compiled(x)), df.nest.flatten(both(x)), strict=True):
            np.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-9)
    (trace,) = compiled.concrete_functions
    assert len(trace._specialisations) == 1


def test_second_derivatives_are_those_of_eager_calls() -> None:
    def second(x: Any) -> Any:
        with df.GradientTape() as outer:
            outer.watch(x)
            _, slope = with_gradient(FUNCTIONS["elementwise"])(x)
        return outer.gradient(slope, x)

    compiled = df.function(second, input_signature=[df.TensorSpec([None, 4], df.float64)])
    for count in COUNTS[:4]:
        np.testing.assert_allclose(compiled(rows(count)), second(rows(count)), rtol=1e-9, atol=1e-9)


def test_random_numbers_differ_between_elements() -> None:
    draw = df.function(
        lambda x: vmap(lambda row: row + df.random.normal([4], dtype=df.float64))(x),
        input_signature=[df.TensorSpec([None, 4], df.float64)],
    )
    for count in (2, 5):
        numbers = draw(df.zeros([count, 4], df.float64)).numpy()
        assert len(np.unique(numbers)) == 4 * count
        assert not np.array_equal(numbers, draw(df.zeros([count, 4], df.float64)))
