"""Norms of vectors and matrices."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.tracebacks import make_entries
from dualflow.numpy import manipulation
from dualflow.numpy.docstrings import complete_docstrings
from dualflow.numpy.manipulation import matrix_transpose as matrix_transpose
from dualflow.numpy.operands import axes_in_order, flat, inexact, to
from dualflow.ops.arithmetic import abs as magnitude
from dualflow.ops.arrangement import expand_dims, reshape, transpose
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.linear_algebra import (
    singular_values,
)
from dualflow.ops.powers import pow, sqrt
from dualflow.ops.reduction import reduce_max, reduce_min
from dualflow.ops.statistics import squared_magnitude
from dualflow.ops.tensor import Tensor

if TYPE_CHECKING:
    from dualflow.core.argument_types import AxisLike, TensorLike


def norm(
    x: TensorLike, ord: str | float | None = None, axis: AxisLike | None = None, keepdims: bool = False
) -> Tensor:
    """The norm of vectors along one axis, or of matrices along two.

    Args:
        x: numbers of any shape; integers count as float64.
        ord: for vectors a number, ``inf`` or ``-inf``; for matrices "fro", "nuc" (the sum of the singular
            values), 1, -1, 2, -2, ``inf`` or ``-inf``. By default the root of the sum of squares.
        axis: the axis of vectors, or the two axes of matrices. By default ``x`` is one vector or matrix;
            without ``ord`` it is flattened.
        keepdims: keep the axes, as size 1.

    Returns:
        A tensor with the shape of ``x`` without the axes, and its real dtype, float64 for integers.

    Raises:
        InvalidArgumentError: ``ord`` is no such norm, or there are more than two axes.

    >>> import dualflow as df
    >>> float(df.numpy.linalg.norm([3, 4])), float(df.numpy.linalg.norm([3, 4], ord=1))
    (5.0, 7.0)
    """
    v = inexact(x)
    rank = len(v.shape)
    if axis is None and ord is None:
        root = sqrt(reduce_sum(squared_magnitude(flat(v))))
        return reshape(root, [1] * rank) if keepdims else root
    axes = axes_in_order(range(rank) if axis is None else axis, rank)
    if len(axes) == 1:
        return of_vectors(v, ord, axes, keepdims)
    if len(axes) == 2:
        return of_matrices(v, ord, axes[0], axes[1], keepdims)
    raise InvalidArgumentError(f"norm is of one axis or two, not {len(axes)}.")


def of_vectors(x: Any, ord: Any, axis: tuple[int, ...], keepdims: bool) -> Tensor:
    """The norms of vectors of floats or complex numbers along one axis or several; see :func:`norm`."""
    if ord is None or ord == 2:
        return sqrt(reduce_sum(squared_magnitude(x), axis, keepdims))
    if not isinstance(ord, int | float):
        raise InvalidArgumentError(f"The norm of vectors has a number as ord, not {ord!r}.")
    size = magnitude(x)
    if math.isinf(ord):
        return _extreme(size, ord, axis, keepdims)
    if ord == 0:
        return reduce_sum(to(to(x, bool), size.dtype), axis, keepdims)
    if ord == 1:
        return reduce_sum(size, axis, keepdims)
    return pow(reduce_sum(pow(size, float(ord)), axis, keepdims), 1.0 / ord)


def _extreme(x: Any, ord: Any, axis: tuple[int, ...], keepdims: bool = False) -> Tensor:
    """The maximum over ``axis``, or the minimum for a negative ``ord``; 0 without elements."""
    if any(x.shape[a] == 0 for a in axis):
        return reduce_sum(x, axis, keepdims)
    return (reduce_max if ord > 0 else reduce_min)(x, axis, keepdims)


def of_matrices(x: Any, ord: Any, rows: int, columns: int, keepdims: bool) -> Tensor:
    """The norms of matrices of floats or complex numbers; see :func:`norm`."""
    if ord in (None, "fro", "f"):
        return sqrt(reduce_sum(squared_magnitude(x), (rows, columns), keepdims))
    norms: Any
    if ord in (2, -2, "nuc"):
        batch_axes = [i for i in range(len(x.shape)) if i not in (rows, columns)]
        singular = singular_values.singular_values(transpose(x, [*batch_axes, rows, columns]))
        last = (len(batch_axes),)
        norms = reduce_sum(singular, last) if ord == "nuc" else _extreme(singular, ord, last)
        return expand_dims(norms, sorted((rows, columns))) if keepdims else norms
    if ord not in (1, -1, math.inf, -math.inf):
        raise InvalidArgumentError(
            f"The norm of matrices has ord None, 'fro', 'nuc', 1, -1, 2, -2, inf or -inf, not {ord!r}."
        )
    first, second = (rows, columns) if ord in (1, -1) else (columns, rows)
    norms = _extreme(reduce_sum(magnitude(x), first, keepdims=True), ord, (second,), keepdims=True)
    return norms if keepdims else manipulation.squeeze(norms, (rows, columns))


def vector_norm(
    x: TensorLike, /, *, axis: AxisLike | None = None, keepdims: bool = False, ord: str | float = 2
) -> Tensor:
    """The norms of vectors along one axis or several; see :func:`norm`.

    Args:
        axis: an axis or several, which together are one vector; all by default.
        ord: the norm, a number, ``inf`` or ``-inf``.

    Returns:
        A tensor with the shape of ``x`` without the axes, and its real dtype, float64 for integers.

    Raises:
        InvalidArgumentError: ``ord`` is not a number.

    >>> import dualflow as df
    >>> float(df.numpy.linalg.vector_norm([3, 4]))
    5.0
    """
    v = inexact(x)
    rank = len(v.shape)
    return of_vectors(v, ord, axes_in_order(range(rank) if axis is None else axis, rank), keepdims)


def matrix_norm(x: TensorLike, /, *, keepdims: bool = False, ord: str | float = "fro") -> Tensor:
    """The norms of the matrices of the last two axes; see :func:`norm`.

    Args:
        x: numbers of two axes or more; integers count as float64.
        ord: "fro", "nuc", 1, -1, 2, -2, ``inf`` or ``-inf``.

    Returns:
        A tensor with the shape of ``x`` without the last two axes, and its real dtype, float64 for integers.

    Raises:
        InvalidArgumentError: ``ord`` is no norm of matrices, or ``x`` has fewer than two axes.

    >>> import dualflow as df
    >>> float(df.numpy.linalg.matrix_norm([[3, 0], [0, 4]]))
    5.0
    """
    return norm(x, ord, (-2, -1), keepdims)


complete_docstrings(globals())
make_entries(globals())
