"""Sums, products, extremes and their positions over axes, in NumPy's dtypes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core.shape import normalize_axis
from dualflow.core.tracebacks import make_entries
from dualflow.numpy.axis_reductions import (
    apply_where,
    as_accumulation_dtype,
    extreme,
    position,
)
from dualflow.numpy.docstrings import complete_docstrings
from dualflow.numpy.operands import flat, reject_unsupported, tensor, to
from dualflow.ops import broadcasting, reduction
from dualflow.ops.arithmetic import add as plus
from dualflow.ops.arithmetic import multiply
from dualflow.ops.broadcasting import reduction_axes
from dualflow.ops.tensor import Tensor

if TYPE_CHECKING:
    from dualflow.core.argument_types import AxisLike, DTypeLike, TensorLike


def axes_of(x: Any, axis: AxisLike | None) -> tuple[int, ...]:
    """The axes to reduce; a scalar may be reduced along axis 0 or -1, as in NumPy."""
    if not x.shape and type(axis) is int and axis in (0, -1):
        return ()
    return reduction_axes(x, axis)


def sum(
    a: TensorLike,
    axis: AxisLike | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: TensorLike = 0,
    where: TensorLike = True,
) -> Tensor:
    """The sum over ``axis``.

    Args:
        a: numbers of any shape.
        dtype: the dtype to add in; by default that of ``a``, 64 bits for integers and bools.
        initial: a number to add.

    Returns:
        A tensor with the shape of ``a`` without the reduced axes, in ``dtype``.

    >>> import dualflow as df
    >>> df.numpy.sum([[1, 2], [3, 4]], axis=0, where=[[True], [False]]).numpy()
    array([1, 2])
    """
    reject_unsupported("sum", out=out)
    x = as_accumulation_dtype(tensor(a), dtype)
    if x.dtype.is_bool:
        return any(x, axis, keepdims=keepdims, where=where)
    total = broadcasting.reduce_sum(apply_where(x, where, 0), axes_of(x, axis), keepdims)
    return total if type(initial) is int and initial == 0 else plus(total, tensor(initial, x.dtype))


def prod(
    a: TensorLike,
    axis: AxisLike | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: TensorLike = 1,
    where: TensorLike = True,
) -> Tensor:
    """The product over ``axis``.

    Args:
        dtype: the dtype to multiply in; by default that of ``a``, 64 bits for integers and bools.
        initial: a number to multiply by.

    Returns:
        A tensor with the shape of ``a`` without the reduced axes, in ``dtype``.

    >>> import dualflow as df
    >>> int(df.numpy.prod([2, 3, 4]))
    24
    """
    reject_unsupported("prod", out=out)
    x = as_accumulation_dtype(tensor(a), dtype)
    if x.dtype.is_bool:
        return all(x, axis, keepdims=keepdims, where=where)
    product = reduction.reduce_prod(apply_where(x, where, 1), axes_of(x, axis), keepdims)
    return product if type(initial) is int and initial == 1 else multiply(product, tensor(initial, x.dtype))


def max(
    a: TensorLike,
    axis: AxisLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: TensorLike | None = None,
    where: TensorLike = True,
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
    reject_unsupported("max", out=out)
    x = tensor(a)
    return extreme(x, axes_of(x, axis), keepdims, largest=True, initial=initial, where=where)


amax = max


def min(
    a: TensorLike,
    axis: AxisLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: TensorLike | None = None,
    where: TensorLike = True,
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
    reject_unsupported("min", out=out)
    x = tensor(a)
    return extreme(x, axes_of(x, axis), keepdims, largest=False, initial=initial, where=where)


amin = min


def ptp(a: TensorLike, axis: AxisLike | None = None, out: None = None, keepdims: bool = False) -> Tensor:
    """The largest element minus the smallest one, over ``axis``.

    Returns:
        A tensor with the shape of ``a`` without the reduced axes, and its dtype.

    Raises:
        InvalidArgumentError: there are no elements.

    >>> import dualflow as df
    >>> int(df.numpy.ptp([3, 7, 1]))
    6
    """
    reject_unsupported("ptp", out=out)
    return max(a, axis, keepdims=keepdims) - min(a, axis, keepdims=keepdims)


def all(
    a: TensorLike,
    axis: AxisLike | None = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: TensorLike = True,
) -> Tensor:
    """Whether all elements over ``axis`` are true (not 0); True for no elements.

    Returns:
        A bool tensor with the shape of ``a`` without the reduced axes.

    >>> import dualflow as df
    >>> df.numpy.all([[1, 0], [1, 1]], axis=1).numpy()
    array([False,  True])
    """
    reject_unsupported("all", out=out)
    x = to(tensor(a), bool)
    return reduction.reduce_all(apply_where(x, where, True), axes_of(x, axis), keepdims)


def any(
    a: TensorLike,
    axis: AxisLike | None = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: TensorLike = True,
) -> Tensor:
    """Whether any element over ``axis`` is true (not 0); False for no elements.

    Returns:
        A bool tensor with the shape of ``a`` without the reduced axes.

    >>> import dualflow as df
    >>> df.numpy.any([[1, 0], [0, 0]], axis=1).numpy()
    array([ True, False])
    """
    reject_unsupported("any", out=out)
    x = to(tensor(a), bool)
    return reduction.reduce_any(apply_where(x, where, False), axes_of(x, axis), keepdims)


def count_nonzero(a: TensorLike, axis: AxisLike | None = None, *, keepdims: bool = False) -> Tensor:
    """The number of elements over ``axis`` that are not 0.

    Returns:
        An int64 tensor with the shape of ``a`` without the reduced axes.

    >>> import dualflow as df
    >>> int(df.numpy.count_nonzero([1, 0, 5]))
    2
    """
    x = to(to(tensor(a), bool), np.int64)
    return broadcasting.reduce_sum(x, axes_of(x, axis), keepdims)


# Positions


def argmax(
    a: TensorLike, axis: AxisLike | None = None, out: None = None, *, keepdims: bool = False
) -> Tensor:
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
    reject_unsupported("argmax", out=out)
    return _position(a, axis, keepdims, largest=True)


def _position(a: Any, axis: Any, keepdims: bool, *, largest: bool) -> Tensor:
    x = tensor(a)
    if axis is not None and not x.shape:
        axes_of(x, axis)
        return position(flat(x), 0, False, largest=largest)
    positive_axis = None if axis is None else normalize_axis(axis, len(x.shape))
    return position(x, positive_axis, keepdims, largest=largest)


def argmin(
    a: TensorLike, axis: AxisLike | None = None, out: None = None, *, keepdims: bool = False
) -> Tensor:
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
    reject_unsupported("argmin", out=out)
    return _position(a, axis, keepdims, largest=False)


complete_docstrings(
    globals(),
    axis="the axes to reduce, an integer or several; all by default.",
    where="which elements to take, bools that broadcast; all by default.",
    initial="a number that takes part, too; None by default.",
)
make_entries(globals())
