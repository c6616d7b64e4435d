"""Solvers, decompositions and functions of matrices are NumPy's and SciPy's: batched, of every dtype."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from op_cases import check_each

import dualflow as df
from dualflow.core.tree import leaves
from dualflow.graph.options import CompileOptions
from dualflow.graph.passes.pipeline import optimise

L = df.linalg
DTYPES = ("float32", "float64", "complex64", "complex128")
BATCHES = ((), (2,), (2, 3), (0,))


def drawn(dtype: str, *shape: int, seed: int = 0) -> Any:
    """Numbers around 0, with an imaginary part where the dtype has one."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if dtype.startswith("complex") else x).astype(dtype)


def square(dtype: str, batch: tuple[int, ...], size: int = 4) -> Any:
    """Matrices that are well-conditioned, and whose eigenvalues differ."""
    return drawn(dtype, *batch, size, size) + np.diag(np.arange(4, 4 + 2 * size, 2)).astype(dtype)


def adjoint(x: Any) -> Any:
    return np.conj(np.swapaxes(x, -1, -2))


def positive(dtype: str, batch: tuple[int, ...]) -> Any:
    x = square(dtype, batch)
    return x @ adjoint(x)


def each(function: Callable[[Any], Any], x: Any) -> Any:
    """A function of one matrix, of a batch of them."""
    flat = [function(m) for m in x.reshape(-1, *x.shape[-2:])]
    return np.reshape(flat, x.shape).astype(x.dtype)


def close(result: Any, expected: Any, dtype: str) -> None:
    """Equal shapes and dtypes, and values within the rounding of a few hundred operations."""
    result, expected = np.asarray(result), np.asarray(expected)
    assert result.shape == expected.shape
    assert result.dtype == expected.dtype
    scale = np.abs(expected).max(initial=1e-30)
    np.testing.assert_allclose(result / scale, expected / scale, rtol=0, atol=500 * np.finfo(dtype).eps)


FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], Callable[..., Any]]] = {
    "adjoint": (L.adjoint, adjoint, square),
    "cholesky": (L.cholesky, np.linalg.cholesky, positive),
    "det": (L.det, np.linalg.det, square),
    "eigvalsh": (L.eigvalsh, lambda x: np.linalg.eigvalsh(x).astype(x.dtype), positive),
    "expm": (lambda x: L.expm(x / 8), lambda x: scipy.linalg.expm(x / 8), square),
    "inv": (L.inv, np.linalg.inv, square),
    "inv of the adjoint": (lambda x: L.inv(x, adjoint=True), lambda x: np.linalg.inv(adjoint(x)), square),
    "logdet": (L.logdet, lambda x: np.linalg.slogdet(x)[1], positive),
    "lu_reconstruct": (lambda x: L.lu_reconstruct(*L.lu(x)), lambda x: x, square),
    "lu_matrix_inverse": (lambda x: L.lu_matrix_inverse(*L.lu(x)), np.linalg.inv, square),
    "pinv": (lambda x: L.pinv(x[..., :2]), lambda x: np.linalg.pinv(x[..., :2]), square),
    "matrix_rank": (L.matrix_rank, lambda x: np.full(x.shape[:-2], 4, np.int32), square),
    "slogdet, the sign": (lambda x: L.slogdet(x).sign, lambda x: np.linalg.slogdet(x)[0], square),
    "slogdet, the logarithm": (
        lambda x: L.slogdet(x).log_abs_determinant,
        lambda x: np.linalg.slogdet(x)[1].astype(x.dtype),
        square,
    ),
    "sqrtm": (L.sqrtm, lambda x: each(scipy.linalg.sqrtm, x), positive),
    "singular values": (
        lambda x: L.svd(x, compute_uv=False),
        lambda x: np.linalg.svd(x, compute_uv=False),
        square,
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_matrices(mode: Any, name: str) -> None:
    function, reference, make = FUNCTIONS[name]

    def check(case: tuple[str, tuple[int, ...]]) -> None:
        dtype, batch = case
        x = make(dtype, batch)
        close(mode(function)(df.constant(x)), reference(x), dtype)

    check_each(itertools.product(DTYPES, BATCHES), check)


@pytest.mark.parametrize("batch", BATCHES, ids=str)
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_the_logarithm_is_the_reverse_of_the_exponential(
    mode: Any, dtype: str, batch: tuple[int, ...]
) -> None:
    x = square(dtype, batch) / 8
    close(mode(lambda x: L.logm(L.expm(x)))(df.constant(x)), x, dtype)


# decompositions, whose parts make the matrix


def of_svd(x: Any, full: bool) -> Any:
    s, u, v = L.svd(x, full_matrices=full)
    rank = s.shape[-1]
    left = u[..., :rank] * df.cast(s[..., None, :], u.dtype)
    return df.matmul(left, v[..., :rank], adjoint_b=True), u, v


DECOMPOSITIONS: dict[str, Callable[[Any], Any]] = {
    "qr": lambda x: (df.matmul(*L.qr(x)), L.qr(x).q),
    "qr, full": lambda x: (df.matmul(*L.qr(x, full_matrices=True)), L.qr(x, full_matrices=True).q),
    "svd": lambda x: of_svd(x, full=False),
    "svd, full": lambda x: of_svd(x, full=True),
}


@pytest.mark.parametrize("name", DECOMPOSITIONS)
def test_the_parts_make_the_matrix_and_have_orthonormal_columns(mode: Any, name: str) -> None:
    def check(case: tuple[str, tuple[int, ...]]) -> None:
        dtype, shape = case
        x = drawn(dtype, *shape)
        product, *bases = mode(DECOMPOSITIONS[name])(df.constant(x))
        close(product, x, dtype)
        for basis in bases:
            columns = np.asarray(basis)
            identity = np.broadcast_to(
                np.eye(columns.shape[-1], dtype=dtype), (*shape[:-2], *[columns.shape[-1]] * 2)
            )
            close(adjoint(columns) @ columns, identity, dtype)
            if "full" in name:
                assert columns.shape[-2] == columns.shape[-1]

    shapes = [(3, 3), (4, 2), (2, 4), (2, 3, 2), (0, 3, 2), (0, 3), (3, 0)]
    check_each(itertools.product(DTYPES, shapes), check)


@pytest.mark.parametrize("batch", BATCHES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_eigenvectors_are_only_stretched(mode: Any, dtype: str, batch: tuple[int, ...]) -> None:
    x, h = square(dtype, batch), positive(dtype, batch)
    values, vectors = mode(L.eigh)(df.constant(h))
    close(h @ vectors, np.asarray(vectors) * np.asarray(values)[..., None, :], dtype)
    assert (np.diff(np.asarray(values).real) >= 0).all()
    values, vectors = mode(L.eig)(df.constant(x))
    close(x @ vectors, np.asarray(vectors) * np.asarray(values)[..., None, :], dtype)
    same = np.sort_complex(np.asarray(mode(L.eigvals)(df.constant(x))))
    close(same, np.sort_complex(np.asarray(values)), dtype)


def test_only_the_lower_triangle_of_self_adjoint_matrices_is_read(mode: Any) -> None:
    x = positive("float64", ())
    lower = np.tril(x) + np.triu(np.full_like(x, np.nan), 1)
    for function in (L.cholesky, L.eigvalsh):
        np.testing.assert_array_equal(mode(function)(df.constant(lower)), mode(function)(df.constant(x)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_order_of_rows_of_lu(mode: Any, dtype: str) -> None:
    x = square(dtype, (2,))[:, ::-1]
    factors, order = (np.asarray(y) for y in mode(lambda x: L.lu(x, df.int64))(df.constant(x)))
    assert order.dtype == np.int64
    product = (np.tril(factors, -1) + np.eye(4, dtype=dtype)) @ np.triu(factors)
    close(product, np.take_along_axis(x, order[..., None], -2), dtype)


# equations

SIDES = [
    ((), ()),
    ((2,), (2,)),
    ((2, 1), (3,)),
    ((), (2,)),
    ((7,), (7,)),
    ((0,), (0,)),
    ((9,), ()),
    ((), (3, 2)),
]


@pytest.mark.parametrize("dtype", DTYPES)
def test_solutions_solve_their_equations(mode: Any, dtype: str) -> None:
    def check(sides: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
        left, right = sides
        a, b = square(dtype, left), drawn(dtype, *right, 4, 2)
        expected = np.broadcast_to(b, (*np.broadcast_shapes(left, right), 4, 2))
        below, above, spd = np.tril(a), np.triu(a), a @ adjoint(a)
        solvers = {
            "solve": (lambda a, b: L.solve(a, b), a),
            "solve, adjoint": (lambda a, b: L.solve(a, b, adjoint=True), adjoint(a)),
            "lower": (L.triangular_solve, below),
            "lower, adjoint": (lambda a, b: L.triangular_solve(a, b, adjoint=True), adjoint(below)),
            "upper": (lambda a, b: L.triangular_solve(a, b, lower=False), above),
            "upper, adjoint": (
                lambda a, b: L.triangular_solve(a, b, lower=False, adjoint=True),
                adjoint(above),
            ),
            "cholesky_solve": (
                lambda a, b: L.cholesky_solve(L.cholesky(df.matmul(a, a, adjoint_b=True)), b),
                spd,
            ),
            "lu_solve": (lambda a, b: L.lu_solve(*L.lu(a), b), a),
            "lstsq": (L.lstsq, a),
            "lstsq, not fast": (lambda a, b: L.lstsq(a, b, fast=False), a),
        }
        for function, matrix in solvers.values():
            result = mode(function)(df.constant(a), df.constant(b))
            assert result.dtype == dtype
            close(matrix @ np.asarray(result), expected, dtype)

    check_each(SIDES, check)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lower", [True, False])
def test_banded_solutions_are_those_of_the_whole_matrix(mode: Any, dtype: str, lower: bool) -> None:
    bands, b = drawn(dtype, 2, 3, 5), drawn(dtype, 5, 2, seed=1)
    bands[:, 0 if lower else -1] += 4
    k = (-2, 0) if lower else (0, 2)
    matrix = np.asarray(L.set_diag(df.zeros([2, 5, 5], dtype), bands, k=k, align="LEFT_RIGHT"))
    for adjointed in (False, True):
        result = mode(lambda x, y, a=adjointed: L.banded_triangular_solve(x, y, lower=lower, adjoint=a))(
            df.constant(bands), df.constant(b)
        )
        close((adjoint(matrix) if adjointed else matrix) @ np.asarray(result), np.stack([b, b]), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [1, 2, 5])
def test_tridiagonal_matrices_in_every_format(mode: Any, dtype: str, size: int) -> None:
    above, main, below = drawn(dtype, 3, 2, size)
    main = main + 3
    above[:, -1], below[:, 0] = np.nan, np.nan  # which is never read
    matrix = np.zeros((2, size, size), dtype)
    for i in range(size):
        matrix[:, i, i] = main[:, i]
        if i:
            matrix[:, i - 1, i], matrix[:, i, i - 1] = above[:, i - 1], below[:, i]
    formats = {
        "compact": np.stack([above, main, below], -2),
        "sequence": [df.constant(x) for x in (above[:, :-1], main, below[:, 1:])],
        "matrix": matrix,
    }
    x = drawn(dtype, 2, size, 3, seed=1)
    for form, diagonals in formats.items():
        if size == 1 and form == "matrix":
            continue
        product = mode(lambda x, d=diagonals, f=form: L.tridiagonal_matmul(d, x, f))(df.constant(x))
        close(product, matrix @ x, dtype)
        solved = mode(lambda y, d=diagonals, f=form: L.tridiagonal_solve(d, y, f))(product)
        close(solved, x, dtype)
        column = mode(lambda y, d=diagonals, f=form: L.tridiagonal_solve(d, y[..., 0], f))(product)
        close(column, x[..., 0], dtype)
        solved_adjoint = mode(
            lambda y, d=diagonals, f=form: L.tridiagonal_solve(
                d, y, f, transpose_rhs=True, conjugate_rhs=True
            )
        )(L.adjoint(product))
        close(solved_adjoint, x, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (2, 5, 3)], ids=str)
def test_least_squares_with_and_without_a_weight_on_the_solution(
    mode: Any, dtype: str, shape: tuple[int, ...]
) -> None:
    a, b = drawn(dtype, *shape), drawn(dtype, *shape[:-1], 2, seed=1)
    inverse = np.linalg.pinv(a)
    weighted = np.linalg.inv(adjoint(a) @ a + 0.5 * np.eye(shape[-1], dtype=dtype)) @ adjoint(a)
    for options, expected in (({}, inverse), ({"fast": False}, inverse), ({"l2_regularizer": 0.5}, weighted)):
        result = mode(lambda a, b, options=options: L.lstsq(a, b, **options))(df.constant(a), df.constant(b))
        close(result, expected @ b, dtype)


def test_least_squares_of_matrices_of_dynamic_size() -> None:
    a, b = drawn("float64", 5, 3), drawn("float64", 5, 1, seed=1)
    spec = [df.TensorSpec([None, None], "float64"), df.TensorSpec([None, 1], "float64")]
    for weight in (0.0, 0.5):
        function = df.function(lambda a, b, w=weight: L.lstsq(a, b, w), input_signature=spec)
        for x, y in ((a, b), (a.T, b[:3])):
            np.testing.assert_allclose(function(x, y), L.lstsq(x, y, weight), atol=1e-10)


# dynamic sizes


@pytest.mark.parametrize(
    "function",
    [
        L.cholesky,
        L.inv,
        L.det,
        L.qr,
        L.svd,
        L.eigh,
        L.eig,
        L.lu,
        L.expm,
        L.sqrtm,
        L.pinv,
        L.matrix_rank,
        lambda x: L.solve(x, x),
    ],
)
def test_one_trace_takes_matrices_of_every_size(function: Callable[[Any], Any]) -> None:
    traced = df.function(function, input_signature=[df.TensorSpec([None, None, None], "float64")])
    for size in (2, 3):
        x = df.constant(positive("float64", (2,))[:, :size, :size])
        for result, expected in zip(leaves(traced(x)), leaves(function(x)), strict=True):
            np.testing.assert_allclose(result, expected, rtol=1e-12)
    assert len(traced.concrete_functions) == 1


# names next to it


def test_duplicate_names() -> None:
    assert df.eig is L.eig
    assert df.eigvals is L.eigvals
    assert df.matrix_square_root is L.sqrtm


def test_selected_eigenvalues_of_a_tridiagonal_matrix(mode: Any) -> None:
    alpha, beta = np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.5, 0.2, 0.1])
    matrix = np.diag(alpha) + np.diag(beta, 1) + np.diag(beta, -1)
    values = np.linalg.eigvalsh(matrix)
    solve = L.eigh_tridiagonal
    np.testing.assert_allclose(mode(solve)(df.constant(alpha), df.constant(beta)), values)
    some = mode(lambda a, b: solve(a, b, False, "i", (1, 2)))(df.constant(alpha), df.constant(beta))
    np.testing.assert_allclose(some[0], values[1:3])
    np.testing.assert_allclose(matrix @ some[1], np.asarray(some[1]) * values[1:3], atol=1e-12)
    inside = solve(alpha, beta, select="v", select_range=(values[0], values[2]))
    np.testing.assert_allclose(inside, values[1:3])
    np.testing.assert_allclose(solve([5.0], df.zeros([0])), [5.0])
    assert solve(df.zeros([0]), df.zeros([0])).shape == (0,)


def test_eigenvalues_of_tridiagonal_matrices_of_any_size_are_the_eager_ones() -> None:
    signature = [df.TensorSpec([2, None], df.float64)] * 2
    solve = df.function(L.eigh_tridiagonal, input_signature=signature)
    for size in (0, 1, 2, 5):
        alpha, beta = (
            df.constant(drawn("float64", 2, size)),
            df.constant(drawn("float64", 2, max(size - 1, 0))),
        )
        np.testing.assert_allclose(solve(alpha, beta), L.eigh_tridiagonal(alpha, beta), atol=1e-12)
    for count in (1, 2, 4):
        with pytest.raises(
            df.errors.InvalidArgumentError, match="another number of elements than rows but one"
        ):
            solve(df.zeros([2, 4], df.float64), df.zeros([2, count], df.float64))


def test_the_cross_product(mode: Any) -> None:
    a, b = drawn("float32", 4, 1, 3), drawn("float32", 2, 3, seed=1)
    np.testing.assert_allclose(mode(L.cross)(df.constant(a), df.constant(b)), np.cross(a, b), rtol=1e-5)


def test_normalized_tensors_have_norm_1(mode: Any) -> None:
    x = drawn("complex128", 3, 4)
    for order, axis in (("euclidean", None), (1, 0), (np.inf, -1), ("fro", (0, 1)), (2, (0, 1))):
        unit, length = mode(lambda x, o=order, a=axis: L.normalize(x, o, a))(df.constant(x))
        np.testing.assert_allclose(L.norm(unit, order, axis), 1.0)
        np.testing.assert_allclose(unit * length, x)


@pytest.mark.parametrize("shape", [(70, 66), (2, 3, 4)], ids=str)
@pytest.mark.parametrize("full", [False, True])
def test_a_graph_computes_r_alone_where_nothing_reads_q(shape: tuple[int, ...], full: bool) -> None:
    x = df.constant(drawn("float32", *shape))
    both = df.function(lambda x: L.qr(x, full_matrices=full))
    alone = df.function(lambda x: L.qr(x, full_matrices=full).r)
    (node,) = optimise(alone.get_concrete_function(x).graph, CompileOptions()).nodes
    assert [v.spec.shape for v in node.outputs] == [L.qr(x, full_matrices=full).r.shape]
    q, r = both(x)
    np.testing.assert_array_equal(alone(x), r)
    np.testing.assert_array_equal(L.qr(x, full_matrices=full).r, r)
    np.testing.assert_array_equal(df.function(lambda x: L.qr(x, full_matrices=full).q)(x), q)


def test_the_gradient_of_r_alone() -> None:
    x = df.constant(drawn("float64", 4, 3))

    def of_r(x: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch(x)
            y = df.reduce_sum(L.qr(x).r ** 2)
        return y, tape.gradient(y, x)

    for result in (of_r(x), df.function(of_r)(x)):  # the sum is that of the squares of x
        close(result[0], (x.numpy() ** 2).sum(), "float64")
        close(result[1], 2 * x.numpy(), "float64")


@pytest.mark.parametrize("decompose", [L.eigh, L.svd], ids=["eigh", "svd"])
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize("size", [5, 70])
def test_a_graph_computes_values_alone_where_nothing_reads_vectors(
    decompose: Any, dtype: str, size: int
) -> None:
    x = drawn(dtype, size, size)
    symmetric = df.constant(x + np.conj(x.T))
    f = df.function(lambda x: decompose(x)[0])
    optimised = optimise(f.get_concrete_function(symmetric).graph, CompileOptions()).nodes
    assert len(optimised[0].outputs) == 1
    result, expected = f(symmetric), decompose(symmetric)
    close(result, expected[0].numpy(), dtype)
    for a, b in zip(df.function(decompose)(symmetric), expected, strict=True):
        np.testing.assert_array_equal(a, b)
