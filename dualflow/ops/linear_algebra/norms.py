"""Norms of vectors and matrices."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core.errors import InvalidArgumentError
from dualflow.ops.arithmetic import abs
from dualflow.ops.arrangement import expand_dims, squeeze, transpose
from dualflow.ops.broadcasting import reduce_sum, reduction_axes
from dualflow.ops.linear_algebra.singular_values import singular_values
from dualflow.ops.powers import pow
from dualflow.ops.reduction import reduce_max
from dualflow.ops.static import ints
from dualflow.ops.statistics import as_float, reduce_euclidean_norm

if TYPE_CHECKING:
    from dualflow.core.argument_types import AxisLike, TensorLike
    from dualflow.ops.tensor import Tensor


def norm(
    tensor: TensorLike,
    ord: str | float = "euclidean",
    axis: AxisLike | None = None,
    keepdims: bool = False,
    name: str | None = None,
) -> Tensor:
    """The norm of vectors or matrices.

    Args:
        tensor: numbers of any shape; integers become float32.
        ord: for vectors "euclidean", a positive number or ``inf``; for matrices "euclidean" or "fro" (the
            root of the sum of squares), 1 (the largest sum of a column), 2 (the largest singular value) or
            ``inf`` (the largest sum of a row).
        axis: the axis of vectors; two axes, of the rows and columns of matrices; None to take all elements as
            one vector.
        keepdims: whether the reduced axes stay, with size 1.

    Returns:
        A tensor with the shape of ``tensor`` without the reduced axes, and its dtype; that of the parts for
        complex numbers.

    Raises:
        InvalidArgumentError: ``ord`` is unknown, or there are more than two axes.
        DTypeError: the 2-norm of float16 matrices.

    >>> import dualflow as df
    >>> float(df.norm([3.0, 4.0])), float(df.norm([3.0, 4.0], ord=1))
    (5.0, 7.0)
    >>> float(df.norm([[3.0, 4.0], [5.0, 6.0]], ord=1, axis=(0, 1)))
    10.0
    """
    x = as_float(tensor)
    requested: Any = axis
    if axis is None or not np.ndim(requested):
        return _vector_norm(x, ord, axis, keepdims)
    axes = reduction_axes(x, axis)
    if len(axes) != 2:
        raise InvalidArgumentError(f"norm's axis is None, an integer or two of them, not {axis!r}.")
    rows, columns = (a % len(x.shape) for a in ints(axis, "axis"))
    return _matrix_norm(x, ord, rows, columns, keepdims)


def _vector_norm(x: Any, ord: Any, axis: Any, keepdims: bool) -> Any:
    if ord in ("euclidean", 2):
        return reduce_euclidean_norm(x, axis, keepdims)
    if ord == 1:
        return reduce_sum(abs(x), axis, keepdims)
    if ord == math.inf:
        return reduce_max(abs(x), axis, keepdims)
    if isinstance(ord, int | float) and ord > 0:
        return pow(reduce_sum(pow(abs(x), ord), axis, keepdims), 1 / ord)
    raise InvalidArgumentError(
        f"norm's ord of vectors is 'euclidean', inf or a positive number, not {ord!r}; give two axes for the "
        "norm of matrices."
    )


def _matrix_norm(x: Any, ord: Any, rows: int, columns: int, keepdims: bool) -> Any:
    if ord in ("euclidean", "fro"):
        return reduce_euclidean_norm(x, (rows, columns), keepdims)
    if ord == 2:
        batch_axes = [a for a in range(len(x.shape)) if a not in (rows, columns)]
        largest = reduce_max(singular_values(transpose(x, (*batch_axes, rows, columns))), -1)
        return expand_dims(largest, sorted((rows, columns))) if keepdims else largest
    if ord not in (1, math.inf):
        raise InvalidArgumentError(
            f"norm's ord of matrices is 'euclidean', 'fro', 1, 2 or inf, not {ord!r}; give one axis for the "
            "norm of vectors."
        )
    first, second = (rows, columns) if ord == 1 else (columns, rows)
    largest_sum = reduce_max(reduce_sum(abs(x), first, keepdims=True), second, keepdims=True)
    return largest_sum if keepdims else squeeze(largest_sum, (rows, columns))
