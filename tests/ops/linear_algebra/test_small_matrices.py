"""Inverses, solutions, determinants and factors of small matrices are computed in kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.core.errors import InvalidArgumentError
from dualflow.ops.linear_algebra.small_matrices import MAX_SIZE

L = df.linalg
Operation = Callable[..., Any]


def matrix(size: int, dtype: str, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=(size, size)).astype(dtype)


def positive(size: int, dtype: str) -> Any:
    x = matrix(size, dtype)
    return x @ x.T + np.eye(size, dtype=dtype)


def assert_close(result: Any, expected: Any) -> None:
    """Both are as precise as their dtype allows for these matrices."""
    assert result.dtype == expected.dtype
    scale = np.abs(expected).max(initial=0.0)
    np.testing.assert_allclose(result, expected, rtol=0, atol=200 * np.finfo(expected.dtype).eps * scale)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", range(1, MAX_SIZE + 1))
def test_results_are_those_of_lapack(size: int, dtype: str) -> None:
    a, b = matrix(size, dtype), matrix(size, dtype, 1)[:, :2]

    @df.function
    def compiled(a: Any, b: Any, p: Any) -> Any:
        return L.inv(a), L.solve(a, b), L.det(a), L.cholesky(p)

    results = compiled(a, b, positive(size, dtype))
    assert "LAPACK" not in compiled.status()
    expected = L.inv(a), L.solve(a, b), L.det(a), L.cholesky(positive(size, dtype))
    for result, value in zip(results, expected, strict=True):
        assert_close(result.numpy(), value.numpy())


@pytest.mark.parametrize(
    "rows",
    [
        [[0.0, 1.0], [1.0, 0.0]],
        [[0.0, 0.0, 2.0], [0.0, 3.0, 0.0], [4.0, 0.0, 0.0]],
        [[1e-20, 1.0], [1.0, 1.0]],
        [[0.0, 2.0, 1.0], [1.0, 1.0, 0.0], [-3.0, 0.5, 1.0]],
    ],
)
def test_rows_are_exchanged_for_the_largest_pivot(rows: Any) -> None:
    x = df.constant(rows, df.float64)
    for function in (L.inv, L.det):
        assert_close(df.function(function)(x).numpy(), function(x).numpy())


@pytest.mark.parametrize("size", range(1, MAX_SIZE + 1))
def test_the_determinant_of_a_singular_matrix_is_zero(size: int) -> None:
    assert float(df.function(L.det)(df.zeros([size, size]))) == 0.0


@pytest.mark.parametrize(
    ("function", "x"),
    [
        (L.inv, [[1.0, 2.0], [2.0, 4.0]]),
        (lambda x: L.solve(x, x), [[0.0, 0.0], [0.0, 1.0]]),
        (L.cholesky, [[1.0, 2.0], [2.0, 1.0]]),
    ],
)
def test_unfit_matrices_raise_the_error_of_eager_code(function: Operation, x: Any) -> None:
    with pytest.raises(InvalidArgumentError) as eager:
        function(df.constant(x))
    with pytest.raises(InvalidArgumentError) as compiled:
        df.function(function)(df.constant(x))
    message = str(eager.value).split(": ", 1)[1].splitlines()[0]
    assert message in str(compiled.value)


def test_the_upper_triangle_of_a_factored_matrix_is_not_read() -> None:
    lower = df.constant([[4.0, float("nan")], [2.0, 10.0]])
    assert df.function(L.cholesky)(lower).numpy().tolist() == [[2.0, 0.0], [1.0, 3.0]]


def test_nan_is_no_error() -> None:
    x = df.fill([2, 2], float("nan"))
    for function in (L.inv, L.det, L.cholesky):
        result = df.function(function)(x).numpy()
        assert np.array_equal(np.isnan(result), np.isnan(function(x).numpy()))


def test_a_loop_of_small_matrices_is_compiled() -> None:
    @df.function
    def filtered(p: Any) -> Any:
        for _ in range(50):
            p = L.inv(p @ df.transpose(p) + df.eye(2, dtype=df.float64)) + L.det(p) * 0.1
        return p

    p = df.constant(matrix(2, "float64"))
    assert_close(filtered(p).numpy(), filtered.python_function(p).numpy())
    assert "numpy:" not in filtered.status()


def test_gradients_are_computed_in_kernels() -> None:
    @df.function
    def gradient(x: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch(x)
            y = df.reduce_sum(L.inv(x)) + df.math.log(L.det(x))
        return tape.gradient(y, x)

    x = df.constant(positive(3, "float64"))
    assert_close(gradient(x).numpy(), gradient.python_function(x).numpy())
    assert "LAPACK" not in gradient.status()


def test_larger_matrices_are_left_to_lapack() -> None:
    function = df.function(L.inv)
    function(df.eye(MAX_SIZE + 1))
    assert "LAPACK inverts matrices" in function.status()


@pytest.mark.parametrize("function", [L.inv, L.cholesky])
def test_what_follows_a_matrix_that_does_not_fit_assigns_nothing(function: Operation) -> None:
    v = df.Variable(1.0)

    @df.function
    def f(x: Any) -> Any:
        y = function(x)
        v.assign(2.0)
        return y

    with pytest.raises(InvalidArgumentError):
        f(df.zeros([2, 2]))
    assert float(v) == 1.0
    f(df.eye(2))
    assert float(v) == 2.0
