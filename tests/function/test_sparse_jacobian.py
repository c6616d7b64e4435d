"""``df.autodiff.sparse_jacobian``: the elements of the dense jacobian, in few passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest
import scipy.sparse
from error_cases import ErrorCases

import dualflow as df
from dualflow.function.dependence_pattern import pattern_of
from dualflow.function.sparse_jacobian import _coloured

sparse_jacobian = df.autodiff.sparse_jacobian
MATRIX = np.diag(np.arange(1.0, 7.0)) + np.diag(np.ones(4), 2)


def heat(u: Any) -> Any:
    """One row of neighbours."""
    inside = u[2:] - 2.0 * u[1:-1] ** 2 + u[:-2]
    return df.concat([u[:1], inside, u[-1:] * u[-2:-1]], 0)


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "elements": lambda x: df.sin(x) * x,
    "neighbours": heat,
    "sums of rows": lambda x: df.reduce_sum(df.reshape(x, [2, 3]) ** 2, 1),
    "sums of columns": lambda x: df.reduce_max(df.reshape(x, [2, 3]) ** 2, 0, keepdims=True),
    "broadcast": lambda x: df.reshape(x, [2, 3]) * x[:3] + x[0],
    "turned": lambda x: df.transpose(df.reshape(df.exp(x), [2, 3])),
    "picked": lambda x: df.gather(x * x, [3, 3, 0, 5]),
    "padded": lambda x: df.pad(x * x, [[2, 1]], constant_values=3.0),
    "chosen": lambda x: df.where(x > 0.0, x * x, df.reverse(x, [0])),
    "a product with a known matrix": lambda x: df.constant(MATRIX, df.float32) @ df.reshape(x**2, [6, 1]),
    "a constant matrix after": lambda x: df.reshape(x**2, [1, 6]) @ df.constant(MATRIX, df.float32),
    "products": lambda x: df.reshape(x, [2, 3]) @ df.reshape(x, [3, 2]),
    "a product turned": lambda x: df.matmul(df.reshape(x, [2, 3]), df.reshape(x, [2, 3]), transpose_b=True),
    "through a library": lambda x: df.sort(x) * x,
    "a scalar": lambda x: df.reduce_sum(x[1:3] ** 2),
    "nothing": lambda x: df.ones([2]) * df.cast(x[0] > 0.0, df.float32),
}


@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS)
def test_it_is_the_dense_jacobian(f: Callable[[Any], Any]) -> None:
    x = df.constant([0.5, -1.5, 2.0, 0.25, -0.75, 1.25])
    dense = df.autodiff.jacobian(f)(x).numpy()
    result = sparse_jacobian(f)(x)
    assert tuple(result.shape) == dense.shape
    np.testing.assert_allclose(df.sparse.to_dense(result).numpy(), dense, rtol=1e-6, atol=1e-6)


def of(f: Callable[[Any], Any], size: int) -> Any:
    return pattern_of(df.function(f).get_concrete_function(df.TensorSpec([size])).graph)


@pytest.mark.parametrize(
    ("name", "elements"),
    [("elements", 6), ("neighbours", 15), ("sums of rows", 6), ("picked", 4), ("padded", 6), ("turned", 6)],
)
def test_patterns_have_no_more_than_there_is(name: str, elements: int) -> None:
    assert of(FUNCTIONS[name], 6).nnz == elements


def test_a_known_matrix_lends_its_zeros() -> None:
    assert of(FUNCTIONS["a product with a known matrix"], 6).nnz == np.count_nonzero(MATRIX)


@pytest.mark.parametrize("size", [5, 50, 500])
def test_a_tridiagonal_jacobian_takes_three_passes(size: int) -> None:
    assert _coloured(of(heat, size)).passes == 3


def test_columns_of_one_colour_have_no_common_row() -> None:
    bits = scipy.sparse.random_array((40, 30), density=0.08, rng=np.random.default_rng(0), format="csr")
    result = _coloured(bits != 0)
    sides = (bits if result.by_columns else bits.T).toarray() != 0
    for colour in range(result.passes):
        assert sides[:, result.colours == colour].sum(axis=1).max() <= 1


def test_few_rows_that_are_full_are_taken_in_reverse() -> None:
    f = sparse_jacobian(lambda x: df.stack([df.reduce_sum(x**2), df.reduce_sum(df.sin(x))]))
    x = df.constant(np.linspace(-1, 1, 20).astype(np.float32))
    expected = np.stack([2 * x.numpy(), np.cos(x.numpy())])
    np.testing.assert_allclose(df.sparse.to_dense(f(x)).numpy(), expected, rtol=1e-5)


def test_a_pattern_may_be_given() -> None:
    x = df.constant([1.0, 2.0, 3.0])
    for pattern in (
        np.eye(3),
        scipy.sparse.eye_array(3),
        df.SparseTensor([[0, 0], [1, 1], [2, 2]], [1.0] * 3, [3, 3]),
    ):
        result = sparse_jacobian(lambda x: df.cumsum(x) * 0.0 + x**2, pattern)(x)
        assert result.indices.numpy().tolist() == [[0, 0], [1, 1], [2, 2]]
        assert result.values.numpy().tolist() == [2.0, 4.0, 6.0]


def test_it_compiles_takes_other_arguments_and_is_differentiated() -> None:
    def f(x: Any, a: Any) -> Any:
        return a * x[1:] ** 2 * x[:-1]

    @df.function
    def trace(x: Any, a: Any) -> Any:
        return df.reduce_sum(sparse_jacobian(f)(x, a).values)

    x, a = df.constant([1.0, 2.0, 3.0]), df.constant(2.0)
    # the sum of 2 a x1 x0 + a x1^2 + 2 a x2 x1 + a x2^2
    assert trace(x, a).numpy() == 58.0
    with df.GradientTape() as tape:
        tape.watch(a)
        total = trace(x, a)
    assert tape.gradient(total, a).numpy() == 29.0


CASES = {
    "sizes that are not known": (
        lambda: df.function(sparse_jacobian(df.sin)).get_concrete_function(df.TensorSpec([None])),
        "static shape",
    ),
    "a result of unknown size": (
        lambda: sparse_jacobian(lambda x: df.boolean_mask(x, x > 0.0), np.eye(2))(df.ones([2])),
        "result of static shape",
    ),
    "sizes that data decide": (
        lambda: sparse_jacobian(lambda x: df.reduce_sum(df.boolean_mask(x, x > 0.0)))(df.ones([2])),
        "pass a pattern to sparse_jacobian",
    ),
    "a pattern of another size": (
        lambda: sparse_jacobian(df.sin, np.eye(3))(df.ones([2])),
        r"shape \(2, 2\), not \(3, 3\)",
    ),
    "a pattern that is no matrix": (
        lambda: sparse_jacobian(df.sin, [1, 0])(df.ones([2])),
        "is a matrix",
    ),
}


class TestErrorMessages(ErrorCases):
    cases: ClassVar = {
        name: (call, df.errors.InvalidArgumentError, what) for name, (call, what) in CASES.items()
    }
    raised_in = ("function/sparse_jacobian.py", "function/dependence_pattern.py")
