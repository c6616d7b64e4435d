"""LU factors, inverses, determinants and solutions by LAPACK: see ``factors.py``."""

from __future__ import annotations

from typing import Any

import numpy as np

from dualflow.core.blas_threads import for_matrices
from dualflow.core.exported import exported_as
from dualflow.core.strided import row_major
from dualflow.ops.linear_algebra.lapack import call, call_with_work, columns, integers, is_available


def _scipy_lu(x: Any) -> tuple[Any, Any, int]:
    from scipy.linalg import lapack

    name = {"f": "sgetrf", "d": "dgetrf", "F": "cgetrf", "D": "zgetrf"}[x.dtype.char]
    factors: tuple[Any, Any, int] = getattr(lapack, name)(x)
    return factors


@exported_as(_scipy_lu)
def lapack_lu(x: Any) -> tuple[Any, Any, int]:
    """Both factors of one matrix, the row that each row was exchanged with, and 0 if it is invertible."""
    if not is_available(x, "getrf"):
        return _scipy_lu(x)
    with for_matrices(x.size):
        factors, exchanged, info = _eliminated(columns(x))
    return factors, exchanged - 1, info


def _eliminated(matrix: Any) -> tuple[Any, Any, int]:
    """Overwrite ``matrix`` by its LU factors; returns it, the row exchanges from 1, and LAPACK's ``info``."""
    size = len(matrix)
    exchanged = integers(size)
    info = call("getrf", matrix.dtype, size, size, matrix, size, exchanged)
    return matrix, exchanged, info


def _numpy_inv(x: Any) -> Any:
    return np.linalg.inv(x)


@exported_as(_numpy_inv)
def lapack_inv(x: Any) -> Any:
    """The inverses of square matrices.

    Raises:
        LinAlgError: a matrix is not invertible.
    """
    if not is_available(x, "getrf", "getri"):
        return np.linalg.inv(x)
    out = row_major(x)
    size = x.shape[-1]
    with for_matrices(size * size):
        for at in np.ndindex(*x.shape[:-2]):
            # Rows are the columns of the transpose, whose inverse is the transpose of the inverse.
            factors, exchanged, info = _eliminated(out[at].T)
            if info or call_with_work("getri", x.dtype, size, factors, size, exchanged):
                raise np.linalg.LinAlgError
    return out


def _numpy_slogdet(x: Any) -> tuple[Any, ...]:
    return tuple(np.linalg.slogdet(x))


@exported_as(_numpy_slogdet)
def lapack_slogdet(x: Any) -> tuple[Any, ...]:
    """The sign of the determinants, and the logarithm of their absolute values."""
    if not is_available(x, "getrf"):
        return tuple(np.linalg.slogdet(x))
    sign, logarithm = _slogdet(x)
    return sign, logarithm.astype(x.real.dtype)


def _numpy_det(x: Any) -> Any:
    return np.linalg.det(x)


@exported_as(_numpy_det)
def lapack_det(x: Any) -> Any:
    """The determinants of square matrices."""
    if not is_available(x, "getrf"):
        return np.linalg.det(x)
    sign, logarithm = _slogdet(x)
    return np.asarray(sign * np.exp(logarithm)).astype(x.dtype)


def _slogdet(x: Any) -> tuple[Any, Any]:
    """The sign, and the logarithm in float64, which the determinant needs."""
    batch, size = x.shape[:-2], x.shape[-1]
    sign, logarithm = np.empty(batch, x.dtype), np.empty(batch)
    with for_matrices(size * size):
        for at in np.ndindex(*batch):
            # The transpose, which has the memory order of the matrix, has the same determinant.
            factors, exchanged, info = _eliminated(row_major(x[at]).T)
            if info:
                sign[at], logarithm[at] = 0, -np.inf
                continue
            pivots = factors.diagonal()
            sizes = np.abs(pivots)
            exchanges = np.count_nonzero(exchanged != np.arange(1, size + 1))
            sign[at] = np.multiply.reduce(pivots / sizes) * (-1 if exchanges % 2 else 1)
            logarithm[at] = np.add.reduce(np.log(sizes, dtype=np.float64))
    return sign, logarithm


def _numpy_solve(a: Any, b: Any) -> Any:
    return np.linalg.solve(a, b)


@exported_as(_numpy_solve)
def lapack_solve(a: Any, b: Any) -> Any:
    """``x`` in ``a @ x = b``, of matrices; the batches broadcast.

    Raises:
        LinAlgError: a matrix is not invertible.
    """
    if not is_available(a, "getrf", "getrs") or not b.size:
        return np.linalg.solve(a, b)
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    sides = b if b.shape[:-2] == batch else np.broadcast_to(b, (*batch, *b.shape[-2:]))
    size, width = sides.shape[-2:]
    if a.shape[-2:] != (size, size):
        return np.linalg.solve(a, b)  # which raises
    out = np.swapaxes(row_major(np.swapaxes(sides, -1, -2)), -1, -2)
    factored: dict[tuple[int, ...], tuple[Any, Any, int]] = {}
    with for_matrices(size * max(size, width)):
        for at in np.ndindex(*batch):
            of_a = at[len(batch) - a.ndim + 2 :]
            index = tuple(i if d > 1 else 0 for i, d in zip(of_a, a.shape, strict=False))
            if index not in factored:
                # Rows are the columns of the transpose, whose factors are no less good.
                factored = {index: _eliminated(row_major(a[index]).T)}
            factors, exchanged, info = factored[index]
            if info:
                raise np.linalg.LinAlgError
            call("getrs", a.dtype, "T", size, width, factors, size, exchanged, out[at], size)
    return out
