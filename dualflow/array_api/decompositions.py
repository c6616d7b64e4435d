"""Decompositions of matrices, which are the last two axes; those before them are a batch."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from dualflow import linalg as matrices
from dualflow.array_api.array import Array, in_floats
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.tracebacks import make_entries
from dualflow.ops.arrangement import matrix_transpose as swap_last
from dualflow.ops.conversion import cast


class EighResult(NamedTuple):
    """What :func:`eigh` returns."""

    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """What :func:`qr` returns."""

    Q: Array
    R: Array


class SVDResult(NamedTuple):
    """What :func:`svd` returns."""

    U: Array
    S: Array
    Vh: Array


def cholesky(x: Any, /, *, upper: bool = False) -> Array:
    """The triangular factor of positive definite matrices: ``x = L @ adjoint(L)``.

    Args:
        x: square matrices, of which the lower triangle is read.
        upper: whether to return the adjoint of the factor, which is upper triangular.

    Raises:
        InvalidArgumentError: not square, or not positive definite.

    >>> import dualflow.array_api as xp
    >>> xp.linalg.cholesky(xp.asarray([[4.0, 2.0], [2.0, 5.0]])).tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    tensor = in_floats(x)
    if not upper:
        return Array(matrices.cholesky(tensor))
    return Array(adjoint(matrices.cholesky(adjoint(tensor))))


def adjoint(x: Any) -> Any:
    return swap_last(x, conjugate=True) if x.dtype.is_complex else swap_last(x)


def eigh(x: Any, /) -> EighResult:
    """The eigenvalues, in ascending order, and eigenvectors of symmetric or Hermitian matrices.

    Returns:
        A named tuple of ``eigenvalues``, real, and ``eigenvectors``, which are the columns.

    Raises:
        InvalidArgumentError: not square matrices.

    >>> import dualflow.array_api as xp
    >>> xp.linalg.eigh(xp.asarray([[2.0, 0.0], [0.0, 1.0]])).eigenvalues.tolist()
    [1.0, 2.0]
    """
    values, vectors = matrices.eigh(in_floats(x))
    return EighResult(Array(real_part(values)), Array(vectors))


def eigvalsh(x: Any, /) -> Array:
    """The eigenvalues of symmetric or Hermitian matrices, real, in ascending order.

    Raises:
        InvalidArgumentError: not square matrices.

    >>> import dualflow.array_api as xp
    >>> xp.linalg.eigvalsh(xp.asarray([[2.0, 0.0], [0.0, 1.0]])).tolist()
    [1.0, 2.0]
    """
    return Array(real_part(matrices.eigvalsh(in_floats(x))))


def real_part(x: Any) -> Any:
    return cast(x, x.dtype.real) if x.dtype.is_complex else x


def qr(x: Any, /, *, mode: Literal["reduced", "complete"] = "reduced") -> QRResult:
    """Matrices as products of orthonormal columns and upper triangular matrices.

    Args:
        x: matrices.
        mode: "reduced" for as many columns as the smaller size, or "complete" for as many as rows.

    Returns:
        A named tuple of ``Q`` and ``R``.

    Raises:
        InvalidArgumentError: fewer than two axes, or another mode.

    >>> import dualflow.array_api as xp
    >>> q, r = xp.linalg.qr(xp.asarray([[3.0, 1.0], [4.0, 2.0]]))
    >>> bool(xp.all(xp.abs(q @ r - xp.asarray([[3.0, 1.0], [4.0, 2.0]])) < 1e-12))
    True
    """
    if mode not in ("reduced", "complete"):
        raise InvalidArgumentError(f"qr's mode is 'reduced' or 'complete', not {mode!r}.")
    q, r = matrices.qr(in_floats(x), full_matrices=mode == "complete")
    return QRResult(Array(q), Array(r))


def svd(x: Any, /, *, full_matrices: bool = True) -> SVDResult:
    """The singular value decomposition: ``x = U @ diag(S) @ Vh``.

    Args:
        x: matrices.
        full_matrices: whether ``U`` and ``Vh`` are square, or have as many columns and rows as ``S`` has
            elements.

    Returns:
        A named tuple of ``U``, ``S``, real, in descending order, and ``Vh``.

    Raises:
        InvalidArgumentError: fewer than two axes.

    >>> import dualflow.array_api as xp
    >>> xp.linalg.svd(xp.asarray([[0.0, 2.0], [1.0, 0.0]])).S.tolist()
    [2.0, 1.0]
    """
    s, u, v = matrices.svd(in_floats(x), full_matrices=full_matrices)
    return SVDResult(Array(u), Array(s), Array(adjoint(v)))


def svdvals(x: Any, /) -> Array:
    """The singular values of matrices, in descending order.

    Raises:
        InvalidArgumentError: fewer than two axes.

    >>> import dualflow.array_api as xp
    >>> xp.linalg.svdvals(xp.asarray([[0.0, 2.0], [1.0, 0.0]])).tolist()
    [2.0, 1.0]
    """
    return Array(matrices.svd(in_floats(x), compute_uv=False))


make_entries(globals())
