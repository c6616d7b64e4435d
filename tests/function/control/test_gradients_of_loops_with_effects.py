"""Gradients of loops that draw random numbers or call Python: each iteration does so once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.core.errors import InvalidArgumentError


class Environment:
    """A Python object that each step changes."""

    def __init__(self) -> None:
        self.actions: list[float] = []

    def step(self, action: Any) -> Any:
        self.actions.append(float(action))
        return np.float32(0.5 * len(self.actions))

    def episode(self, w: Any, steps: Any, limit: Any) -> Any:
        """The loss of steps that stop when a state of the environment is beyond a limit."""
        values = df.TensorArray(df.float32, 0, dynamic_size=True)
        state = df.constant(1.0)
        for t in df.range(steps):
            action = df.tanh(w * state)
            values = values.write(t, action * action)
            state = df.numpy_function(self.step, [action], df.float32) + 0.1 * w
            if state > limit:
                break
        losses = values.stack()
        return df.reduce_sum(losses * df.cast(df.range(1, df.shape(losses)[0] + 1), df.float32))

    def gradient(self, w: Any, steps: Any, limit: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch(w)
            loss = self.episode(w, steps, limit)
        return loss, tape.gradient(loss, w)


@pytest.mark.parametrize(("steps", "limit", "expected"), [(6, 100.0, 6), (10, 1.7, 4), (1, 100.0, 1)])
def test_python_is_called_once_in_each_iteration(steps: int, limit: float, expected: int) -> None:
    arguments = df.constant(0.7), df.constant(steps), df.constant(limit)
    eager = Environment()
    results = eager.gradient(*arguments)
    for outside in (False, True):
        compiled = Environment()
        function = df.function(compiled.episode if outside else compiled.gradient)
        if outside:
            with df.GradientTape() as tape:
                tape.watch(arguments[0])
                loss = function(*arguments)
            pair = loss, tape.gradient(loss, arguments[0])
        else:
            pair = function(*arguments)
        np.testing.assert_allclose(pair, results, rtol=1e-6)
        np.testing.assert_allclose(compiled.actions, eager.actions, rtol=1e-6)
        assert len(compiled.actions) == expected


def test_the_gradient_has_the_numbers_that_the_loop_drew() -> None:
    @df.function
    def f(x: Any, n: Any) -> Any:
        with df.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = z = x
            for _ in df.range(n):
                drawn = df.random.normal(df.shape(x))
                y, z = y * drawn, z + drawn * x
            u = y * y
        return [y / x, tape.gradient(y, x)], [2 * u / x, tape.gradient(u, x)], [z / x, tape.gradient(z, x)]

    for size in (2, 3, 4):
        for expected, gradient in f(2.0 * df.ones([size]), df.constant(3)):
            np.testing.assert_allclose(gradient, expected, rtol=1e-5)


def test_a_loop_in_a_loop_draws_once() -> None:
    @df.function
    def f(x: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch(x)
            y = x
            for _ in df.range(3):
                for _ in df.range(2):
                    y = y * df.random.uniform([], 1.0, 2.0)
        return y / x, tape.gradient(y, x)

    expected, gradient = f(df.constant(2.0))
    np.testing.assert_allclose(gradient, expected, rtol=1e-6)


def test_a_python_function_with_a_gradient_has_one_in_a_loop() -> None:
    @df.function
    def f(x: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch(x)
            y = x
            for _ in df.range(3):
                y = df.py_function(lambda v: v * v, [y], df.float32)
        return tape.gradient(y, x)

    assert f(df.constant(1.5)).numpy() == pytest.approx(8 * 1.5**7)


def test_a_second_derivative_would_draw_again() -> None:
    @df.function
    def f(x: Any) -> Any:
        with df.GradientTape() as outer:
            outer.watch(x)
            with df.GradientTape() as inner:
                inner.watch(x)
                y = x
                for _ in df.range(3):
                    y = y * y * df.random.uniform([])
            gradient = inner.gradient(y, x)
        return outer.gradient(gradient, x)

    with pytest.raises(
        InvalidArgumentError, match=r"second derivative(.|\n)*before the loop(.|\n)*effects\.py"
    ):
        f(df.constant(1.0))
