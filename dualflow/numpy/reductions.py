"""Sums, products, extremes, means and running sums, over axes, in NumPy's dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np

from dualflow.core.dtypes import float16
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import normalize_axis
from dualflow.core.tracebacks import make_entries
from dualflow.numpy import operands
from dualflow.numpy.axis_reductions import (
    accumulated,
    element_count,
    extreme,
    mean_distance,
    position,
    selected,
    summed_in,
)
from dualflow.numpy.operands import flat, inexact, refuse, tensor, to
from dualflow.ops import broadcasting, reduction, scans, statistics
from dualflow.ops.arithmetic import add as plus
from dualflow.ops.arithmetic import divide, multiply
from dualflow.ops.arrangement import expand_dims, transpose
from dualflow.ops.broadcasting import reduction_axes
from dualflow.ops.creation import zeros_like
from dualflow.ops.cumulative import running
from dualflow.ops.powers import sqrt
from dualflow.ops.tensor import Tensor


def axes_of(x: Any, axis: Any) -> tuple[int, ...]:
    """The axes to reduce; a number lets itself be reduced along its first or last axis, too."""
    if not x.shape and type(axis) is int and axis in (0, -1):
        return ()
    return reduction_axes(x, axis)


def sum(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = 0,
    where: Any = True,
) -> Tensor:
    """The sum over ``axis`` (all by default), an int or several; integers of less than 64 bits become int64.

    Args:
        a: numbers of any shape.
        axis: an axis or several; all by default.
        dtype: the dtype to add in.
        out: refused, as tensors don't change.
        keepdims: keep the axes, as size 1.
        initial: what to begin with.
        where: bools that broadcast: which elements to take.

    >>> import dualflow as df
    >>> df.numpy.sum([[1, 2], [3, 4]], axis=0, where=[[True], [False]]).numpy()
    array([1, 2])
    """
    refuse("sum", out=out)
    x = summed_in(tensor(a), dtype)
    if x.dtype.is_bool:
        return any(x, axis, keepdims=keepdims, where=where)
    total = broadcasting.reduce_sum(selected(x, where, 0), axes_of(x, axis), keepdims)
    return total if type(initial) is int and initial == 0 else plus(total, tensor(initial, x.dtype))


def prod(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = 1,
    where: Any = True,
) -> Tensor:
    """The product over ``axis``; see :func:`sum`.

    >>> import dualflow as df
    >>> int(df.numpy.prod([2, 3, 4]))
    24
    """
    refuse("prod", out=out)
    x = summed_in(tensor(a), dtype)
    if x.dtype.is_bool:
        return all(x, axis, keepdims=keepdims, where=where)
    product = reduction.reduce_prod(selected(x, where, 1), axes_of(x, axis), keepdims)
    return product if type(initial) is int and initial == 1 else multiply(product, tensor(initial, x.dtype))


def max(
    a: Any,
    axis: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Tensor:
    """The largest element over ``axis``; nan if there is one.

    Raises:
        InvalidArgumentError: there are no elements and no ``initial``.

    >>> import dualflow as df
    >>> df.numpy.max([[1, 5], [7, 2]], axis=1).numpy()
    array([5, 7])
    """
    refuse("max", out=out)
    x = tensor(a)
    return extreme(x, axes_of(x, axis), keepdims, largest=True, initial=initial, where=where)


def min(
    a: Any,
    axis: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Tensor:
    """The smallest element over ``axis``; see :func:`max`."""
    refuse("min", out=out)
    x = tensor(a)
    return extreme(x, axes_of(x, axis), keepdims, largest=False, initial=initial, where=where)


def amax(
    a: Any,
    axis: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Tensor:
    """The largest element over ``axis``; see :func:`max`."""
    return max(a, axis, out, keepdims, initial, where)


def amin(
    a: Any,
    axis: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Tensor:
    """The smallest element over ``axis``; see :func:`max`."""
    return min(a, axis, out, keepdims, initial, where)


def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: bool = False) -> Tensor:
    """The largest element less the smallest one, over ``axis``."""
    refuse("ptp", out=out)
    return max(a, axis, keepdims=keepdims) - min(a, axis, keepdims=keepdims)


def all(a: Any, axis: Any = None, out: Any = None, keepdims: bool = False, *, where: Any = True) -> Tensor:
    """Whether all elements over ``axis`` are true (not 0)."""
    refuse("all", out=out)
    x = to(tensor(a), bool)
    return reduction.reduce_all(selected(x, where, True), axes_of(x, axis), keepdims)


def any(a: Any, axis: Any = None, out: Any = None, keepdims: bool = False, *, where: Any = True) -> Tensor:
    """Whether one element over ``axis`` is true (not 0)."""
    refuse("any", out=out)
    x = to(tensor(a), bool)
    return reduction.reduce_any(selected(x, where, False), axes_of(x, axis), keepdims)


def count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """How many elements over ``axis`` are not 0."""
    x = to(to(tensor(a), bool), np.int64)
    return broadcasting.reduce_sum(x, axes_of(x, axis), keepdims)


# Means


def mean(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    *,
    where: Any = True,
) -> Tensor:
    """The mean over ``axis``, of integers in float64; float16 is added in float32.

    >>> import dualflow as df
    >>> float(df.numpy.mean([1, 2]))
    1.5
    """
    refuse("mean", out=out)
    x = tensor(a)
    if x.dtype is float16 and dtype is None:
        return to(mean(to(x, np.float32), axis, keepdims=keepdims, where=where), np.float16)
    x = inexact(x) if dtype is None else to(x, dtype)
    total = sum(x, axis, x.dtype, keepdims=keepdims, where=where)
    count = element_count(x, reduction_axes(x, axis), keepdims, where)
    return to(divide(total, count if isinstance(count, int) else to(count, x.dtype)), x.dtype)


def var(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: bool = False,
    *,
    where: Any = True,
    mean: Any = None,
    correction: Any = None,
) -> Tensor:
    """The mean squared distance from the mean over ``axis``, with ``ddof`` fewer in the divisor.

    Raises:
        InvalidArgumentError: both ``ddof`` and ``correction``, its other name, are given.

    >>> import dualflow as df
    >>> float(df.numpy.var([1, 2, 3, 4])), float(df.numpy.var([1, 3], ddof=1))
    (1.25, 2.0)
    """
    refuse("var", out=out)
    if correction is not None and ddof != 0:
        raise InvalidArgumentError("ddof and correction are two names of one argument; give one.")
    x = tensor(a)
    if x.dtype is float16 and dtype is None:
        variance = var(
            to(x, np.float32), axis, None, None, ddof, keepdims, where=where, mean=mean, correction=correction
        )
        return to(variance, np.float16)
    x = inexact(x) if dtype is None else to(x, dtype)
    center = _mean(x, axis, keepdims=True, where=where) if mean is None else tensor(mean)
    distances = selected(statistics.squared_magnitude(x - center), where, 0)
    axes = reduction_axes(x, axis)
    count = element_count(x, axes, keepdims, where)
    return mean_distance(distances, axes, keepdims, count, ddof if correction is None else correction)


_mean = mean


def std(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: bool = False,
    *,
    where: Any = True,
    mean: Any = None,
    correction: Any = None,
) -> Tensor:
    """The square root of :func:`var`."""
    refuse("std", out=out)
    return sqrt(var(a, axis, dtype, None, ddof, keepdims, where=where, mean=mean, correction=correction))


def average(
    a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: bool = False
) -> Any:
    """The mean weighted by ``weights``, of the shape of ``a`` or the axes; with ``returned``, their sum too.

    >>> import dualflow as df
    >>> float(df.numpy.average([1, 2, 3], weights=[3, 0, 1]))
    1.5
    """
    x = tensor(a)
    if weights is None:
        weighted_mean = mean(x, axis, keepdims=keepdims)
        total: Any = zeros_like(weighted_mean) + element_count(x, reduction_axes(x, axis))
        return (weighted_mean, to(total, weighted_mean.dtype)) if returned else weighted_mean
    w = tensor(weights)
    axes = axes_of(x, axis)
    if w.shape != x.shape:
        sizes = () if axis is None else tuple(x.shape[i] for i in operands.axes_in_order(axis, len(x.shape)))
        if axis is None or w.shape != sizes:
            raise InvalidArgumentError(
                f"Weights of shape {w.shape} fit neither shape {x.shape} nor its axes {axis}."
            )
        weight_axes = operands.axes_in_order(axis, len(x.shape))
        order = sorted(range(len(weight_axes)), key=weight_axes.__getitem__)
        w = transpose(w, order)
        w = expand_dims(w, [i for i in range(len(x.shape)) if i not in axes])
    kind = np.result_type(x.dtype.dtype, w.dtype.dtype, *([np.float64] if x.dtype.kind in "biu" else []))
    x, w = to(x, kind), to(w, kind)
    scale = sum(broadcasting.broadcast_like(w, x), axes, keepdims=keepdims)
    weighted_mean = divide(sum(x * w, axes, keepdims=keepdims), scale)
    return (weighted_mean, scale) if returned else weighted_mean


# Positions


def argmax(a: Any, axis: Any = None, out: Any = None, *, keepdims: bool = False) -> Tensor:
    """Where the first maximum is along ``axis``; among all elements by default.

    >>> import dualflow as df
    >>> int(df.numpy.argmax([[1, 9], [9, 2]]))
    1
    """
    refuse("argmax", out=out)
    return _position(a, axis, keepdims, largest=True)


def _position(a: Any, axis: Any, keepdims: bool, *, largest: bool) -> Tensor:
    x = tensor(a)
    if axis is not None and not x.shape:
        axes_of(x, axis)
        return position(flat(x), 0, False, largest=largest)
    where = None if axis is None else normalize_axis(axis, len(x.shape))
    return position(x, where, keepdims, largest=largest)


def argmin(a: Any, axis: Any = None, out: Any = None, *, keepdims: bool = False) -> Tensor:
    """Where the first minimum is along ``axis``; among all elements by default."""
    refuse("argmin", out=out)
    return _position(a, axis, keepdims, largest=False)


# Running sums and products


def _along(a: Any, axis: Any, dtype: Any) -> tuple[Any, int]:
    x = summed_in(tensor(a), dtype)
    if axis is None or (not x.shape and axis in (0, -1)):
        return flat(x), 0
    return x, normalize_axis(axis, len(x.shape))


def cumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Tensor:
    """Running sums along ``axis``, or of all elements.

    >>> import dualflow as df
    >>> df.numpy.cumsum([[1, 2], [3, 4]]).numpy()
    array([ 1,  3,  6, 10])
    """
    refuse("cumsum", out=out)
    return scans.cumsum(*_along(a, axis, dtype))


def cumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Tensor:
    """Running products along ``axis``, or of all elements."""
    refuse("cumprod", out=out)
    return running.cumprod(*_along(a, axis, dtype))


def cumulative_sum(
    x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: bool = False
) -> Tensor:
    """Running sums along ``axis``, which a vector need not name; with ``include_initial`` 0 stands first.

    Raises:
        InvalidArgumentError: not a vector, and no axis.
    """
    refuse("cumulative_sum", out=out)
    return accumulated(*_cumulated(x, axis, dtype), "sum", include_initial)


def cumulative_prod(
    x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: bool = False
) -> Tensor:
    """Running products along ``axis``; see :func:`cumulative_sum`. ``include_initial`` puts 1 first."""
    refuse("cumulative_prod", out=out)
    return accumulated(*_cumulated(x, axis, dtype), "prod", include_initial)


def _cumulated(a: Any, axis: Any, dtype: Any) -> tuple[Any, int]:
    x = tensor(a)
    if axis is None and len(x.shape) != 1:
        raise InvalidArgumentError(
            f"The axis has to be named of shape {x.shape}, which is no vector; give axis=."
        )
    return _along(x, 0 if axis is None else axis, dtype)


make_entries(globals())
