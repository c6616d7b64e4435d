"""Custom gradient functions of branches, loops and inner functions may use the tensors of their call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualflow as df

Unary = Callable[[Any], Any]
SCALE = df.Variable(1.5)


@df.custom_gradient
def of_argument(x: Any) -> Any:
    return df.exp(x), lambda upstream: upstream * df.where(x < 0.0, 2.0 * x, df.exp(x) + 1.0)


@df.custom_gradient
def of_intermediate(x: Any) -> Any:
    y = df.exp(x)
    return y + 1.0, lambda upstream: upstream * y * 3.0


@df.custom_gradient
def of_variable(x: Any) -> Any:
    def gradient(upstream: Any, variables: Any = None) -> Any:
        return upstream * SCALE * x, [df.reduce_sum(upstream * x)]

    return x * SCALE, gradient


FUNCTIONS = [of_argument, of_intermediate, of_variable]


def in_a_branch(f: Unary, x: Any, n: Any) -> Any:
    return df.cond(n > 1, lambda: f(2.0 * x) * 3.0, lambda: x)


def in_converted_python(f: Unary, x: Any, n: Any) -> Any:
    y = x
    if n > 1:
        z = x * 2.0
        y = f(z) + z
    return y


def in_a_loop(f: Unary, x: Any, n: Any) -> Any:
    y = x
    for _ in df.range(n):
        y = f(y * 0.1)
    return y


def in_a_while_loop(f: Unary, x: Any, n: Any) -> Any:
    return df.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, f(y * 0.1)), (0, x))[1]


def in_an_inner_function(f: Unary, x: Any, n: Any) -> Any:
    return df.function(lambda y: f(y * 2.0))(x) * 3.0


def in_an_inner_function_of_a_branch(f: Unary, x: Any, n: Any) -> Any:
    inner = df.function(lambda y: f(y * x) * y)
    return df.cond(n > 1, lambda: inner(x + 1.0), lambda: x)


def in_an_inner_function_of_several_shapes(f: Unary, x: Any, n: Any) -> Any:
    inner = df.function(lambda y: df.reduce_sum(f(y * 2.0)), reduce_retracing=True)
    return inner(df.stack([x, x])) + inner(df.stack([x, 2.0 * x, x])) + inner(df.stack([x]))


def in_a_map(f: Unary, x: Any, n: Any) -> Any:
    return df.reduce_sum(df.map_fn(f, df.stack([x, 2.0 * x])))


def in_a_branch_of_a_loop(f: Unary, x: Any, n: Any) -> Any:
    y = x
    for i in df.range(n):
        if i > 0:
            y = f(y * 0.1)
    return y


@pytest.mark.parametrize("f", FUNCTIONS)
@pytest.mark.parametrize(
    "control",
    [
        *(in_a_branch, in_converted_python, in_a_loop, in_a_while_loop, in_a_map, in_a_branch_of_a_loop),
        *(in_an_inner_function, in_an_inner_function_of_a_branch, in_an_inner_function_of_several_shapes),
    ],
)
def test_gradients_are_those_of_eager_code(control: Any, f: Unary) -> None:
    def gradients(x: Any, n: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch(x)
            y = control(f, x, n)
        return tape.gradient(y, [x, SCALE], unconnected_gradients="zero")

    arguments = df.constant(0.7), df.constant(3)
    for result, expected in zip(df.function(gradients)(*arguments), gradients(*arguments), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-5)


@pytest.mark.parametrize("f", [of_argument, of_variable])
def test_gradients_of_gradients_use_the_argument(f: Unary) -> None:
    def second(x: Any, n: Any) -> Any:
        with df.GradientTape() as outer:
            outer.watch(x)
            with df.GradientTape() as inner:
                inner.watch(x)
                y = in_a_branch(f, x, n)
            first = inner.gradient(y, x)
        return outer.gradient(first, x)

    arguments = df.constant(0.7), df.constant(3)
    np.testing.assert_allclose(df.function(second)(*arguments), second(*arguments), rtol=1e-5)


def test_a_tape_outside_of_the_function_takes_the_gradient() -> None:
    x = df.constant(0.7)
    with df.GradientTape() as tape:
        tape.watch(x)
        y = df.function(lambda x, n: in_a_branch(of_argument, x, n))(x, df.constant(3))
    np.testing.assert_allclose(tape.gradient(y, x), 6 * (np.exp(1.4) + 1), rtol=1e-5)


def test_a_gradient_function_that_needs_values_is_an_error_where_it_is_used() -> None:
    @df.custom_gradient
    def f(x: Any) -> Any:
        return x * 2.0, lambda upstream: upstream * x.numpy()

    assert float(df.function(lambda x, n: in_a_branch(f, x, n))(df.constant(1.0), df.constant(3))) == 12

    @df.function
    def gradient(x: Any, n: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch(x)
            y = in_a_branch(f, x, n)
        return tape.gradient(y, x)

    with pytest.raises(AttributeError, match=r"has no .numpy\(\)"):
        gradient(df.constant(1.0), df.constant(3))


def test_effects_of_a_gradient_function_are_not_those_of_the_branch(capfd: Any) -> None:
    @df.custom_gradient
    def f(x: Any) -> Any:
        def gradient(upstream: Any) -> Any:
            df.print("gradient")
            return upstream

        return x * 2.0, gradient

    df.function(lambda x, n: in_a_branch(f, x, n))(df.constant(1.0), df.constant(3))
    assert "gradient" not in "".join(capfd.readouterr())


def test_a_gradient_function_that_raised_once_is_traced_again() -> None:
    rates: list[float] = []

    @df.custom_gradient
    def scaled(x: Any) -> Any:
        def grad(g: Any) -> Any:
            if not rates:
                raise ValueError("there is no rate")
            return g * x * rates[0]

        return x * x, grad

    inner = df.function(scaled, autograph=False)

    def slope(x: Any) -> Any:
        return df.gradients(inner(x), x)[0]

    with pytest.raises(ValueError, match="there is no rate"):
        df.function(slope)(df.constant(3.0))
    rates.append(5.0)
    assert float(df.function(slope)(df.constant(3.0))) == 15.0
