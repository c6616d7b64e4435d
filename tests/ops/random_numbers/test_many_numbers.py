"""Draws of many numbers from hidden state: made of a drawn state by kernels, eagerly and compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

import dualflow as df
from dualflow.backends.llvm.runtime import threads

pytestmark = pytest.mark.llvm  # without its kernels eager ops round log and cos as NumPy does
MANY = 40_000
DRAWS: dict[str, Callable[[], Any]] = {
    "normal": lambda: df.random.normal([MANY]),
    "an odd number of another shape": lambda: df.random.normal([3, 13_335], 1.0, 2.0),
    "normal, float64": lambda: df.random.normal([MANY], dtype=df.float64),
    "uniform": lambda: df.random.uniform([MANY + 1], -1.0, 2.0),
    "uniform, float64": lambda: df.random.uniform([MANY], dtype=df.float64),
    "uniform, bfloat16": lambda: df.cast(df.random.uniform([MANY], dtype=df.bfloat16), df.float32),
    "of a seed": lambda: df.random.uniform([MANY], seed=3),
    "dropout": lambda: df.nn.dropout(df.ones([MANY]), 0.25),
    "few, many, few": lambda: df.concat([df.random.normal([n]) for n in (3, MANY, 3)], 0),
}


def drawn(draw: Callable[[], Any]) -> list[np.ndarray]:
    """Two draws from the beginning of the streams."""
    df.random.set_seed(7)
    return [draw().numpy() for _ in range(2)]


@pytest.mark.parametrize(
    ("name", "backend"),
    [*((name, "llvm") for name in DRAWS), ("normal", "numba"), ("uniform, float64", "numba")],
)
def test_compiled_functions_draw_the_numbers_of_eager_functions(name: str, backend: str) -> None:
    eager = drawn(DRAWS[name])
    compiled = drawn(df.function(DRAWS[name], backend=backend))
    np.testing.assert_array_equal(eager, compiled)
    assert (eager[0] != eager[1]).any()


@pytest.mark.parametrize("name", ["normal", "uniform", "uniform, float64", "dropout"])
def test_the_numpy_backend_draws_the_same_numbers(name: str) -> None:
    """To the bit, but for the rounding of log and cos."""
    expected = drawn(DRAWS[name])
    df.config.set_eager_kernels("numpy")
    try:
        for result in (drawn(DRAWS[name]), drawn(df.function(DRAWS[name], backend="numpy"))):
            np.testing.assert_allclose(result, expected, rtol=1e-5 if name == "normal" else 0, atol=1e-6)
    finally:
        df.config.set_eager_kernels(None)


def test_any_number_of_threads_draws_the_same_numbers() -> None:
    before = threads.num_threads()
    f = df.function(lambda: (df.random.normal([200_000]), df.random.uniform([200_000])))
    results = []
    try:
        for count in range(1, threads.max_threads() + 1):
            threads.set_num_threads(count)
            df.random.set_seed(2)
            results.append(f())
    finally:
        threads.set_num_threads(before)
    for pair in results:
        np.testing.assert_array_equal(pair, results[0])


def test_the_numbers_are_drawn_natively() -> None:
    f = df.function(lambda x: x + df.random.normal([MANY])).get_concrete_function(df.TensorSpec([MANY]))
    assert [part.what for part in f.parts if part.kind != "native"] == ["random_words"]


def test_a_loop_draws_numbers_in_each_iteration() -> None:
    def walk(x: Any) -> Any:
        for _ in df.range(3):
            x = 0.5 * x + df.random.uniform([MANY])
        return x

    results = []
    for function in (walk, df.function(walk)):
        df.random.set_seed(5)
        results.append(function(df.zeros([MANY])).numpy())
    np.testing.assert_allclose(*results, rtol=1e-6)


def test_rows_of_a_map_have_numbers_of_their_own() -> None:
    rows = df.vectorized_map(lambda x: x + df.random.normal([MANY]), df.zeros([2, 1])).numpy()
    assert abs(np.corrcoef(rows)[0, 1]) < 0.03
    assert stats.kstest(rows[1], "norm").pvalue > 1e-3


@pytest.mark.parametrize("dtype", [df.float32, df.float64])
def test_normal_numbers_are_normal_as_far_as_there_are_any(dtype: Any) -> None:
    df.random.set_seed(11)
    x = df.random.normal([1_000_000], dtype=dtype).numpy().astype(np.float64)
    assert stats.kstest(x[:200_000], "norm").pvalue > 1e-3
    np.testing.assert_allclose([np.mean(x**k) for k in (1, 2, 3, 4)], [0, 1, 0, 3], atol=0.03)
    assert abs(np.corrcoef(x[:-1], x[1:])[0, 1]) < 0.004
    for far in (3.0, 4.0, 4.5):
        expected = stats.norm.sf(far) * len(x)
        for count in ((x > far).sum(), (x < -far).sum()):
            assert abs(count - expected) < 4 * np.sqrt(expected) + 1


@pytest.mark.parametrize("dtype", [df.float16, df.bfloat16, df.float32, df.float64])
def test_uniform_numbers_fill_the_interval_without_its_end(dtype: Any) -> None:
    df.random.set_seed(12)
    x = df.random.uniform([300_000], dtype=dtype).numpy().astype(np.float64)
    assert x.min() >= 0
    assert x.max() < 1
    if dtype.size > 2:  # others are rounded, at the ends of the bins too
        assert stats.kstest(x, "uniform").pvalue > 1e-3
    np.testing.assert_allclose([x.mean(), x.var()], [1 / 2, 1 / 12], atol=2e-3)


def test_large_stateless_draws_begin_with_the_numbers_of_small_ones() -> None:
    for dtype in (df.float32, df.float64):
        many, few = (df.random.stateless_uniform([n], (1, 2), dtype=dtype) for n in (MANY, 9))
        np.testing.assert_array_equal(many[:9], few)


def test_random_integers_are_between_dynamic_bounds() -> None:
    traced = df.function(lambda low, high: df.random.uniform([600], low, high, df.int32, seed=5))
    for low, high in ((-3, 3), (0, 6)):
        x = traced(df.constant(low), df.constant(high)).numpy()
        counts = np.bincount(x - low, minlength=6)
        assert len(counts) == 6
        assert stats.chisquare(counts).pvalue > 1e-4


def test_one_number_of_a_distribution_is_a_scalar():
    assert df.random.gamma([], 1.5).shape == ()
    assert df.random.poisson([], 1.5).dtype is df.float32
