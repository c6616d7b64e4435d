"""Means, variances and standard deviations over axes, in NumPy's dtypes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from dualflow.core.dtypes import float16
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.tracebacks import make_entries
from dualflow.numpy import operands
from dualflow.numpy.axis_reductions import apply_where, element_count, mean_distance
from dualflow.numpy.docstrings import complete_docstrings
from dualflow.numpy.operands import inexact, reject_unsupported, tensor, to
from dualflow.numpy.reductions import axes_of, sum
from dualflow.ops import broadcasting, statistics
from dualflow.ops.arithmetic import divide
from dualflow.ops.arrangement import expand_dims, transpose
from dualflow.ops.broadcasting import reduction_axes
from dualflow.ops.creation import zeros_like
from dualflow.ops.powers import sqrt
from dualflow.ops.tensor import Tensor

if TYPE_CHECKING:
    from dualflow.core.argument_types import AxisLike, DTypeLike, TensorLike


def mean(
    a: TensorLike,
    axis: AxisLike | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: TensorLike = True,
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
    reject_unsupported("mean", out=out)
    x = tensor(a)
    if x.dtype is float16 and dtype is None:
        return to(mean(to(x, np.float32), axis, keepdims=keepdims, where=where), np.float16)
    x = inexact(x) if dtype is None else to(x, dtype)
    total = sum(x, axis, x.dtype, keepdims=keepdims, where=where)
    count = element_count(x, reduction_axes(x, axis), keepdims, where)
    return to(divide(total, count if isinstance(count, int) else to(count, x.dtype)), x.dtype)


def var(
    a: TensorLike,
    axis: AxisLike | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: TensorLike = 0,
    keepdims: bool = False,
    *,
    where: TensorLike = True,
    mean: TensorLike | None = None,
    correction: TensorLike | None = None,
) -> Tensor:
    """The variance over ``axis``: the sum of squared distances from the mean, divided by ``n - ddof``.

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
    reject_unsupported("var", out=out)
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
    distances = apply_where(statistics.squared_magnitude(x - center), where, 0)
    axes = reduction_axes(x, axis)
    count = element_count(x, axes, keepdims, where)
    return mean_distance(distances, axes, keepdims, count, ddof if correction is None else correction)


_mean = mean


def std(
    a: TensorLike,
    axis: AxisLike | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: TensorLike = 0,
    keepdims: bool = False,
    *,
    where: TensorLike = True,
    mean: TensorLike | None = None,
    correction: TensorLike | None = None,
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
    reject_unsupported("std", out=out)
    return sqrt(var(a, axis, dtype, None, ddof, keepdims, where=where, mean=mean, correction=correction))


@overload
def average(
    a: TensorLike,
    axis: AxisLike | None = None,
    weights: TensorLike | None = None,
    returned: Literal[False] = False,
    *,
    keepdims: bool = False,
) -> Tensor: ...
@overload
def average(
    a: TensorLike,
    axis: AxisLike | None = None,
    weights: TensorLike | None = None,
    *,
    returned: Literal[True],
    keepdims: bool = False,
) -> tuple[Tensor, Tensor]: ...
@overload
def average(
    a: TensorLike,
    axis: AxisLike | None,
    weights: TensorLike | None,
    returned: Literal[True],
    *,
    keepdims: bool = False,
) -> tuple[Tensor, Tensor]: ...
def average(
    a: TensorLike,
    axis: AxisLike | None = None,
    weights: TensorLike | None = None,
    returned: bool = False,
    *,
    keepdims: bool = False,
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


complete_docstrings(
    globals(),
    axis="the axes to reduce, an integer or several; all by default.",
    where="which elements to take, bools that broadcast; all by default.",
)
make_entries(globals())
