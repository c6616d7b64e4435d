"""Large matrices, which LAPACK decomposes in their own precision, compared with NumPy's in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dualflow.ops.linear_algebra import eliminations as by_elimination
from dualflow.ops.linear_algebra import factors, lapack

DTYPES = "fdFD"
SIZE = lapack.SMALLEST
LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "rows": np.ascontiguousarray,
    "columns": lambda x: np.swapaxes(np.ascontiguousarray(np.swapaxes(x, -1, -2)), -1, -2),
    "apart": lambda x: np.repeat(np.repeat(x, 2, -2), 2, -1)[..., ::2, ::2],
    "backwards": lambda x: x[..., ::-1, ::-1].copy()[..., ::-1, ::-1],
}


def drawn(dtype: str, *shape: int) -> Any:
    rng = np.random.default_rng(0)
    x = rng.normal(size=shape) + (1j * rng.normal(size=shape) if dtype in "FD" else 0)
    return x.astype(dtype)


def square(dtype: str, *batch: int, size: int = SIZE) -> Any:
    """Matrices of a small condition that are not symmetric."""
    return drawn(dtype, *batch, size, size) / size + np.eye(size, dtype=dtype) * 2


def adjoint(x: Any) -> Any:
    return np.conj(np.swapaxes(x, -1, -2))


def positive(dtype: str, *batch: int, size: int = SIZE) -> Any:
    x = square(dtype, *batch, size=size)
    return x @ adjoint(x)


def close(result: Any, expected: Any, dtype: str) -> None:
    """Of the dtype's precision: 500 units of the last place of the largest element."""
    result, expected = np.asarray(result), np.asarray(expected)
    assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_allclose(
        result, expected, rtol=0, atol=500 * np.finfo(dtype).eps * np.abs(expected).max(initial=0)
    )


@pytest.fixture(params=["large", "small"])
def size(request: Any) -> int:
    """The smallest that goes to LAPACK, and the largest that goes to NumPy."""
    return SIZE if request.param == "large" else SIZE - 1


@pytest.mark.parametrize("batch", [(), (2, 1)], ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_functions_of_square_matrices(dtype: str, batch: tuple[int, ...], size: int) -> None:
    x, h = square(dtype, *batch, size=size), positive(dtype, *batch, size=size)
    close(factors.lapack_cholesky(h), np.linalg.cholesky(h), dtype)
    close(by_elimination.lapack_inv(x), np.linalg.inv(x), dtype)
    close(by_elimination.lapack_det(x / 2), np.linalg.det(x / 2), dtype)
    for result, expected in zip(by_elimination.lapack_slogdet(x), np.linalg.slogdet(x), strict=True):
        close(result, expected, dtype)
    close(factors.lapack_eigvalsh(h), np.linalg.eigvalsh(h), dtype)
    values, vectors = factors.lapack_eigh(h)
    close(values, np.linalg.eigvalsh(h), dtype)
    close(h @ vectors, vectors * values[..., None, :], dtype)
    close(adjoint(vectors) @ vectors, np.broadcast_to(np.eye(size, dtype=dtype), h.shape), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_are_exchanged(dtype: str, size: int) -> None:
    x = np.roll(square(dtype, size=size), 1, 0)
    result, exchanged, info = by_elimination.lapack_lu(x)
    assert info == 0
    rows = list(range(size))
    for i, j in enumerate(exchanged.tolist()):
        rows[i], rows[j] = rows[j], rows[i]
    lower = np.tril(result, -1) + np.eye(size, dtype=dtype)
    close(lower @ np.triu(result), x[rows], dtype)
    sign, logarithm = by_elimination.lapack_slogdet(x)
    close(sign, np.linalg.slogdet(x)[0], dtype)
    close(logarithm, np.linalg.slogdet(x)[1], dtype)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_layout_is_read_and_left_as_it_is(dtype: str, layout: str) -> None:
    x, h = LAYOUTS[layout](square(dtype, 2)), LAYOUTS[layout](positive(dtype, 2))
    b = LAYOUTS[layout](drawn(dtype, 2, SIZE, 3))
    before = x.copy(), h.copy(), b.copy()
    close(factors.lapack_cholesky(h), np.linalg.cholesky(h), dtype)
    close(factors.lapack_eigh(h)[0], np.linalg.eigvalsh(h), dtype)
    close(by_elimination.lapack_inv(x), np.linalg.inv(x), dtype)
    close(by_elimination.lapack_slogdet(x)[1], np.linalg.slogdet(x)[1], dtype)
    close(by_elimination.lapack_solve(x, b), np.linalg.solve(x, b), dtype)
    close(np.matmul(*factors.lapack_qr(x, False, False)), x, dtype)
    close(factors.lapack_svdvals(x), np.linalg.svd(x, compute_uv=False), dtype)
    for result, expected in zip((x, h, b), before, strict=True):
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("shape", [(SIZE, SIZE), (2, SIZE + 9, SIZE), (SIZE, SIZE + 9)], ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_factors_of_matrices_of_any_shape(dtype: str, shape: tuple[int, ...], full: bool) -> None:
    x = drawn(dtype, *shape)
    rank = min(shape[-2:])
    mode = "complete" if full else "reduced"
    q, r = factors.lapack_qr(x, full, False)
    np.testing.assert_array_equal(factors.lapack_qr(x, full, True)[0], r)
    for result, expected in zip((q, r), np.linalg.qr(x, mode), strict=True):
        assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
    close(q @ r, x, dtype)
    np.testing.assert_array_equal(np.tril(r, -1), np.zeros_like(r))
    u, s, vh = factors.lapack_svd(x, full)
    for result, expected in zip((u, s, vh), np.linalg.svd(x, full), strict=True):
        assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
    close((u[..., :rank] * s[..., None, :]) @ vh[..., :rank, :], x, dtype)
    close(s, np.linalg.svd(x, compute_uv=False), dtype)
    close(factors.lapack_svdvals(x), s, dtype)
    for basis in (q, u, adjoint(vh)):
        identity = np.eye(basis.shape[-1], dtype=dtype)
        close(adjoint(basis) @ basis, np.broadcast_to(identity, (*shape[:-2], *identity.shape)), dtype)


@pytest.mark.parametrize(
    ("of_a", "of_b"), [((), ()), ((), (3,)), ((2,), ()), ((2, 1), (3,)), ((1, 2), (3, 1))], ids=str
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_systems_broadcast(dtype: str, of_a: tuple[int, ...], of_b: tuple[int, ...]) -> None:
    a, b = square(dtype, *of_a), drawn(dtype, *of_b, SIZE, 3)
    close(by_elimination.lapack_solve(a, b), np.linalg.solve(a, b), dtype)


def test_nothing_to_solve() -> None:
    a = square("f")
    assert by_elimination.lapack_solve(a, np.ones((SIZE, 0), "f")).shape == (SIZE, 0)
    assert by_elimination.lapack_solve(a, np.ones((0, SIZE, 2), "f")).shape == (0, SIZE, 2)
    with pytest.raises(ValueError, match="mismatch"):
        by_elimination.lapack_solve(a, np.ones((3, 2), "f"))


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_matrix_without_factors_is_reported(dtype: str, size: int) -> None:
    regular = np.eye(size, dtype=dtype)
    singular, negative, unknown = regular.copy(), regular.copy(), regular.copy()
    singular[5], negative[7, 7], unknown[3, 3] = 0, -1, np.nan
    failures: list[tuple[Callable[[Any], Any], Any]] = [
        (factors.lapack_cholesky, negative),
        (by_elimination.lapack_inv, singular),
        (lambda x: by_elimination.lapack_solve(x, x), singular),
        (lambda x: factors.lapack_svd(x, False), unknown),
        (factors.lapack_svdvals, unknown),
    ]
    for function, x in failures:
        with pytest.raises(np.linalg.LinAlgError):
            function(np.stack([regular, x]))
    sign, logarithm = by_elimination.lapack_slogdet(np.stack([regular, singular]))
    np.testing.assert_array_equal(sign, np.array([1, 0], dtype))
    np.testing.assert_array_equal(logarithm, [0, -np.inf])
    np.testing.assert_array_equal(by_elimination.lapack_det(singular), np.zeros((), dtype))


def test_determinants_beyond_the_range_of_the_logarithm_s_precision() -> None:
    x = np.diag(np.full(SIZE, 3.0)).astype("f")
    np.testing.assert_allclose(by_elimination.lapack_det(x), 3.0**SIZE, rtol=1e-5)


def test_a_routine_that_does_not_exist_is_not_available() -> None:
    x = square("f")
    assert not lapack.is_available(x, "such")
    assert not lapack.is_available(x[:0], "getrf")
    assert not lapack.is_available(x[1:], "getrf")
