"""Linear operators compute what their dense matrices compute, eagerly and in traced functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualflow as df

L = df.linalg
RNG = np.random.default_rng(0)


def numbers(*shape: int, is_complex: bool = False) -> Any:
    x = RNG.normal(size=shape)
    return x + 1j * RNG.normal(size=shape) if is_complex else x


def positive_definite(size: int) -> Any:
    x = numbers(size, size)
    return x @ x.T + size * np.eye(size)


FULL, COMPLEX = numbers(3, 3) + 3 * np.eye(3), numbers(3, 3, is_complex=True) + 3 * np.eye(3)
BATCH = numbers(2, 3, 3) + 3 * np.eye(3)
POSITIVE, TALL, COLUMNS = positive_definite(3), numbers(3, 2), numbers(3, 2)
LOWER = np.tril(numbers(3, 3)) + 3 * np.eye(3)
DIAGONAL, WEIGHTS = np.array([2.0, -1.5, 0.5]), np.array([1.5, 0.7])
ROWS = np.array([2.0, 3.0, 4.0]) + numbers(4, 3) * 0.1


def full(x: Any = FULL, **hints: bool) -> Any:
    return L.LinearOperatorFullMatrix(x, **hints)


def definite() -> Any:
    return full(POSITIVE, is_self_adjoint=True, is_positive_definite=True)


def low_rank(base: Any, u: Any, d: Any = None, v: Any = None) -> tuple[Any, Any]:
    matrix = base.to_dense().numpy()
    right = u if v is None else v
    middle = np.eye(2) if d is None else np.diag(d)
    dense = matrix + u @ middle @ np.conj(np.swapaxes(right, -1, -2))
    return L.LinearOperatorLowRankUpdate(base, u, d, v), dense


def block_diagonal(a: Any, b: Any) -> Any:
    rows, columns = len(a) + len(b), a.shape[1] + b.shape[1]
    out = np.zeros((rows, columns), np.result_type(a, b))
    out[: len(a), : a.shape[1]], out[len(a) :, a.shape[1] :] = a, b
    return out


def reflection(v: Any) -> Any:
    v = v / np.linalg.norm(v, axis=-1, keepdims=True)
    return np.eye(v.shape[-1]) - 2 * v[..., :, None] * v[..., None, :]


SQUARE: dict[str, Callable[[], tuple[Any, Any]]] = {
    "full": lambda: (full(), FULL),
    "complex": lambda: (full(COMPLEX), COMPLEX),
    "batch": lambda: (full(BATCH), BATCH),
    "positive definite": lambda: (definite(), POSITIVE),
    "diagonal": lambda: (L.LinearOperatorDiag(DIAGONAL), np.diag(DIAGONAL)),
    "complex diagonal": lambda: (
        L.LinearOperatorDiag(DIAGONAL + 1j * DIAGONAL**2),
        np.diag(DIAGONAL + 1j * DIAGONAL**2),
    ),
    "diagonals": lambda: (L.LinearOperatorDiag(ROWS), ROWS[:, :, None] * np.eye(3)),
    "identity": lambda: (L.LinearOperatorIdentity(3, dtype=df.float64), np.eye(3)),
    "identities": lambda: (
        L.LinearOperatorIdentity(3, batch_shape=[2], dtype=df.float64),
        np.broadcast_to(np.eye(3), (2, 3, 3)),
    ),
    "scaled": lambda: (L.LinearOperatorScaledIdentity(3, np.float64(-2.5)), -2.5 * np.eye(3)),
    "scales": lambda: (L.LinearOperatorScaledIdentity(3, WEIGHTS), WEIGHTS[:, None, None] * np.eye(3)),
    "lower triangular": lambda: (
        L.LinearOperatorLowerTriangular(LOWER + np.triu(np.full((3, 3), np.inf), 1)),
        LOWER,
    ),
    "low rank": lambda: low_rank(definite(), TALL, WEIGHTS),
    "low rank of ones": lambda: low_rank(full(), TALL),
    "low rank with v": lambda: low_rank(full(), TALL, WEIGHTS, COLUMNS),
    "low rank of a batch": lambda: low_rank(full(BATCH), TALL),
    "complex low rank": lambda: low_rank(full(COMPLEX), TALL + 1j * COLUMNS, WEIGHTS + 0j),
    "composition": lambda: (
        L.LinearOperatorComposition([full(BATCH), L.LinearOperatorDiag(DIAGONAL)]),
        BATCH @ np.diag(DIAGONAL),
    ),
    "block diagonal": lambda: (
        L.LinearOperatorBlockDiag([full(), L.LinearOperatorDiag(WEIGHTS)]),
        block_diagonal(FULL, np.diag(WEIGHTS)),
    ),
    "block diagonals": lambda: (
        L.LinearOperatorBlockDiag([full(BATCH), L.LinearOperatorDiag(WEIGHTS)]),
        np.stack([block_diagonal(x, np.diag(WEIGHTS)) for x in BATCH]),
    ),
    "kronecker": lambda: (
        L.LinearOperatorKronecker([full(), L.LinearOperatorDiag(WEIGHTS)]),
        np.kron(FULL, np.diag(WEIGHTS)),
    ),
    "complex kronecker": lambda: (
        L.LinearOperatorKronecker([full(COMPLEX), full(COMPLEX[:2, :2])]),
        np.kron(COMPLEX, COMPLEX[:2, :2]),
    ),
    "kronecker of a batch": lambda: (
        L.LinearOperatorKronecker([full(BATCH), full(POSITIVE[:2, :2])]),
        np.stack([np.kron(x, POSITIVE[:2, :2]) for x in BATCH]),
    ),
    "circulant": lambda: (
        L.LinearOperatorCirculant(np.fft.fft(ROWS[0]), df.float64),
        np.stack([np.roll(ROWS[0], i) for i in range(3)], -1),
    ),
    "self-adjoint circulant": lambda: (
        L.LinearOperatorCirculant(DIAGONAL, df.complex128),
        np.stack([np.roll(np.fft.ifft(DIAGONAL), i) for i in range(3)], -1),
    ),
    "circulants": lambda: (
        L.LinearOperatorCirculant(np.fft.fft(ROWS), df.float64),
        np.stack([[np.roll(row, i) for i in range(3)] for row in ROWS]).swapaxes(-1, -2),
    ),
    "block circulant": lambda: (
        L.LinearOperatorCirculant2D(np.fft.fft2(KERNEL), df.float64),
        np.stack([np.roll(KERNEL, (i, j), (0, 1)).reshape(-1) for i in range(2) for j in range(3)], -1),
    ),
    "nested circulant": lambda: (
        L.LinearOperatorCirculant3D(np.fft.fftn(KERNEL[None]), df.float64),
        np.stack([np.roll(KERNEL, (i, j), (0, 1)).reshape(-1) for i in range(2) for j in range(3)], -1),
    ),
    "tridiagonal": lambda: (L.LinearOperatorTridiag(BANDS), tridiagonal(BANDS)),
    "complex tridiagonal": lambda: (
        L.LinearOperatorTridiag(BANDS * (1 + 0.5j)),
        tridiagonal(BANDS * (1 + 0.5j)),
    ),
    "tridiagonals": lambda: (
        L.LinearOperatorTridiag(np.stack([BANDS, 2 * BANDS])),
        np.stack([tridiagonal(BANDS), tridiagonal(2 * BANDS)]),
    ),
    "tridiagonal in parts": lambda: (L.LinearOperatorTridiag(list(BANDS), "sequence"), tridiagonal(BANDS)),
    "tridiagonal as a matrix": lambda: (
        L.LinearOperatorTridiag(tridiagonal(BANDS), "matrix"),
        tridiagonal(BANDS),
    ),
    "toeplitz": lambda: (
        L.LinearOperatorToeplitz(ROWS[0], [2.0, 0.5, 1.0] * ROWS[0] / [2, 1, 1]),
        toeplitz(),
    ),
    "block lower triangular": lambda: (block_lower(), block_lower_matrix()),
    "block lower triangular of a batch": lambda: (
        L.LinearOperatorBlockLowerTriangular([[full()], [full(BATCH), full()]]),
        np.stack([np.block([[FULL, np.zeros((3, 3))], [x, FULL]]) for x in BATCH]),
    ),
    "inverse": lambda: (L.LinearOperatorInversion(full(COMPLEX)), np.linalg.inv(COMPLEX)),
    "adjoint": lambda: (L.LinearOperatorAdjoint(full(COMPLEX)), COMPLEX.conj().T),
    "permutation": lambda: (
        L.LinearOperatorPermutation([2, 0, 1], dtype=df.float64),
        np.eye(3)[[2, 0, 1]],
    ),
    "permutations": lambda: (
        L.LinearOperatorPermutation([[2, 0, 1], [0, 2, 1]], dtype=df.float64),
        np.eye(3)[np.array([[2, 0, 1], [0, 2, 1]])],
    ),
    "reflection": lambda: (L.LinearOperatorHouseholder(DIAGONAL), reflection(DIAGONAL)),
    "reflections": lambda: (L.LinearOperatorHouseholder(ROWS), reflection(ROWS)),
}
OTHER: dict[str, Callable[[], tuple[Any, Any]]] = {
    "rectangular": lambda: (full(TALL), TALL),
    "rectangular adjoint": lambda: (full(TALL).adjoint(), TALL.T),
    "zeros": lambda: (L.LinearOperatorZeros(3, batch_shape=[2], dtype=df.float64), np.zeros((2, 3, 3))),
    "rectangular zeros": lambda: (
        L.LinearOperatorZeros(3, 2, is_square=False, is_self_adjoint=False, dtype=df.float64),
        np.zeros((3, 2)),
    ),
    "rectangular composition": lambda: (
        L.LinearOperatorComposition([full(TALL.T.copy()), full()]),
        TALL.T @ FULL,
    ),
    "square product of rectangles": lambda: (
        L.LinearOperatorComposition([full(TALL.T.copy()), full(TALL)]),
        TALL.T @ TALL,
    ),
    "rectangular kronecker": lambda: (L.LinearOperatorKronecker([full(TALL), full()]), np.kron(TALL, FULL)),
    "rectangular blocks": lambda: (
        L.LinearOperatorBlockDiag([full(TALL), full()], is_square=False),
        block_diagonal(TALL, FULL),
    ),
}
ALL = SQUARE | OTHER


KERNEL = np.array([[9.0, 1.0, -0.5], [2.0, 0.3, 1.5]])
BANDS = np.array([[1.0, -1.0, 0.0, 7.0], [4.0, 5.0, 6.0, 4.0], [7.0, 0.5, 1.0, 2.0]])


def tridiagonal(bands: Any) -> Any:
    above, main, below = bands
    return np.diag(main) + np.diag(above[:-1], 1) + np.diag(below[1:], -1)


def toeplitz() -> Any:
    column, row = ROWS[0], np.array([2.0, 0.5, 1.0]) * ROWS[0] / [2, 1, 1]
    return np.array([[column[i - j] if i >= j else row[j - i] for j in range(3)] for i in range(3)])


def block_lower() -> Any:
    rows = [[full()], [full(TALL.T.copy()), L.LinearOperatorDiag(WEIGHTS)]]
    return L.LinearOperatorBlockLowerTriangular(rows)


def block_lower_matrix() -> Any:
    return np.block([[FULL, np.zeros((3, 2))], [TALL.T, np.diag(WEIGHTS)]])


def adjoint(x: Any) -> Any:
    return np.conj(np.swapaxes(x, -1, -2))


def argument(operator: Any, *shape: int) -> Any:
    return numbers(*shape, is_complex=operator.dtype.is_complex)


def close(actual: Any, expected: Any) -> None:
    assert actual.shape == np.shape(expected)
    np.testing.assert_allclose(np.asarray(actual), expected, rtol=1e-7, atol=1e-9)


@pytest.fixture(params=[False, True], ids=["eager", "function"])
def mode(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Calls a function with an operator and tensors: eagerly, or traced with all of them as arguments."""
    if request.param:
        return lambda function, *args: df.function(function)(*args)
    return lambda function, *args: function(*args)


def all_products(a: Any, x: Any, left: Any, several: Any) -> list[Any]:
    return [
        a.matmul(x),
        a @ several,
        a.matmul(df.linalg.adjoint(x), adjoint_arg=True),
        a.matmul(left, adjoint=True),
        a.matvec(x[:, 0]),
        a.matvec(left[:, 0], adjoint=True),
    ]


@pytest.mark.parametrize("name", ALL)
def test_products_are_those_of_the_matrix(name: str, mode: Callable[..., Any]) -> None:
    operator, dense = ALL[name]()
    rows, columns = dense.shape[-2:]
    x, left = argument(operator, columns, 2), argument(operator, rows, 2)
    several = argument(operator, 5, 1, columns, 2)
    results = mode(all_products, operator, *map(df.constant, (x, left, several)))
    expected = [
        dense @ x,
        dense @ several,
        dense @ x,
        adjoint(dense) @ left,
        dense @ x[:, 0],
        adjoint(dense) @ left[:, 0],
    ]
    for result, value in zip(results, expected, strict=True):
        close(result, value)


def all_solutions(a: Any, y: Any, several: Any) -> list[Any]:
    return [
        a.solve(y),
        a.solve(several),
        a.solve(df.linalg.adjoint(y), adjoint_arg=True),
        a.solve(y, adjoint=True),
        a.solvevec(y[:, 0]),
        a.inverse().matmul(y),
    ]


@pytest.mark.parametrize("name", SQUARE)
def test_solutions_are_those_of_the_matrix(name: str, mode: Callable[..., Any]) -> None:
    operator, dense = SQUARE[name]()
    y = argument(operator, dense.shape[-1], 2)
    several = argument(operator, 5, 1, dense.shape[-1], 2)
    results = mode(all_solutions, operator, df.constant(y), df.constant(several))
    inverse = np.linalg.inv(dense)
    expected = [
        inverse @ y,
        inverse @ several,
        inverse @ y,
        adjoint(inverse) @ y,
        inverse @ y[:, 0],
        inverse @ y,
    ]
    for result, value in zip(results, expected, strict=True):
        close(result, value)


def all_numbers(a: Any) -> list[Any]:
    return [
        a.to_dense(),
        a.diag_part(),
        a.trace(),
        a.add_to_tensor(df.ones(a.shape, a.dtype)),
        a.adjoint().to_dense(),
    ]


@pytest.mark.parametrize("name", SQUARE)
def test_numbers_are_those_of_the_matrix(name: str, mode: Callable[..., Any]) -> None:
    operator, dense = SQUARE[name]()
    results = mode(lambda a: [*all_numbers(a), a.determinant(), a.log_abs_determinant(), a.cond()], operator)
    values = np.linalg.svd(dense, compute_uv=False)
    expected = [
        dense,
        np.diagonal(dense, 0, -2, -1),
        np.trace(dense, 0, -2, -1),
        dense + 1,
        adjoint(dense),
        np.linalg.det(dense),
        np.linalg.slogdet(dense)[1],
        values[..., 0] / values[..., -1],
    ]
    for result, value in zip(results, expected, strict=True):
        close(result, value)


@pytest.mark.parametrize("name", ["rectangular", "rectangular zeros", "zeros", "rectangular kronecker"])
def test_rectangular_matrices_have_a_dense_form(name: str) -> None:
    operator, dense = OTHER[name]()
    expected = [dense, np.diagonal(dense, 0, -2, -1), np.trace(dense, 0, -2, -1), dense + 1, adjoint(dense)]
    for result, value in zip(all_numbers(operator), expected, strict=True):
        close(result, value)


@pytest.mark.parametrize("name", [name for name in SQUARE if SQUARE[name]()[0].is_self_adjoint])
def test_self_adjoint_operators_have_eigenvalues(name: str) -> None:
    operator, dense = SQUARE[name]()
    close(df.sort(operator.eigvals(), -1), np.linalg.eigvalsh(dense))
    if "low rank" not in name:  # whose product is self-adjoint but for rounding
        operator.assert_self_adjoint()
    assert operator.adjoint() is operator


@pytest.mark.parametrize("name", [name for name in SQUARE if SQUARE[name]()[0].is_positive_definite])
def test_positive_definite_operators_have_a_cholesky_factor(name: str) -> None:
    operator, dense = SQUARE[name]()
    factor = operator.cholesky()
    close(factor.to_dense(), np.linalg.cholesky(dense))
    operator.assert_positive_definite()
    close((factor @ factor.H).cholesky().to_dense(), np.linalg.cholesky(dense))


@pytest.mark.parametrize("name", ALL)
def test_shapes_are_those_of_the_matrix(name: str) -> None:
    operator, dense = ALL[name]()
    *batch, rows, columns = dense.shape
    assert operator.shape == dense.shape == tuple(operator.shape_tensor().numpy())
    assert operator.batch_shape == batch == operator.batch_shape_tensor().numpy().tolist()
    assert (operator.range_dimension, operator.domain_dimension) == (rows, columns)
    assert (int(operator.range_dimension_tensor()), int(operator.domain_dimension_tensor())) == (
        rows,
        columns,
    )
    assert operator.tensor_rank == dense.ndim == int(operator.tensor_rank_tensor())


SIZES = df.TensorSpec([None, None], df.float64)


@pytest.mark.parametrize(
    "name",
    ["full", "block", "kronecker", "low rank", "composition", "inverse", "toeplitz", "tridiagonal", "lower"],
)
def test_one_program_serves_all_sizes(name: str) -> None:
    make = {
        "full": full,
        "block": lambda m: L.LinearOperatorBlockDiag([full(m), L.LinearOperatorDiag(df.linalg.diag_part(m))]),
        "kronecker": lambda m: L.LinearOperatorKronecker([full(m), full(m)]),
        "low rank": lambda m: L.LinearOperatorLowRankUpdate(full(m), m[:, :2]),
        "composition": lambda m: full(m) @ full(m),
        "inverse": lambda m: full(m).inverse(),
        "toeplitz": lambda m: L.LinearOperatorToeplitz(m[:, 0], m[0]),
        "tridiagonal": lambda m: L.LinearOperatorTridiag(m, "matrix"),
        "lower": lambda m: L.LinearOperatorBlockLowerTriangular([[full(m)], [full(m), full(m)]]),
    }[name]

    def values(m: Any) -> list[Any]:
        a = make(m)
        columns = df.ones([a.domain_dimension_tensor(), 2], df.float64)
        return [
            a.shape_tensor(),
            a.matmul(columns),
            a.solve(columns),
            a.to_dense(),
            a.diag_part(),
            a.determinant(),
        ]

    function = df.function(values, input_signature=[SIZES])
    for size in (2, 3, 4):
        matrix = numbers(size, size) + 3 * np.eye(size)
        for result, value in zip(function(matrix), values(df.constant(matrix)), strict=True):
            close(result, value.numpy())


def test_an_identity_of_a_dynamic_size() -> None:
    @df.function(input_signature=[df.TensorSpec([None, 2])])
    def added(x: Any) -> Any:
        size = df.shape(x)[0]
        eye = L.LinearOperatorIdentity(size, batch_shape=df.stack([size]))
        twice = L.LinearOperatorScaledIdentity(size, 2.0)
        zero = L.LinearOperatorZeros(size)
        return (
            eye.matmul(x),
            twice.matmul(x) + zero.matmul(x),
            eye.shape_tensor(),
            eye.trace(),
            twice.diag_part(),
        )

    x = np.ones((3, 2), np.float32)
    repeated, doubled, shape, trace, diagonal = added(x)
    close(repeated, np.ones((3, 3, 2)))
    close(doubled, 2 * x)
    assert (shape.numpy().tolist(), trace.numpy().tolist()) == ([3, 3, 3], [3, 3, 3])
    close(diagonal, [2, 2, 2])


def test_matrices_without_rows() -> None:
    empty = L.LinearOperatorDiag(np.zeros(0))
    assert (empty.to_dense().shape, float(empty.determinant()), float(full(np.zeros((0, 0))).trace())) == (
        (0, 0),
        1,
        0,
    )


# Parts of a batch

SLICES = (0, slice(1, 2), (..., slice(None, None, -1)), None, (slice(None), None))


@pytest.mark.parametrize("key", SLICES, ids=repr)
@pytest.mark.parametrize("name", [name for name in SQUARE if SQUARE[name]()[1].ndim > 2])
def test_slices_are_those_of_the_batch(name: str, key: Any) -> None:
    operator, dense = SQUARE[name]()
    keys = key if isinstance(key, tuple) else (key,)
    matrices = (slice(None), slice(None))
    expected = dense[(*keys, *matrices)] if ... in keys else dense[keys]
    close(operator[key].to_dense(), expected)


def test_a_slice_of_an_update_by_the_same_matrix_twice_is_such_an_update() -> None:
    u = df.constant(BATCH[..., :1])
    base = L.LinearOperatorIdentity(BATCH.shape[-1], [BATCH.shape[0]], dtype=u.dtype)
    part = L.LinearOperatorLowRankUpdate(base, u, v=u)[0]
    assert (part.shape, part.is_self_adjoint) == (BATCH.shape[1:], True)
    close(part.to_dense(), np.eye(BATCH.shape[-1]) + BATCH[0, :, :1] @ BATCH[0, :, :1].T)


@pytest.mark.parametrize("factor", [1e-200, 1e-8, 1.0, 1e200])
def test_a_reflection_has_an_axis_of_any_length(factor: float) -> None:
    operator = L.LinearOperatorHouseholder(factor * np.array([3.0, 4.0]))
    close(operator.to_dense(), reflection(np.array([3.0, 4.0])))
    close(operator.diag_part(), np.diag(reflection(np.array([3.0, 4.0]))))


# Blocks


@pytest.mark.parametrize("name", ["block diagonal", "block lower triangular"])
def test_block_operators_take_and_return_lists_of_blocks(name: str) -> None:
    operator, dense = SQUARE[name]()
    x = numbers(5, 2)
    blocks = [x[:3], x[3:]]
    close(df.concat(operator.matmul(blocks), 0), dense @ x)
    close(df.concat(operator.solve(blocks, adjoint=True), 0), np.linalg.inv(dense).T @ x)
    close(df.concat(operator.matvec([b[:, 0] for b in blocks]), 0), dense @ x[:, 0])
    close(df.concat(operator.solvevec([b[:, 0] for b in blocks]), 0), np.linalg.inv(dense) @ x[:, 0])
    close(operator.matvec([1.0, 2.0, 3.0, 4.0, 5.0]), dense @ [1, 2, 3, 4, 5])
    pair = L.LinearOperatorBlockDiag([L.LinearOperatorIdentity(1), L.LinearOperatorIdentity(1)])
    assert isinstance(pair.matmul([[1.0, 2.0], [3.0, 4.0]]), df.Tensor)


# Edge cases


DYNAMIC = ["full", "diagonal", "identity", "scaled", "zeros", "permutation", "circulant", "tridiagonal"]


@pytest.mark.parametrize("name", [*DYNAMIC, "kronecker", "block diagonal", "block lower triangular"])
def test_an_argument_of_another_dynamic_size_is_an_error(name: str) -> None:
    operator = ALL[name]()[0]
    rows, columns = operator.shape[-2:]
    spec = df.TensorSpec([None, 1], operator.dtype)
    product = df.function(operator.matmul, input_signature=[spec])
    assert product(argument(operator, columns, 1)).shape[-2] == rows
    for size in (columns - 1, columns + 1):
        with pytest.raises(df.errors.InvalidArgumentError):
            product(argument(operator, size, 1))


@pytest.mark.parametrize(
    "build",
    [
        lambda n: L.LinearOperatorIdentity(n, dtype=df.float64),
        lambda n: L.LinearOperatorScaledIdentity(n, np.float64(2)),
        lambda n: L.LinearOperatorZeros(n, dtype=df.float64),
        lambda n: L.LinearOperatorPermutation(df.range(n), df.float64),
        lambda n: L.LinearOperatorBlockDiag(
            [L.LinearOperatorIdentity(n, dtype=df.float64), L.LinearOperatorIdentity(1, dtype=df.float64)]
        ),
    ],
)
def test_an_operator_of_another_dynamic_size_is_an_error(build: Callable[[Any], Any]) -> None:
    @df.function(input_signature=[df.TensorSpec([], df.int32), df.TensorSpec([None, 1], df.float64)])
    def product(n: Any, x: Any) -> Any:
        return build(n).matmul(x)

    size = build(3).shape[-1]
    assert product(3, numbers(size, 1)).shape == (size, 1)
    for other in (size - 1, size + 1):
        with pytest.raises(df.errors.InvalidArgumentError):
            product(3, numbers(other, 1))


def test_a_square_product_of_rectangular_factors_has_solutions_and_a_determinant() -> None:
    operator, dense = OTHER["square product of rectangles"]()
    close(operator.solvevec([1.0, 2.0]), np.linalg.solve(dense, [1.0, 2.0]))
    close(operator.determinant(), np.linalg.det(dense))
    close(operator.log_abs_determinant(), np.log(np.linalg.det(dense)))
    operator.assert_non_singular()


@pytest.mark.parametrize("combine", [L.LinearOperatorKronecker, L.LinearOperatorBlockDiag])
def test_the_hint_that_the_whole_is_self_adjoint_suffices_for_eigenvalues(combine: Any) -> None:
    operator = combine([full(), full()], is_self_adjoint=True)  # which promises more than the parts do
    np.testing.assert_allclose(operator.eigvals(), np.linalg.eigvalsh(operator.to_dense()))
    assert operator.cond().shape == ()


def test_the_diagonal_of_a_rectangular_update() -> None:
    for rows, columns in ((1, 3), (3, 1)):
        base, u, v = numbers(rows, columns), numbers(rows, 2), numbers(columns, 2)
        operator = L.LinearOperatorLowRankUpdate(full(base), u, v=v)
        close(operator.diag_part(), np.diagonal(base + u @ v.T))


def test_a_matrix_is_added_to_zeros_by_broadcasting() -> None:
    zeros = L.LinearOperatorZeros(3, dtype=df.float64)
    close(zeros.add_to_tensor([[2.0]]), np.full((3, 3), 2.0))
    with pytest.raises(df.errors.InvalidArgumentError):
        zeros.add_to_tensor(np.ones((4, 4)))


def test_the_cholesky_factor_of_a_complex_product_has_a_real_diagonal() -> None:
    lower = L.LinearOperatorLowerTriangular([[1 + 1j, 0], [2, 1 - 1j]], is_positive_definite=True)
    product = L.LinearOperatorComposition([lower, lower.H])
    np.testing.assert_allclose(product.cholesky().to_dense(), np.linalg.cholesky(product.to_dense()))


def test_a_block_diagonal_operator_of_rectangles_is_square_only_if_its_shape_is() -> None:
    wide, tall = full(TALL.T.copy()), full(TALL)
    assert L.LinearOperatorBlockDiag([wide]).is_square is False
    assert L.LinearOperatorBlockDiag([wide, tall]).is_square is True
