"""``vmap`` over tensors whose rows have sizes that are known only when the function runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualflow as df

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "shape": df.shape,
    "moments": lambda row: df.concat(df.nn.moments(row, [0]), 0),
    "scaled by a size": lambda row: row * df.cast(df.shape(row)[0], df.float32),
    "as many numbers": lambda row: row[:, 0] * df.cast(df.range(df.shape(row)[0]), df.float32),
    "zeros": lambda row: row + df.zeros(df.shape(row)),
    "flattened": lambda row: df.reshape(row, [-1]),
    "spread": df.math.reduce_std,
    "softmax": lambda row: df.nn.softmax(row, 0),
    "largest": lambda row: df.math.top_k(df.transpose(row), 2)[0],
    "gradient": lambda row: df.autodiff.grad(lambda z: df.reduce_mean(z * z))(row),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_rows_of_dynamic_sizes(name: str) -> None:
    def mapped(x: Any) -> Any:
        return df.autodiff.vmap(FUNCTIONS[name])(x)

    traced = df.function(mapped, input_signature=[df.TensorSpec([3, None, 2])])
    for size in (5, 2, 7):
        x = df.constant(np.random.default_rng(size).uniform(-2, 2, (3, size, 2)).astype(np.float32))
        np.testing.assert_allclose(traced(x), mapped(x), rtol=1e-5, atol=1e-6)


def with_first_elements(x):
    """``x`` with three more elements; the size of the loop variable grows."""
    i = df.constant(0)
    y = x
    while i < 3:
        df.autograph.experimental.set_loop_options(shape_invariants=[(y, [None])])
        y = df.concat([y, y[:1] * 2.0], 0)
        i += 1
    return y


@pytest.mark.parametrize("shape", [[4, 5], [4, None], [None, 5], [None, None]])
def test_a_loop_variable_that_grows_has_the_rows_of_each_element(shape):
    rows = np.arange(20, dtype=np.float32).reshape(4, 5)

    @df.function(input_signature=[df.TensorSpec(shape)])
    def batched(x):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = df.vectorized_map(with_first_elements, x)
            loss = df.reduce_sum(y**2)
        return y, tape.gradient(loss, x)

    grown, gradient = batched(df.constant(rows))
    np.testing.assert_array_equal(grown, [[*row, *[2 * row[0]] * 3] for row in rows])
    np.testing.assert_array_equal(gradient, rows * [26, 2, 2, 2, 2])


@pytest.mark.filterwarnings("ignore:vectorized_map computes one element after the other")
@pytest.mark.parametrize("signature", [None, [[4, 5], [4]], [[None, None], [None]]])
def test_a_loop_variable_may_grow_by_another_number_of_elements_in_each_row(signature):
    def total(row, count):
        y = row
        for _ in df.range(count):
            df.autograph.experimental.set_loop_options(shape_invariants=[(y, [None])])
            y = df.concat([y, y[:1] * 2.0], 0)
        return df.reduce_sum(y**2) / df.cast(df.size(y), df.float32)

    def batched(x, counts):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = df.vectorized_map(lambda arguments: total(*arguments), (x, counts))
            loss = df.reduce_sum(y)
        return y, tape.gradient(loss, x)

    rows, counts = np.arange(20, dtype=np.float32).reshape(4, 5), np.array([2, 0, 1, 5], np.int32)
    if signature is None:
        compiled = df.function(batched)
    else:
        specs = [
            df.TensorSpec(shape, dtype)
            for shape, dtype in zip(signature, (df.float32, df.int32), strict=True)
        ]
        compiled = df.function(batched, input_signature=specs)
    sizes = 5.0 + counts
    values = ((rows**2).sum(1) + 4 * counts * rows[:, 0] ** 2) / sizes
    weights = np.ones([4, 5]) + counts[:, None] * np.array([4.0, 0, 0, 0, 0])
    result, gradient = compiled(df.constant(rows), df.constant(counts))
    np.testing.assert_allclose(result, values, rtol=1e-6)
    np.testing.assert_allclose(gradient, 2 * rows * weights / sizes[:, None], rtol=1e-6)
