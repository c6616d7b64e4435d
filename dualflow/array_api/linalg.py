"""The standard's linear algebra: ``dualflow.array_api.linalg``.

Matrices are the last two axes; those before them are a batch. Integers count as float64.
"""

from __future__ import annotations

import operator
from typing import Literal

from dualflow.array_api.array import Array, as_floating_tensor, tensor_of
from dualflow.array_api.axes import axes_of, axis_of
from dualflow.array_api.data_types import promote_all
from dualflow.array_api.products import matmul as matmul
from dualflow.array_api.products import matrix_transpose as matrix_transpose
from dualflow.array_api.products import tensordot as tensordot
from dualflow.array_api.products import vecdot as vecdot
from dualflow.core.argument_types import AnyArray, AxisLike, DTypeLike
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.namespace import publish as _publish
from dualflow.core.tracebacks import make_entries
from dualflow.numpy import linalg as matrices
from dualflow.numpy import norms
from dualflow.numpy.docstrings import complete_docstrings
from dualflow.numpy.linalg import EigenPairs, OrthogonalFactors, SignAndLogarithm, SingularFactors
from dualflow.numpy.operands import as_matrices, default_rtol
from dualflow.ops.linear_algebra import inverse

__all__ = [
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eigh",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]

# Decompositions


def cholesky(x: AnyArray, /, *, upper: bool = False) -> Array:
    """The triangular factor of positive definite matrices: ``x = L @ adjoint(L)``.

    Args:
        x: square matrices, of which the lower triangle is read.
        upper: whether to return the adjoint of the factor, which is upper triangular.

    Returns:
        An array with the shape of ``x``, and its dtype, float64 for integers.

    Raises:
        InvalidArgumentError: a matrix is not square, or not positive definite.

    >>> import dualflow.array_api as xp
    >>> xp.linalg.cholesky(xp.asarray([[4.0, 2.0], [2.0, 5.0]])).tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    return Array(matrices.cholesky(tensor_of(x), upper=upper))


def eigh(x: AnyArray, /) -> EigenPairs[Array]:
    """The ``eigenvalues``, real and ascending, of Hermitian matrices, and ``eigenvectors`` as columns.

    Returns:
        A named tuple of ``eigenvalues``, in the real dtype of ``x``, and ``eigenvectors``, in its dtype.

    Raises:
        InvalidArgumentError: a matrix is not square.

    >>> import dualflow.array_api as xp
    >>> xp.linalg.eigh(xp.asarray([[2.0, 0.0], [0.0, 1.0]])).eigenvalues.tolist()
    [1.0, 2.0]
    """
    return EigenPairs(*map(Array, matrices.eigh(tensor_of(x))))


def eigvalsh(x: AnyArray, /) -> Array:
    """The eigenvalues of Hermitian matrices, real and ascending.

    Returns:
        An array with the shape of ``x`` without the last axis, and its real dtype.

    Raises:
        InvalidArgumentError: a matrix is not square.

    >>> import dualflow.array_api as xp
    >>> xp.linalg.eigvalsh(xp.asarray([[2.0, 0.0], [0.0, 1.0]])).tolist()
    [1.0, 2.0]
    """
    return Array(matrices.eigvalsh(tensor_of(x)))


def qr(x: AnyArray, /, *, mode: Literal["reduced", "complete"] = "reduced") -> OrthogonalFactors[Array]:
    """Matrices as products of orthonormal columns ``Q`` and upper triangular matrices ``R``.

    Args:
        x: matrices.
        mode: "reduced" for as many columns as the smaller size, or "complete" for as many as rows.

    Returns:
        A named tuple of ``Q`` and ``R``, in the dtype of ``x``.

    Raises:
        InvalidArgumentError: there are fewer than two axes, or ``mode`` is unknown.

    >>> import dualflow.array_api as xp
    >>> q, r = xp.linalg.qr(xp.asarray([[3.0, 1.0], [4.0, 2.0]]))
    >>> bool(xp.all(xp.abs(q @ r - xp.asarray([[3.0, 1.0], [4.0, 2.0]])) < 1e-12))
    True
    """
    if mode not in ("reduced", "complete"):
        raise InvalidArgumentError(f"qr's mode is 'reduced' or 'complete', not {mode!r}.")
    return OrthogonalFactors(*map(Array, matrices.qr(tensor_of(x), mode)))


def svd(x: AnyArray, /, *, full_matrices: bool = True) -> SingularFactors[Array]:
    """The singular value decomposition: ``x = U @ diag(S) @ Vh``, where ``S`` is real and descending.

    Args:
        x: matrices.
        full_matrices: whether ``U`` and ``Vh`` are square, or have as many columns and rows as ``S`` has
            elements.

    Returns:
        A named tuple of ``U``, ``S`` and ``Vh``; ``S`` has the real dtype of ``x``.

    Raises:
        InvalidArgumentError: fewer than two axes.

    >>> import dualflow.array_api as xp
    >>> xp.linalg.svd(xp.asarray([[0.0, 2.0], [1.0, 0.0]])).S.tolist()
    [2.0, 1.0]
    """
    return SingularFactors(*map(Array, matrices.svd(tensor_of(x), full_matrices)))


def svdvals(x: AnyArray, /) -> Array:
    """The singular values of matrices, in descending order.

    Returns:
        An array with the shape of ``x``, where the smaller of the last two sizes replaces both, and its real
        dtype.

    Raises:
        InvalidArgumentError: fewer than two axes.

    >>> import dualflow.array_api as xp
    >>> xp.linalg.svdvals(xp.asarray([[0.0, 2.0], [1.0, 0.0]])).tolist()
    [2.0, 1.0]
    """
    return Array(matrices.svdvals(tensor_of(x)))


# Determinants, inverses and equations


def det(x: AnyArray, /) -> Array:
    """The determinants of square matrices.

    Returns:
        An array with the shape of ``x`` without the last two axes, and its dtype.

    Raises:
        InvalidArgumentError: a matrix is not square.

    >>> import dualflow.array_api as xp
    >>> xp.linalg.det(xp.asarray([[2.0, 0.0], [0.0, 3.0]])).tolist()
    6.0
    """
    return Array(inverse.det(as_floating_tensor(x)))


def slogdet(x: AnyArray, /) -> SignAndLogarithm[Array]:
    """The ``sign`` of the determinants of square matrices, and ``logabsdet``, the logarithm of its magnitude.

    Returns:
        A named tuple of ``sign``, in the dtype of ``x``, and ``logabsdet``, in its real dtype.

    Raises:
        InvalidArgumentError: a matrix is not square.

    >>> import dualflow.array_api as xp
    >>> [part.tolist() for part in xp.linalg.slogdet(xp.asarray([[-1.0, 0.0], [0.0, 1.0]]))]
    [-1.0, 0.0]
    """
    return SignAndLogarithm(*map(Array, matrices.slogdet(tensor_of(x))))


def inv(x: AnyArray, /) -> Array:
    """The inverses of square matrices.

    Returns:
        An array with the shape and dtype of ``x``.

    Raises:
        InvalidArgumentError: a matrix is not square, or not invertible.

    >>> import dualflow.array_api as xp
    >>> xp.linalg.inv(xp.asarray([[2.0, 0.0], [0.0, 4.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    return Array(inverse.inv(as_floating_tensor(x)))


def solve(x1: AnyArray, x2: AnyArray, /) -> Array:
    """The solutions ``x`` of ``x1 @ x = x2``.

    Args:
        x1: square matrices.
        x2: right-hand sides: a vector, or matrices; the batches broadcast.

    Returns:
        An array with the shape of ``x2``, and the common dtype.

    Raises:
        InvalidArgumentError: sizes that do not fit, or matrices that are not invertible.

    >>> import dualflow.array_api as xp
    >>> xp.linalg.solve(xp.asarray([[2.0, 0.0], [0.0, 4.0]]), xp.asarray([2.0, 2.0])).tolist()
    [1.0, 0.5]
    """
    return Array(matrices.solve(*promote_all(as_floating_tensor(x1), as_floating_tensor(x2))))


def pinv(x: AnyArray, /, *, rtol: AnyArray | float | None = None) -> Array:
    """The pseudo-inverses of matrices.

    Args:
        x: matrices.
        rtol: singular values up to this part of the largest count as 0: a number, or one for each matrix. By
            default the larger size times the dtype's ``eps``.

    Returns:
        An array with the last two sizes of ``x`` exchanged, and its dtype.

    Raises:
        InvalidArgumentError: fewer than two axes.

    >>> import dualflow.array_api as xp
    >>> xp.linalg.pinv(xp.asarray([[2.0, 0.0], [0.0, 0.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.0]]
    """
    tensor = as_matrices(tensor_of(x))
    return Array(matrices.pinv(tensor, default_rtol(tensor) if rtol is None else rtol))


def matrix_rank(x: AnyArray, /, *, rtol: AnyArray | float | None = None) -> Array:
    """The ranks of matrices: the number of singular values that do not count as 0; see :func:`pinv`.

    Args:
        x: an array of two axes or more.
        rtol: the bound, relative to the largest singular value; the larger size times the dtype's ``eps`` by
            default.

    Returns:
        An int64 array with the shape of ``x`` without the last two axes.

    Raises:
        InvalidArgumentError: ``x`` has fewer than two axes.

    >>> import dualflow.array_api as xp
    >>> xp.linalg.matrix_rank(xp.asarray([[1.0, 1.0], [1.0, 1.0]])).tolist()
    1
    """
    return Array(matrices.matrix_rank(as_matrices(tensor_of(x)), rtol=rtol))


def matrix_power(x: AnyArray, n: int, /) -> Array:
    """Square matrices to an integer power; a negative one inverts them first.

    Args:
        x: square matrices.
        n: an integer.

    Returns:
        An array with the shape and dtype of ``x``.

    Raises:
        InvalidArgumentError: a matrix is not square, or not invertible where ``n`` is negative.

    >>> import dualflow.array_api as xp
    >>> xp.linalg.matrix_power(xp.asarray([[1.0, 1.0], [0.0, 1.0]]), 3).tolist()
    [[1.0, 3.0], [0.0, 1.0]]
    """
    return Array(matrices.matrix_power(tensor_of(x), n))


# Norms


def vector_norm(
    x: AnyArray, /, *, axis: AxisLike | None = None, keepdims: bool = False, ord: float = 2
) -> Array:
    """The norms of vectors, real: the root of order ``ord`` of the sum of powers of magnitudes.

    Args:
        x: numbers.
        axis: along which the vectors are: one axis or several; all by default.
        keepdims: keep these axes, as size 1.
        ord: the order; inf for the largest magnitude, -inf for the smallest, 0 for how many are not 0.

    Returns:
        A real array with the shape of ``x`` without the axes.

    Raises:
        InvalidArgumentError: ``axis`` is out of range, or ``ord`` is not a number.

    >>> import dualflow.array_api as xp
    >>> xp.linalg.vector_norm(xp.asarray([3.0, 4.0])).tolist()
    5.0
    """
    tensor = as_floating_tensor(x)
    return Array(norms.of_vectors(tensor, ord, axes_of(axis, len(tensor.shape)), keepdims))


def matrix_norm(x: AnyArray, /, *, keepdims: bool = False, ord: float | str = "fro") -> Array:
    """The norms of matrices, real.

    Args:
        x: matrices.
        keepdims: keep the last two axes, as size 1.
        ord: "fro" for the root of the sum of squared magnitudes, "nuc" for the sum of singular values, 2 and
            -2 for the largest and smallest of these, 1 and -1 for the largest and smallest sum of magnitudes
            of a column, inf and -inf for those of a row.

    Returns:
        A real array with the shape of ``x`` without the last two axes.

    Raises:
        InvalidArgumentError: there are fewer than two axes, or ``ord`` is unknown.

    >>> import dualflow.array_api as xp
    >>> xp.linalg.matrix_norm(xp.asarray([[1.0, -2.0], [3.0, 4.0]]), ord=1).tolist()
    6.0
    """
    tensor = as_matrices(tensor_of(x))
    rank = len(tensor.shape)
    return Array(norms.of_matrices(tensor, ord, rank - 2, rank - 1, keepdims))


# Products of vectors, and diagonals


def outer(x1: AnyArray, x2: AnyArray, /) -> Array:
    """The products of each element of a vector with each of another.

    Returns:
        A matrix of shape (x1.size, x2.size), and the common dtype.

    Raises:
        InvalidArgumentError: an array doesn't have one axis.

    >>> import dualflow.array_api as xp
    >>> xp.linalg.outer(xp.asarray([1, 2]), xp.asarray([3, 4])).tolist()
    [[3, 4], [6, 8]]
    """
    return Array(matrices.outer(*promote_all(x1, x2)))


def cross(x1: AnyArray, x2: AnyArray, /, *, axis: int = -1) -> Array:
    """The cross product of vectors of three elements along ``axis``; the other axes broadcast.

    Returns:
        An array with the shape to which the inputs broadcast, and the common dtype.

    Raises:
        InvalidArgumentError: the number of elements differs, or sizes that do not broadcast.

    >>> import dualflow.array_api as xp
    >>> xp.linalg.cross(xp.asarray([1, 0, 0]), xp.asarray([0, 1, 0])).tolist()
    [0, 0, 1]
    """
    x, y = promote_all(x1, x2)
    rank = min(len(x.shape), len(y.shape))
    return Array(matrices.cross(x, y, axis=axis_of(axis, rank) - rank))


def diagonal(x: AnyArray, /, *, offset: int = 0) -> Array:
    """The diagonals of matrices.

    Args:
        x: an array of two axes or more.
        offset: which diagonal: 0 for the main one, above it positive.

    Returns:
        An array with the shape of ``x``, where the diagonal replaces the last two axes, and its dtype.

    Raises:
        InvalidArgumentError: fewer than two axes, or sizes that are not known.

    >>> import dualflow.array_api as xp
    >>> xp.linalg.diagonal(xp.asarray([[1, 2], [3, 4]])).tolist()
    [1, 4]
    """
    return Array(matrices.diagonal(tensor_of(x), offset=operator.index(offset)))


def trace(x: AnyArray, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Array:
    """The sums of the diagonals of matrices; see :func:`diagonal`, and :func:`sum` for dtypes.

    Args:
        x: an array of two axes or more.
        offset: the diagonal: 0 is the main one, positive ones are above it.
        dtype: the dtype to add in; by default that of ``x``, 64 bits for integers.

    Returns:
        An array with the shape of ``x`` without the last two axes, and the dtype.

    Raises:
        InvalidArgumentError: ``x`` has fewer than two axes.

    >>> import dualflow.array_api as xp
    >>> xp.linalg.trace(xp.asarray([[1, 2], [3, 4]])).tolist()
    5
    """
    return Array(matrices.trace(tensor_of(x), offset=operator.index(offset), dtype=dtype))


complete_docstrings(
    globals(),
    "is no array",
    x="an array of any shape.",
    x1="an array, or a number if ``x2`` is an array.",
    x2="an array, or a number if ``x1`` is an array.",
)
make_entries(globals())
_publish(globals())
