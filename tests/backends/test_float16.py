"""float16 in compiled functions: computed in float32, rounded once by each op, in machine code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualflow as df

HALVES = np.arange(2**16, dtype=np.uint16).view(np.float16)
OTHERS = np.random.default_rng(0).permutation(HALVES)
SHUFFLED = np.random.default_rng(1).permutation(HALVES)


def compiled(function: Callable[..., Any], *arrays: Any) -> Any:
    return df.function(function)(*map(df.constant, arrays))


def rounded(x: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return x.astype(np.float16)


def test_each_op_of_all_halves_is_the_exact_result_rounded_once() -> None:
    def ops(x: Any, y: Any) -> Any:
        return x + y, x - y, x * y, x / y, df.sqrt(x), -x, df.abs(x), df.square(x), df.maximum(x, y)

    x, y = HALVES.astype(np.float64), OTHERS.astype(np.float64)
    with np.errstate(all="ignore"):
        exact = [x + y, x - y, x * y, x / y, np.sqrt(x), -x, np.abs(x), x * x, np.maximum(x, y)]
    for result, expected in zip(compiled(ops, HALVES, OTHERS), exact, strict=True):
        np.testing.assert_array_equal(result.numpy(), rounded(expected), strict=True)


def test_comparisons_and_choices_of_all_halves() -> None:
    def ops(x: Any, y: Any) -> Any:
        return x < y, x >= y, df.equal(x, y), df.math.isnan(x), df.where(x > y, x, y)

    with np.errstate(all="ignore"):
        larger = np.where(HALVES > OTHERS, HALVES, OTHERS)
        desired = [HALVES < OTHERS, HALVES >= OTHERS, HALVES == OTHERS, np.isnan(HALVES), larger]
    for actual, expected in zip(compiled(ops, HALVES, OTHERS), desired, strict=True):
        np.testing.assert_array_equal(actual.numpy(), expected, strict=True)


def test_neighbours_of_all_halves() -> None:
    result = compiled(df.math.nextafter, HALVES, OTHERS).numpy()
    np.testing.assert_array_equal(result, np.nextafter(HALVES, OTHERS), strict=True)


def test_ops_in_one_loop_round_as_ops_one_by_one() -> None:
    def chain(x: Any, y: Any, z: Any) -> Any:
        return ((x * y + z) * 0.1 - x) / y

    with np.errstate(all="ignore"):
        expected = ((HALVES * OTHERS + SHUFFLED) * np.float16(0.1) - HALVES) / OTHERS
    result = compiled(chain, HALVES, OTHERS, SHUFFLED)
    np.testing.assert_array_equal(result.numpy(), expected, strict=True)


@pytest.mark.llvm
def test_elements_sums_and_products_are_machine_code() -> None:
    f = df.function(lambda x: df.reduce_sum(df.exp(x @ x) * 0.5, 0) + df.gather(x, [1])[0])
    parts = f.get_concrete_function(df.TensorSpec([4, 4], df.float16)).parts
    assert {part.kind for part in parts} == {"native"}


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1,), (5, 37)])
def test_any_shape_and_layout(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(2).uniform(-4, 4, shape).astype(np.float16)
    for array in (x, x.T, x[..., ::-2] if shape else x):
        result, highest = compiled(
            lambda x: (x * x + x, df.reduce_min(x) if x.shape.num_elements() else x), array
        )
        np.testing.assert_array_equal(result.numpy(), array * array + array, strict=True)
        np.testing.assert_array_equal(highest.numpy(), array.min() if array.size else array)


def test_products_of_elements_pass_what_float16_holds(mode: Any) -> None:
    x = df.constant(np.array([[60000, 2, 0.25], [1e-7, 0.5, 4]], np.float16))
    expected = rounded(x.numpy().astype(np.float64).prod(1))
    result = mode(lambda x: df.reduce_prod(x, 1))(x)
    np.testing.assert_array_equal(result.numpy(), expected, strict=True)


def test_matrix_products_are_rounded_once() -> None:
    a, b = np.random.default_rng(3).integers(-8, 9, (2, 3, 40, 40)).astype(np.float16) / 8
    result = compiled(lambda a, b: df.matmul(a, b, transpose_b=True), a, b)
    exact = a.astype(np.float64) @ b.astype(np.float64).swapaxes(1, 2)
    np.testing.assert_array_equal(result.numpy(), rounded(exact), strict=True)


def test_rows_are_added_in_order() -> None:
    rows = np.random.default_rng(4).uniform(-1, 1, (300, 5)).astype(np.float16)
    where = np.random.default_rng(5).integers(0, 4, 300)
    expected = np.zeros((4, 5), np.float16)
    np.add.at(expected, where, rows)
    indices = df.constant(where[:, None])
    result = compiled(
        lambda rows: df.tensor_scatter_nd_add(df.zeros([4, 5], df.float16), indices, rows), rows
    )
    np.testing.assert_array_equal(result.numpy(), expected, strict=True)


def test_loops_carry_halves() -> None:
    @df.function
    def iterations(x: Any, n: Any) -> Any:
        return df.while_loop(lambda i, x: i < n, lambda i, x: (i + 1, x * 0.9 + 0.1), (0, x))[1]

    for x in (np.float16(3), np.linspace(-5, 5, 40, dtype=np.float16)):
        expected = x
        for _ in range(10):
            expected = expected * np.float16(0.9) + np.float16(0.1)
        np.testing.assert_array_equal(
            iterations(df.constant(x), df.constant(10)).numpy(), expected, strict=True
        )


def test_weights_are_cast_before_a_loop_and_not_in_it() -> None:
    @df.function
    def iterations(x: Any, w: Any) -> Any:
        return df.while_loop(lambda i, x: i < 9, lambda i, x: (i + 1, df.tanh(x @ w)), (0, x))[1]

    inputs = df.ones([2, 3], df.float16), df.ones([3, 3], df.float16)
    (loop,) = [
        n for n in iterations.get_concrete_function(*inputs).optimised_graph.nodes if "loop" in n.attrs
    ]
    assert [v.spec.dtype for v in loop.inputs if v.spec.shape == [3, 3]] == [df.float32]


def test_gradients_are_those_of_the_eager_tape() -> None:
    def gradient(x: Any, y: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch([x, y])
            loss = df.reduce_sum((x * y + x) * df.maximum(x, y))
        return tape.gradient(loss, [x, y])

    x, y = (df.constant(np.random.default_rng(s).uniform(-1, 1, 300).astype(np.float16)) for s in (6, 7))
    for result, expected in zip(df.function(gradient)(x, y), gradient(x, y), strict=True):
        np.testing.assert_array_equal(result.numpy(), expected.numpy(), strict=True)
