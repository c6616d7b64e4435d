"""Gradients of functions whose signature has dynamic sizes are those of known sizes."""

from typing import Any

import numpy as np
import pytest

import dualflow as df

X = np.random.default_rng(0).normal(size=(4, 6, 3))
LENGTHS = df.constant([1.0, 2.0, 4.0], df.float64)


def in_a_loop(x):
    total = df.zeros([6, 3], df.float64)
    for row in x:
        total = total + row * row
    return total


def in_two_loops(x):
    last = df.zeros([6, 3], df.float64)
    for row in x:
        last = row * row
    for row in x:
        last = last + row * 2.0
    return last


FUNCTIONS = {
    "x[i]": lambda x: x[1] ** 2,
    "x[1:-1]": lambda x: x[1:-1, ::2] ** 2,
    "pad": lambda x: df.pad(x, [[1, 2], [0, 3], [2, 0]]) ** 2,
    "gather": lambda x: df.gather(x, [1, 1, 0]) ** 2,
    "gather of columns": lambda x: df.gather(x, [1, 1, 0], axis=1) ** 2,
    "gather_nd": lambda x: df.gather_nd(x, [[0, 1], [2, 3], [0, 1]]) ** 2,
    "sort": lambda x: df.sort(x) ** 2,
    "top_k": lambda x: df.math.top_k(x, 2)[0] ** 2,
    "max_pool": lambda x: df.nn.max_pool1d(x, 2, 1, "SAME") ** 2,
    "conv1d": lambda x: df.nn.conv1d(x, df.ones([2, 3, 5], df.float64), 1, "SAME") ** 2,
    "mean": lambda x: df.reduce_mean(x, 0) ** 2,
    "norm": lambda x: df.norm(x, ord=1, axis=(1, 2)) ** 2,
    "largest singular value": lambda x: df.norm(x, ord=2, axis=(1, 2)) ** 2,
    "a loop over rows": in_a_loop,
    "two loops over rows": in_two_loops,
}


def slope(f):
    def gradient(x):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = df.reduce_sum(f(x))
        return tape.gradient(y, x)

    return gradient


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_dynamic_batch_has_the_gradient_of_a_known_one(name):
    gradient = slope(FUNCTIONS[name])
    opened = df.function(gradient, input_signature=[df.TensorSpec([None, 6, 3], df.float64)])
    for size in (4, 3):
        x = df.constant(X[:size])
        np.testing.assert_allclose(opened(x), gradient(x), rtol=1e-12)


def test_output_gradients_are_given_for_a_target_of_unknown_size():
    @df.function
    def gradient(x, limit, weights):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = df.range(limit) * x  # a data-dependent number of elements
        return tape.gradient(y, x, weights)

    x = df.constant(2.0)
    for weights in ([1.0, 10.0, 100.0], 37.0):
        result = gradient(x, df.constant(2.5), df.constant(weights))
        assert float(result) == float(df.reduce_sum(df.constant([0.0, 1.0, 2.0]) * weights))


@pytest.mark.parametrize("times", [0, 1, 2])
def test_the_gradient_of_tile_by_any_number_of_times(times: int) -> None:
    @df.function
    def gradient(x: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch(x)
            y = df.tile(df.boolean_mask(x, x[:, 0] > 0.0), [times, 1]) ** 2
        return tape.gradient(y, x)

    result = gradient(df.constant([[1.0, 2.0], [-1.0, 3.0]]))
    np.testing.assert_array_equal(result, [[2.0 * times, 4.0 * times], [0.0, 0.0]])


def test_the_gradient_of_a_sort_after_a_loop_after_unique() -> None:
    def gradient(x: Any, n: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch(x)
            values, places = df.unique(df.cast(x, df.int32))
            v = df.gather(df.cast(values, df.float32), places) + x
            _, v = df.while_loop(lambda i, v: i < n, lambda i, v: (i + 1, df.tanh(v)), [df.constant(0), v])
            y = df.sort(v) * df.constant([1.0, 2.0, 3.0])
        return tape.gradient(y, x)

    x, n = df.constant([3.0, 1.0, 2.0]), df.constant(2)
    np.testing.assert_allclose(df.function(gradient)(x, n), gradient(x, n), rtol=1e-4)


@pytest.mark.parametrize("name", ["maximum", "multiply", "where", "clip"])
def test_the_gradient_of_a_broadcast_of_no_row_and_one_is_the_eager_one(name: str) -> None:
    of: Any = {
        "maximum": df.maximum,
        "multiply": df.multiply,
        "where": lambda x, y: df.where(x > y, x, 2.0 * y),
        "clip": lambda x, y: df.clip_by_value(x, y, y + 1.0),
    }[name]

    def gradients(x, y):
        with df.GradientTape() as tape:
            tape.watch([x, y])
            total = df.reduce_sum(df.sin(of(x, y)))
        return tape.gradient(total, [x, y])

    opened = df.function(gradients, input_signature=[df.TensorSpec([None, 3], df.float64)] * 2)
    for rows in ((0, 1), (1, 0), (0, 0), (1, 1), (1, 2), (2, 1)):
        x, y = (df.constant(X[0, :n]) for n in rows)
        for result, expected in zip(opened(x, y), gradients(x, y), strict=True):
            np.testing.assert_allclose(result, expected, rtol=1e-12)


def test_gradients_of_broadcast_rows_copy_none_where_the_call_has_some():
    def gradients(x, y):
        with df.GradientTape() as tape:
            tape.watch([x, y])
            total = df.reduce_sum((x + y) ** 2)
        return tape.gradient(total, [x, y])

    opened = df.function(gradients, input_signature=[df.TensorSpec([None, 3])] * 2)
    inputs = df.ones([3, 3]), df.ones([1, 3])
    assert "pad" not in str(opened.get_concrete_function().compiled_for(inputs).optimised)
    np.testing.assert_array_equal(opened(*inputs)[1], np.full((1, 3), 12.0))
