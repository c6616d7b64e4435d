"""Decompositions of matrices, and their eigenvalues and singular values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, overload

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.tracebacks import make_entries
from dualflow.numpy.docstrings import complete_docstrings
from dualflow.numpy.manipulation import matrix_transpose as matrix_transpose
from dualflow.numpy.norms import matrix_norm as matrix_norm
from dualflow.numpy.norms import norm as norm
from dualflow.numpy.norms import vector_norm as vector_norm
from dualflow.numpy.operands import (
    Value,
    adjoint,
    as_matrices,
    to,
)
from dualflow.ops.linear_algebra import (
    cholesky as cholesky_factor,
)
from dualflow.ops.linear_algebra import (
    eigenvalues,
    orthogonal,
    singular_values,
)
from dualflow.ops.tensor import Tensor

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike


class EigenPairs(NamedTuple, Generic[Value]):
    """Eigenvalues, and eigenvectors as columns."""

    eigenvalues: Value
    eigenvectors: Value


class OrthogonalFactors(NamedTuple, Generic[Value]):
    """The factors of a QR decomposition: orthonormal columns, and an upper triangular matrix."""

    Q: Value
    R: Value


class SingularFactors(NamedTuple, Generic[Value]):
    """Left singular vectors, singular values, and the adjoint of the right singular vectors."""

    U: Value
    S: Value
    Vh: Value


def cholesky(a: TensorLike, /, *, upper: bool = False) -> Tensor:
    """The lower triangular matrices whose product with their adjoints is ``a``; the adjoints if ``upper``.

    Args:
        a: positive definite matrices; one triangle is read.
        upper: whether to read and return the upper triangle.

    Returns:
        A tensor with the shape of ``a``, and its dtype, float64 for integers.

    Raises:
        InvalidArgumentError: a matrix is not square or not positive definite.
        DTypeError: ``a`` is of float16.

    >>> import dualflow as df
    >>> df.numpy.linalg.cholesky([[4.0, 2.0], [2.0, 2.0]]).numpy().tolist()
    [[2.0, 0.0], [1.0, 1.0]]
    """
    x = as_matrices(a, square=True)
    triangle = cholesky_factor.cholesky(adjoint(x) if upper else x)
    return adjoint(triangle) if upper else triangle


@overload
def qr(a: TensorLike, mode: Literal["reduced", "complete"] = "reduced") -> OrthogonalFactors[Tensor]: ...
@overload
def qr(a: TensorLike, mode: Literal["r"]) -> Tensor: ...
@overload
def qr(a: TensorLike, mode: str = "reduced") -> Any: ...
def qr(a: TensorLike, mode: str = "reduced") -> Any:
    """Matrices Q with orthonormal columns and upper triangular matrices R with ``Q @ R = a``.

    Args:
        a: matrices.
        mode: "reduced", where Q has ``min(m, n)`` columns; "complete", where Q is square; or "r", which
            returns R alone.

    Returns:
        A named tuple of Q and R, in the dtype of ``a``, float64 for integers.

    Raises:
        InvalidArgumentError: ``mode`` is unknown, or ``a`` has fewer than two axes.
        DTypeError: ``a`` is of float16.

    >>> import dualflow as df
    >>> Q, R = df.numpy.linalg.qr([[3.0, 1.0], [4.0, 2.0]])
    >>> df.numpy.allclose(Q @ R, [[3, 1], [4, 2]]).numpy()
    np.True_
    """
    if mode not in ("reduced", "complete", "r"):
        raise InvalidArgumentError(f"qr's mode is 'reduced', 'complete' or 'r', not {mode!r}.")
    q, r = orthogonal.qr(as_matrices(a), mode == "complete")
    return r if mode == "r" else OrthogonalFactors(q, r)


@overload
def svd(
    a: TensorLike, full_matrices: bool = True, compute_uv: Literal[True] = True, hermitian: bool = False
) -> SingularFactors[Tensor]: ...
@overload
def svd(
    a: TensorLike, full_matrices: bool = True, *, compute_uv: Literal[False], hermitian: bool = False
) -> Tensor: ...
@overload
def svd(
    a: TensorLike, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Any: ...
def svd(a: TensorLike, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    """The singular value decomposition of matrices: ``U @ diag(S) @ Vh = a``.

    Args:
        a: matrices.
        full_matrices: whether U and Vh are square; they have ``min(m, n)`` columns and rows otherwise.
        compute_uv: whether to return U and Vh, too.
        hermitian: ignored.

    Returns:
        A named tuple of U, S and Vh, or S alone. S is real and descending; the dtype is that of ``a``,
        float64 for integers.

    Raises:
        InvalidArgumentError: ``a`` has fewer than two axes, or has inf or nan.
        DTypeError: ``a`` is of float16.

    >>> import dualflow as df
    >>> U, S, Vh = df.numpy.linalg.svd([[0.0, 2.0], [3.0, 0.0]])
    >>> S.numpy()
    array([3., 2.])
    """
    x = as_matrices(a)
    if not compute_uv:
        return singular_values.singular_values(x)
    s, u, v = singular_values.svd(x, full_matrices)
    return SingularFactors(u, s, adjoint(v))


def svdvals(x: TensorLike, /) -> Tensor:
    """The singular values of matrices, descending.

    Args:
        x: matrices.

    Returns:
        A tensor with ``min(m, n)`` in place of the last two sizes of ``x``, and its real dtype, float64 for
        integers.

    Raises:
        InvalidArgumentError: ``x`` has fewer than two axes, or has inf or nan.
        DTypeError: ``x`` is of float16.

    >>> import dualflow as df
    >>> df.numpy.linalg.svdvals([[0.0, 2.0], [3.0, 0.0]]).numpy()
    array([3., 2.])
    """
    return singular_values.singular_values(as_matrices(x))


def eigh(a: TensorLike, UPLO: str = "L") -> EigenPairs[Tensor]:
    """The eigenvalues, ascending, and the eigenvectors, as columns, of self-adjoint matrices.

    Args:
        a: self-adjoint matrices, of which one triangle is read.
        UPLO: the triangle, "L" for the lower or "U" for the upper.

    Returns:
        A named tuple of the eigenvalues, which are real, and the eigenvectors, in the dtype of ``a``, float64
        for integers.

    Raises:
        InvalidArgumentError: ``UPLO`` is another letter, or a matrix is not square or has inf or nan.
        DTypeError: ``a`` is of float16.

    >>> import dualflow as df
    >>> df.numpy.linalg.eigh([[2.0, 1.0], [1.0, 2.0]]).eigenvalues.numpy().round(6)
    array([1., 3.])
    """
    x = _lower(a, UPLO)
    _, vectors = pairs = eigenvalues.eigh(x)
    return EigenPairs(to(pairs[0], x.dtype.real), vectors)


def eigvalsh(a: TensorLike, UPLO: str = "L") -> Tensor:
    """The eigenvalues of self-adjoint matrices, ascending.

    Args:
        a: self-adjoint matrices, of which one triangle is read.
        UPLO: the triangle, "L" for the lower or "U" for the upper.

    Returns:
        A real tensor with the shape of ``a`` without the last axis.

    Raises:
        InvalidArgumentError: ``UPLO`` is another letter, or a matrix is not square or has inf or nan.
        DTypeError: ``a`` is of float16.

    >>> import dualflow as df
    >>> df.numpy.linalg.eigvalsh([[2.0, 1.0], [1.0, 2.0]]).numpy().round(6)
    array([1., 3.])
    """
    x = _lower(a, UPLO)
    return to(eigenvalues.eigvalsh(x), x.dtype.real)


def _lower(a: Any, side: str) -> Any:
    if side.upper() not in ("L", "U"):
        raise InvalidArgumentError(f"UPLO is 'L' or 'U', not {side!r}.")
    x = as_matrices(a, square=True)
    return x if side.upper() == "L" else adjoint(x)


def eig(a: TensorLike) -> EigenPairs[Tensor]:
    """The eigenvalues and the eigenvectors, as columns, of square matrices, as complex numbers.

    NumPy returns real numbers if all are real; here the dtype doesn't depend on the elements.

    Args:
        a: square matrices.

    Returns:
        A named tuple of the eigenvalues and the eigenvectors; complex64 for float32, else complex128.

    Raises:
        InvalidArgumentError: a matrix is not square, or has inf or nan.
        DTypeError: ``a`` is of float16.

    >>> import dualflow as df
    >>> df.numpy.linalg.eig([[0.0, 1.0], [-1.0, 0.0]]).eigenvalues.numpy().round(6)
    array([0.+1.j, 0.-1.j])
    """
    return EigenPairs(*eigenvalues.eig(as_matrices(a, square=True)))


def eigvals(a: TensorLike) -> Tensor:
    """The eigenvalues of square matrices, as complex numbers; see :func:`eig`.

    Args:
        a: square matrices.

    Returns:
        A tensor with the shape of ``a`` without the last axis; complex64 for float32, else complex128.

    Raises:
        InvalidArgumentError: a matrix is not square, or has inf or nan.
        DTypeError: ``a`` is of float16.

    >>> import dualflow as df
    >>> df.numpy.linalg.eigvals([[0.0, 1.0], [-1.0, 0.0]]).numpy().round(6)
    array([0.+1.j, 0.-1.j])
    """
    return eigenvalues.eigvals(as_matrices(a, square=True))


complete_docstrings(globals())
make_entries(globals())
