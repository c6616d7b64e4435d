"""``recompute_grad`` and ``grad_pass_through``: functions with another backward pass."""

from __future__ import annotations

from typing import Any

import numpy as np

import dualflow as df


def test_the_gradient_of_a_recomputed_function_is_its_own(mode: Any) -> None:
    v = df.Variable([2.0, 3.0])
    block = df.recompute_grad(lambda x, scale: {"y": df.exp(x) * v * scale, "z": x**3})

    def slopes(x: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch(x)
            value = block(x, 2.0)
            total = df.reduce_sum(value["y"]) + df.reduce_sum(value["z"])
        return tape.gradient(total, [x, v])

    x = np.array([0.5, -1.0], np.float32)
    by_x, by_v = mode(slopes)(df.constant(x))
    np.testing.assert_allclose(by_x, 2 * np.exp(x) * v.numpy() + 3 * x**2, rtol=1e-6)
    np.testing.assert_allclose(by_v, 2 * np.exp(x), rtol=1e-6)


def test_the_function_runs_again_for_its_gradient() -> None:
    calls = []

    @df.recompute_grad
    def block(x: Any) -> Any:
        calls.append(x)
        return df.sin(x)

    x = df.constant(1.0)
    with df.GradientTape() as tape:
        tape.watch(x)
        y = block(x)
    assert len(calls) == 1
    np.testing.assert_allclose(tape.gradient(y, x), np.cos(1.0), rtol=1e-6)
    assert len(calls) == 2


def test_second_gradients_of_a_recomputed_function() -> None:
    x = df.constant(0.5)
    block = df.recompute_grad(lambda x: df.sin(x))
    with df.GradientTape() as outer:
        outer.watch(x)
        with df.GradientTape() as inner:
            inner.watch(x)
            y = block(x)
        slope = inner.gradient(y, x)
    np.testing.assert_allclose(outer.gradient(slope, x), -np.sin(0.5), rtol=1e-6)


def test_a_gradient_passes_through(mode: Any) -> None:
    v = df.Variable(2.0)

    def slopes(x: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch(x)
            y = df.grad_pass_through(lambda x: df.floor(x) * v)(x) * 3.0
        return y, tape.gradient(y, [x, v], unconnected_gradients="zero")

    y, gradient = mode(slopes)(df.constant([1.5, 2.5]))
    assert y.numpy().tolist() == [6.0, 12.0]
    assert gradient[0].numpy().tolist() == [3.0, 3.0]
    assert gradient[1].numpy() == 0.0
