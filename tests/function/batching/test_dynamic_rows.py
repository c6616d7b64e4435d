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
