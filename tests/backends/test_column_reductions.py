"""Reductions over the first axes, split by chunks of rows: right for any layout and number of threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.backends.llvm.runtime import threads
from dualflow.graph.column_reductions import MIN_ELEMENTS

SHAPES = [(4100, 70), (1000, 600), (9, 37, 20, 48), (10, 70, 9, 60)]
"""Rows of one loop, narrow and wide; and of several loops, with sizes that no block divides."""


def numbers(shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    normal = np.random.default_rng(len(shape)).normal(size=shape)
    return (normal * 20).astype(dtype)


def rows(x: Any) -> tuple[int, ...]:
    return tuple(range(len(x.shape) - 1))


def inner(x: Any) -> Any:
    """A part whose rows are no neighbours of each other."""
    return x[:, 1:-1] if len(x.shape) > 2 else x[::2]


REDUCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "sum": (lambda x: df.reduce_sum(x, rows(x)), lambda x: x.astype(np.float64).sum(rows(x))),
    "largest": (lambda x: df.reduce_max(x, rows(x)), lambda x: x.max(rows(x))),
    "deviation": (lambda x: df.math.reduce_std(x, rows(x)), lambda x: x.astype(np.float64).std(rows(x))),
    "part": (lambda x: df.reduce_sum(inner(x), rows(x)), lambda x: inner(x).astype(np.float64).sum(rows(x))),
    "with a row": (
        lambda x: df.reduce_sum(x, rows(x)) - x[(0,) * len(rows(x))],
        lambda x: x.astype(np.float64).sum(rows(x)) - x[(0,) * len(rows(x))],
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_folds_are_those_of_numpy(name: str, shape: tuple[int, ...]) -> None:
    function, numpy_function = REDUCTIONS[name]
    x = numbers(shape)
    assert x.size >= MIN_ELEMENTS
    size = np.abs(x).astype(np.float64).sum(rows(x)).max()
    np.testing.assert_allclose(df.function(function)(x), numpy_function(x), rtol=1e-5, atol=1e-7 * size)


def test_of_equal_largest_elements_the_first_is_found() -> None:
    x = np.zeros((4100, 70), np.float32)
    x[5:, ::2] = 7.0
    x[4000:, 1::2] = 7.0
    result = df.function(lambda x: df.argmax(x, 0))(x)
    np.testing.assert_array_equal(result, x.argmax(0))


def test_nan_in_one_span_is_the_largest_of_its_column() -> None:
    x = numbers((4100, 70))
    x[3000, 7] = np.nan
    result = df.function(lambda x: df.reduce_max(x, 0))(x)
    np.testing.assert_array_equal(result, x.max(0))


def test_no_rows_are_a_sum_of_zeros() -> None:
    @df.function(input_signature=[df.TensorSpec((None, 70))])
    def f(x: Any) -> Any:
        return df.reduce_sum(df.boolean_mask(x, x[:, 0] > 0), 0)

    x = numbers((6000, 70))
    np.testing.assert_allclose(f(x), x[x[:, 0] > 0].astype(np.float64).sum(0), rtol=1e-4, atol=1e-2)
    np.testing.assert_array_equal(f(-abs(x)), np.zeros(70))


def test_the_bits_do_not_depend_on_threads() -> None:
    x, results = numbers((20_000, 30)), []
    before = threads.num_threads()
    for count in (1, threads.max_threads()):
        threads.set_num_threads(count)
        results.append(df.function(lambda x: df.reduce_sum(x, 0))(x).numpy())
    threads.set_num_threads(before)
    np.testing.assert_array_equal(*results)


def kernels(f: Callable[..., Any], *shapes: tuple[int, ...]) -> list[Any]:
    concrete = df.function(f).get_concrete_function(*[df.TensorSpec(s) for s in shapes])
    calls: list[Any] = list(concrete.compiled.executable.plan.calls)
    return calls


def test_readers_of_column_sums_are_another_kernel_that_recomputes_cheap_values() -> None:
    """The distance from the mean is computed by both that read it, and written by neither."""

    def normalised(x: Any) -> Any:
        mean, variance = df.nn.moments(x, [0])
        return df.nn.batch_normalization(x, mean, variance, None, None, 1e-5)

    shape = (5000, 64)
    planned = kernels(normalised, shape)
    assert [len(call.outputs) for call in planned] == [1, 2, 1]
    assert [v.spec.shape for call in planned[:-1] for v in call.node.outputs if v.spec.shape == shape] == []
    x = numbers(shape)
    expected = (x - x.mean(0, dtype=np.float64)) / np.sqrt(x.var(0, dtype=np.float64) + 1e-5)
    np.testing.assert_allclose(df.function(normalised)(x), expected, rtol=1e-4, atol=1e-5)


def test_products_that_only_a_sum_reads_are_not_written() -> None:
    """Not even where another kernel reads the same arrays."""

    def f(x: Any, y: Any) -> Any:
        far = x[:, None, :] * y[None, :, :]
        return df.reduce_sum(far, 0), df.exp(x)

    planned = kernels(f, (600, 32), (40, 32))
    sizes = [v.spec.shape.num_elements() for call in planned for v in call.node.outputs]
    assert max(size for size in sizes if size is not None) == 600 * 32
