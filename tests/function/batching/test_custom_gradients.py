"""``vmap`` of functions with custom gradients: values and gradients of one element after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualflow as df

WEIGHTS = df.Variable([[0.5, 0.1], [0.2, 0.3]])
MATRIX = df.constant([[1.0, 2.0], [3.0, 4.0]])
X = df.constant(np.random.default_rng(0).standard_normal((5, 2)).astype(np.float32))


@df.custom_gradient
def tripled(x: Any, weights: Any) -> Any:
    def grad(g: Any) -> Any:
        of_x = 3.0 * df.linalg.matvec(weights, g, transpose_a=True) * df.cos(x)
        return of_x, 2.0 * g[:, None] * df.sin(x)[None, :]

    return df.linalg.matvec(weights, df.sin(x)), grad


@df.custom_gradient
def of_a_variable(x: Any) -> Any:
    def grad(g: Any, variables: Any = None) -> Any:
        return 3.0 * df.linalg.matvec(WEIGHTS, g, transpose_a=True), [2.0 * g[:, None] * x[None, :]]

    return df.linalg.matvec(WEIGHTS, x), grad


@df.custom_gradient
def two_results(x: Any) -> Any:
    return (df.exp(x), df.reduce_sum(x)), lambda g, h: 3.0 * g * df.exp(x) + 5.0 * h


CASES: dict[str, Callable[[Any], Any]] = {
    "a shared matrix": lambda row: tripled(row, MATRIX),
    "a matrix of each element": lambda row: tripled(row, row[:, None] * MATRIX),
    "a variable": of_a_variable,
    "several results": lambda row: two_results(row)[0] * two_results(row)[1],
    "in a loop": lambda row: df.while_loop(
        lambda i, y: i < 3, lambda i, y: (i + 1, tripled(y, MATRIX)), (df.constant(0), row)
    )[1],
    "in a branch": lambda row: df.cond(row[0] > 0.0, lambda: tripled(row, MATRIX), lambda: row * 2.0),
    "a map inside": lambda row: df.autodiff.vmap(lambda a: tripled(df.stack([a, a]), MATRIX))(row),
}


def gradients(function: Callable[[Any], Any], x: Any) -> list[Any]:
    """The values, the gradients, and the second derivatives by the input."""
    sources = [x, MATRIX, WEIGHTS]
    with df.GradientTape() as outer:
        outer.watch(x)
        with df.GradientTape() as tape:
            tape.watch([x, MATRIX])
            y = function(x)
            loss = df.reduce_sum(df.sin(y))
        first = tape.gradient(loss, sources, unconnected_gradients="zero")
    return [y, *first, outer.gradient(first[0], x, unconnected_gradients="zero")]


@pytest.mark.parametrize("way", ["eager", "compiled", "dynamic", "under a tape"])
@pytest.mark.parametrize("name", CASES)
def test_a_batch_has_the_gradients_of_its_elements(name: str, way: str) -> None:
    def batched(x: Any) -> Any:
        return df.autodiff.vmap(CASES[name])(x)

    signature = [df.TensorSpec([None, 2])]
    calls = {
        "eager": lambda x: gradients(batched, x),
        "compiled": df.function(lambda x: gradients(batched, x)),
        "dynamic": df.function(lambda x: gradients(batched, x), input_signature=signature),
        "under a tape": lambda x: gradients(df.function(batched, input_signature=signature), x),
    }
    expected = gradients(lambda x: df.stack([CASES[name](row) for row in df.unstack(x)]), X)
    for result, of_elements in zip(calls[way](X), expected, strict=True):
        np.testing.assert_allclose(result, of_elements, rtol=1e-4, atol=1e-5)


def test_a_batch_jacobian_goes_through_the_custom_gradient() -> None:
    with df.GradientTape() as tape:
        tape.watch(X)
        y = df.autodiff.vmap(lambda row: tripled(row, MATRIX))(X)
    expected = [3.0 * MATRIX.numpy() * np.cos(row)[None, :] for row in X.numpy()]
    np.testing.assert_allclose(tape.batch_jacobian(y, X), expected, rtol=1e-5)


def test_the_values_of_a_batch_are_computed_at_once() -> None:
    compiled = df.function(lambda x: df.autodiff.vmap(lambda row: tripled(row, MATRIX))(x))
    compiled(X)
    (concrete,) = compiled.concrete_functions
    assert sum(n.op.name == "custom_gradient" for n in concrete.graph.nodes) == 1
    assert not any(n.op.name == "loop" for n in concrete.graph.nodes)
