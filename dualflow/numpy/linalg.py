"""Linear algebra by NumPy's names: ``df.numpy.linalg``."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from dualflow.core.argument_types import AxisLike, DTypeLike, IntLike, TensorLike
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.namespace import publish as _publish
from dualflow.core.tracebacks import make_entries
from dualflow.numpy import diagonals, matrices, operands, products
from dualflow.numpy.decompositions import EigenPairs as EigenPairs
from dualflow.numpy.decompositions import OrthogonalFactors as OrthogonalFactors
from dualflow.numpy.decompositions import SingularFactors as SingularFactors
from dualflow.numpy.decompositions import cholesky as cholesky
from dualflow.numpy.decompositions import eig as eig
from dualflow.numpy.decompositions import eigh as eigh
from dualflow.numpy.decompositions import eigvals as eigvals
from dualflow.numpy.decompositions import eigvalsh as eigvalsh
from dualflow.numpy.decompositions import qr as qr
from dualflow.numpy.decompositions import svd as svd
from dualflow.numpy.decompositions import svdvals as svdvals
from dualflow.numpy.docstrings import complete_docstrings
from dualflow.numpy.equations import SignAndLogarithm as SignAndLogarithm
from dualflow.numpy.equations import cond as cond
from dualflow.numpy.equations import det as det
from dualflow.numpy.equations import inv as inv
from dualflow.numpy.equations import lstsq as lstsq
from dualflow.numpy.equations import matrix_rank as matrix_rank
from dualflow.numpy.equations import pinv as pinv
from dualflow.numpy.equations import slogdet as slogdet
from dualflow.numpy.equations import solve as solve
from dualflow.numpy.equations import tensorinv as tensorinv
from dualflow.numpy.equations import tensorsolve as tensorsolve
from dualflow.numpy.manipulation import matrix_transpose as matrix_transpose
from dualflow.numpy.norms import matrix_norm as matrix_norm
from dualflow.numpy.norms import norm as norm
from dualflow.numpy.norms import vector_norm as vector_norm
from dualflow.numpy.operands import (
    as_matrices,
    reject_unsupported,
    tensor,
    to,
    with_rank,
)
from dualflow.ops.broadcasting import broadcast_to
from dualflow.ops.comparison import equal
from dualflow.ops.linear_algebra import (
    inverse,
)
from dualflow.ops.static import static_int
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


# Products


def matmul(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """The matrix product of the last two axes; see :func:`dualflow.numpy.matmul`.

    Returns:
        A tensor with the shape of the product and the common dtype.

    Raises:
        InvalidArgumentError: an argument has no axes, or the inner sizes differ.

    >>> import dualflow as df
    >>> df.numpy.linalg.matmul([[1, 2], [3, 4]], [1, 1]).numpy()
    array([3, 7])
    """
    return products.matmul(x1, x2)


def multi_dot(arrays: Sequence[TensorLike], *, out: None = None) -> Tensor:
    """The product of several matrices, from left to right.

    Args:
        arrays: a list of two matrices or more; the first and the last may be vectors.

    Returns:
        A matrix, a vector or a number, in the common dtype.

    Raises:
        InvalidArgumentError: there are fewer than two arrays, or inner sizes differ.

    >>> import dualflow as df
    >>> df.numpy.linalg.multi_dot([[1, 2], [[1, 0], [0, 1]], [3, 4]]).numpy()
    np.int64(11)
    """
    reject_unsupported("multi_dot", out=out)
    if len(arrays) < 2:
        raise InvalidArgumentError(f"multi_dot takes two tensors or more, not {len(arrays)}.")
    factors: Sequence[Any] = arrays
    return functools.reduce(products.dot, factors)


def matrix_power(a: TensorLike, n: IntLike) -> Tensor:
    """Square matrices to the power ``n``, by repeated squaring; a negative ``n`` inverts them first.

    Args:
        a: square matrices of two axes or more.
        n: an integer.

    Returns:
        A tensor with the shape and dtype of ``a``; floats if ``n`` is negative.

    Raises:
        InvalidArgumentError: the matrices are not square, or singular and ``n`` is negative.
        DTypeError: ``n`` is no integer.

    >>> import dualflow as df
    >>> df.numpy.linalg.matrix_power([[1, 1], [0, 1]], 5).numpy().tolist()
    [[1, 5], [0, 1]]
    """
    x, times = tensor(a), static_int(n, "n")
    rows, columns = x.shape[-2:] if len(x.shape) > 1 else (0, 1)
    if None not in (rows, columns) and rows != columns:
        raise InvalidArgumentError(f"matrix_power takes square matrices, not shape {x.shape}.")
    if None in (rows, columns):
        rows, columns = operands.sizes(x)[-2:]
        message = "matrix_power takes square matrices."
        x = operands.with_required_size(x, [-1, -2], equal(columns, rows), message)
    if times < 0:
        x, times = inverse.inv(as_matrices(x)), -times
    if not times:
        sizes = operands.sizes(x)
        return broadcast_to(to(matrices.eye(sizes[-1]), x.dtype), sizes)
    product = products.matmul if x.dtype.is_bool else products.matrix_product
    power: Any = None
    while times:
        if times & 1:
            power = x if power is None else product(power, x)
        times >>= 1
        x = product(x, x) if times else x
    return power


def cross(x1: TensorLike, x2: TensorLike, /, *, axis: int = -1) -> Tensor:
    """The cross product of vectors of three elements.

    Args:
        x1: numbers with 3 elements along ``axis``.
        x2: as ``x1``; the other axes broadcast.

    Returns:
        A tensor with the shape to which the inputs broadcast, and the common dtype.

    Raises:
        InvalidArgumentError: a vector has another size, or the shapes do not broadcast.

    >>> import dualflow as df
    >>> df.numpy.linalg.cross([1, 0, 0], [0, 1, 0]).numpy()
    array([0, 0, 1])
    """
    x, y = (with_rank(v, 1, "linalg.cross") for v in (x1, x2))
    if x.shape[axis] != 3 or y.shape[axis] != 3:
        raise InvalidArgumentError(
            f"linalg.cross takes vectors of 3 elements, not of {x.shape[axis]} and {y.shape[axis]}; "
            "numpy.cross takes two, too."
        )
    return products.cross(x, y, axis=axis)


def outer(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """The outer product of two vectors: each element of ``x1`` times each of ``x2``.

    Args:
        x1: a vector.
        x2: a vector.

    Returns:
        A matrix of shape (x1.size, x2.size), and the common dtype.

    Raises:
        InvalidArgumentError: an argument is not a vector.

    >>> import dualflow as df
    >>> df.numpy.linalg.outer([1, 2], [3, 4]).numpy().tolist()
    [[3, 4], [6, 8]]
    """
    x, y = tensor(x1), tensor(x2)
    if len(x.shape) != 1 or len(y.shape) != 1:
        raise InvalidArgumentError(
            f"linalg.outer takes two vectors, not shapes {x.shape} and {y.shape}; numpy.outer takes all "
            "elements of any two."
        )
    return products.outer(x, y)


def tensordot(x1: TensorLike, x2: TensorLike, /, *, axes: AxisLike | Sequence[AxisLike] = 2) -> Tensor:
    """The sum of products over pairs of axes; see :func:`dualflow.numpy.tensordot`.

    Args:
        axes: the number of last axes of ``x1`` and first axes of ``x2``, or two lists of axes.

    Returns:
        A tensor with the other axes of ``x1``, then those of ``x2``, and the common dtype.

    Raises:
        InvalidArgumentError: the sizes of two axes differ.

    >>> import dualflow as df
    >>> int(df.numpy.linalg.tensordot([1, 2], [3, 4], axes=1))
    11
    """
    return products.tensordot(x1, x2, axes)


def vecdot(x1: TensorLike, x2: TensorLike, /, *, axis: int = -1) -> Tensor:
    """The dot products of vectors along ``axis``: ``sum(conj(x1) * x2)``.

    Returns:
        A tensor with the shape to which the inputs broadcast, without ``axis``, and the common dtype.

    Raises:
        InvalidArgumentError: the sizes along ``axis`` differ, or the shapes do not broadcast.

    >>> import dualflow as df
    >>> int(df.numpy.linalg.vecdot([1, 2], [3, 4]))
    11
    """
    return products.vecdot(x1, x2, axis=axis)


def diagonal(x: TensorLike, /, *, offset: int = 0) -> Tensor:
    """The diagonals of the matrices of the last two axes.

    Args:
        x: numbers of two axes or more.
        offset: the diagonal: 0 is the main one, positive ones are above it.

    Returns:
        A tensor with the shape of ``x``, where the diagonal replaces the last two axes, and its dtype.

    Raises:
        InvalidArgumentError: ``x`` has fewer than two axes.

    >>> import dualflow as df
    >>> df.numpy.linalg.diagonal([[1, 2], [3, 4]]).numpy()
    array([1, 4])
    """
    return diagonals.diagonal(x, offset, -2, -1)


def trace(x: TensorLike, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Tensor:
    """The sums of the diagonals of the matrices of the last two axes.

    Args:
        x: numbers of two axes or more.
        offset: the diagonal: 0 is the main one, positive ones are above it.
        dtype: the dtype to add in; by default that of ``x``, 64 bits for integers.

    Returns:
        A tensor with the shape of ``x`` without the last two axes, in ``dtype``.

    Raises:
        InvalidArgumentError: ``x`` has fewer than two axes.

    >>> import dualflow as df
    >>> int(df.numpy.linalg.trace([[1, 2], [3, 4]]))
    5
    """
    return diagonals.trace(x, offset, -2, -1, dtype)


complete_docstrings(globals())
make_entries(globals())
_publish(globals())
