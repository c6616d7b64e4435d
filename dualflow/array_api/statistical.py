"""Reductions and running sums and products, in the standard's dtypes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dualflow.array_api.array import Array, in_floats, tensor_of
from dualflow.array_api.axes import axes_of, axis_of
from dualflow.core.dtypes import as_dtype, int64, uint64
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.tracebacks import make_entries
from dualflow.ops import reduction, statistics
from dualflow.ops.arithmetic import divide, maximum
from dualflow.ops.broadcasting import broadcast_to, reduce_sum
from dualflow.ops.conversion import cast
from dualflow.ops.creation import ones_like
from dualflow.ops.cumulative.running import cumprod
from dualflow.ops.joining import concat
from dualflow.ops.powers import sqrt
from dualflow.ops.scans import cumsum
from dualflow.ops.tensor import Tensor


def summed_in(x: Any, dtype: Any) -> Tensor:
    """``x`` in the dtype of its sums: ``dtype``, or its own; of integers and bools int64 or uint64."""
    tensor = tensor_of(x)
    if dtype is not None:
        wanted = as_dtype(dtype)
    elif tensor.dtype.is_inexact:
        return tensor
    else:
        wanted = uint64 if tensor.dtype.is_unsigned else int64
    return tensor if tensor.dtype is wanted else cast(tensor, wanted)


def sum(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Array:
    """The sum over ``axis``.

    Args:
        x: numbers.
        axis: one axis or several; all by default.
        dtype: of the result: by default that of ``x``, for integers int64 or uint64.
        keepdims: keep the reduced axes, as size 1.

    Raises:
        OutOfRangeError: an axis that ``x`` doesn't have.
        InvalidArgumentError: an axis named twice.

    >>> import dualflow.array_api as xp
    >>> xp.sum(xp.asarray([[1, 2], [3, 4]]), axis=0).tolist()
    [4, 6]
    """
    tensor = summed_in(x, dtype)
    return Array(reduce_sum(tensor, axes_of(axis, len(tensor.shape)), keepdims))


def prod(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Array:
    """The product over ``axis``; arguments and dtypes are those of :func:`sum`.

    Raises:
        OutOfRangeError: an axis that ``x`` doesn't have.
        InvalidArgumentError: an axis named twice.

    >>> import dualflow.array_api as xp
    >>> xp.prod(xp.asarray([2, 3, 4])).tolist()
    24
    """
    tensor = summed_in(x, dtype)
    return Array(reduction.reduce_prod(tensor, axes_of(axis, len(tensor.shape)), keepdims))


def max(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Array:
    """The largest element over ``axis``, one, several or all; nan if there is one.

    Raises:
        OutOfRangeError: an axis that ``x`` doesn't have.
        InvalidArgumentError: an axis named twice, or of no elements.

    >>> import dualflow.array_api as xp
    >>> xp.max(xp.asarray([[1, 5], [7, 3]]), axis=1).tolist()
    [5, 7]
    """
    return _extreme(reduction.reduce_max, x, axis, keepdims)


def min(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Array:
    """The smallest element over ``axis``, one, several or all; nan if there is one.

    Raises:
        OutOfRangeError: an axis that ``x`` doesn't have.
        InvalidArgumentError: an axis named twice, or of no elements.

    >>> import dualflow.array_api as xp
    >>> xp.min(xp.asarray([[1, 5], [7, 3]]), axis=1).tolist()
    [1, 3]
    """
    return _extreme(reduction.reduce_min, x, axis, keepdims)


def _extreme(function: Any, x: Any, axis: Any, keepdims: bool) -> Array:
    tensor = tensor_of(x)
    axes = axes_of(axis, len(tensor.shape))
    if any(tensor.shape[a] == 0 for a in axes):
        raise InvalidArgumentError(
            f"An array of shape {tensor.shape} has no largest or smallest over axis {axis}: no elements."
        )
    return Array(function(tensor, axes, keepdims))


def mean(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Array:
    """The mean over ``axis``, one, several or all; of integers in float64; nan where there are no elements.

    Raises:
        OutOfRangeError: an axis that ``x`` doesn't have.
        InvalidArgumentError: an axis named twice.

    >>> import dualflow.array_api as xp
    >>> xp.mean(xp.asarray([1.0, 2.0, 6.0])).tolist()
    3.0
    """
    tensor = in_floats(x)
    return Array(statistics.reduce_mean(tensor, axes_of(axis, len(tensor.shape)), keepdims))


def var(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Array:
    """The variance over ``axis``: the sum of squared distances from the mean, by ``N - correction``.

    Args:
        x: numbers; integers count as float64.
        axis: one axis or several; all by default.
        correction: what is taken from the number of elements; 1 for the unbiased variance of a sample.
        keepdims: keep the reduced axes, as size 1.

    Returns:
        Real numbers; where ``N - correction`` is not above 0, nan or inf.

    Raises:
        OutOfRangeError: an axis that ``x`` doesn't have.
        InvalidArgumentError: an axis named twice.

    >>> import dualflow.array_api as xp
    >>> xp.var(xp.asarray([1.0, 2.0, 3.0]), correction=1).tolist()
    1.0
    """
    return Array(_variance(in_floats(x), axis, correction, keepdims))


def std(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Array:
    """The square root of :func:`var`, whose arguments it takes.

    Raises:
        OutOfRangeError: an axis that ``x`` doesn't have.
        InvalidArgumentError: an axis named twice.

    >>> import dualflow.array_api as xp
    >>> xp.std(xp.asarray([1.0, 3.0])).tolist()
    1.0
    """
    return Array(sqrt(_variance(in_floats(x), axis, correction, keepdims)))


def _variance(x: Tensor, axis: Any, correction: float, keepdims: bool) -> Any:
    axes = axes_of(axis, len(x.shape))
    apart = statistics.squared_magnitude(x - statistics.reduce_mean(x, axes, keepdims=True))
    total = reduce_sum(apart, axes, keepdims)
    if any(x.shape[a] is None for a in axes):
        count = reduce_sum(ones_like(apart), axes, keepdims)
        return divide(total, maximum(count - correction, 0.0))
    known = math.prod(x.shape[a] or 0 for a in axes)
    return divide(total, float(np.maximum(known - correction, 0.0)))


def cumulative_sum(
    x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Array:
    """Running sums along ``axis``.

    Args:
        x: numbers of one axis or more.
        axis: along which to add up; an array of one axis needs none.
        dtype: of the result: by default that of ``x``, for integers int64 or uint64.
        include_initial: whether the first sum is 0, and there is one more.

    Raises:
        InvalidArgumentError: no axis is given, and ``x`` has several or none.
        OutOfRangeError: an axis that ``x`` doesn't have.

    >>> import dualflow.array_api as xp
    >>> xp.cumulative_sum(xp.asarray([1, 2, 3]), include_initial=True).tolist()
    [0, 1, 3, 6]
    """
    return _running(cumsum, 0, x, axis, dtype, include_initial)


def cumulative_prod(
    x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Array:
    """Running products along ``axis``; arguments and dtypes are those of :func:`cumulative_sum`.

    Raises:
        InvalidArgumentError: no axis is given, and ``x`` has several or none.
        OutOfRangeError: an axis that ``x`` doesn't have.

    >>> import dualflow.array_api as xp
    >>> xp.cumulative_prod(xp.asarray([2, 3, 4]), include_initial=True).tolist()
    [1, 2, 6, 24]
    """
    return _running(cumprod, 1, x, axis, dtype, include_initial)


def _running(function: Any, first: int, x: Any, axis: int | None, dtype: Any, include_initial: bool) -> Array:
    tensor = summed_in(x, dtype)
    rank = len(tensor.shape)
    if axis is None and rank != 1:
        raise InvalidArgumentError(
            f"An array of {rank} axes needs axis=... for running sums; only one of one axis needs none."
        )
    along = axis_of(0 if axis is None else axis, rank)
    found = function(tensor, along)
    if not include_initial:
        return Array(found)
    sizes = [1 if a == along else size for a, size in enumerate(tensor.shape)]
    start = broadcast_to(np.array(first, tensor.dtype.dtype), sizes)
    return Array(concat([start, found], along))


make_entries(globals())
