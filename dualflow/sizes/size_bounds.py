"""The bounds of polynomials and functions of sizes, from those of their operands: interval arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from dualflow.sizes.polynomials import Terms

Bounds = tuple[int | None, int | None]
"""The lower and the upper bound of a size; None where there is none."""


def polynomial_bounds(terms: Terms) -> Bounds:
    """The bounds of a polynomial, from those of its factors."""
    lower: int | None = 0
    upper: int | None = 0
    for monomial, coefficient in terms.items():
        low, high = monomial[0].bounds if len(monomial) == 1 else _monomial_bounds(monomial)
        low, high = (low, high) if coefficient > 0 else (high, low)
        lower = None if lower is None or low is None else lower + coefficient * low
        upper = None if upper is None or high is None else upper + coefficient * high
    return lower, upper


def _monomial_bounds(monomial: Sequence[Any]) -> Bounds:
    if not monomial:
        return 1, 1
    factor_bounds: list[Bounds] = [factor.bounds for factor in monomial]
    if any(low is None or low < 0 for low, _ in factor_bounds):
        return None, None
    highs = [high for _, high in factor_bounds if high is not None]
    lower = math.prod(low for low, _ in factor_bounds if low is not None)
    return lower, math.prod(highs) if len(highs) == len(factor_bounds) else None


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
