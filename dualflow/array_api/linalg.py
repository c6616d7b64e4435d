"""The standard's linear algebra: ``dualflow.array_api.linalg``.

Matrices are the last two axes; those before them are a batch.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from dualflow import linalg as matrices
from dualflow.array_api.array import Array, in_floats, tensor_of
from dualflow.array_api.axes import axes_of, axis_of
from dualflow.array_api.products import matrix_product
from dualflow.array_api.statistical import summed_in
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.namespace import publish
from dualflow.core.shape import broadcast
from dualflow.core.tracebacks import make_public_entries
from dualflow.ops import products, reduction
from dualflow.ops.arithmetic import abs as magnitude
from dualflow.ops.arithmetic import multiply, subtract
from dualflow.ops.arrangement import expand_dims, squeeze
from dualflow.ops.arrangement import matrix_transpose as swap_last
from dualflow.ops.broadcasting import broadcast_to, reduce_sum
from dualflow.ops.choice import where
from dualflow.ops.comparison import not_equal
from dualflow.ops.complex_numbers import conj
from dualflow.ops.conversion import cast
from dualflow.ops.indexing import getitem
from dualflow.ops.joining import stack, unstack
from dualflow.ops.positions import eye
from dualflow.ops.powers import pow as power
from dualflow.ops.powers import sqrt
from dualflow.ops.statistics import squared_magnitude
from dualflow.ops.tensor import Tensor

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


class EighResult(NamedTuple):
    """What :func:`eigh` returns."""

    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """What :func:`qr` returns."""

    Q: Array
    R: Array


class SlogdetResult(NamedTuple):
    """What :func:`slogdet` returns."""

    sign: Array
    logabsdet: Array


class SVDResult(NamedTuple):
    """What :func:`svd` returns."""

    U: Array
    S: Array
    Vh: Array


# Products


def matmul(x1: Any, x2: Any, /) -> Array:
    """The matrix product; a vector ``x1`` counts as a row, a vector ``x2`` as a column.

    Raises:
        InvalidArgumentError: an array without axes, or sizes that do not fit.
        DTypeError: bools, or what is no array.

    >>> import dualflow.array_api as xp
    >>> xp.matmul(xp.asarray([[1, 2], [3, 4]]), xp.asarray([1, 1])).tolist()
    [3, 7]
    """
    return Array(matrix_product(tensor_of(x1), tensor_of(x2)))


def matrix_transpose(x: Any, /) -> Array:
    """The last two axes swapped.

    Raises:
        InvalidArgumentError: fewer than two axes.

    >>> import dualflow.array_api as xp
    >>> xp.matrix_transpose(xp.asarray([[1, 2], [3, 4]])).tolist()
    [[1, 3], [2, 4]]
    """
    return Array(tensor_of(x).mT)


def tensordot(x1: Any, x2: Any, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Array:
    """The sum of products over pairs of axes.

    Args:
        x1: numbers.
        x2: numbers.
        axes: how many last axes of ``x1`` meet the first ones of ``x2``, or two sequences of axes that meet.

    Returns:
        The other axes of ``x1``, then those of ``x2``.

    Raises:
        InvalidArgumentError: sizes that meet and differ.

    >>> import dualflow.array_api as xp
    >>> xp.tensordot(xp.asarray([1, 2, 3]), xp.asarray([4, 5, 6]), axes=1).tolist()
    32
    """
    x, y = tensor_of(x1), tensor_of(x2)
    pairs = axes if isinstance(axes, int) else tuple(tuple(side) for side in axes)
    return Array(products.tensordot(x, y, pairs))


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Array:
    """The sum of ``conj(x1) * x2`` along ``axis``, which counts from the end; the other axes broadcast.

    Raises:
        InvalidArgumentError: sizes that differ along the axis, or do not broadcast.
        OutOfRangeError: an axis that one of them doesn't have.

    >>> import dualflow.array_api as xp
    >>> xp.vecdot(xp.asarray([1, 2, 3]), xp.asarray([4, 5, 6])).tolist()
    32
    """
    x, y = tensor_of(x1), tensor_of(x2)
    from_end = axis_of(axis, min(len(x.shape), len(y.shape))) - min(len(x.shape), len(y.shape))
    if x.shape[from_end] != y.shape[from_end]:
        raise InvalidArgumentError(
            f"vecdot adds up along an axis of one size, not {x.shape[from_end]} and {y.shape[from_end]}."
        )
    product = multiply(conj(x), y)
    return Array(reduce_sum(product, len(product.shape) + from_end))


def outer(x1: Any, x2: Any, /) -> Array:
    """The products of each element of a vector with each of another.

    Raises:
        InvalidArgumentError: arrays of other than one axis.

    >>> import dualflow.array_api as xp
    >>> xp.linalg.outer(xp.asarray([1, 2]), xp.asarray([3, 4])).tolist()
    [[3, 4], [6, 8]]
    """
    x, y = tensor_of(x1), tensor_of(x2)
    if len(x.shape) != 1 or len(y.shape) != 1:
        raise InvalidArgumentError(f"outer takes two vectors, not arrays of shapes {x.shape} and {y.shape}.")
    return Array(multiply(expand_dims(x, 1), expand_dims(y, 0)))


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Array:
    """The cross product of vectors of three elements along ``axis``; the other axes broadcast.

    Raises:
        InvalidArgumentError: another number of elements, or sizes that do not broadcast.
        OutOfRangeError: an axis that one of them doesn't have.

    >>> import dualflow.array_api as xp
    >>> xp.linalg.cross(xp.asarray([1, 0, 0]), xp.asarray([0, 1, 0])).tolist()
    [0, 0, 1]
    """
    x, y = tensor_of(x1), tensor_of(x2)
    rank = min(len(x.shape), len(y.shape))
    from_end = axis_of(axis, rank) - rank
    if x.shape[from_end] != 3 or y.shape[from_end] != 3:
        raise InvalidArgumentError(
            f"cross takes vectors of 3 elements, not of {x.shape[from_end]} and {y.shape[from_end]}."
        )
    a, b = (unstack(z, axis=len(z.shape) + from_end) for z in (x, y))
    found = [subtract(multiply(a[i], b[j]), multiply(a[j], b[i])) for i, j in ((1, 2), (2, 0), (0, 1))]
    return Array(stack(found, axis=len(found[0].shape) + 1 + from_end))


# Parts


def diagonal(x: Any, /, *, offset: int = 0) -> Array:
    """The diagonals of matrices.

    Args:
        x: an array of two axes or more.
        offset: which diagonal: 0 for the main one, above it positive.

    Raises:
        InvalidArgumentError: fewer than two axes, or sizes that are not known.

    >>> import dualflow.array_api as xp
    >>> xp.linalg.diagonal(xp.asarray([[1, 2], [3, 4]])).tolist()
    [1, 4]
    """
    return Array(_diagonal(tensor_of(x), operator.index(offset)))


def _diagonal(x: Tensor, offset: int) -> Any:
    if len(x.shape) < 2 or None in x.shape[-2:]:
        raise InvalidArgumentError(
            f"A diagonal is of matrices whose sizes are known, not of shape {x.shape}."
        )
    rows, columns = (n or 0 for n in x.shape[-2:])
    count = max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
    first = np.arange(count)
    return getitem(x, (..., first + max(-offset, 0), first + max(offset, 0)))


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Array:
    """The sums of the diagonals of matrices.

    Args:
        x: numbers of two axes or more.
        offset: which diagonal: 0 for the main one, above it positive.
        dtype: of the result: by default that of ``x``, for integers int64 or uint64.

    Raises:
        InvalidArgumentError: fewer than two axes, or sizes that are not known.

    >>> import dualflow.array_api as xp
    >>> xp.linalg.trace(xp.asarray([[1, 2], [3, 4]])).tolist()
    5
    """
    return Array(reduce_sum(_diagonal(summed_in(x, dtype), operator.index(offset)), -1))


# Decompositions


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
    return Array(_adjoint(matrices.cholesky(_adjoint(tensor))))


def _adjoint(x: Any) -> Any:
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
    return EighResult(Array(_real(values)), Array(vectors))


def eigvalsh(x: Any, /) -> Array:
    """The eigenvalues of symmetric or Hermitian matrices, real, in ascending order.

    Raises:
        InvalidArgumentError: not square matrices.

    >>> import dualflow.array_api as xp
    >>> xp.linalg.eigvalsh(xp.asarray([[2.0, 0.0], [0.0, 1.0]])).tolist()
    [1.0, 2.0]
    """
    return Array(_real(matrices.eigvalsh(in_floats(x))))


def _real(x: Any) -> Any:
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
    return SVDResult(Array(u), Array(s), Array(_adjoint(v)))


def svdvals(x: Any, /) -> Array:
    """The singular values of matrices, in descending order.

    Raises:
        InvalidArgumentError: fewer than two axes.

    >>> import dualflow.array_api as xp
    >>> xp.linalg.svdvals(xp.asarray([[0.0, 2.0], [1.0, 0.0]])).tolist()
    [2.0, 1.0]
    """
    return Array(matrices.svd(in_floats(x), compute_uv=False))


# Inverses and equations


def det(x: Any, /) -> Array:
    """The determinants of square matrices.

    Raises:
        InvalidArgumentError: not square matrices.

    >>> import dualflow.array_api as xp
    >>> xp.linalg.det(xp.asarray([[2.0, 0.0], [0.0, 3.0]])).tolist()
    6.0
    """
    return Array(matrices.det(in_floats(x)))


def slogdet(x: Any, /) -> SlogdetResult:
    """The signs of the determinants of square matrices, and the logarithms of their magnitudes.

    Returns:
        A named tuple of ``sign``, complex for complex matrices, and ``logabsdet``, real.

    Raises:
        InvalidArgumentError: not square matrices.

    >>> import dualflow.array_api as xp
    >>> [found.tolist() for found in xp.linalg.slogdet(xp.asarray([[-1.0, 0.0], [0.0, 1.0]]))]
    [-1.0, 0.0]
    """
    sign, logabsdet = matrices.slogdet(in_floats(x))
    return SlogdetResult(Array(sign), Array(_real(logabsdet)))


def inv(x: Any, /) -> Array:
    """The inverses of square matrices.

    Raises:
        InvalidArgumentError: not square, or not invertible.

    >>> import dualflow.array_api as xp
    >>> xp.linalg.inv(xp.asarray([[2.0, 0.0], [0.0, 4.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    return Array(matrices.inv(in_floats(x)))


def solve(x1: Any, x2: Any, /) -> Array:
    """The solutions ``x`` of ``x1 @ x = x2``.

    Args:
        x1: square matrices.
        x2: right-hand sides: a vector, or matrices; the batches broadcast.

    Raises:
        InvalidArgumentError: sizes that do not fit, or matrices that are not invertible.

    >>> import dualflow.array_api as xp
    >>> xp.linalg.solve(xp.asarray([[2.0, 0.0], [0.0, 4.0]]), xp.asarray([2.0, 2.0])).tolist()
    [1.0, 0.5]
    """
    a, b = in_floats(x1), in_floats(x2)
    vector = len(b.shape) == 1
    right = expand_dims(b, 1) if vector else b
    batch = broadcast([a.shape[:-2], right.shape[:-2]])
    a, right = (broadcast_to(z, [*batch, *z.shape[-2:]]) for z in (a, right))
    found = matrices.solve(a, right)
    return Array(squeeze(found, -1) if vector else found)


def pinv(x: Any, /, *, rtol: Any = None) -> Array:
    """The pseudo-inverses of matrices.

    Args:
        x: matrices.
        rtol: singular values up to this part of the largest count as 0: a number, or one for each matrix. By
            default the larger size times the dtype's ``eps``.

    Raises:
        InvalidArgumentError: fewer than two axes.

    >>> import dualflow.array_api as xp
    >>> xp.linalg.pinv(xp.asarray([[2.0, 0.0], [0.0, 0.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.0]]
    """
    tensor = in_floats(x)
    s, u, v = matrices.svd(tensor)
    kept = _above(s, tensor, rtol)
    inverse = where(kept, 1 / where(kept, s, 1), 0)
    scaled = multiply(v, expand_dims(cast(inverse, v.dtype), -2))
    return Array(matrix_product(scaled, _adjoint(u)))


def _above(s: Any, x: Tensor, rtol: Any) -> Any:
    """Whether singular values of the matrices ``x`` do not count as 0."""
    if rtol is None:
        rows, columns = x.shape[-2:]
        if rows is None or columns is None:
            raise InvalidArgumentError(f"For matrices of open sizes, {x.shape}, give rtol=...")
        rtol = max(rows, columns) * float(np.finfo(s.dtype.dtype).eps)
    bound = rtol if isinstance(rtol, float | int) else expand_dims(cast(tensor_of(rtol), s.dtype), -1)
    largest = reduction.reduce_max(s, -1, keepdims=True) if s.shape[-1] else reduce_sum(s, -1, keepdims=True)
    return s > multiply(largest, bound)


def matrix_rank(x: Any, /, *, rtol: Any = None) -> Array:
    """The ranks of matrices: how many singular values do not count as 0; see :func:`pinv`.

    Raises:
        InvalidArgumentError: fewer than two axes.

    >>> import dualflow.array_api as xp
    >>> xp.linalg.matrix_rank(xp.asarray([[1.0, 1.0], [1.0, 1.0]])).tolist()
    1
    """
    tensor = in_floats(x)
    kept = _above(matrices.svd(tensor, compute_uv=False), tensor, rtol)
    return Array(reduce_sum(cast(kept, "int64"), -1))


def matrix_power(x: Any, n: int, /) -> Array:
    """Square matrices to an integer power; the inverse's for a negative one.

    Raises:
        InvalidArgumentError: not square, or not invertible where ``n`` is negative.

    >>> import dualflow.array_api as xp
    >>> xp.linalg.matrix_power(xp.asarray([[1.0, 1.0], [0.0, 1.0]]), 3).tolist()
    [[1.0, 3.0], [0.0, 1.0]]
    """
    tensor, times = tensor_of(x), operator.index(n)
    if len(tensor.shape) < 2 or tensor.shape[-1] != tensor.shape[-2]:
        raise InvalidArgumentError(
            f"matrix_power takes square matrices, not an array of shape {tensor.shape}."
        )
    if not times:
        return Array(broadcast_to(eye(tensor.shape[-1], dtype=tensor.dtype), tensor.shape))
    square = tensor if times > 0 else matrices.inv(in_floats(x))
    found, left = None, abs(times)
    while left:
        if left & 1:
            found = square if found is None else matrix_product(found, square)
        left >>= 1
        square = matrix_product(square, square) if left else square
    return Array(found)


# Norms


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: float = 2) -> Array:
    """The norms of vectors: the root of order ``ord`` of the sum of powers of magnitudes.

    Args:
        x: numbers.
        axis: along which the vectors are: one axis or several; all by default.
        keepdims: keep these axes, as size 1.
        ord: the order; inf for the largest magnitude, -inf for the smallest, 0 for how many are not 0.

    Returns:
        Real numbers.

    Raises:
        OutOfRangeError: an axis that ``x`` doesn't have.

    >>> import dualflow.array_api as xp
    >>> xp.linalg.vector_norm(xp.asarray([3.0, 4.0])).tolist()
    5.0
    """
    tensor = in_floats(x)
    return Array(_vector_norm(tensor, axes_of(axis, len(tensor.shape)), keepdims, ord))


def _vector_norm(x: Tensor, axes: tuple[int, ...], keepdims: bool, ord: float) -> Any:
    size = magnitude(x)
    if math.isinf(ord):
        empty = any(x.shape[a] == 0 for a in axes)
        function = reduce_sum if empty else reduction.reduce_max if ord > 0 else reduction.reduce_min
        return function(size, axes, keepdims)
    if ord == 0:
        return reduce_sum(cast(not_equal(size, 0), size.dtype), axes, keepdims)
    if ord == 1:
        return reduce_sum(size, axes, keepdims)
    if ord == 2:
        return sqrt(reduce_sum(squared_magnitude(x), axes, keepdims))
    return power(reduce_sum(power(size, float(ord)), axes, keepdims), 1 / ord)


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Array:
    """The norms of matrices.

    Args:
        x: matrices.
        keepdims: keep the last two axes, as size 1.
        ord: "fro" for the root of the sum of squared magnitudes, "nuc" for the sum of singular values, 2 and
            -2 for the largest and smallest of these, 1 and -1 for the largest and smallest sum of magnitudes
            of a column, inf and -inf for those of a row.

    Returns:
        Real numbers.

    Raises:
        InvalidArgumentError: fewer than two axes, or another order.

    >>> import dualflow.array_api as xp
    >>> xp.linalg.matrix_norm(xp.asarray([[1.0, -2.0], [3.0, 4.0]]), ord=1).tolist()
    6.0
    """
    tensor = in_floats(x)
    rank = len(tensor.shape)
    if rank < 2 or ord not in ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf):
        raise InvalidArgumentError(
            "matrix_norm takes matrices and ord 'fro', 'nuc', 1, -1, 2, -2, inf or -inf, not "
            f"{ord!r} for an array of shape {tensor.shape}."
        )
    if ord == "fro":
        return Array(_vector_norm(tensor, (rank - 2, rank - 1), keepdims, 2))
    if ord in ("nuc", 2, -2):
        s = matrices.svd(tensor, compute_uv=False)
        found = _over_last(s, ord)
    else:
        sums = reduce_sum(magnitude(tensor), rank - 2 if abs(ord) == 1 else rank - 1)
        found = _over_last(sums, ord)
    return Array(expand_dims(found, (rank - 2, rank - 1)) if keepdims else found)


def _over_last(x: Any, ord: Any) -> Any:
    """The sum, the largest or the smallest along the last axis; 0 where it has no elements."""
    if ord == "nuc" or not x.shape[-1]:
        return reduce_sum(x, -1)
    return reduction.reduce_max(x, -1) if ord > 0 else reduction.reduce_min(x, -1)


make_public_entries(globals())
publish(globals())
