"""Norms of vectors and matrices."""

from __future__ import annotations

import math
from typing import Any

from dualflow import linalg as matrices
from dualflow.array_api.array import Array, in_floats
from dualflow.array_api.axes import axes_of
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.tracebacks import make_entries
from dualflow.ops import reduction
from dualflow.ops.arithmetic import abs as magnitude
from dualflow.ops.arrangement import expand_dims
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.comparison import not_equal
from dualflow.ops.conversion import cast
from dualflow.ops.powers import pow as power
from dualflow.ops.powers import sqrt
from dualflow.ops.statistics import squared_magnitude
from dualflow.ops.tensor import Tensor


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


make_entries(globals())
