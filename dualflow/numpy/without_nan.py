"""Reductions that ignore nan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core.dtypes import float16
from dualflow.core.tracebacks import make_entries
from dualflow.numpy import accumulation, averages, reductions
from dualflow.numpy.axis_reductions import element_count
from dualflow.numpy.docstrings import complete_docstrings
from dualflow.numpy.operands import inexact, reject_unsupported, tensor, to
from dualflow.ops.arithmetic import maximum
from dualflow.ops.broadcasting import reduction_axes
from dualflow.ops.checks import required
from dualflow.ops.comparison import isnan, logical_and, logical_not
from dualflow.ops.powers import sqrt
from dualflow.ops.reduction import reduce_all
from dualflow.ops.selection import where as where_op
from dualflow.ops.statistics import squared_magnitude
from dualflow.ops.tensor import Tensor

if TYPE_CHECKING:
    from dualflow.core.argument_types import AxisLike, DTypeLike, TensorLike


def _replace_nan(a: Any, value: Any) -> Any:
    """``a`` with ``value`` in place of nan."""
    x = tensor(a)
    return where_op(isnan(x), tensor(value, x.dtype), x) if x.dtype.is_inexact else x


def _not_nan(x: Any, where: Any) -> Any:
    """The mask of the elements of ``x`` that are not nan and that ``where`` selects."""
    mask = logical_not(isnan(x))
    return mask if where is True else logical_and(mask, to(tensor(where), bool))


def nansum(
    a: TensorLike,
    axis: AxisLike | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: TensorLike = 0,
    where: TensorLike = True,
) -> Tensor:
    """The sum of the elements that are not nan; 0 for none.

    Args:
        dtype: the dtype to add in; by default that of ``a``, 64 bits for integers and bools.
        initial: a number to add.

    Returns:
        A tensor with the shape of ``a`` without the reduced axes, in ``dtype``.

    >>> import dualflow as df
    >>> float(df.numpy.nansum([1.0, float("nan")]))
    1.0
    """
    return reductions.sum(_replace_nan(a, 0), axis, dtype, out, keepdims, initial, where)


def nanprod(
    a: TensorLike,
    axis: AxisLike | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: TensorLike = 1,
    where: TensorLike = True,
) -> Tensor:
    """The product of the elements that are not nan; 1 for none.

    Args:
        dtype: the dtype to multiply in; by default that of ``a``, 64 bits for integers and bools.
        initial: a number to multiply by.

    Returns:
        A tensor with the shape of ``a`` without the reduced axes, in ``dtype``.

    >>> import dualflow as df
    >>> float(df.numpy.nanprod([2.0, float("nan"), 3.0]))
    6.0
    """
    return reductions.prod(_replace_nan(a, 1), axis, dtype, out, keepdims, initial, where)


def nancumsum(
    a: TensorLike, axis: AxisLike | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Tensor:
    """The cumulative sums along ``axis``, where nan counts as 0.

    Args:
        axis: the axis; by default ``a`` is flattened.
        dtype: the dtype to add in; by default that of ``a``, 64 bits for integers and bools.

    Returns:
        A tensor with the shape of ``a``, in ``dtype``.

    >>> import dualflow as df
    >>> df.numpy.nancumsum([1.0, float("nan"), 3.0]).numpy()
    array([1., 1., 4.])
    """
    return accumulation.cumsum(_replace_nan(a, 0), axis, dtype, out)


def nancumprod(
    a: TensorLike, axis: AxisLike | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Tensor:
    """The cumulative products along ``axis``, where nan counts as 1.

    Args:
        axis: the axis; by default ``a`` is flattened.
        dtype: the dtype to multiply in; by default that of ``a``, 64 bits for integers and bools.

    Returns:
        A tensor with the shape of ``a``, in ``dtype``.

    >>> import dualflow as df
    >>> df.numpy.nancumprod([2.0, float("nan"), 3.0]).numpy()
    array([2., 2., 6.])
    """
    return accumulation.cumprod(_replace_nan(a, 1), axis, dtype, out)


def _extreme(
    reduce: Any, neutral: Any, a: Any, axis: Any, keepdims: bool, initial: Any, where: Any
) -> Tensor:
    """``reduce`` of ``a`` with ``neutral`` for nan; nan where all are nan and ``initial`` is None."""
    x = tensor(a)
    if not x.dtype.is_inexact:
        return reduce(x, axis, None, keepdims, initial, where)
    extreme = reduce(_replace_nan(x, neutral), axis, None, keepdims, initial, where)
    if initial is not None:
        return extreme
    all_nan = reductions.all(isnan(x), axis, keepdims=keepdims)
    return where_op(all_nan, tensor(np.nan, x.dtype), extreme)


def nanmax(
    a: TensorLike,
    axis: AxisLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: TensorLike | None = None,
    where: TensorLike = True,
) -> Tensor:
    """The largest of the elements that are not nan; nan where there are none.

    Returns:
        A tensor with the shape of ``a`` without the reduced axes, and its dtype.

    Raises:
        InvalidArgumentError: there are no elements, or ``where`` is passed, without ``initial``.

    >>> import dualflow as df
    >>> float(df.numpy.nanmax([1.0, float("nan")]))
    1.0
    """
    reject_unsupported("nanmax", out=out)
    return _extreme(reductions.max, -np.inf, a, axis, keepdims, initial, where)


def nanmin(
    a: TensorLike,
    axis: AxisLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: TensorLike | None = None,
    where: TensorLike = True,
) -> Tensor:
    """The smallest of the elements that are not nan; nan where there are none.

    Returns:
        A tensor with the shape of ``a`` without the reduced axes, and its dtype.

    Raises:
        InvalidArgumentError: there are no elements, or ``where`` is passed, without ``initial``.

    >>> import dualflow as df
    >>> float(df.numpy.nanmin([1.0, float("nan")]))
    1.0
    """
    reject_unsupported("nanmin", out=out)
    return _extreme(reductions.min, np.inf, a, axis, keepdims, initial, where)


def _position(find: Any, neutral: Any, a: Any, axis: Any, keepdims: bool) -> Tensor:
    """The index that ``find`` (argmax or argmin) returns for ``a`` with ``neutral`` for nan."""
    x = tensor(a)
    if x.dtype.is_inexact:
        has_numbers = logical_not(reduce_all(isnan(x), axis))
        x = required(
            _replace_nan(x, neutral),
            reduce_all(has_numbers),
            "All elements of a slice are nan: it has no maximum or minimum.",
        )
    return find(x, axis, keepdims=keepdims)


def nanargmax(
    a: TensorLike, axis: AxisLike | None = None, out: None = None, *, keepdims: bool = False
) -> Tensor:
    """The index of the largest of the elements that are not nan, the first of several.

    Args:
        axis: the axis; by default ``a`` is flattened.

    Returns:
        An int64 tensor with the shape of ``a`` without ``axis``.

    Raises:
        InvalidArgumentError: all elements are nan.

    >>> import dualflow as df
    >>> int(df.numpy.nanargmax([float("nan"), 1.0, 3.0]))
    2
    """
    reject_unsupported("nanargmax", out=out)
    return _position(reductions.argmax, -np.inf, a, axis, keepdims)


def nanargmin(
    a: TensorLike, axis: AxisLike | None = None, out: None = None, *, keepdims: bool = False
) -> Tensor:
    """The index of the smallest of the elements that are not nan, the first of several.

    Args:
        axis: the axis; by default ``a`` is flattened.

    Returns:
        An int64 tensor with the shape of ``a`` without ``axis``.

    Raises:
        InvalidArgumentError: all elements are nan.

    >>> import dualflow as df
    >>> int(df.numpy.nanargmin([float("nan"), 1.0, 3.0]))
    1
    """
    reject_unsupported("nanargmin", out=out)
    return _position(reductions.argmin, np.inf, a, axis, keepdims)


def nanmean(
    a: TensorLike,
    axis: AxisLike | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: TensorLike = True,
) -> Tensor:
    """The mean of the elements that are not nan; nan where there are none.

    Args:
        dtype: the dtype to compute in; by default that of ``a``, float64 for integers.

    Returns:
        A tensor with the shape of ``a`` without the reduced axes, in ``dtype``.

    >>> import dualflow as df
    >>> float(df.numpy.nanmean([1.0, float("nan"), 3.0]))
    2.0
    """
    reject_unsupported("nanmean", out=out)
    x = tensor(a)
    if not x.dtype.is_inexact:
        return averages.mean(x, axis, dtype, None, keepdims, where=where)
    return averages.mean(_replace_nan(x, 0), axis, dtype, None, keepdims, where=_not_nan(x, where))


def nanvar(
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
    """The variance of the elements that are not nan; nan where there are ``ddof`` or fewer.

    Args:
        dtype: the dtype to compute in; by default that of ``a``, float64 for integers.
        ddof: what to subtract from the number of elements.
        mean: the mean, with the reduced axes of size 1; computed by default.
        correction: another name of ``ddof``; None by default.

    Returns:
        A tensor with the shape of ``a`` without the reduced axes, and the real dtype.

    >>> import dualflow as df
    >>> float(df.numpy.nanvar([1.0, float("nan"), 3.0]))
    1.0
    """
    reject_unsupported("nanvar", out=out)
    x = tensor(a)
    if not x.dtype.is_inexact:
        return averages.var(
            x, axis, dtype, None, ddof, keepdims, where=where, mean=mean, correction=correction
        )
    if x.dtype is float16 and dtype is None:
        floats = to(x, np.float32)
        variance = nanvar(
            floats, axis, None, None, ddof, keepdims, where=where, mean=mean, correction=correction
        )
        return to(variance, np.float16)
    x = x if dtype is None else inexact(x, dtype)
    mask = _not_nan(x, where)
    values = _replace_nan(x, 0)
    center = averages.mean(values, axis, keepdims=True, where=mask) if mean is None else tensor(mean)
    total = reductions.sum(squared_magnitude(values - center), axis, keepdims=keepdims, where=mask)
    count = to(tensor(element_count(values, reduction_axes(values, axis), keepdims, mask)), np.float64)
    divisor = count - (ddof if correction is None else correction)
    variance = total / to(maximum(divisor, 1.0), total.dtype)
    return where_op(divisor > 0, variance, tensor(np.nan, variance.dtype))


def nanstd(
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
    """The standard deviation of the elements that are not nan: the square root of :func:`nanvar`.

    Args:
        dtype: the dtype to compute in; by default that of ``a``, float64 for integers.
        ddof: what to subtract from the number of elements.
        mean: the mean, with the reduced axes of size 1; computed by default.
        correction: another name of ``ddof``; None by default.

    Returns:
        A tensor with the shape of ``a`` without the reduced axes, and the real dtype.

    >>> import dualflow as df
    >>> float(df.numpy.nanstd([1.0, float("nan"), 3.0]))
    1.0
    """
    reject_unsupported("nanstd", out=out)
    return sqrt(nanvar(a, axis, dtype, None, ddof, keepdims, where=where, mean=mean, correction=correction))


complete_docstrings(
    globals(),
    axis="the axes to reduce, an integer or several; all by default.",
    where="which elements to take, bools that broadcast; all by default.",
    initial="a number that takes part, too; None by default.",
)
make_entries(globals())
