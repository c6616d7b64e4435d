"""Gradients of loops whose iterations change the sizes of carried tensors: one program for all sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualflow as df

VECTOR = (df.TensorShape([]), df.TensorShape([None]))


def repeated(times: Any, step: Callable[[Any], Any], x: Any) -> Any:
    """``step`` applied to ``x`` a number of times; it may change the size."""
    return df.while_loop(
        lambda i, y: i < times, lambda i, y: (i + 1, step(y)), (0, x), shape_invariants=VECTOR
    )[1]


def rows_of_two_sizes(x: Any) -> Any:
    _, y, z = df.while_loop(
        lambda i, y, z: i < 3,
        lambda i, y, z: (i + 1, df.concat([df.tanh(y), x], 0), df.concat([z * z, df.stack([y, y], 1)], 0)),
        (0, x, df.stack([x, x * 0.5], 1)),
        shape_invariants=(*VECTOR, df.TensorShape([None, 2])),
    )
    return df.reduce_sum(y) * z


CASES: dict[str, Callable[[Any], Any]] = {
    "grows": lambda x: repeated(3, lambda y: df.concat([df.tanh(y), df.sin(x) * y[:1]], 0), x),
    "shrinks by data": lambda x: repeated(3, lambda y: df.boolean_mask(y, y > -0.5) + df.reduce_sum(y), x),
    "no iteration": lambda x: repeated(0, lambda y: df.concat([y, y], 0), x),
    "rows of two sizes": rows_of_two_sizes,
    "nested": lambda x: repeated(
        2, lambda y: df.sin(repeated(2, lambda z: df.concat([df.tanh(z), z[:1]], 0), y)), x
    ),
    "multiplied": lambda x: repeated(
        3, lambda y: df.concat([df.tanh(y), df.matmul(y[None], y[:, None])[0] * 0.1], 0), x
    ),
    "in a branch": lambda x: df.cond(
        df.reduce_sum(x) > 0.0, lambda: repeated(2, lambda y: df.concat([y * y, x], 0), x), lambda: x
    ),
}
SECOND = ("grows", "no iteration", "in a branch")
"""The cases whose second derivatives are compared: they compile four times as many kernels."""
SIZES = (3, 2, 5, 17)


def with_gradient(function: Callable[[Any], Any], weigh: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The weighted sum of the value of ``function``, and its gradient."""

    def computed(x: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch(x)
            total = df.reduce_sum(weigh(function(x)))
        return total, tape.gradient(total, x, unconnected_gradients="zero")

    return computed


@pytest.mark.llvm  # Numba has no programs for sizes that depend on data
@pytest.mark.parametrize("name", CASES)
def test_one_program_has_the_derivatives_of_eager_calls_of_all_sizes(name: str) -> None:
    computed = with_gradient(CASES[name], df.sin)
    if name in SECOND:
        first = computed
        computed = with_gradient(lambda x: first(x)[1], df.sin)
    compiled = df.function(computed, input_signature=[df.TensorSpec([None], df.float64)])
    for n in SIZES:
        x = df.constant(np.random.default_rng(n).uniform(-0.4, 0.9, n))
        for result, expected in zip(compiled(x), computed(x), strict=True):
            np.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-9)
    (trace,) = compiled.concrete_functions
    assert len(trace._specialisations) == 1
    assert "numpy:" not in str(compiled.status())


@pytest.mark.llvm
@pytest.mark.parametrize("name", ["grows", "multiplied"])
def test_a_tape_outside_of_a_function_has_its_gradient_by_one_program(name: str) -> None:
    compiled = df.function(CASES[name], input_signature=[df.TensorSpec([None], df.float64)])
    for n in SIZES:
        x = df.constant(np.random.default_rng(n).standard_normal(n))
        gradients = []
        for function in (compiled, CASES[name]):
            with df.GradientTape() as tape:
                tape.watch(x)
                total = df.reduce_sum(function(x) ** 2)
            gradients.append(tape.gradient(total, x))
        np.testing.assert_allclose(*gradients, rtol=1e-9)
    (trace,) = compiled.concrete_functions
    assert len(trace._specialisations) == 1
