"""Inverses, determinants, and solutions of linear equations."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Generic, NamedTuple

import numpy as np

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.tracebacks import make_entries
from dualflow.numpy import products, reductions
from dualflow.numpy.docstrings import complete_docstrings
from dualflow.numpy.manipulation import matrix_transpose as matrix_transpose
from dualflow.numpy.norms import matrix_norm as matrix_norm
from dualflow.numpy.norms import norm as norm
from dualflow.numpy.norms import vector_norm as vector_norm
from dualflow.numpy.operands import (
    Value,
    adjoint,
    as_matrices,
    default_rtol,
    flat,
    inexact,
    promote_together,
    tensor,
    to,
)
from dualflow.ops.arrangement import reshape, transpose
from dualflow.ops.broadcasting import broadcast_to, reduce_sum
from dualflow.ops.linear_algebra import (
    inverse,
    singular_values,
    solving,
)
from dualflow.ops.reduction import reduce_max
from dualflow.ops.selection import where
from dualflow.ops.static import ints
from dualflow.ops.statistics import squared_magnitude
from dualflow.ops.tensor import Tensor

if TYPE_CHECKING:
    from dualflow.core.argument_types import AxisLike, TensorLike


class SignAndLogarithm(NamedTuple, Generic[Value]):
    """The sign of a determinant, and the logarithm of its magnitude."""

    sign: Value
    logabsdet: Value


def cond(x: TensorLike, p: str | float | None = None) -> Tensor:
    """The condition numbers of matrices: the norm of each times that of its inverse.

    Args:
        x: square matrices; with ``p`` None, 2 or -2, any matrices.
        p: the norm, as for :func:`norm`; 2 by default, the quotient of the largest and the smallest singular
            value.

    Returns:
        A tensor with the shape of ``x`` without the last two axes, and the real dtype of ``x``, float64 for
        integers.

    Raises:
        InvalidArgumentError: the matrices are singular or not square with another ``p``, or ``p`` is no norm.

    >>> import dualflow as df
    >>> float(df.numpy.linalg.cond([[2.0, 0.0], [0.0, 4.0]]))
    2.0
    """
    v = as_matrices(x)
    if p in (None, 2, -2):
        s = singular_values.singular_values(v)
        return s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    return norm(v, p, (-2, -1)) * norm(inverse.inv(v), p, (-2, -1))


def inv(a: TensorLike) -> Tensor:
    """The inverse of square matrices.

    Args:
        a: square matrices.

    Returns:
        A tensor with the shape of ``a``, and its dtype, float64 for integers.

    Raises:
        InvalidArgumentError: a matrix is singular or not square.
        DTypeError: ``a`` is of float16.

    >>> import dualflow as df
    >>> df.numpy.linalg.inv([[2.0, 0.0], [0.0, 4.0]]).numpy().tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    return inverse.inv(as_matrices(a, square=True))


def det(a: TensorLike) -> Tensor:
    """The determinants of square matrices.

    Args:
        a: square matrices.

    Returns:
        A tensor with the shape of ``a`` without the last two axes, and its dtype, float64 for integers.

    Raises:
        InvalidArgumentError: a matrix is not square.
        DTypeError: ``a`` is of float16.

    >>> import dualflow as df
    >>> float(df.numpy.linalg.det([[2.0, 0.0], [0.0, 4.0]]))
    7.999999999999998
    """
    return inverse.det(as_matrices(a, square=True))


def slogdet(a: TensorLike) -> SignAndLogarithm[Tensor]:
    """The sign of the determinants of square matrices, and the logarithm of their magnitude.

    Args:
        a: square matrices.

    Returns:
        A named tuple of two tensors with the shape of ``a`` without the last two axes: ``sign``, in the dtype
        of ``a``, and ``logabsdet``, which is real.

    Raises:
        InvalidArgumentError: a matrix is not square.
        DTypeError: ``a`` is of float16.

    >>> import dualflow as df
    >>> df.numpy.linalg.slogdet([[2.0, 0.0], [0.0, -4.0]]).sign.numpy()
    np.float64(-1.0)
    """
    sign, size = inverse.slogdet(as_matrices(a, square=True))
    return SignAndLogarithm(sign, to(size, size.dtype.real))


def solve(a: TensorLike, b: TensorLike) -> Tensor:
    """The solution ``x`` of the linear equations ``a @ x = b``.

    Args:
        a: square matrices.
        b: a vector, or matrices with a vector in each column; the other axes broadcast with those of ``a``.

    Returns:
        A tensor with the shape of ``b``, and the common dtype, float64 for integers.

    Raises:
        InvalidArgumentError: a matrix is singular or not square, or the shapes don't fit.
        DTypeError: ``a`` is of float16.

    >>> import dualflow as df
    >>> df.numpy.linalg.solve([[2.0, 0.0], [0.0, 4.0]], [2.0, 2.0]).numpy()
    array([1. , 0.5])
    """
    x, y = promote_together(as_matrices(a, square=True), inexact(b))
    is_vector = len(y.shape) == 1
    y = y[:, None] if is_vector else y
    batch = np.broadcast_shapes(tuple(x.shape[:-2]), tuple(y.shape[:-2]))
    x, y = (broadcast_to(v, [*batch, *v.shape[-2:]]) if v.shape[:-2] != batch else v for v in (x, y))
    solution = solving.solve(x, y)
    return solution[..., 0] if is_vector else solution


def pinv(
    a: TensorLike, rcond: TensorLike | None = None, hermitian: bool = False, *, rtol: TensorLike | None = None
) -> Tensor:
    """The Moore-Penrose pseudo-inverse of matrices, by the singular value decomposition.

    Args:
        a: matrices of shape (..., m, n).
        rcond: singular values not above ``rcond`` times the largest count as 0; 1e-15 by default.
        hermitian: ignored.
        rtol: another name of ``rcond``; None by default.

    Returns:
        A tensor of shape (..., n, m), and the dtype of ``a``, float64 for integers.

    Raises:
        InvalidArgumentError: ``a`` has fewer than two axes.
        DTypeError: ``a`` is of float16.

    >>> import dualflow as df
    >>> df.numpy.linalg.pinv([[2.0], [0.0]]).numpy().tolist()
    [[0.5, 0.0]]
    """
    x = as_matrices(a)
    if rcond is None and rtol is None:
        rcond = 1e-15
    elif rcond is None:
        rcond = rtol
    return singular_values.pinv(x, to(tensor(rcond), x.dtype.real))


def matrix_rank(
    A: TensorLike, tol: TensorLike | None = None, hermitian: bool = False, *, rtol: TensorLike | None = None
) -> Tensor:
    """The rank of matrices: the number of singular values above a bound.

    Args:
        A: matrices; a vector has rank 1 unless it is 0.
        tol: the bound; None for ``rtol`` times the largest singular value.
        hermitian: ignored.
        rtol: the relative bound; the larger size times the dtype's ``eps`` by default.

    Returns:
        An int64 tensor with the shape of ``A`` without the last two axes.

    Raises:
        DTypeError: ``A`` is of float16, or can't become a tensor.

    >>> import dualflow as df
    >>> int(df.numpy.linalg.matrix_rank([[1.0, 2.0], [2.0, 4.0]]))
    1
    """
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


def lstsq(a: TensorLike, b: TensorLike, rcond: float | None = None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The least squares solution ``x`` of ``a @ x = b``.

    Of several solutions it is the one of least norm, by the singular value decomposition. NumPy returns no
    residuals if the rank is not full; here the sizes don't depend on the elements.

    Args:
        a: a matrix of shape (m, n).
        b: a vector of ``m`` elements, or a matrix with such vectors as columns.
        rcond: singular values not above ``rcond`` times the largest count as 0; ``max(m, n)`` times the
            dtype's ``eps`` by default.

    Returns:
        A tuple of the solution, of shape (n,) or (n, k); the squared residuals of the k columns, none unless
        m > n; the rank, int32; and the singular values of ``a``, descending.

    Raises:
        InvalidArgumentError: ``a`` is not a matrix, or ``b`` doesn't have as many rows.
        DTypeError: ``a`` is of float16.

    >>> import dualflow as df
    >>> solution, *_ = df.numpy.linalg.lstsq([[1.0], [1.0]], [1.0, 3.0])
    >>> solution.numpy().round(6)
    array([2.])
    """
    x, y = promote_together(as_matrices(a), inexact(b))
    is_vector = len(y.shape) == 1
    y = y[:, None] if is_vector else y
    rows, columns = x.shape[-2:]
    s, u, v = singular_values.svd(x)
    unit = float(np.finfo(s.dtype.dtype).eps)
    bound = reduce_max(s) * (unit * max(rows, columns) if rcond is None else unit if rcond < 0 else rcond)
    is_nonzero = s > bound
    scale = to(where(is_nonzero, 1.0 / where(is_nonzero, s, 1.0), 0.0), x.dtype)
    solution = products.matmul(v, scale[:, None] * products.matmul(adjoint(u), y))
    residuals = reduce_sum(squared_magnitude(products.matmul(x, solution) - y), 0)
    rank = reduce_sum(to(is_nonzero, np.int32))
    if rows <= columns:
        residuals = residuals[:0]
    return (solution[:, 0] if is_vector else solution), residuals, rank, s


def tensorinv(a: TensorLike, ind: int = 2) -> Tensor:
    """The inverse of a tensor as a linear map from its last axes to its first ``ind`` ones.

    Args:
        a: a tensor; the product of its first ``ind`` sizes is that of the others.
        ind: the number of first axes, 1 or more.

    Returns:
        A tensor with the last axes of ``a``, then the first ones, and its dtype, float64 for integers.

    Raises:
        InvalidArgumentError: ``ind`` is not positive, or the map is singular or not square.

    >>> import dualflow as df
    >>> df.numpy.linalg.tensorinv(df.numpy.reshape(df.numpy.eye(4), (4, 2, 2)), ind=1).shape
    (2, 2, 4)
    """
    x = tensor(a)
    if ind <= 0:
        raise InvalidArgumentError(f"tensorinv's ind is positive, not {ind}.")
    shape: list[Any] = list(x.shape)
    flattened = inv(reshape(x, [math.prod(shape[ind:]), -1]))
    return reshape(flattened, [*shape[ind:], *shape[:ind]])


def tensorsolve(a: TensorLike, b: TensorLike, axes: AxisLike | None = None) -> Tensor:
    """The solution ``x`` of ``tensordot(a, x, x.ndim) = b``.

    Args:
        a: a tensor whose first axes have the shape of ``b``; the other sizes have the same product.
        b: the right-hand side.
        axes: axes of ``a`` to move to the end first; none by default.

    Returns:
        A tensor with the last axes of ``a``, and the common dtype, float64 for integers.

    Raises:
        InvalidArgumentError: the map is singular or not square.

    >>> import dualflow as df
    >>> a = df.numpy.reshape(df.numpy.eye(4), (4, 2, 2))
    >>> df.numpy.linalg.tensorsolve(a, [1, 2, 3, 4]).numpy().tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    x, y = tensor(a), tensor(b)
    rank = len(x.shape)
    if axes is not None:
        last = ints(axes, "axes")
        x = transpose(x, [*[i for i in range(rank) if i not in last], *last])
    shape: list[Any] = list(x.shape)[len(y.shape) :]
    return reshape(solve(reshape(x, [-1, math.prod(shape)]), flat(y)), shape)


complete_docstrings(globals())
make_entries(globals())
