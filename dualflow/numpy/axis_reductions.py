"""Reductions of tensors over axes counted from 0: bodies that NumPy's functions and the Array API's share."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from dualflow.core.dtypes import int64, uint64
from dualflow.core.errors import InvalidArgumentError
from dualflow.numpy import operands
from dualflow.numpy.operands import flat, tensor, to
from dualflow.ops import comparison, reduction, scans, statistics
from dualflow.ops.arithmetic import divide, maximum, minimum
from dualflow.ops.arrangement import expand_dims, reshape
from dualflow.ops.broadcasting import broadcast_to, reduce_sum
from dualflow.ops.complex_numbers import complex as complex_of
from dualflow.ops.complex_numbers import imag, real
from dualflow.ops.conversion import cast
from dualflow.ops.creation import ones_like
from dualflow.ops.cumulative import running
from dualflow.ops.joining import concat
from dualflow.ops.selection import where as where_op
from dualflow.ops.tensor import Tensor

Axes = tuple[int, ...]


def as_accumulation_dtype(x: Any, dtype: Any = None) -> Tensor:
    """``x`` cast to ``dtype``; by default integers and bools to 64 bits, others unchanged."""
    if dtype is not None:
        return to(x, dtype)
    if x.dtype.is_inexact:
        return x
    target = uint64 if x.dtype.is_unsigned else int64
    return x if x.dtype is target else cast(x, target)


def as_bool(x: Any) -> Tensor:
    """Whether elements are not 0."""
    return x if x.dtype.is_bool else comparison.not_equal(x, 0)


def apply_where(x: Any, where: Any, neutral: Any) -> Any:
    """``x``, with ``neutral`` in place of the elements that ``where`` leaves out."""
    if where is True:
        return x
    return where_op(tensor(where, bool), x, tensor(neutral, x.dtype))


# Variances


def element_count(x: Any, axes: Axes, keepdims: bool = False, where: Any = True) -> Any:
    """The number of elements that a reduction combines; a tensor if ``where`` is one or a size is dynamic."""
    if where is not True:
        return reduce_sum(to(apply_where(ones_like(x, bool), where, False), np.int64), axes, keepdims)
    sizes = operands.sizes(x)
    return functools.reduce(lambda m, i: m * sizes[i], axes, 1)


def variance(x: Any, axes: Axes, keepdims: bool, correction: Any) -> Tensor:
    """The variance over ``axes``; the divisor is the element count minus ``correction``."""
    distances = statistics.squared_magnitude(x - statistics.reduce_mean(x, axes, keepdims=True))
    return mean_distance(distances, axes, keepdims, element_count(x, axes), correction)


def mean_distance(distances: Any, axes: Axes, keepdims: bool, count: Any, correction: Any) -> Tensor:
    """The sum of ``distances`` divided by ``max(count - correction, 0)``: a variance of squared distances."""
    total = reduce_sum(distances, axes, keepdims)
    if isinstance(count, int) and not hasattr(correction, "dtype"):
        return divide(total, float(max(count - correction, 0)))
    divisor = maximum(to(tensor(count), np.float64) - correction, 0.0)
    return divide(total, to(divisor, total.dtype))


# Extremes


def extreme(
    x: Any, axes: Axes, keepdims: bool, *, largest: bool, initial: Any = None, where: Any = True
) -> Tensor:
    """The largest element over ``axes``, or the smallest; nan if there is one.

    Raises:
        InvalidArgumentError: ``initial`` is None, and a reduced axis has size 0 or ``where`` is passed; or
            one of the two is passed for complex numbers.
    """
    name = "maximum" if largest else "minimum"
    if x.dtype.is_complex:
        if initial is not None or where is not True:
            raise InvalidArgumentError(
                f"The {name} of complex numbers takes neither initial= nor where=; select the elements "
                "first, for example with x[mask]."
            )
        return _complex_extreme(x, axes, keepdims, largest)
    if initial is None:
        if where is not True:
            raise InvalidArgumentError(
                f"The {name} with where= is undefined if no element is selected: pass initial=, the result "
                "in that case."
            )
        _reject_empty(x, axes, name)
    if where is not True:
        x = apply_where(x, where, _lowest(x.dtype) if largest else _highest(x.dtype))
    if x.dtype.is_bool:
        reduced = (reduction.reduce_any if largest else reduction.reduce_all)(x, axes, keepdims)
    else:
        reduced = (reduction.reduce_max if largest else reduction.reduce_min)(x, axes, keepdims)
    if initial is None:
        return reduced
    start = tensor(initial, x.dtype)
    if x.dtype.is_bool:
        return comparison.logical_or(reduced, start) if largest else comparison.logical_and(reduced, start)
    return maximum(reduced, start) if largest else minimum(reduced, start)


def _reject_empty(x: Any, axes: Axes, name: str) -> None:
    empty = [axis for axis in axes if x.shape[axis] == 0]
    if empty:
        raise InvalidArgumentError(
            f"The {name} of no elements is undefined: axis {empty[0]} of shape {x.shape} has size 0. Handle "
            "empty tensors separately, or pass initial= to the function of df.numpy."
        )


def _lowest(dtype: Any) -> Any:
    return False if dtype.is_bool else -np.inf if dtype.is_floating else dtype.min


def _highest(dtype: Any) -> Any:
    return True if dtype.is_bool else np.inf if dtype.is_floating else dtype.max


def _complex_extreme(x: Any, axes: Axes, keepdims: bool, largest: bool) -> Tensor:
    """The extreme of the real parts, and among these of the imaginary parts; nan if there is one."""
    pick: Any = reduction.reduce_max if largest else reduction.reduce_min
    _reject_empty(x, axes, "maximum" if largest else "minimum")
    first = pick(real(x), axes, True)
    worst = tensor(-np.inf if largest else np.inf, x.dtype.real)
    second = pick(where_op(comparison.equal(real(x), first), imag(x), worst), axes, True)
    has_nan = reduction.reduce_any(comparison.isnan(x), axes, True)
    nan = tensor(np.nan, x.dtype.real)
    result = complex_of(where_op(has_nan, nan, first), where_op(has_nan, nan, second))
    if keepdims:
        return result
    return reshape(result, [size for i, size in enumerate(operands.sizes(x)) if i not in axes])


def position(x: Any, axis: int | None, keepdims: bool, *, largest: bool) -> Tensor:
    """The index of the first largest or smallest element along ``axis``; of the flat tensor if it is None."""
    if axis is None:
        index = _first(flat(x), 0, largest)
        return reshape(index, [1] * len(x.shape)) if keepdims else index
    index = _first(x, axis, largest)
    return expand_dims(index, axis) if keepdims else index


def _first(x: Any, axis: int, largest: bool) -> Tensor:
    if x.dtype.is_complex:
        extremes = _complex_extreme(x, (axis,), True, largest)
        is_extreme = comparison.logical_or(comparison.equal(x, extremes), comparison.isnan(x))
        return reduction.argmax(to(is_extreme, np.uint8), axis)
    return (reduction.argmax if largest else reduction.argmin)(x, axis)


# Running sums and products


def accumulate_axis(x: Any, axis: int, operation: str, include_initial: bool) -> Tensor:
    """Cumulative sums ("sum") or products ("prod") along ``axis``, after 0 or 1 with ``include_initial``."""
    results = scans.cumsum(x, axis) if operation == "sum" else running.cumprod(x, axis)
    if not include_initial:
        return results
    shape = [1 if i == axis else size for i, size in enumerate(operands.sizes(x))]
    first = tensor(0 if operation == "sum" else 1, x.dtype)
    return concat([broadcast_to(first, shape), results], axis)
