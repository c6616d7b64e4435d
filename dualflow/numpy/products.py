"""Products of vectors, matrices and tensors."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import normalize_axis
from dualflow.core.tracebacks import make_entries
from dualflow.numpy import operands
from dualflow.numpy.docstrings import complete_docstrings
from dualflow.numpy.operands import flat, promote_together, reject_unsupported, tensor, to
from dualflow.ops import contraction, products
from dualflow.ops.arrangement import expand_dims, reshape, squeeze, transpose
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.complex_numbers import conj
from dualflow.ops.joining import stack as stack_op
from dualflow.ops.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualflow.core.argument_types import AxisLike, DTypeLike, TensorLike


def _product(a: Any, b: Any, of_numbers: Any, dtype: Any = None) -> Tensor:
    """``of_numbers(a, b)`` in the common dtype; for bools, whether the product of integers is not 0."""
    x, y = promote_together(tensor(a), tensor(b), dtype=dtype)
    if not x.dtype.is_bool:
        return of_numbers(x, y)
    return to(of_numbers(to(x, np.int64), to(y, np.int64)), bool)


def _conjugate(x: Any) -> Any:
    return conj(x) if x.dtype.is_complex else x


def matrix_product(x: Any, y: Any) -> Any:
    """``x @ y``: a vector ``x`` counts as a row, a vector ``y`` as a column; the result lacks their axes.

    Raises:
        InvalidArgumentError: a factor without axes, or inner sizes that differ.
    """
    ranks = [len(getattr(factor, "shape", ())) for factor in (x, y)]
    if 0 in ranks:
        raise InvalidArgumentError(
            f"matmul takes factors of one axis or more, not of {ranks[0]} and {ranks[1]} axes; multiply by a "
            "number with *, or use multiply."
        )
    rows = expand_dims(x, 0) if ranks[0] == 1 else x
    columns = expand_dims(y, 1) if ranks[1] == 1 else y
    product = contraction.matmul(rows, columns)
    dropped = ((-2,) if ranks[0] == 1 else ()) + ((-1,) if ranks[1] == 1 else ())
    return squeeze(product, dropped) if dropped else product


def matmul(
    x1: TensorLike,
    x2: TensorLike,
    /,
    out: None = None,
    *,
    casting: str = "same_kind",
    order: str = "K",
    dtype: DTypeLike | None = None,
    subok: bool = True,
    signature: None = None,
    axes: None = None,
    axis: None = None,
) -> Tensor:
    """The matrix product of the last two axes; a vector is a row on the left, a column on the right.

    Args:
        x1: numbers of shape (..., m, k) or (k,).
        x2: numbers of shape (..., k, n) or (k,); the other axes broadcast.
        casting: ignored: dtypes promote as in NumPy 2.
        dtype: the dtype to compute in; the common dtype by default.
        signature: must be None; dtypes are those of ``dtype``.
        axes: must be None; the axes are the last two.
        axis: must be None; the axes are the last two.

    Returns:
        A tensor of shape (..., m, n), without the axis of a vector, in ``dtype``.

    Raises:
        InvalidArgumentError: an argument has no axes, the inner sizes differ, or the other axes do not
            broadcast.
        DTypeError: ``signature``, ``axes`` or ``axis`` is passed.

    >>> import dualflow as df
    >>> df.numpy.matmul([[1, 2], [3, 4]], [1, 1]).numpy()
    array([3, 7])
    """
    reject_unsupported("matmul", out=out, signature=signature, axes=axes, axis=axis)
    return _product(x1, x2, matrix_product, dtype)


def dot(a: TensorLike, b: TensorLike, out: None = None) -> Tensor:
    """The sums of products over the last axis of ``a`` and the last but one (or only one) of ``b``.

    Args:
        a: numbers of any shape.
        b: numbers of any shape. With a number, the product is elementwise.

    Returns:
        A tensor with the other axes of ``a``, then those of ``b``, and the common dtype.

    Raises:
        InvalidArgumentError: the sizes of the two axes differ.

    >>> import dualflow as df
    >>> int(df.numpy.dot([1, 2], [3, 4]))
    11
    """
    reject_unsupported("dot", out=out)

    def of_numbers(x: Any, y: Any) -> Any:
        if not x.shape or not y.shape:
            return x * y
        return products.tensordot(x, y, [[len(x.shape) - 1], [builtins.max(len(y.shape) - 2, 0)]])

    return _product(a, b, of_numbers)


def vdot(a: TensorLike, b: TensorLike, /) -> Tensor:
    """The dot product of the flattened arguments: ``sum(conj(a) * b)``.

    Args:
        b: as ``a``, of as many elements.

    Returns:
        A scalar tensor of the common dtype.

    Raises:
        InvalidArgumentError: the numbers of elements differ.

    >>> import dualflow as df
    >>> int(df.numpy.vdot([1, 2], [3, 4]))
    11
    """

    def of_numbers(x: Any, y: Any) -> Any:
        return reduce_sum(_conjugate(flat(x)) * flat(y))

    return _product(a, b, of_numbers)


def inner(a: TensorLike, b: TensorLike, /) -> Tensor:
    """The sums of products over the last axes of both arguments.

    Args:
        b: numbers of any shape. With a number, the product is elementwise.

    Returns:
        A tensor with the other axes of ``a``, then those of ``b``, and the common dtype.

    Raises:
        InvalidArgumentError: the sizes of the last axes differ.

    >>> import dualflow as df
    >>> int(df.numpy.inner([1, 2], [3, 4]))
    11
    """

    def of_numbers(x: Any, y: Any) -> Any:
        if not x.shape or not y.shape:
            return x * y
        return products.tensordot(x, y, [[len(x.shape) - 1], [len(y.shape) - 1]])

    return _product(a, b, of_numbers)


def outer(a: TensorLike, b: TensorLike, out: None = None) -> Tensor:
    """The outer product of the flattened arguments: each element of ``a`` times each of ``b``.

    Returns:
        A matrix of shape (a.size, b.size), and the common dtype.

    >>> import dualflow as df
    >>> df.numpy.outer([1, 2], [3, 4]).numpy().tolist()
    [[3, 4], [6, 8]]
    """
    reject_unsupported("outer", out=out)
    return _product(a, b, lambda x, y: flat(x)[:, None] * flat(y))


def tensordot(a: TensorLike, b: TensorLike, axes: AxisLike | Sequence[AxisLike] = 2) -> Tensor:
    """The sums of products over pairs of axes.

    Args:
        axes: the number of last axes of ``a`` and first axes of ``b``, or two lists of axes.

    Returns:
        A tensor with the other axes of ``a``, then those of ``b``, and the common dtype.

    Raises:
        InvalidArgumentError: the sizes of two axes differ, or an axis is out of range.

    >>> import dualflow as df
    >>> df.numpy.tensordot(df.numpy.ones((2, 3)), df.numpy.ones((3, 4)), 1).shape
    (2, 4)
    """
    return _product(a, b, lambda x, y: products.tensordot(x, y, axes))


def kron(a: TensorLike, b: TensorLike) -> Tensor:
    """The Kronecker product: each element of ``a`` times all of ``b``, block by block.

    Returns:
        A tensor whose sizes are the products of those of ``a`` and ``b``, and the common dtype.

    >>> import dualflow as df
    >>> df.numpy.kron([1, 10], [1, 2]).numpy()
    array([ 1,  2, 10, 20])
    """

    def of_numbers(x: Any, y: Any) -> Any:
        rank = builtins.max(len(x.shape), len(y.shape))
        x, y = (v[(None,) * (rank - len(v.shape))] for v in (x, y))
        left, right = operands.sizes(x), operands.sizes(y)
        blocks = x[(slice(None), None) * rank] * y[(None, slice(None)) * rank]
        return reshape(blocks, [m * n for m, n in zip(left, right, strict=True)])

    return _product(a, b, of_numbers)


def cross(
    a: TensorLike, b: TensorLike, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Tensor:
    """The cross product of vectors of three elements; of two vectors of two elements, its third element.

    Args:
        a: numbers with 2 or 3 elements along ``axisa``.
        b: numbers with 2 or 3 elements along ``axisb``; the other axes broadcast.
        axisa: the axis of the vectors in ``a``.
        axisb: the axis of the vectors in ``b``.
        axisc: the axis of the vectors in the result.
        axis: one axis for all three; None by default.

    Returns:
        A tensor of the common dtype, with the shape to which the other axes broadcast and the axis of size 3.

    Raises:
        InvalidArgumentError: vectors of other sizes, or the other axes do not broadcast.

    >>> import dualflow as df
    >>> df.numpy.cross([1, 0, 0], [0, 1, 0]).numpy()
    array([0, 0, 1])
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = promote_together(a, b)
    x, y = (
        transpose(v, [*[i for i in range(len(v.shape)) if i != at], at])
        for v, at in ((x, normalize_axis(axisa, len(x.shape))), (y, normalize_axis(axisb, len(y.shape))))
    )
    if x.shape[-1] not in (2, 3) or y.shape[-1] not in (2, 3):
        raise InvalidArgumentError(
            f"cross takes vectors of two or three elements, not of {x.shape[-1]} and {y.shape[-1]}."
        )
    flat_pair = x.shape[-1] == y.shape[-1] == 2
    parts: list[list[Any]] = [[v[..., i] if i < v.shape[-1] else None for i in range(3)] for v in (x, y)]
    (a0, a1, a2), (b0, b1, b2) = parts
    third = a0 * b1 - a1 * b0
    if flat_pair:
        return third
    product = stack_op(
        [_difference_of_products(a1, b2, a2, b1), _difference_of_products(a2, b0, a0, b2), third], -1
    )
    at = normalize_axis(axisc, len(product.shape))
    order = list(range(len(product.shape) - 1))
    return transpose(product, [*order[:at], len(order), *order[at:]])


def _difference_of_products(a: Any, b: Any, c: Any, d: Any) -> Any:
    """``a * b - c * d``; a product with a factor None is left out."""
    if a is None or b is None:
        return -(c * d)
    return a * b if c is None or d is None else a * b - c * d


def _vectors(name: str, x1: Any, x2: Any, subscripts: str, out: Any, dtype: Any) -> Tensor:
    reject_unsupported(name, out=out)
    return _product(x1, x2, lambda x, y: products.einsum(subscripts, x, y), dtype)


def vecdot(
    x1: TensorLike,
    x2: TensorLike,
    /,
    out: None = None,
    *,
    casting: str = "same_kind",
    order: str = "K",
    dtype: DTypeLike | None = None,
    subok: bool = True,
    axes: None = None,
    axis: int = -1,
) -> Tensor:
    """The dot products of vectors along ``axis``: ``sum(conj(x1) * x2)``.

    Args:
        casting: ignored: dtypes promote as in NumPy 2.
        dtype: the dtype to compute in; the common dtype by default.
        axes: must be None; use ``axis``.

    Returns:
        A tensor with the shape to which the inputs broadcast, without ``axis``, in ``dtype``.

    Raises:
        InvalidArgumentError: the sizes along ``axis`` differ, or the other axes do not broadcast.

    >>> import dualflow as df
    >>> df.numpy.vecdot([[1, 2], [3, 4]], [1, 1]).numpy()
    array([3, 7])
    """
    reject_unsupported("vecdot", axes=axes, out=out)

    def of_numbers(x: Any, y: Any) -> Any:
        return vector_product(x, y, axis if axis < 0 else axis - builtins.max(len(x.shape), len(y.shape)))

    return _product(x1, x2, of_numbers, dtype)


def vector_product(x: Any, y: Any, axis: int) -> Tensor:
    """The sums of ``conj(x) * y`` along ``axis``, which counts from the end.

    Raises:
        InvalidArgumentError: the sizes along the axis differ, or there is no such axis.
    """
    if builtins.min(len(x.shape), len(y.shape)) < -axis:
        raise InvalidArgumentError(
            f"vecdot's vectors are along axis {axis}, which shapes {x.shape} and {y.shape} don't both have."
        )
    if x.shape[axis] != y.shape[axis]:
        raise InvalidArgumentError(
            f"vecdot's vectors are of one size, not {x.shape[axis]} and {y.shape[axis]}, along axis {axis}."
        )
    return reduce_sum(_conjugate(x) * y, axis)


def matvec(
    x1: TensorLike,
    x2: TensorLike,
    /,
    out: None = None,
    *,
    casting: str = "same_kind",
    order: str = "K",
    dtype: DTypeLike | None = None,
    subok: bool = True,
    axes: None = None,
    axis: None = None,
) -> Tensor:
    """The products of matrices with vectors.

    Args:
        x1: numbers of shape (..., m, n).
        x2: numbers of shape (..., n); the other axes broadcast.
        casting: ignored: dtypes promote as in NumPy 2.
        dtype: the dtype to compute in; the common dtype by default.
        axes: must be None; the axes are the last ones.
        axis: must be None; the axes are the last ones.

    Returns:
        A tensor of shape (..., m), in ``dtype``.

    Raises:
        InvalidArgumentError: the sizes n differ, or the other axes do not broadcast.

    >>> import dualflow as df
    >>> df.numpy.matvec([[1, 2], [3, 4]], [1, 1]).numpy()
    array([3, 7])
    """
    reject_unsupported("matvec", axes=axes, axis=axis)
    return _vectors("matvec", x1, x2, "...ij,...j->...i", out, dtype)


def vecmat(
    x1: TensorLike,
    x2: TensorLike,
    /,
    out: None = None,
    *,
    casting: str = "same_kind",
    order: str = "K",
    dtype: DTypeLike | None = None,
    subok: bool = True,
    axes: None = None,
    axis: None = None,
) -> Tensor:
    """The products of conjugated vectors with matrices.

    Args:
        x1: numbers of shape (..., m).
        x2: numbers of shape (..., m, n); the other axes broadcast.
        casting: ignored: dtypes promote as in NumPy 2.
        dtype: the dtype to compute in; the common dtype by default.
        axes: must be None; the axes are the last ones.
        axis: must be None; the axes are the last ones.

    Returns:
        A tensor of shape (..., n), in ``dtype``.

    Raises:
        InvalidArgumentError: the sizes m differ, or the other axes do not broadcast.

    >>> import dualflow as df
    >>> df.numpy.vecmat([1, 1], [[1, 2], [3, 4]]).numpy()
    array([4, 6])
    """
    reject_unsupported("vecmat", axes=axes, axis=axis)
    return _vectors("vecmat", _conjugate(tensor(x1)), x2, "...i,...ij->...j", out, dtype)


complete_docstrings(globals())
make_entries(globals())
