"""Floats as integers of 8, 16 or 32 bits, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dualflow.core.dtypes import DType, as_dtype, float32, float64
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.records import NamedTuple
from dualflow.ops.arithmetic import abs as magnitude
from dualflow.ops.arithmetic import maximum, minimum
from dualflow.ops.arrangement import reshape
from dualflow.ops.checks import required
from dualflow.ops.comparison import equal, less_equal
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.joining import concat
from dualflow.ops.quantization.grids import (
    ROUNDINGS,
    checked_choice,
    checked_dtype,
    clamped,
    floats,
    grid_around_zero,
    half_away,
    range_bounds,
)
from dualflow.ops.reduction import reduce_all
from dualflow.ops.selection import where

if TYPE_CHECKING:
    from dualflow.core.argument_types import AxisLike, DTypeLike, TensorLike
    from dualflow.ops.tensor import Tensor

_MODES = ("MIN_COMBINED", "MIN_FIRST", "SCALED")


class Quantized(NamedTuple):
    """Integers, and the range that they represent."""

    output: Any
    output_min: Any
    output_max: Any


def quantize(
    input: TensorLike,
    min_range: TensorLike,
    max_range: TensorLike,
    T: DTypeLike,
    mode: str = "MIN_COMBINED",
    round_mode: str = "HALF_AWAY_FROM_ZERO",
    name: str | None = None,
    narrow_range: bool = False,
    axis: int | None = None,
    ensure_minimum_range: float = 0.01,
) -> Quantized:
    """Floats as integers of a range: the lowest integer represents its minimum, the highest its maximum.

    Args:
        input: real numbers, of any shape; those outside of the range are clipped to it.
        min_range: the lower bound: a scalar, or one for each index of ``axis``. min(min_range, 0) is used.
        max_range: the upper bound, likewise. max(max_range, 0) is used, and more than the lower bound.
        T: the dtype: int8, uint8, int16, uint16 or int32, or ``df.qint8`` and so on, which are these.
        mode: "MIN_COMBINED" maps the integers linearly to the range, "MIN_FIRST" likewise, with an integer
            that represents 0.0 exactly, "SCALED" symmetrically: 0 represents 0.0.
        round_mode: "HALF_AWAY_FROM_ZERO", or for "SCALED" also "HALF_TO_EVEN".
        narrow_range: whether to leave out the lowest integer; for "SCALED".
        axis: the channel axis, with a range for each index; None for one range.
        ensure_minimum_range: the minimum width of the range, relative to max(1, abs(min), abs(max)).

    Returns:
        ``output``, ``output_min`` and ``output_max``: the integers, and the range that they represent.

    Raises:
        InvalidArgumentError: ``min_range`` is more than ``max_range``, a shape doesn't match ``axis``, or a
            mode is unknown.
        DTypeError: ``T`` isn't a quantized dtype, or ``input`` holds complex numbers.

    >>> import dualflow as df
    >>> df.quantization.quantize([-1.0, 0.5, 7.0], 0.0, 6.0, df.quint8).output.numpy()
    array([  0,  21, 255], dtype=uint8)
    """
    x, dtype = floats(input), checked_dtype(T)
    checked_choice(mode, "mode", _MODES)
    rounding = ROUNDINGS[checked_choice(round_mode, "round_mode", ("HALF_AWAY_FROM_ZERO", "HALF_TO_EVEN"))]
    if round_mode == "HALF_TO_EVEN" and mode != "SCALED":
        raise InvalidArgumentError(f"round_mode HALF_TO_EVEN is of mode SCALED, not of {mode}.")
    low, high = range_bounds(x, min_range, max_range, axis, ("min_range", "max_range"))
    low = required(low, reduce_all(less_equal(low, high)), "min_range is not more than max_range.")
    min_width = maximum(maximum(magnitude(low), magnitude(high)), 1) * ensure_minimum_range
    low = minimum(low, 0)
    high = maximum(maximum(high, low + min_width), 0)
    if mode == "SCALED":
        first, last = float(dtype.min) + narrow_range, float(dtype.max)
        scale, _ = grid_around_zero(low, high, first, last)
        low, high = first / scale, last / scale
        rounded = rounding(clamped(x, low, high) * scale)
    elif mode == "MIN_FIRST":
        scale = cast(1 / _step(low, high, dtype), x.dtype)
        rounded = half_away(x * scale) - (half_away(low * scale) - float(dtype.min))
    else:
        scale = (float(dtype.max) - float(dtype.min)) / (high - low)
        rounded = half_away((clamped(x, low, high) - low) * scale - _half_range(dtype))
    return Quantized(cast(rounded, dtype), _as_vector(low, axis), _as_vector(high, axis))


def dequantize(
    input: TensorLike,
    min_range: TensorLike,
    max_range: TensorLike,
    mode: str = "MIN_COMBINED",
    name: str | None = None,
    axis: int | None = None,
    narrow_range: bool = False,
    dtype: DTypeLike = float32,
) -> Tensor:
    """The floats that quantized integers represent: the inverse of :func:`quantize`.

    Args:
        input: integers of a quantized dtype.
        min_range: the lower bound of the range: a scalar, or one for each index of ``axis``.
        max_range: the upper bound, likewise.
        mode: the mode of :func:`quantize`.
        axis: the channel axis, with a range for each index; None for one range.
        narrow_range: whether the lowest integer is left out; for "SCALED".
        dtype: the dtype of the result; float32 by default.

    Returns:
        A tensor with the shape of ``input`` and dtype ``dtype``.

    Raises:
        InvalidArgumentError: a shape doesn't match ``axis``, or ``mode`` is unknown.
        DTypeError: ``input`` doesn't have a quantized dtype.

    >>> import dualflow as df
    >>> df.quantization.dequantize(df.constant([0, 128, 255], df.quint8), 0.0, 6.0).numpy().round(4)
    array([0.    , 3.0118, 6.    ], dtype=float32)
    """
    quantized = convert_to_tensor(input)
    kind = checked_dtype(quantized.dtype)
    x = cast(quantized, float32)
    checked_choice(mode, "mode", _MODES)
    low, high = range_bounds(x, min_range, max_range, axis, ("min_range", "max_range"))
    lowest, highest = float(kind.min), float(kind.max)
    if mode == "SCALED":
        first = lowest + narrow_range
        values_in_range = x * (high / highest if not lowest else maximum(low / first, high / highest))
    elif mode == "MIN_FIRST":
        step = cast(_step(low, high, kind), float32)
        is_empty = equal(low, high)
        start = where(is_empty, low, half_away(low / where(is_empty, 1, step)) * step)
        exact = cast(start, float64) + (cast(x, float64) - lowest) * cast(step, float64)
        values_in_range = cast(exact, float32)
    else:
        values_in_range = (x + _half_range(kind)) * ((high - low) / (highest - lowest)) + low
    return cast(values_in_range, as_dtype(dtype))


def quantized_concat(
    concat_dim: AxisLike,
    values: Sequence[Any],
    input_mins: Sequence[Any],
    input_maxes: Sequence[Any],
    name: str | None = None,
) -> Quantized:
    """Quantized tensors joined along an axis, in the union of their ranges.

    Args:
        concat_dim: the axis.
        values: a list of tensors of one quantized dtype.
        input_mins: the lower bound of each range.
        input_maxes: the upper bound of each range.

    Returns:
        A named tuple: ``output``, with the dtype of ``values``, and the bounds of its range.

    Raises:
        InvalidArgumentError: ``values`` is empty, or the number of bounds differs.
        DTypeError: ``values`` don't have a quantized dtype.

    >>> import dualflow as df
    >>> parts = [df.constant([2, 4], df.quint8), df.constant([3], df.quint8)]
    >>> df.quantization.quantized_concat(0, parts, [0.0, 0.0], [6.0, 12.0]).output.numpy()
    array([1, 2, 3], dtype=uint8)
    """
    if not len(values) or len(values) != len(input_mins) or len(values) != len(input_maxes):
        raise InvalidArgumentError(
            f"quantized_concat takes a range for each of its values, not {len(input_mins)} and "
            f"{len(input_maxes)} bounds for {len(values)}."
        )
    dtype = checked_dtype(convert_to_tensor(values[0]).dtype)
    lows, highs = ([cast(bound, float32) for bound in bounds] for bounds in (input_mins, input_maxes))
    low, high = cast(0.0, float32), highs[0]
    for bound in lows:
        low = minimum(low, bound)
    for bound in highs:
        high = maximum(high, bound)
    tensors = [dequantize(x, a, b, "MIN_FIRST") for x, a, b in zip(values, lows, highs, strict=True)]
    return quantize(concat(tensors, concat_dim), low, high, dtype, "MIN_FIRST")


def _step(low: Any, high: Any, dtype: DType) -> Any:
    """The quantization step: the difference between the floats of consecutive integers."""
    return (cast(high, float64) - cast(low, float64)) / (_steps(dtype) - 1)


def _steps(dtype: DType) -> float:
    return 2.0 ** (8 * dtype.size)


def _half_range(dtype: DType) -> float:
    return 0.0 if dtype.is_unsigned else _steps(dtype) / 2


def _as_vector(bound: Any, axis: int | None) -> Any:
    return bound if axis is None else reshape(bound, [-1])
