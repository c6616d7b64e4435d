"""Gradients of ``df.linalg`` that the op matrix doesn't draw: of composites, complex, with equal values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualflow as df

L = df.linalg
RNG = np.random.default_rng(3)
WIDE, TALL, SIDES = RNG.normal(size=(2, 4)), RNG.normal(size=(4, 2)), RNG.normal(size=(4, 3))
MATRIX = RNG.normal(size=(3, 3)) + np.diag([3.0, 6.0, 9.0])
COMPLEX = MATRIX + 0.5j * RNG.normal(size=(3, 3))
POSITIVE = COMPLEX @ COMPLEX.conj().T


def weights(shape: Any) -> Any:
    """A cotangent without symmetry, which no wrong rule survives."""
    return np.cos(np.arange(np.prod(shape, dtype=int)) + 1.0).reshape(shape)


def loss(y: Any) -> Any:
    """A real number of a tensor, of which each part counts differently."""
    if not y.dtype.is_complex:
        return df.reduce_sum(y * weights(y.shape))
    return df.reduce_sum(df.math.real(y) * weights(y.shape) + df.math.imag(y) * np.sin(weights(y.shape)))


def gradient(function: Callable[..., Any], *arrays: Any) -> list[Any]:
    xs = [df.constant(x) for x in arrays]
    with df.GradientTape() as tape:
        tape.watch(xs)
        y = loss(function(*xs))
    slopes: list[Any] = tape.gradient(y, xs)
    return slopes


def slope(function: Callable[..., Any], arrays: Any, changes: Any) -> float:
    """The central difference of the loss along the changes."""
    step = 1e-6
    there, back = (
        float(
            loss(function(*[df.constant(x + sign * step * d) for x, d in zip(arrays, changes, strict=True)]))
        )
        for sign in (1, -1)
    )
    return (there - back) / (2 * step)


def change_of(x: Any) -> Any:
    change = RNG.normal(size=x.shape)
    return change + 1j * RNG.normal(size=x.shape) if x.dtype.kind == "c" else change


def projector(x: Any) -> Any:
    """What of complex eigenvectors does not depend on their phases."""
    _, vectors = L.eigh(x)
    return df.matmul(vectors * df.constant([1.0, 2.0, 3.0], df.complex128), vectors, adjoint_b=True)


def turned_singular_vectors(x: Any) -> Any:
    """What of complex singular vectors does not depend on their phases."""
    _, u, v = L.svd(x)
    return df.matmul(u * df.constant([1.0, 2.0, 3.0], df.complex128), v, adjoint_b=True)


def of_eig(x: Any) -> Any:
    values, vectors = L.eig(x)
    return df.matmul(vectors * values[..., None, :] ** 3, L.inv(vectors))


FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "the determinant": (L.det, (MATRIX,)),
    "the complex determinant": (L.det, (COMPLEX,)),
    "the complex sign": (lambda x: L.slogdet(x).sign, (COMPLEX,)),
    "the logarithm of the determinant": (L.logdet, (POSITIVE,)),
    "the inverse of the adjoint": (lambda x: L.inv(x, adjoint=True), (COMPLEX,)),
    "solve with the adjoint": (lambda a, b: L.solve(a, b, adjoint=True), (COMPLEX, COMPLEX[:, :2])),
    "upper, adjoint": (
        lambda a, b: L.triangular_solve(a, b, lower=False, adjoint=True),
        (COMPLEX, COMPLEX[:, :2]),
    ),
    "solve, broadcast": (L.solve, (MATRIX, np.stack([MATRIX, 2 + MATRIX]))),
    "cholesky_solve": (L.cholesky_solve, (np.tril(COMPLEX), COMPLEX[:, :2])),
    "banded, adjoint": (
        lambda a, b: L.banded_triangular_solve(a, b, lower=False, adjoint=True),
        (COMPLEX[::-1] + 1, COMPLEX[:, :2]),
    ),
    "tridiagonal_solve": (L.tridiagonal_solve, (COMPLEX, COMPLEX[:, 0])),
    "tridiagonal_matmul": (L.tridiagonal_matmul, (COMPLEX, COMPLEX[:, :2])),
    "least squares, tall": (L.lstsq, (TALL, SIDES)),
    "least squares, wide": (L.lstsq, (WIDE, SIDES[:2])),
    "least squares with a weight": (lambda a, b: L.lstsq(a, b, 0.5), (TALL, SIDES)),
    "least squares, not fast": (lambda a, b: L.lstsq(a, b, fast=False), (TALL, SIDES)),
    "pinv": (L.pinv, (WIDE,)),
    "pinv, complex": (L.pinv, (COMPLEX[:, :2],)),
    "lu_reconstruct": (lambda x: L.lu_reconstruct(*L.lu(x)), (MATRIX,)),
    "lu_solve": (lambda a, b: L.lu_solve(*L.lu(a), b), (COMPLEX, COMPLEX[:, :2])),
    "eigenvectors of Hermitian matrices": (projector, (COMPLEX,)),
    "complex singular vectors": (turned_singular_vectors, (COMPLEX,)),
    "eigenvectors of real matrices": (of_eig, (MATRIX - 2 * MATRIX.T,)),
    "eigenvalues of real matrices": (L.eigvals, (MATRIX - 2 * MATRIX.T,)),
    "a tridiagonal matrix": (L.eigh_tridiagonal, (np.array([1.0, 2.0, 4.0]), np.array([0.5, 0.3]))),
    "expm, a large matrix": (lambda x: L.expm(x) / 1000, (MATRIX,)),
    "sqrtm, complex": (L.sqrtm, (COMPLEX,)),
    "logm": (L.logm, (COMPLEX,)),
    "cross": (L.cross, (MATRIX, MATRIX[0])),
    "normalize": (lambda x: L.normalize(x, axis=-1)[0], (MATRIX,)),
    "set_diag": (lambda x, d: L.set_diag(x, d, k=(0, 1)), (MATRIX, MATRIX[:2])),
    "tensor_diag": (L.tensor_diag, (MATRIX,)),
    "tensor_diag_part": (L.tensor_diag_part, (MATRIX,)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_gradient_is_the_slope(mode: Any, name: str) -> None:
    function, arrays = FUNCTIONS[name]
    changes = [change_of(x) for x in arrays]
    if name == "the logarithm of the determinant":  # of matrices that stay Hermitian
        changes = [x + x.conj().T for x in changes]
    result = mode(lambda *xs: gradient(function, *xs))(*[df.constant(x) for x in arrays])
    along = sum(np.sum(np.conj(g) * d).real for g, d in zip(result, changes, strict=True))
    np.testing.assert_allclose(along, slope(function, arrays, changes), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("scale", [1.0, 1e-9, 1e9])
def test_gradients_do_not_depend_on_the_unit_of_the_matrix(scale: float) -> None:
    (result,) = gradient(lambda x: L.eigh(x)[1], MATRIX * scale)
    (expected,) = gradient(lambda x: L.eigh(x)[1], MATRIX)
    np.testing.assert_allclose(np.asarray(result) * scale, expected, rtol=1e-6, atol=1e-9)
    (result,) = gradient(lambda x: L.svd(x)[1], MATRIX * scale)
    (expected,) = gradient(lambda x: L.svd(x)[1], MATRIX)
    np.testing.assert_allclose(np.asarray(result) * scale, expected, rtol=1e-6, atol=1e-9)


DEGENERATE = {
    "equal eigenvalues": np.eye(3),
    "nothing but zeros": np.zeros((3, 3)),
    "eigenvalues equal up to rounding": np.ones((3, 3)) / 3,
}


@pytest.mark.parametrize("case", DEGENERATE)
@pytest.mark.parametrize("decompose", [L.eigh, L.svd])
def test_equal_values_have_gradients_of_the_size_of_others(mode: Any, decompose: Any, case: str) -> None:
    """Of the product of the parts, which does not depend on how the vectors are chosen."""

    def rebuilt(x: Any) -> Any:
        if decompose is L.eigh:
            values, vectors = L.eigh(x)
            return df.matmul(vectors * values[None], vectors, adjoint_b=True)
        s, u, v = L.svd(x)
        return df.matmul(u * s[None], v, adjoint_b=True)

    (result,) = mode(lambda x: gradient(rebuilt, x))(df.constant(DEGENERATE[case]))
    assert np.abs(result).max() < 10


def test_equal_eigenvalues_have_the_gradients_of_tensorflow() -> None:
    """The literal values are those of TensorFlow 2.21."""
    values = np.diag([0.5403023, -0.4161468, -0.9899925])
    for decompose in (lambda x: L.eigh(x)[0], lambda x: L.svd(x)[0]):
        (result,) = gradient(decompose, np.eye(3))
        np.testing.assert_allclose(result, values, atol=1e-6)
    (result,) = gradient(lambda x: L.norm(x, 2, axis=(0, 1)), np.eye(3))
    np.testing.assert_allclose(result, np.eye(3) * 0.1801008, atol=1e-6)


def test_gradients_of_cholesky_are_symmetric_and_those_of_eigh_lower_triangular() -> None:
    x = POSITIVE.real
    (result,) = gradient(L.cholesky, x)
    np.testing.assert_allclose(result, np.transpose(result))
    (result,) = gradient(L.eigvalsh, x)
    np.testing.assert_array_equal(result, np.tril(result))


@pytest.mark.parametrize(
    "function",
    [
        L.cholesky,
        L.inv,
        L.det,
        L.eigvalsh,
        L.expm,
        L.sqrtm,
        L.pinv,
        lambda x: L.qr(x).r,
        lambda x: L.svd(x)[1],
        lambda x: L.lu(x).lu,
        lambda x: L.solve(x, x + 1),
    ],
)
def test_gradients_of_batches_and_of_empty_ones(mode: Any, function: Callable[[Any], Any]) -> None:
    one, other = POSITIVE.real, POSITIVE.real + np.eye(3)
    (result,) = mode(lambda x: gradient(lambda x: function(x)[:1], x))(df.constant(np.stack([one, other])))
    (alone,) = gradient(function, one)
    np.testing.assert_allclose(result[0], alone, rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(result[1], np.zeros((3, 3)))
    for shape in ((0, 3, 3), (2, 0, 0)):
        (empty,) = mode(lambda x: gradient(function, x))(df.zeros(shape))
        assert empty.shape == shape


def test_compiled_functions_report_which_parts_lapack_computes() -> None:
    function = df.function(lambda x: df.reduce_sum(L.cholesky(x) * 2.0))
    function(df.eye(9))
    assert "LAPACK factors matrices" in function.status()
    native = df.function(
        lambda x: (
            L.trace(x),
            L.cross(x, x),
            L.band_part(x, 1, 1),
            L.adjoint(x),
            L.normalize(x)[0],
            L.set_diag(x, x[0]),
        )
    )
    native(MATRIX)
    assert "numpy:" not in native.status()


@pytest.mark.parametrize(
    "function",
    [
        L.cholesky,
        L.inv,
        L.det,
        L.logdet,
        L.eigvalsh,
        lambda x: L.eigh(x)[1],
        lambda x: df.math.real(L.eig(x)[0]),
        lambda x: L.svd(x)[1],
        lambda x: L.qr(x[..., 1:])[0],
        lambda x: L.qr(x[..., 1:, :])[1],
        L.expm,
        L.pinv,
        lambda x: L.solve(x, x + 1),
        lambda x: L.lu_solve(*L.lu(x), x),
        lambda x: L.lu_matrix_inverse(*L.lu(x)),
        lambda x: L.lstsq(x, x + 1),
        L.trace,
        L.diag,
        L.diag_part,
        L.tensor_diag,
        lambda x: L.tensor_diag_part(x[0]),
        lambda x: L.band_part(x, 1, 0),
        lambda x: L.set_diag(x, x[..., 0]),
        lambda x: L.norm(x, 2, axis=(-2, -1)),
    ],
)
def test_one_trace_has_gradients_for_every_size(function: Callable[[Any], Any]) -> None:
    def slope_of(x: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch(x)
            y = df.reduce_sum(df.square(function(x)))
        return tape.gradient(y, x)

    traced = df.function(slope_of, input_signature=[df.TensorSpec([None, None, None], "float64")])
    for count, size in ((1, 2), (2, 3)):
        x = df.constant(np.stack([POSITIVE.real, POSITIVE.real + np.eye(3)])[:count, :size, :size])
        np.testing.assert_allclose(traced(x), slope_of(x), rtol=1e-9, atol=1e-9)
    assert len(traced.concrete_functions) == 1
