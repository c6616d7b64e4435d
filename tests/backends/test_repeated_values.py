"""Cheap values with several readers are recomputed in each kernel, not stored."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dualflow as df

SHAPE = (512, 512)
"""Enough elements for recomputation to pay off."""


def numbers(seed: int = 0) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.random.default_rng(seed).standard_normal(SHAPE).astype(np.float32)


def written(f: Any, *inputs: Any) -> list[int]:
    """How many large arrays each step of the graph of ``f`` writes."""
    concrete = df.function(f).get_concrete_function(*[df.TensorSpec(np.shape(x)) for x in inputs])
    calls = concrete.compiled.executable.plan.calls
    return [sum(v.spec.shape == SHAPE for v in call.node.outputs) for call in calls]


def test_a_cheap_chain_is_recomputed() -> None:
    """Between the products come a quarter of one, its square and its cube, of which one is written."""

    def f(x: Any) -> Any:
        y = x @ x * 0.25
        cube = y * y * y
        return df.exp(cube @ x) + y * y + cube

    x = numbers() / 32
    assert written(f, x) == [1, 1, 1, 1]
    y = x.astype(np.float64) @ x * 0.25
    np.testing.assert_allclose(df.function(f)(x), np.exp(y**3 @ x) + y**2 + y**3, rtol=1e-5)


def test_an_expensive_input_is_stored_instead_of_its_cheap_results() -> None:
    """The gradient of tanh-like activations reads 1 + t and 1 - t * t: t is written in their place."""

    def f(x: Any, w: Any) -> Any:
        t = df.tanh(x @ w)
        y = (t + 1.0) @ w
        return df.exp(y) * (t + 1.0) + (1.0 - t * t) * 3.0

    x, w = numbers(1) / 32, numbers(2) / 32
    assert written(f, x, w) == [1, 2, 1, 1]
    t = np.tanh(x.astype(np.float64) @ w)
    np.testing.assert_allclose(
        df.function(f)(x, w), np.exp((t + 1) @ w) * (t + 1) + 3 * (1 - t * t), rtol=1e-5
    )


def test_a_long_chain_is_stored() -> None:
    def f(x: Any) -> Any:
        y = x @ x
        for step in range(20):
            y = y * y - 0.01 * step
        return df.exp(y @ x) + y

    assert written(f, numbers()) == [1, 1, 1, 1]


@pytest.mark.parametrize("read", [lambda y: y, lambda y: df.transpose(y), lambda y: y[::-1]])
def test_a_recomputed_value_has_the_layout_of_each_reader(read: Any) -> None:
    """The bits of NumPy's sums and products, each rounded alike."""

    def f(x: Any, b: Any) -> Any:
        y = (x + b) * 0.5
        return df.exp(y) * y, df.reduce_sum(read(y * x)), read(y)[:3]

    x, b = numbers(3), numbers(4)[0]
    products, total, rows = df.function(f)(x, b)
    y = (x + b) * np.float32(0.5)
    np.testing.assert_array_equal(rows, read(df.constant(y))[:3])
    np.testing.assert_allclose(products, np.exp(y) * y, rtol=1e-6)
    np.testing.assert_allclose(total, read(df.constant((y * x).astype(np.float64))).numpy().sum(), rtol=1e-4)
