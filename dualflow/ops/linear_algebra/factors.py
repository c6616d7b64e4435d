"""Decompositions of matrices by LAPACK, with the results and errors of the functions of ``np.linalg``.

Those compute small matrices, and all where the routines are not found.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dualflow.core.blas_threads import for_matrices
from dualflow.core.exported import exported_as
from dualflow.core.strided import row_major
from dualflow.ops.linear_algebra.lapack import (
    call,
    call_with_work,
    clear_below,
    columns,
    integers,
    is_available,
)

Factors = tuple[Any, ...]


def _numpy_cholesky(x: Any) -> Any:
    return np.linalg.cholesky(x)


@exported_as(_numpy_cholesky)
def lapack_cholesky(x: Any) -> Any:
    """The lower triangular factor.

    Raises:
        LinAlgError: a matrix is not positive definite.
    """
    if not is_available(x, "potrf", "laset"):
        return np.linalg.cholesky(x)
    out = row_major(x)
    size = x.shape[-1]
    with for_matrices(size * size):
        for at in np.ndindex(*x.shape[:-2]):
            # Rows are the columns of the transpose, whose upper factor is the transpose of the lower one.
            upper = out[at].T
            if call("potrf", x.dtype, "U", size, upper, size):
                raise np.linalg.LinAlgError
            clear_below(upper)
    return out


def _numpy_qr(x: Any, full_matrices: bool, only_r: bool) -> Factors:
    q, r = np.linalg.qr(x, "complete" if full_matrices else "reduced")
    return (r,) if only_r else (q, r)


@exported_as(_numpy_qr)
def lapack_qr(x: Any, full_matrices: bool, only_r: bool) -> Factors:
    """``q`` and ``r``, or the latter alone."""
    if not is_available(x, "geqrf", "ungqr", "laset"):
        return _numpy_qr(x, full_matrices, only_r)
    *batch, rows, width = x.shape
    inner = rows if full_matrices else min(rows, width)
    r = _stack(batch, inner, width, x.dtype)
    q = None if only_r else _stack(batch, rows, inner, x.dtype)
    with for_matrices(rows * width):
        for at in np.ndindex(*batch):
            _qr(x[at], None if q is None else q[at], r[at])
    return (r,) if q is None else (q, r)


def _qr(x: Any, q: Any, r: Any) -> None:
    rows, width = x.shape
    inner, rank = len(r), min(rows, width)
    reflections, scales = columns(x), np.empty(rank, x.dtype)
    call_with_work("geqrf", x.dtype, rows, width, reflections, rows, scales)
    r[...] = reflections[:inner]
    clear_below(r)
    if q is not None:
        q[:, :rank] = reflections[:, :rank]
        call_with_work("ungqr", x.dtype, rows, inner, rank, q, rows, scales)


def _numpy_svd(x: Any, full_matrices: bool) -> Factors:
    return tuple(np.linalg.svd(x, full_matrices))


@exported_as(_numpy_svd)
def lapack_svd(x: Any, full_matrices: bool) -> Factors:
    """The singular value decomposition by LAPACK: ``u``, ``s`` and ``vh``.

    Raises:
        LinAlgError: LAPACK doesn't converge, for example for a matrix with nan.
    """
    if not is_available(x, "gesdd"):
        return tuple(np.linalg.svd(x, full_matrices))
    *batch, rows, width = x.shape
    rank = min(rows, width)
    u = _stack(batch, rows, rows if full_matrices else rank, x.dtype)
    vh = _stack(batch, width if full_matrices else rank, width, x.dtype)
    s = np.empty((*batch, rank), x.real.dtype)
    with for_matrices(rows * width):
        for at in np.ndindex(*batch):
            _svd("A" if full_matrices else "S", x[at], s[at], u[at], vh[at])
    return u, s, vh


def _numpy_svdvals(x: Any) -> Any:
    return np.linalg.svd(x, compute_uv=False)


@exported_as(_numpy_svdvals)
def lapack_svdvals(x: Any) -> Any:
    """The singular values.

    Raises:
        LinAlgError: they are not found, as those of nan.
    """
    if not is_available(x, "gesdd"):
        return np.linalg.svd(x, compute_uv=False)
    *batch, rows, width = x.shape
    s, unused = np.empty((*batch, min(rows, width)), x.real.dtype), np.empty((1, 1), x.dtype)
    with for_matrices(rows * width):
        for at in np.ndindex(*batch):
            _svd("N", x[at], s[at], unused, unused)
    return s


def _svd(job: str, x: Any, s: Any, u: Any, vh: Any) -> None:
    rows, width = x.shape
    low, high = sorted(x.shape)
    trailing = [integers(8 * low)]
    if x.dtype.kind == "c":  # the size that LAPACK's documentation of cgesdd states
        size = 7 * low if job == "N" else low * max(5 * low + 7, 2 * high + 2 * low + 1)
        trailing.insert(0, np.empty(size, s.dtype))
    arrays = columns(x), rows, s, u, len(u), vh, len(vh)
    if call_with_work("gesdd", x.dtype, job, rows, width, *arrays, trailing=trailing):
        raise np.linalg.LinAlgError


def _numpy_eigh(x: Any) -> Factors:
    return tuple(np.linalg.eigh(x))


@exported_as(_numpy_eigh)
def lapack_eigh(x: Any) -> Factors:
    """The eigenvalues and the eigenvectors of self-adjoint matrices, of which the lower triangle is read.

    Raises:
        LinAlgError: they are not found.
    """
    if not is_available(x, "heevd"):
        return tuple(np.linalg.eigh(x))
    *batch, size, _ = x.shape
    values, vectors = np.empty((*batch, size), x.real.dtype), _stack(batch, size, size, x.dtype)
    with for_matrices(size * size):
        for at in np.ndindex(*batch):
            vectors[at] = x[at]
            _eigh("V", vectors[at], values[at])
    return values, vectors


def _numpy_eigvalsh(x: Any) -> Any:
    return np.linalg.eigvalsh(x)


@exported_as(_numpy_eigvalsh)
def lapack_eigvalsh(x: Any) -> Any:
    """The eigenvalues of self-adjoint matrices, of which the lower triangle is read.

    Raises:
        LinAlgError: they are not found.
    """
    if not is_available(x, "heevd"):
        return np.linalg.eigvalsh(x)
    *batch, size, _ = x.shape
    values = np.empty((*batch, size), x.real.dtype)
    with for_matrices(size * size):
        for at in np.ndindex(*batch):
            _eigh("N", columns(x[at]), values[at])
    return values


def _eigh(job: str, matrix: Any, values: Any) -> None:
    """Overwrite ``matrix`` by its eigenvectors, and ``values`` by its eigenvalues."""
    size, kinds = len(matrix), "xri" if matrix.dtype.kind == "c" else "xi"
    if call_with_work("heevd", matrix.dtype, job, "L", size, matrix, size, values, kinds=kinds):
        raise np.linalg.LinAlgError


def _stack(batch: Any, rows: int, width: int, dtype: Any) -> Any:
    """Uninitialized column-major matrices."""
    return np.swapaxes(np.empty((*batch, width, rows), dtype), -1, -2)
