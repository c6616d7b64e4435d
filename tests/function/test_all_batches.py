"""The trace for batches of all sizes: when it takes the place of the first trace, and what stays the same."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.function.trace_cache import TraceCache

SIZES = (5, 2, 1, 0, 3, 256, 257, 1000)


def batch(size: int) -> df.Tensor:
    return df.constant(np.random.default_rng(size).standard_normal((size, 3)).astype(np.float32))


def shapes(function: Any) -> list[tuple[int | None, ...]]:
    """The shape of the first argument of each trace that runs calls."""
    return [tuple(concrete.inputs[0].shape) for concrete in function.concrete_functions]


def softmax(x: Any) -> Any:
    return df.nn.softmax(x @ df.transpose(x)) @ x


def gradient(function: Any, x: df.Tensor) -> Any:
    with df.GradientTape() as tape:
        tape.watch(x)
        y = df.reduce_sum(function(x) ** 2)
    return tape.gradient(y, x)


def test_batches_of_all_sizes_run_the_first_trace() -> None:
    f = df.function(softmax)
    for size in SIZES:
        np.testing.assert_allclose(f(batch(size)), softmax(batch(size)), rtol=1e-4, atol=1e-6)
    assert f.experimental_get_tracing_count() == 1
    assert shapes(f) == [(None, 3)]


def test_other_axes_rank_and_dtype_are_traced_again() -> None:
    f = df.function(lambda x: x + x)
    for x in (df.ones([5, 3]), df.ones([5, 4]), df.ones([5]), df.ones([5, 3], df.float64)):
        np.testing.assert_array_equal(f(x), x + x)
    assert f.experimental_get_tracing_count() == 4


def test_the_static_trace_is_there_without_running_python_again() -> None:
    f = df.function(softmax)
    f(batch(5))
    concrete = f.get_concrete_function(df.TensorSpec([5, 3]))
    assert tuple(concrete.inputs[0].shape) == (5, 3)
    assert f.experimental_get_tracing_count() == 1
    np.testing.assert_allclose(concrete(batch(5)), softmax(batch(5)), rtol=1e-5)


def test_effects_of_python_happen_once_in_each_trace() -> None:
    read: list[Any] = []

    @df.function
    def f(x: Any) -> Any:
        read.append(x.shape)
        return x * 2.0

    f(batch(5))
    assert read == [(5, 3)]
    assert shapes(f) == [(5, 3)]


def test_warnings_are_given_once() -> None:
    @df.function
    def f(x: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch(x)
            y = df.cast(x, df.int32)
        return x if tape.gradient(y, x) is None else -x

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        f(batch(5))
        once = len(caught)
        df.function(f.python_function, sizes="exact")(batch(5))
    assert len(caught) == 2 * once > 0
    assert shapes(f) == [(None, 3)]


@pytest.mark.parametrize(
    "gains",
    [
        df.sort,
        lambda x: df.cumsum(x),
        lambda x: df.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * 2.0), (0, x)),
        lambda x: df.boolean_mask(x, x[:, 0] > 0.0),
        lambda x: x + df.random.stateless_normal([3], seed=[1, 2]),
    ],
)
def test_what_static_sizes_make_faster_is_static(gains: Any) -> None:
    f = df.function(lambda x: gains(x))
    f(batch(5))
    assert shapes(f) == [(5, 3)]


def test_a_sum_of_columns_is_static_if_the_number_of_rows_decides_how_it_is_added() -> None:
    f = df.function(lambda x: df.reduce_sum(x, axis=0))
    f(batch(100_000))
    f(df.ones([100, 3, 1]))
    assert shapes(f) == [(100_000, 3), (None, 3, 1)]


@pytest.mark.parametrize(
    "options",
    [
        {"sizes": "exact"},
        {"strict": True},
        {"memory_budget": "1MB"},
        {"first_call": "interpret"},
        {"input_signature": [df.TensorSpec([5, 3])]},
    ],
    ids=lambda options: next(iter(options)),
)
def test_options_that_need_the_sizes_keep_them(options: dict[str, Any]) -> None:
    f = df.function(softmax, **options)
    f(batch(5))
    assert shapes(f) == [(5, 3)]


def test_in_another_trace_the_sizes_are_those_of_the_caller() -> None:
    inner = df.function(softmax)
    inner(batch(5))
    outer = df.function(lambda x: inner(x), autograph=False)
    np.testing.assert_allclose(outer(batch(5)), softmax(batch(5)), rtol=1e-5)
    (concrete,) = outer.concrete_functions
    assert tuple(concrete.outputs[0].shape) == (5, 3)


def test_gradients_of_a_tape_outside_are_those_of_each_size() -> None:
    f = df.function(softmax)
    for size in SIZES[:4]:
        compiled, expected = gradient(f, batch(size)), gradient(softmax, batch(size))
        np.testing.assert_allclose(compiled, expected, rtol=1e-4, atol=1e-5)
    assert f.experimental_get_tracing_count() == 1


def test_a_size_that_python_decides_by_is_a_guard() -> None:
    f = df.function(lambda x: x / x.shape[0] if x.shape[0] > 3 else -x)
    for size in (5, 4, 1000, 3, 2, 6):
        x = batch(size)
        np.testing.assert_allclose(f(x), x / size if size > 3 else -x, rtol=1e-6)
    assert f.experimental_get_tracing_count() == 2
    assert "x.shape[0] > 3" in f.explain()


def test_shapes_that_do_not_fit_are_the_errors_of_the_op_in_the_first_and_in_later_calls() -> None:
    f = df.function(lambda x, y: x + y)
    for _ in range(2):
        with pytest.raises(
            df.errors.InvalidArgumentError, match=r"shapes \(5, 3\) and \(4, 3\) do not broadcast"
        ):
            f(batch(5), batch(4))
        np.testing.assert_array_equal(f(batch(5), batch(5)), batch(5) + batch(5))


@pytest.mark.filterwarnings("ignore:5 out of")
def test_the_cache_keeps_the_traces_that_were_used_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[TraceCache.__module__], "MAX_TRACES", 4)
    f = df.function(lambda xs, n: xs[0] * n)
    for n in range(1, 9):
        f([batch(5)], n)
        f([batch(5)], 0)
        assert f.cache_info().currsize == min(n + 1, 4)
    f([batch(3)], 0)
    assert f.experimental_get_tracing_count() == 9
