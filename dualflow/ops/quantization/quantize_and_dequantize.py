"""Floats quantized to few bits and dequantized again, on a grid around 0."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import normalize_axis
from dualflow.ops.checks import required
from dualflow.ops.comparison import greater_equal, less_equal, logical_and
from dualflow.ops.quantization.grids import (
    ROUNDINGS,
    checked_choice,
    clamped,
    floats,
    grid_around_zero,
    range_bounds,
    straight_through,
)
from dualflow.ops.reduction import reduce_all, reduce_max, reduce_min
from dualflow.ops.selection import where
from dualflow.ops.static import static_int

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike
    from dualflow.ops.tensor import Tensor


def _quantize_and_dequantize(
    x: Any,
    input_min: Any,
    input_max: Any,
    signed: bool,
    num_bits: Any,
    range_given: bool,
    round_mode: str,
    narrow: bool,
    axis: int | None,
) -> Any:
    """``x`` rounded to the grid.

    Callers replace its gradient (zero almost everywhere) by a straight-through one.
    """
    rounding = ROUNDINGS[checked_choice(round_mode, "round_mode", ("HALF_TO_EVEN", "HALF_UP"))]
    bits = static_int(num_bits, "num_bits")
    if not (2 if signed else 1) <= bits <= 63:
        raise InvalidArgumentError(f"num_bits is 1..63, and 2 or more for signed inputs, not {bits}.")
    if signed:
        last = 2.0 ** (bits - 1) - 1
        first = -last if narrow else -last - 1
    else:
        first, last = 0.0, 2.0**bits - 1
    if range_given:
        low, high = range_bounds(x, input_min, input_max, axis, ("input_min", "input_max"))
        low = required(low, reduce_all(less_equal(low, high)), "input_min is not more than input_max.")
    else:
        others, each = _other_axes(x, axis), axis is not None
        low, high = reduce_min(x, others, keepdims=each), reduce_max(x, others, keepdims=each)
    scale, step = grid_around_zero(low, high, first, last)
    clipped = clamped(x, first * step, last * step) if range_given else x
    return rounding(clipped * scale) * step


def _other_axes(x: Any, axis: int | None) -> list[int] | None:
    """All axes but one."""
    if axis is None:
        return None
    channel_axis = normalize_axis(axis, len(x.shape))
    return [a for a in range(len(x.shape)) if a != channel_axis]


def quantize_and_dequantize(
    input: TensorLike,
    input_min: TensorLike,
    input_max: TensorLike,
    signed_input: bool = True,
    num_bits: int = 8,
    range_given: bool = False,
    round_mode: str = "HALF_TO_EVEN",
    name: str | None = None,
    narrow_range: bool = False,
    axis: int | None = None,
) -> Tensor:
    """:func:`quantize_and_dequantize_v2` with a gradient of 1 everywhere.

    Args:
        input: floats of any shape.
        input_min: the lower bound of the range, if ``range_given``: a scalar, or one for each index of
            ``axis``.
        input_max: the upper bound, likewise.
        signed_input: whether the integers have a sign.
        num_bits: the number of bits of the integers.
        range_given: whether to use these bounds; otherwise the minimum and maximum of ``input`` are used.
        round_mode: "HALF_TO_EVEN" or "HALF_UP".
        narrow_range: whether to leave out the lowest integer.
        axis: the channel axis, with a range for each index; None for one range.

    Returns:
        A tensor with the shape and dtype of ``input``.

    Raises:
        InvalidArgumentError: ``input_min`` is more than ``input_max``, a shape doesn't match ``axis``, or
            an option is unknown.
        DTypeError: ``input`` holds complex numbers.

    >>> import dualflow as df
    >>> df.quantization.quantize_and_dequantize([-1.0, 0.3, 1.0], 0.0, 0.0, num_bits=3).numpy().round(4)
    array([-1.    ,  0.3333,  1.    ], dtype=float32)
    """
    x = floats(input)
    rounded = _quantize_and_dequantize(
        x, input_min, input_max, signed_input, num_bits, range_given, round_mode, narrow_range, axis
    )
    return straight_through(rounded, x)


def quantize_and_dequantize_v2(
    input: TensorLike,
    input_min: TensorLike,
    input_max: TensorLike,
    signed_input: bool = True,
    num_bits: int = 8,
    range_given: bool = False,
    round_mode: str = "HALF_TO_EVEN",
    name: str | None = None,
    narrow_range: bool = False,
    axis: int | None = None,
) -> Tensor:
    """Floats rounded to the nearest point of a grid around 0, as integers of few bits would hold them.

    Args:
        input: real numbers of any shape; integers become float32.
        input_min: the lower bound of the range, if ``range_given``: a scalar, or one for each index of
            ``axis``.
        input_max: the upper bound, likewise.
        signed_input: whether the integers have a sign.
        num_bits: the number of bits of the integers.
        range_given: whether to use these bounds; otherwise the minimum and maximum of ``input`` are used.
        round_mode: "HALF_TO_EVEN" or "HALF_UP".
        narrow_range: whether to leave out the lowest integer, so that the grid is symmetric.
        axis: the channel axis, with a range for each index; None for one range.

    Returns:
        A tensor with the shape and dtype of ``input``. The gradient is 1 for inputs from ``input_min`` to
        ``input_max``, else 0.

    Raises:
        InvalidArgumentError: ``input_min`` is more than ``input_max``, a shape doesn't match ``axis``, or
            an option is unknown.
        DTypeError: ``input`` holds complex numbers.

    >>> import dualflow as df
    >>> x = df.constant([-2.0, 0.3, 7.0])
    >>> df.quantization.quantize_and_dequantize_v2(x, -6.0, 6.0, num_bits=3, range_given=True).numpy()
    array([-2.,  0.,  6.], dtype=float32)
    """
    x = floats(input)
    rounded = _quantize_and_dequantize(
        x, input_min, input_max, signed_input, num_bits, range_given, round_mode, narrow_range, axis
    )
    axis = axis if range_given else None
    low, high = range_bounds(x, input_min, input_max, axis, ("input_min", "input_max"))
    inside = logical_and(greater_equal(x, low), less_equal(x, high))
    return straight_through(rounded, where(inside, x, 0))
