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
    element_count,
    extreme,
    mean_distance,
    position,
    selected,
    summed_in,
)
from dualflow.numpy.docstrings import complete_docstrings
from dualflow.numpy.operands import flat, inexact, refuse, tensor, to
from dualflow.ops import broadcasting, reduction, statistics
from dualflow.ops.arithmetic import add as plus
from dualflow.ops.arithmetic import divide, multiply
from dualflow.ops.arrangement import expand_dims, transpose
from dualflow.ops.broadcasting import reduction_axes
from dualflow.ops.creation import zeros_like
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
    """The sum over ``axis``.

    Args:
        a: numbers of any shape.
        dtype: the dtype to add in; by default that of ``a``, 64 bits for integers and bools.
        initial: a number to add.

    Returns:
        A tensor with the shape of ``a`` without the reduced axes, and the dtype.

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
    """The product over ``axis``.

    Args:
        dtype: the dtype to multiply in; by default that of ``a``, 64 bits for integers and bools.
        initial: a number to multiply by.

    Returns:
        A tensor with the shape of ``a`` without the reduced axes, and the dtype.

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
    """The largest element over ``axis``; nan if one is nan.

    Returns:
        A tensor with the shape of ``a`` without the reduced axes, and its dtype.

    Raises:
        InvalidArgumentError: there are no elements, or ``where`` is passed, without ``initial``.

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
    """The smallest element over ``axis``; nan if one is nan.

    Returns:
        A tensor with the shape of ``a`` without the reduced axes, and its dtype.

    Raises:
        InvalidArgumentError: there are no elements, or ``where`` is passed, without ``initial``.

    >>> import dualflow as df
    >>> df.numpy.min([[1, 5], [7, 2]], axis=1).numpy()
    array([1, 2])
    """
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
    """The largest element over ``axis``; the same as :func:`max`.

    Returns:
        A tensor with the shape of ``a`` without the reduced axes, and its dtype.

    Raises:
        InvalidArgumentError: there are no elements, or ``where`` is passed, without ``initial``.

    >>> import dualflow as df
    >>> df.numpy.amax([[1, 5], [7, 2]], axis=0).numpy()
    array([7, 5])
    """
    return max(a, axis, out, keepdims, initial, where)


def amin(
    a: Any,
    axis: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Tensor:
    """The smallest element over ``axis``; the same as :func:`min`.

    Returns:
        A tensor with the shape of ``a`` without the reduced axes, and its dtype.

    Raises:
        InvalidArgumentError: there are no elements, or ``where`` is passed, without ``initial``.

    >>> import dualflow as df
    >>> df.numpy.amin([[1, 5], [7, 2]], axis=0).numpy()
    array([1, 2])
    """
    return min(a, axis, out, keepdims, initial, where)


def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: bool = False) -> Tensor:
    """The largest element minus the smallest one, over ``axis``.

    Returns:
        A tensor with the shape of ``a`` without the reduced axes, and its dtype.

    Raises:
        InvalidArgumentError: there are no elements.

    >>> import dualflow as df
    >>> int(df.numpy.ptp([3, 7, 1]))
    6
    """
    refuse("ptp", out=out)
    return max(a, axis, keepdims=keepdims) - min(a, axis, keepdims=keepdims)


def all(a: Any, axis: Any = None, out: Any = None, keepdims: bool = False, *, where: Any = True) -> Tensor:
    """Whether all elements over ``axis`` are true (not 0); True for no elements.

    Returns:
        A bool tensor with the shape of ``a`` without the reduced axes.

    >>> import dualflow as df
    >>> df.numpy.all([[1, 0], [1, 1]], axis=1).numpy()
    array([False,  True])
    """
    refuse("all", out=out)
    x = to(tensor(a), bool)
    return reduction.reduce_all(selected(x, where, True), axes_of(x, axis), keepdims)


def any(a: Any, axis: Any = None, out: Any = None, keepdims: bool = False, *, where: Any = True) -> Tensor:
    """Whether any element over ``axis`` is true (not 0); False for no elements.

    Returns:
        A bool tensor with the shape of ``a`` without the reduced axes.

    >>> import dualflow as df
    >>> df.numpy.any([[1, 0], [0, 0]], axis=1).numpy()
    array([ True, False])
    """
    refuse("any", out=out)
    x = to(tensor(a), bool)
    return reduction.reduce_any(selected(x, where, False), axes_of(x, axis), keepdims)


def count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """The number of elements over ``axis`` that are not 0.

    Returns:
        An int64 tensor with the shape of ``a`` without the reduced axes.

    >>> import dualflow as df
    >>> int(df.numpy.count_nonzero([1, 0, 5]))
    2
    """
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
    """The mean over ``axis``; float16 is added in float32.

    Args:
        dtype: the dtype to compute in; by default that of ``a``, float64 for integers.

    Returns:
        A tensor with the shape of ``a`` without the reduced axes, and the dtype; nan for no elements.

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
    """The variance over ``axis``: the sum of squared distances from the mean by ``n - ddof``.

    Args:
        dtype: the dtype to compute in; by default that of ``a``, float64 for integers.
        ddof: what to subtract from the number of elements.
        mean: the mean, with the reduced axes of size 1; computed by default.
        correction: another name of ``ddof``; None by default.

    Returns:
        A tensor with the shape of ``a`` without the reduced axes, and the real dtype.

    Raises:
        InvalidArgumentError: both ``ddof`` and ``correction`` are passed.

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
    """The standard deviation over ``axis``: the square root of :func:`var`.

    Args:
        dtype: the dtype to compute in; by default that of ``a``, float64 for integers.
        ddof: what to subtract from the number of elements.
        mean: the mean, with the reduced axes of size 1; computed by default.
        correction: another name of ``ddof``; None by default.

    Returns:
        A tensor with the shape of ``a`` without the reduced axes, and the real dtype.

    Raises:
        InvalidArgumentError: both ``ddof`` and ``correction`` are passed.

    >>> import dualflow as df
    >>> float(df.numpy.std([1.0, 3.0]))
    1.0
    """
    refuse("std", out=out)
    return sqrt(var(a, axis, dtype, None, ddof, keepdims, where=where, mean=mean, correction=correction))


def average(
    a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: bool = False
) -> Any:
    """The weighted mean over ``axis``.

    Args:
        weights: the weight of each element, of the shape of ``a`` or of the axes; by default each counts 1.
        returned: whether to return the sum of the weights, too.

    Returns:
        A tensor with the shape of ``a`` without the reduced axes, and the common dtype, float64 for integers.
        With ``returned``, a pair of it and the sum of the weights.

    Raises:
        InvalidArgumentError: ``weights`` has another shape.

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
    """The index of the largest element along ``axis``, the first of several; nan counts as the largest.

    Args:
        axis: the axis; by default ``a`` is flattened.

    Returns:
        An int64 tensor with the shape of ``a`` without ``axis``.

    Raises:
        InvalidArgumentError: there are no elements.

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
    """The index of the smallest element along ``axis``, the first of several; nan counts as the smallest.

    Args:
        axis: the axis; by default ``a`` is flattened.

    Returns:
        An int64 tensor with the shape of ``a`` without ``axis``.

    Raises:
        InvalidArgumentError: there are no elements.

    >>> import dualflow as df
    >>> df.numpy.argmin([[1, 9], [9, 2]], axis=0).numpy()
    array([0, 1])
    """
    refuse("argmin", out=out)
    return _position(a, axis, keepdims, largest=False)


complete_docstrings(
    globals(),
    axis="the axes to reduce, an integer or several; all by default.",
    where="which elements to take, bools that broadcast; all by default.",
    initial="a number that takes part, too; None by default.",
)
make_entries(globals())
