"""Ranges of numbers, evenly spaced on a linear or logarithmic scale."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from dualflow.core.dispatch import TENSORS
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import normalize_axis
from dualflow.core.tracebacks import make_entries
from dualflow.numpy import operands
from dualflow.numpy.docstrings import complete_docstrings
from dualflow.numpy.operands import (
    inexact,
    numpy_dtype,
    numpy_result,
    promote_together,
    reject_unsupported,
    tensor,
    to,
)
from dualflow.ops.arithmetic import abs as magnitude
from dualflow.ops.arithmetic import maximum, sign
from dualflow.ops.arrangement import expand_dims, reshape, transpose
from dualflow.ops.checks import required
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.creation import zeros_like as like_zeros
from dualflow.ops.exponential import exp
from dualflow.ops.joining import concat
from dualflow.ops.positions import range as range_op
from dualflow.ops.powers import log, pow
from dualflow.ops.rounding import floor
from dualflow.ops.selection import where
from dualflow.ops.static import int_or_symbolic, static_int
from dualflow.ops.tensor import Tensor

if TYPE_CHECKING:
    from dualflow.core.argument_types import DTypeLike, IntLike, TensorLike


def arange(
    start_or_stop: TensorLike,
    /,
    stop: TensorLike | None = None,
    step: TensorLike = 1,
    *,
    dtype: DTypeLike | None = None,
    device: object = None,
    like: object = None,
) -> Tensor:
    """The numbers from a start up to ``stop``, exclusive, in steps of ``step``.

    Args:
        start_or_stop: the first number; the end if ``stop`` is None, and then the first number is 0.
        stop: the end, which is excluded; None by default.
        step: the distance of two numbers, positive or negative.
        dtype: the dtype; the common dtype of the numbers by default.

    Returns:
        A vector of ``ceil((stop - start) / step)`` elements.

    Raises:
        InvalidArgumentError: ``step`` is 0, or a number is infinite or nan.
        DTypeError: the end is None.

    >>> import dualflow as df
    >>> df.numpy.arange(2, 9, 3).numpy()
    array([2, 5, 8])
    """
    reject_unsupported("arange", like=like)
    if start_or_stop is None:
        raise DTypeError("arange takes the number of its end, not None.")
    start, end = (0, start_or_stop) if stop is None else (start_or_stop, stop)
    limits: tuple[Any, Any, Any] = (start, end, 1 if step is None else step)
    if not any(isinstance(x, TENSORS) for x in limits):
        kind = None if dtype is None else numpy_dtype(dtype)
        remedy = "pass finite numbers, and a step other than 0"
        return convert_to_tensor(numpy_result(lambda: np.arange(*limits, dtype=kind), remedy))
    if dtype is None and not any(isinstance(x, TENSORS) and not isinstance(x, int) for x in limits):
        dtype = np.int64 if all(isinstance(x, int) for x in limits) else np.float64  # sizes are numbers
    start, end, step = promote_together(*limits, dtype=dtype)
    return range_op(start, end, step, start.dtype)


@overload
def linspace(
    start: TensorLike,
    stop: TensorLike,
    num: IntLike = 50,
    endpoint: bool = True,
    retstep: Literal[False] = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: object = None,
) -> Tensor: ...
@overload
def linspace(
    start: TensorLike,
    stop: TensorLike,
    num: IntLike = 50,
    endpoint: bool = True,
    *,
    retstep: Literal[True],
    dtype: DTypeLike | None = None,
    axis: int = 0,
    device: object = None,
) -> tuple[Tensor, Tensor]: ...
@overload
def linspace(
    start: TensorLike,
    stop: TensorLike,
    num: IntLike = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: object = None,
) -> Any: ...
def linspace(
    start: TensorLike,
    stop: TensorLike,
    num: IntLike = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: object = None,
) -> Any:
    """``num`` evenly spaced numbers from ``start`` to ``stop``.

    Args:
        start: the first number, or a tensor of them.
        stop: the last number, or the one after the last unless ``endpoint``; it broadcasts with ``start``.
        num: how many numbers, 0 or more.
        endpoint: whether ``stop`` is the last number.
        retstep: whether to return the spacing, too.
        dtype: the dtype; the common floating dtype of the limits, float64 for Python numbers, by default.
            Integers are rounded down.
        axis: the axis of the result along which the numbers are.

    Returns:
        A tensor with the shape to which the limits broadcast and ``axis`` of size ``num``. With ``retstep``,
        a tuple of it and the spacing.

    Raises:
        InvalidArgumentError: ``num`` is negative, or the limits do not broadcast.

    >>> import dualflow as df
    >>> df.numpy.linspace(0, 1, 5).numpy()
    array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    count = int_or_symbolic(num, "num")
    first, last = promote_together(_as_float_or_number(start), _as_float_or_number(stop))
    first, last = operands.broadcast_together(first, last)
    if type(count) is int:
        numbers, step = _static_linspace(first, last, count, endpoint)
    else:
        numbers, step = _dynamic_linspace(first, last, count, endpoint)
    if dtype is not None:
        target = numpy_dtype(dtype)
        numbers = to(floor(numbers) if target.kind in "iu" else numbers, target)
    positive_axis = normalize_axis(axis, len(numbers.shape))
    if positive_axis:
        order = list(range(1, len(numbers.shape)))
        numbers = transpose(numbers, [*order[:positive_axis], 0, *order[positive_axis:]])
    return (numbers, step) if retstep else numbers


def _static_linspace(first: Any, last: Any, count: int, endpoint: bool) -> tuple[Any, Any]:
    """``count`` numbers along the first axis, and their distance, which is nan for a single number."""
    if count < 0:
        raise InvalidArgumentError(f"linspace gives 0 numbers or more, not {count}.")
    intervals = count - 1 if endpoint else count
    shape = (-1, *[1] * len(first.shape))
    index = reshape(tensor(np.arange(count), first.dtype), shape)
    step = (last - first) / intervals if intervals > 0 else last * math.nan
    numbers = first + (index * step if intervals > 0 else index * (last - first))
    if endpoint and count > 1:
        numbers = concat([numbers[:-1], last[None]], 0)
    return numbers, step


def _dynamic_linspace(first: Any, last: Any, count: Any, endpoint: bool) -> tuple[Any, Any]:
    """:func:`_static_linspace` of a number that is known at run time only."""
    count = required(count, count >= 0, "linspace gives 0 numbers or more.")
    intervals = to(count - 1 if endpoint else count, first.dtype)
    step = (last - first) / maximum(intervals, 1)
    index = reshape(to(range_op(count), first.dtype), (-1, *[1] * len(first.shape)))
    numbers = first + index * step
    if endpoint:
        numbers = where((index == intervals) & (intervals > 0), last, numbers)
    return numbers, where(intervals > 0, step, last * math.nan)


def logspace(
    start: TensorLike,
    stop: TensorLike,
    num: IntLike = 50,
    endpoint: bool = True,
    base: TensorLike = 10.0,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Tensor:
    """``base`` to the powers of :func:`linspace`: numbers evenly spaced on a logarithmic scale.

    Args:
        start: the first power.
        stop: the last power, or the one after the last unless ``endpoint``.
        num: how many numbers, 0 or more.
        endpoint: whether ``stop`` is the last power.
        base: the base, a number or numbers that broadcast.
        dtype: the dtype; the common floating dtype of the limits by default.
        axis: the axis of the result along which the numbers are.

    Returns:
        A tensor with the shape to which the limits broadcast and ``axis`` of size ``num``.

    Raises:
        InvalidArgumentError: ``num`` is negative, or the limits do not broadcast.

    >>> import dualflow as df
    >>> df.numpy.logspace(0, 2, 3).numpy()
    array([  1.,  10., 100.])
    """
    bases, powers = promote_together(base, linspace(start, stop, num, endpoint, axis=axis))
    numbers = pow(bases, powers)
    return numbers if dtype is None else to(numbers, dtype)


def geomspace(
    start: TensorLike,
    stop: TensorLike,
    num: IntLike = 50,
    endpoint: bool = True,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Tensor:
    """``num`` numbers from ``start`` to ``stop`` with a constant ratio of neighbours.

    Args:
        start: the first number, not 0.
        stop: the last number, or the one after the last unless ``endpoint``; not 0.
        num: how many numbers, 0 or more.
        endpoint: whether ``stop`` is the last number.
        dtype: the dtype; the common floating dtype of the limits by default.
        axis: the axis of the result along which the numbers are.

    Returns:
        A tensor with the shape to which the limits broadcast and ``axis`` of size ``num``.

    Raises:
        InvalidArgumentError: ``num`` is negative, or the limits do not broadcast.

    >>> import dualflow as df
    >>> df.numpy.geomspace(1, 8, 4).numpy()
    array([1., 2., 4., 8.])
    """
    first, last = promote_together(_as_float_or_number(start), _as_float_or_number(stop))
    first, last = operands.broadcast_together(first, last)
    if first.dtype.is_complex:
        factor = first
        numbers = exp(linspace(like_zeros(first), log(last / first), num, endpoint, axis=axis))
    else:
        factor = sign(first)
        numbers = exp(linspace(log(magnitude(first)), log(magnitude(last)), num, endpoint, axis=axis))
    positive_axis = normalize_axis(axis, len(numbers.shape))
    numbers = numbers * expand_dims(factor, positive_axis)
    ends = [expand_dims(first, positive_axis), expand_dims(last, positive_axis)]
    count = static_int(num, "num")
    inner = [slice(None)] * positive_axis
    if count > 0:
        numbers = concat([ends[0], numbers[(*inner, slice(1, None))]], positive_axis)
    if endpoint and count > 1:
        numbers = concat([numbers[(*inner, slice(None, -1))], ends[1]], positive_axis)
    return numbers if dtype is None else to(numbers, dtype)


def _as_float_or_number(x: Any) -> Any:
    """``x`` in a floating dtype; a Python number is returned as it is, and adapts to the other limit."""
    return x * 1.0 if type(x) in (int, float, complex) else inexact(x)


complete_docstrings(globals())
make_entries(globals())
