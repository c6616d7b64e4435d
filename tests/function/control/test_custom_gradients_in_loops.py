"""Custom gradients in loops and maps: derivatives of both orders, by one program for all sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualflow as df

SIZES = (0, 1, 2, 31, 32, 33)


@df.custom_gradient
def sine(x: Any) -> Any:
    """The sine, with a gradient that is no derivative of it."""
    return df.sin(x), lambda g: 3.0 * g * df.cos(x)


def repeated(x: Any, n: Any) -> Any:
    for _ in df.range(n):
        x = sine(x) * 1.1
    return x


def until_small(x: Any, n: Any) -> Any:
    while df.reduce_sum(df.abs(x)) > 1.0:
        x = sine(x) * 0.5
    return x


def over_rows(x: Any, n: Any) -> Any:
    total = df.zeros([2], df.float64)
    for row in x:
        total = sine(total * 0.5 + row)
    return total


def written(x: Any, n: Any) -> Any:
    rows = df.TensorArray(df.float64, size=df.shape(x)[0], element_shape=[2])
    for i in df.range(df.shape(x)[0]):
        rows = rows.write(i, sine(x[i]))
    return rows.stack()


LOOPS: dict[str, Callable[[Any, Any], Any]] = {
    "a number of iterations from data": repeated,
    "a condition of values": until_small,
    "rows": over_rows,
    "rows written one by one": written,
    "rows of a mask": lambda x, n: repeated(df.boolean_mask(x, x[:, 0] > 0.0), n),
    "a map": lambda x, n: df.map_fn(sine, x),
    "a batch": lambda x, n: df.vectorized_map(sine, x),
    "a branch": lambda x, n: df.cond(n > 1, lambda: sine(x), lambda: x * 2.0),
}


def derivatives(function: Callable[[Any, Any], Any], x: Any, n: Any) -> list[Any]:
    """The value, and the derivatives of first and second order."""
    with df.GradientTape() as outer:
        outer.watch(x)
        with df.GradientTape() as inner:
            inner.watch(x)
            value = function(x, n)
            total = df.reduce_sum(df.sin(value))
        first = inner.gradient(total, x, unconnected_gradients="zero")
    return [value, first, outer.gradient(first, x, unconnected_gradients="zero")]


@pytest.mark.parametrize("tape", ["inside", "outside"])
@pytest.mark.parametrize("name", LOOPS)
def test_one_program_gives_the_derivatives_of_eager_calls(name: str, tape: str) -> None:
    loop, signature = LOOPS[name], [df.TensorSpec([None, 2], df.float64), df.TensorSpec([], df.int32)]
    if tape == "inside":
        compiled = call = df.function(lambda x, n: derivatives(loop, x, n), input_signature=signature)
    else:
        compiled = df.function(loop, input_signature=signature)
        call = lambda x, n: derivatives(compiled, x, n)  # noqa: E731
    for size in SIZES:
        x = df.constant(np.random.default_rng(size).standard_normal([size, 2]))
        n = df.constant(size % 4)
        for result, expected in zip(call(x, n), derivatives(loop, x, n), strict=True):
            np.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-9)
    assert compiled.experimental_get_tracing_count() == 1


@pytest.mark.parametrize("name", ["a number of iterations from data", "rows", "rows written one by one"])
def test_second_derivatives_of_static_sizes_are_those_of_eager_calls(name: str) -> None:
    loop = LOOPS[name]
    x, n = df.constant(np.random.default_rng(1).standard_normal([3, 2])), df.constant(2)
    compiled = df.function(lambda x, n: derivatives(loop, x, n), sizes="exact")
    for result, expected in zip(compiled(x, n), derivatives(loop, x, n), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-9)


def test_a_gradient_that_is_taken_in_an_iteration_may_read_its_loop_variable() -> None:
    """After the iteration the variable has no value, so that there is no graph for further derivatives."""

    def total(x: Any) -> Any:
        value = x
        for i in df.range(df.shape(x)[0]):

            def scaled(z: Any) -> Any:
                return z * z * df.cast(i, df.float64)  # noqa: B023

            value += df.autodiff.grad(lambda z: df.reduce_sum(df.recompute_grad(scaled)(z)))(x)
        return value

    x = df.constant([1.0, 2.0, 3.0], df.float64)
    np.testing.assert_allclose(df.function(total)(x), x * (1.0 + 2.0 * (0.0 + 1.0 + 2.0)))
