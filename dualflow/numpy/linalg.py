"""Linear algebra by NumPy's names: ``df.numpy.linalg``."""

from __future__ import annotations

import functools
import math
from typing import Any, Generic, NamedTuple

import numpy as np

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.namespace import publish as _publish
from dualflow.core.tracebacks import make_entries
from dualflow.numpy import indexing, products, reductions
from dualflow.numpy.manipulation import matrix_transpose as matrix_transpose
from dualflow.numpy.norms import matrix_norm as matrix_norm
from dualflow.numpy.norms import norm as norm
from dualflow.numpy.norms import vector_norm as vector_norm
from dualflow.numpy.operands import (
    Value,
    agreed,
    as_matrices,
    default_rtol,
    flat,
    inexact,
    refuse,
    tensor,
    to,
)
from dualflow.ops.arrangement import reshape, transpose
from dualflow.ops.broadcasting import broadcast_to, reduce_sum
from dualflow.ops.complex_numbers import conj
from dualflow.ops.linear_algebra import (
    cholesky as factors,
)
from dualflow.ops.linear_algebra import (
    eigenvalues,
    inverse,
    orthogonal,
    singular_values,
    solving,
)
from dualflow.ops.reduction import reduce_max
from dualflow.ops.selection import where
from dualflow.ops.static import ints, static_int
from dualflow.ops.statistics import squared_magnitude
from dualflow.ops.tensor import Tensor

__all__ = [
    "cholesky",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "lstsq",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "multi_dot",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "tensorinv",
    "tensorsolve",
    "trace",
    "vecdot",
    "vector_norm",
]


class EigenPairs(NamedTuple, Generic[Value]):
    """Eigenvalues, and eigenvectors as columns."""

    eigenvalues: Value
    eigenvectors: Value


class OrthogonalFactors(NamedTuple, Generic[Value]):
    """Orthonormal columns, and an upper triangle."""

    Q: Value
    R: Value


class SignAndLogarithm(NamedTuple, Generic[Value]):
    """The sign of a determinant, and the logarithm of its magnitude."""

    sign: Value
    logabsdet: Value


class SingularFactors(NamedTuple, Generic[Value]):
    """Left singular vectors, singular values, and the adjoint of the right singular vectors."""

    U: Value
    S: Value
    Vh: Value


def _adjoint(x: Any) -> Any:
    return conj(x.mT) if x.dtype.is_complex else x.mT


# Products


def matmul(x1: Any, x2: Any, /) -> Tensor:
    """The product of matrices along the last two axes; see :func:`dualflow.numpy.matmul`."""
    return products.matmul(x1, x2)


def multi_dot(arrays: Any, *, out: Any = None) -> Tensor:
    """The product of several matrices, of which the first and the last may be vectors.

    >>> import dualflow as df
    >>> df.numpy.linalg.multi_dot([[1, 2], [[1, 0], [0, 1]], [3, 4]]).numpy()
    np.int64(11)
    """
    refuse("multi_dot", out=out)
    if len(arrays) < 2:
        raise InvalidArgumentError(f"multi_dot takes two tensors or more, not {len(arrays)}.")
    return functools.reduce(products.dot, arrays)


def matrix_power(a: Any, n: Any) -> Tensor:
    """Square matrices multiplied by themselves ``n`` times; a negative ``n`` takes the inverse.

    >>> import dualflow as df
    >>> df.numpy.linalg.matrix_power([[1, 1], [0, 1]], 5).numpy().tolist()
    [[1, 5], [0, 1]]
    """
    x, times = tensor(a), static_int(n, "n")
    if len(x.shape) < 2 or x.shape[-1] != x.shape[-2]:
        raise InvalidArgumentError(f"matrix_power takes square matrices, not shape {x.shape}.")
    if times < 0:
        x, times = inverse.inv(as_matrices(x)), -times
    if not times:
        one = to(tensor(np.eye(static_int(x.shape[-1], "the size of the matrices"))), x.dtype)
        return broadcast_to(one, tuple(x.shape))
    product = products.matmul if x.dtype.is_bool else products.matrix_product
    power: Any = None
    while times:
        if times & 1:
            power = x if power is None else product(power, x)
        times >>= 1
        x = product(x, x) if times else x
    return power


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Tensor:
    """The vector product of vectors of three elements.

    Raises:
        InvalidArgumentError: vectors of another size.
    """
    x, y = tensor(x1), tensor(x2)
    if x.shape[axis] != 3 or y.shape[axis] != 3:
        raise InvalidArgumentError(
            f"linalg.cross takes vectors of 3 elements, not of {x.shape[axis]} and {y.shape[axis]}; "
            "numpy.cross takes two, too."
        )
    return products.cross(x, y, axis=axis)


def outer(x1: Any, x2: Any, /) -> Tensor:
    """Each element of one vector times each of another."""
    x, y = tensor(x1), tensor(x2)
    if len(x.shape) != 1 or len(y.shape) != 1:
        raise InvalidArgumentError(
            f"linalg.outer takes two vectors, not shapes {x.shape} and {y.shape}; numpy.outer takes all "
            "elements of any two."
        )
    return products.outer(x, y)


def tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> Tensor:
    """The sum of products over pairs of axes."""
    return products.tensordot(x1, x2, axes)


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Tensor:
    """The sums of products along ``axis``, the elements of ``x1`` conjugated."""
    return products.vecdot(x1, x2, axis=axis)


def diagonal(x: Any, /, *, offset: int = 0) -> Tensor:
    """The diagonals of the matrices of the last two axes."""
    return indexing.diagonal(x, offset, -2, -1)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """The sums of the diagonals of the matrices of the last two axes."""
    return indexing.trace(x, offset, -2, -1, dtype)


# Decompositions


def cond(x: Any, p: Any = None) -> Tensor:
    """The condition of matrices: the norm times that of the inverse, or the quotient of singular values."""
    v = as_matrices(x)
    if p in (None, 2, -2):
        s = singular_values.singular_values(v)
        return s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    return norm(v, p, (-2, -1)) * norm(inverse.inv(v), p, (-2, -1))


def cholesky(a: Any, /, *, upper: bool = False) -> Tensor:
    """The lower triangle whose product with its adjoint is ``a``; or the upper one, its adjoint.

    Raises:
        InvalidArgumentError: a matrix is not positive definite.
    """
    x = as_matrices(a, square=True)
    triangle = factors.cholesky(_adjoint(x) if upper else x)
    return _adjoint(triangle) if upper else triangle


def qr(a: Any, mode: str = "reduced") -> Any:
    """Orthonormal columns Q and an upper triangle R with ``Q @ R = a``.

    Args:
        a: matrices.
        mode: "reduced"; "complete", where Q is square; or "r", which returns R alone.

    Raises:
        InvalidArgumentError: another mode.
    """
    if mode not in ("reduced", "complete", "r"):
        raise InvalidArgumentError(f"qr's mode is 'reduced', 'complete' or 'r', not {mode!r}.")
    q, r = orthogonal.qr(as_matrices(a), mode == "complete")
    return r if mode == "r" else OrthogonalFactors(q, r)


def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    """Singular vectors and values: ``U @ diag(S) @ Vh = a``; the values alone unless ``compute_uv``."""
    x = as_matrices(a)
    if not compute_uv:
        return singular_values.singular_values(x)
    s, u, v = singular_values.svd(x, full_matrices)
    return SingularFactors(u, s, _adjoint(v))


def svdvals(x: Any, /) -> Tensor:
    """The singular values of matrices, from the largest."""
    return singular_values.singular_values(as_matrices(x))


def eigh(a: Any, UPLO: str = "L") -> EigenPairs[Tensor]:
    """Eigenvalues, ascending, and eigenvectors of self-adjoint matrices, of which one triangle is read.

    Raises:
        InvalidArgumentError: ``UPLO`` is neither "L" nor "U", or a matrix is not square.
    """
    x = _lower(a, UPLO)
    _, vectors = pairs = eigenvalues.eigh(x)
    return EigenPairs(to(pairs[0], x.dtype.real), vectors)


def eigvalsh(a: Any, UPLO: str = "L") -> Tensor:
    """The eigenvalues of self-adjoint matrices, ascending."""
    x = _lower(a, UPLO)
    return to(eigenvalues.eigvalsh(x), x.dtype.real)


def _lower(a: Any, side: str) -> Any:
    if side.upper() not in ("L", "U"):
        raise InvalidArgumentError(f"UPLO is 'L' or 'U', not {side!r}.")
    x = as_matrices(a, square=True)
    return x if side.upper() == "L" else _adjoint(x)


def eig(a: Any) -> EigenPairs[Tensor]:
    """The eigenvalues and eigenvectors of square matrices, as complex numbers.

    NumPy gives real ones where all of them are; here the dtype does not depend on the elements.
    """
    return EigenPairs(*eigenvalues.eig(as_matrices(a, square=True)))


def eigvals(a: Any) -> Tensor:
    """The eigenvalues of square matrices, as complex numbers; see :func:`eig`."""
    return eigenvalues.eigvals(as_matrices(a, square=True))


# Solutions


def inv(a: Any) -> Tensor:
    """The inverse of square matrices.

    Raises:
        InvalidArgumentError: a matrix is singular, or not square.

    >>> import dualflow as df
    >>> df.numpy.linalg.inv([[2.0, 0.0], [0.0, 4.0]]).numpy().tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    return inverse.inv(as_matrices(a, square=True))


def det(a: Any) -> Tensor:
    """The determinant of square matrices."""
    return inverse.det(as_matrices(a, square=True))


def slogdet(a: Any) -> SignAndLogarithm[Tensor]:
    """The sign of the determinant of square matrices, and the logarithm of its magnitude."""
    sign, size = inverse.slogdet(as_matrices(a, square=True))
    return SignAndLogarithm(sign, to(size, size.dtype.real))


def solve(a: Any, b: Any) -> Tensor:
    """The ``x`` with ``a @ x = b``, where ``b`` is a vector or has its vectors as columns.

    >>> import dualflow as df
    >>> df.numpy.linalg.solve([[2.0, 0.0], [0.0, 4.0]], [2.0, 2.0]).numpy()
    array([1. , 0.5])
    """
    x, y = agreed(as_matrices(a, square=True), inexact(b))
    alone = len(y.shape) == 1
    y = y[:, None] if alone else y
    batch = np.broadcast_shapes(tuple(x.shape[:-2]), tuple(y.shape[:-2]))
    x, y = (broadcast_to(v, [*batch, *v.shape[-2:]]) if v.shape[:-2] != batch else v for v in (x, y))
    solution = solving.solve(x, y)
    return solution[..., 0] if alone else solution


def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Tensor:
    """The pseudo-inverse of matrices; singular values not above ``rcond`` times the largest count as 0."""
    x = as_matrices(a)
    if rcond is None and rtol is None:
        rcond = 1e-15
    elif rcond is None:
        rcond = rtol
    return singular_values.pinv(x, to(tensor(rcond), x.dtype.real))


def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Tensor:
    """How many singular values of matrices are not 0: above ``tol``, or ``rtol`` times the largest."""
    x = tensor(A)
    if len(x.shape) < 2:
        return to(reductions.any(x), np.int64)
    x = as_matrices(x)
    s = singular_values.singular_values(x)
    bound = _least(s, x, rtol) if tol is None else tensor(tol, s.dtype)[..., None]
    return reduce_sum(to(s > bound, np.int64), -1)


def _least(s: Any, x: Any, rtol: Any) -> Any:
    """The bound up to which singular values of the matrices ``x`` count as 0.

    Args:
        s: the singular values.
        x: the matrices.
        rtol: the bound as a part of the largest one; by default the larger size times the dtype's ``eps``.
    """
    relative = default_rtol(x) if rtol is None else rtol
    if not isinstance(relative, float | int):
        relative = tensor(relative, s.dtype)[..., None]
    return (reduce_max(s, -1, keepdims=True) if s.shape[-1] else reduce_sum(s, -1, keepdims=True)) * relative


def lstsq(a: Any, b: Any, rcond: Any = None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The ``x`` with the least ``norm(a @ x - b)``, the squared rests, the rank and singular values of ``a``.

    The rests are those of columns, and of full rank; NumPy leaves them out elsewhere.
    """
    x, y = agreed(as_matrices(a), inexact(b))
    alone = len(y.shape) == 1
    y = y[:, None] if alone else y
    rows, columns = x.shape[-2:]
    s, u, v = singular_values.svd(x)
    unit = float(np.finfo(s.dtype.dtype).eps)
    bound = reduce_max(s) * (unit * max(rows, columns) if rcond is None else unit if rcond < 0 else rcond)
    kept = s > bound
    scale = to(where(kept, 1.0 / where(kept, s, 1.0), 0.0), x.dtype)
    solution = products.matmul(v, scale[:, None] * products.matmul(_adjoint(u), y))
    rests = reduce_sum(squared_magnitude(products.matmul(x, solution) - y), 0)
    rank = reduce_sum(to(kept, np.int32))
    if rows <= columns:
        rests = rests[:0]
    return (solution[:, 0] if alone else solution), rests, rank, s


def tensorinv(a: Any, ind: int = 2) -> Tensor:
    """The inverse of a tensor as a map from its last axes to the first ``ind``."""
    x = tensor(a)
    if ind <= 0:
        raise InvalidArgumentError(f"tensorinv's ind is positive, not {ind}.")
    shape: list[Any] = list(x.shape)
    flattened = inv(reshape(x, [math.prod(shape[ind:]), -1]))
    return reshape(flattened, [*shape[ind:], *shape[:ind]])


def tensorsolve(a: Any, b: Any, axes: Any = None) -> Tensor:
    """The ``x`` with ``tensordot(a, x, x.ndim) = b``."""
    x, y = tensor(a), tensor(b)
    rank = len(x.shape)
    if axes is not None:
        last = ints(axes, "axes")
        x = transpose(x, [*[i for i in range(rank) if i not in last], *last])
    shape: list[Any] = list(x.shape)[len(y.shape) :]
    return reshape(solve(reshape(x, [-1, math.prod(shape)]), flat(y)), shape)


make_entries(globals())
_publish(globals())
