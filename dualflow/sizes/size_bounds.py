"""The bounds of functions of sizes, from those of their operands: interval arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

Bounds = tuple[int | None, int | None]
"""The lower and the upper bound of a size; None where there is none."""


def _largest_bounds(x: Bounds, y: Bounds) -> Bounds:
    lows = [low for low, _ in (x, y) if low is not None]
    highs = [high for _, high in (x, y) if high is not None]
    return max(lows, default=None), max(highs) if len(highs) == 2 else None


def _smallest_bounds(x: Bounds, y: Bounds) -> Bounds:
    lows = [low for low, _ in (x, y) if low is not None]
    highs = [high for _, high in (x, y) if high is not None]
    return min(lows) if len(lows) == 2 else None, min(highs, default=None)


def _broadcast_size_bounds(x: Bounds, y: Bounds) -> Bounds:
    (x_low, _), (y_low, _) = x, y
    return (None, None) if x_low is None or y_low is None else (min(x_low, y_low), None)


def _broadcast_stride_bounds(stride: Bounds, size: Bounds) -> Bounds:
    low, high = stride
    return (0, high) if low is not None and low >= 0 else (None, None)


def _quotient_bounds(x: Bounds, y: Bounds) -> Bounds:
    (low, high), (divisor_low, divisor_high) = x, y
    if divisor_low is not None and divisor_low == divisor_high and divisor_low > 0:
        return None if low is None else low // divisor_low, None if high is None else high // divisor_low
    if low is not None and low >= 0 and divisor_low is not None and divisor_low >= 0:
        return 0, high
    return None, None


def _remainder_bounds(x: Bounds, y: Bounds) -> Bounds:
    divisor_low, divisor_high = y
    if divisor_low is None or divisor_low < 0:
        return None, None
    return 0, None if divisor_high is None else max(divisor_high - 1, 0)


FUNCTION_BOUNDS: Final[dict[str, Callable[[Bounds, Bounds], Bounds]]] = {
    "largest": _largest_bounds,
    "smallest": _smallest_bounds,
    "broadcast_size": _broadcast_size_bounds,
    "broadcast_stride": _broadcast_stride_bounds,
    "quotient": _quotient_bounds,
    "remainder": _remainder_bounds,
}
"""The bounds of a size function, by its name, from those of its operands; other functions have none."""
