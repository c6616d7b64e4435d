"""Sums over any axes are about as exact as floats allow, however many elements they have, in both modes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dualflow as df
from dualflow.backends.llvm.runtime import threads
from dualflow.ops.summation import total

Array = np.ndarray
MODES: dict[str, Callable[[Any], Any]] = {"eager": lambda f: f, "compiled": df.function}
EPS = float(np.finfo(np.float32).eps)
MAX_ELEMENTS = 1_000_000
SIZES = [1, 2, 3, 7, 64, 300, 1000, 5000, 70_000, MAX_ELEMENTS]

modes = pytest.mark.parametrize("mode", MODES)  # no fixture, which Hypothesis refuses


@st.composite
def shapes(draw: st.DrawFn) -> tuple[int, ...]:
    """Up to four sizes, small and large, whose product is up to ``MAX_ELEMENTS``."""
    sizes: list[int] = []
    for size in draw(st.lists(st.sampled_from(SIZES), max_size=4)):
        sizes.append(min(size, MAX_ELEMENTS // math.prod(sizes)))
    return tuple(draw(st.permutations(sizes)))


def bound(x: Array, axis: tuple[int, ...]) -> Any:
    """Four units of the last place of the sum of absolutes, for each doubling of the number of elements."""
    count = math.prod(x.shape[a] for a in axis)
    return 4 * (1 + math.log2(max(count, 1))) * EPS * np.abs(x.astype(np.float64)).sum(axis)


@given(
    shapes(),
    st.sets(st.integers(0, 3), min_size=1),
    st.sampled_from([(0, 1), (1e4, 1), (0.1, 0), (-3e6, 1)]),
    st.sampled_from(["as it is", "reversed axes", "every other"]),
    st.integers(0, 100),
)
@settings(deadline=None, max_examples=20)
@modes
def test_errors_hardly_grow_with_the_number_of_elements(
    mode: str,
    shape: tuple[int, ...],
    axes: set[int],
    values: tuple[float, float],
    layout: str,
    seed: int,
) -> None:
    offset, width = values
    x = (np.random.default_rng(seed).standard_normal(shape) * width + offset).astype(np.float32)
    x = {"as it is": x, "reversed axes": x.T, "every other": x[..., ::2] if x.ndim else x}[layout]
    axis = tuple(sorted(a for a in axes if a < x.ndim))
    result = MODES[mode](lambda t: df.reduce_sum(t, axis))(df.constant(x))
    assert result.dtype is df.float32
    assert np.all(np.abs(result.numpy() - x.astype(np.float64).sum(axis)) <= bound(x, axis))


@given(shapes(), st.sets(st.integers(0, 3), min_size=1), st.booleans())
@settings(deadline=None, max_examples=12)
@modes
def test_float16_is_rounded_once(mode: str, shape: tuple[int, ...], axes: set[int], keepdims: bool) -> None:
    axis = tuple(sorted(a for a in axes if a < len(shape)))
    x = np.random.default_rng(1).uniform(0, 60_000 / max(math.prod(shape), 1), shape).astype(np.float16)
    result = MODES[mode](lambda t: df.reduce_sum(t, axis, keepdims))(df.constant(x)).numpy()
    expected = x.astype(np.float64).sum(axis, keepdims=keepdims)
    near = np.spacing(np.abs(expected).astype(np.float16)).astype(np.float64) * 0.5
    assert result.dtype == np.float16
    assert result.shape == expected.shape
    assert np.all(np.abs(result - expected) <= near + bound(x, axis).reshape(expected.shape))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64])
def test_the_variance_of_columns_far_from_zero(mode: Any, dtype: type) -> None:
    x = np.random.default_rng(0).normal(1e4, 1, (100_000, 64)).astype(dtype)
    variance = mode(lambda t: df.reduce_variance(t, 0))(df.constant(x)).numpy()
    np.testing.assert_allclose(variance, x.astype(np.complex128).var(0), rtol=1e-3)


def test_the_mean_of_few_long_columns(mode: Any) -> None:
    x = np.random.default_rng(0).uniform(0, 1, (1_000_000, 3)).astype(np.float32)
    mean = mode(lambda t: df.reduce_mean(t, 0))(df.constant(x)).numpy()
    np.testing.assert_allclose(mean, x.astype(np.float64).mean(0), rtol=1e-6)


def test_means_of_more_float16_than_it_can_count(mode: Any) -> None:
    x = df.constant(np.full((100_000, 2), 3, np.float16))
    for function, expected in ((df.reduce_mean, 3.0), (df.reduce_variance, 0.0)):
        result = mode(lambda t, function=function: function(t, 0))(x).numpy()
        np.testing.assert_array_equal(result, np.full(2, expected, np.float16), strict=True)
    mean, variance = mode(lambda t: df.nn.moments(t, [0]))(x)
    assert mean.dtype is variance.dtype is df.float16
    assert (mean.numpy().tolist(), variance.numpy().tolist()) == ([3.0, 3.0], [0.0, 0.0])


def test_the_gradient_of_a_bias_over_a_long_batch(mode: Any) -> None:
    x = np.random.default_rng(0).normal(1e4, 1, (200_000, 5)).astype(np.float32)

    def gradient(x: Any, bias: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch(bias)
            loss = df.reduce_sum((x + bias) * x)
        return tape.gradient(loss, bias)

    result = mode(gradient)(df.constant(x), df.zeros([5])).numpy()
    np.testing.assert_allclose(result, x.astype(np.float64).sum(0), rtol=1e-6)


def test_a_softmax_over_a_long_leading_axis_sums_to_one(mode: Any) -> None:
    x = np.random.default_rng(0).normal(0, 0.1, (300_000, 4)).astype(np.float32)
    result = mode(lambda t: df.nn.softmax(t, 0))(df.constant(x)).numpy()
    np.testing.assert_allclose(result.astype(np.float64).sum(0), 1, rtol=2e-6)


@pytest.mark.parametrize(
    ("shape", "axis"), [((200_000, 40), 0), ((300, 4000, 3), (0, 1)), ((40, 50_000), 1), ((700_000,), 0)]
)
def test_the_bits_do_not_depend_on_threads(shape: tuple[int, ...], axis: Any) -> None:
    x = df.constant(np.random.default_rng(0).normal(1e3, 1, shape).astype(np.float32))
    compiled = df.function(lambda t: df.reduce_sum(t, axis))
    before = threads.num_threads()
    results = []
    for count in (1, threads.max_threads()):
        threads.set_num_threads(count)
        results.append(compiled(x).numpy())
    threads.set_num_threads(before)
    np.testing.assert_array_equal(*results)


def test_infinities_and_nan_pass_through_blocks(mode: Any) -> None:
    x = np.ones((5000, 4), np.float32)
    x[4000, 1], x[10, 2], x[3000, 2], x[77, 3] = np.inf, np.inf, -np.inf, np.nan
    result = mode(lambda t: df.reduce_sum(t, 0))(df.constant(x)).numpy()
    np.testing.assert_array_equal(result, [5000, np.inf, np.nan, np.nan])


@given(
    st.lists(st.sampled_from([0, 1, 2, 5, 300, 2000]), max_size=4).filter(lambda s: math.prod(s) <= 100_000),
    st.sets(st.integers(0, 3)),
    st.booleans(),
    st.sampled_from([np.float32, np.complex64, np.int8, np.uint64]),
)
@settings(deadline=None)
def test_shape_and_dtype_are_those_of_numpys_sum(
    shape: list[int], axes: set[int], keepdims: bool, dtype: type
) -> None:
    x = np.ones(shape, dtype).T
    axis = tuple(sorted(a for a in axes if a < x.ndim))
    result, expected = total(x, axis, keepdims), np.add.reduce(x, axis, dtype, None, keepdims)
    np.testing.assert_array_equal(result, expected, strict=True)


@pytest.mark.parametrize("shape", [(0, 5, 400), (400, 5, 0), (0, 0, 0)])
def test_an_axis_of_no_elements_next_to_a_long_one(mode: Any, shape: tuple[int, ...]) -> None:
    result = mode(lambda t: df.reduce_sum(t, (0, 2)))(df.zeros(shape)).numpy()
    np.testing.assert_array_equal(result, np.zeros(shape[1], np.float32), strict=True)
