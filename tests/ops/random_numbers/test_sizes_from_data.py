"""Draws of as many numbers as data decide: one program draws the numbers of eager calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualflow as df

pytestmark = pytest.mark.llvm  # the backend that compiles sizes which depend on data
FEW = (2, 0, 1, 31, 32, 33)
LOGITS = np.log([[0.5, 0.2, 0.3], [0.1, 0.8, 0.1]]).astype(np.float32)
DRAWS: dict[str, Callable[[Any], Any]] = {
    "normal": lambda n: df.random.normal([n]),
    "normal, several axes": lambda n: df.random.normal([n, 3], dtype=df.float64),
    "uniform": lambda n: df.random.uniform([n], -1.0, 2.0),
    "uniform integers": lambda n: df.random.uniform([n, 2], 0, 100, df.int32),
    "truncated normal": lambda n: df.random.truncated_normal([n]),
    "gamma": lambda n: df.random.gamma([n], [0.5, 1.5], 2.0),
    "poisson": lambda n: df.random.poisson([n], [0.5, 1.5]),
    "categorical": lambda n: df.random.categorical(LOGITS, n),
    "categorical of rows from data": lambda n: df.random.categorical(df.zeros([n, 3]), 2),
    "shuffle": lambda n: df.random.shuffle(df.range(n)),
    "dropout": lambda n: df.nn.dropout(df.ones([n]), 0.25),
    "stateless normal": lambda n: df.random.stateless_normal([n], (1, 2)),
    "stateless categorical": lambda n: df.random.stateless_categorical(LOGITS, n, (1, 2)),
    "stateless categorical of rows from data": lambda n: df.random.stateless_categorical(
        df.zeros([n, 3]), 2, (1, 2)
    ),
    "several draws in order": lambda n: df.concat(
        [df.random.normal([n]), df.random.uniform([2]), df.random.normal([n + 1])], 0
    ),
    "as many as a mask holds": lambda n: df.random.normal(
        df.shape(df.boolean_mask(df.range(n), df.range(n) % 3 > 0))
    ),
}


def drawn(draw: Callable[[Any], Any], sizes: tuple[int, ...]) -> list[np.ndarray]:
    """A draw of each size, from the beginning of the streams."""
    df.random.set_seed(7)
    return [draw(df.constant(n)).numpy() for n in sizes]


@pytest.mark.parametrize("name", DRAWS)
def test_one_program_draws_the_numbers_of_eager_calls(name: str) -> None:
    compiled = df.function(DRAWS[name])
    for result, expected in zip(drawn(compiled, FEW), drawn(DRAWS[name], FEW), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-6, atol=1e-6, strict=True)
    assert compiled.experimental_get_tracing_count() == 1
    (trace,) = compiled.concrete_functions
    assert len(trace._specialisations) == 1
    assert "all_ops" not in compiled.status()


@pytest.mark.parametrize("name", ["normal", "uniform"])
def test_few_and_many_numbers_are_those_of_eager_calls(name: str) -> None:
    """Many are drawn in another way."""
    sizes = (40_000, 3, 40_001, 0)
    for result, expected in zip(
        drawn(df.function(DRAWS[name]), sizes), drawn(DRAWS[name], sizes), strict=True
    ):
        np.testing.assert_array_equal(result, expected, strict=True)


def test_a_loop_draws_another_number_in_each_iteration() -> None:
    def walk(n: Any) -> Any:
        total = df.zeros([2])
        for i in df.range(n):
            total = total * 0.5 + df.reduce_sum(df.random.normal([i, 2]), 0)
        return total

    for result, expected in zip(drawn(df.function(walk), FEW), drawn(walk, FEW), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("where", ["inside", "outside"])
def test_gradients_flow_to_the_parameters_of_draws(where: str) -> None:
    def sample(n: Any, mean: Any) -> Any:
        return df.random.normal([n, 2], mean, df.exp(mean)) ** 2

    def slope(function: Callable[..., Any], n: Any) -> Any:
        mean = df.constant([0.5, -0.25])
        with df.GradientTape() as tape:
            tape.watch(mean)
            loss = df.reduce_sum(function(n, mean))
        return tape.gradient(loss, mean)

    compiled = df.function(lambda n: slope(sample, n))
    if where == "outside":
        sampled = df.function(sample)
        compiled = lambda n: slope(sampled, n)  # noqa: E731
    for result, expected in zip(drawn(compiled, FEW), drawn(lambda n: slope(sample, n), FEW), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["normal", "uniform integers", "categorical"])
def test_a_negative_number_is_an_error(name: str) -> None:
    compiled = df.function(DRAWS[name])
    assert compiled(df.constant(2)).shape[0] == 2
    for _ in range(2):
        with pytest.raises(df.errors.InvalidArgumentError, match=r"negative|-1"):
            compiled(df.constant(-1))
