"""Floor division and remainders of floats and integers, with NumPy's results."""

from __future__ import annotations

from dualflow.core.dtypes import float64, int64
from dualflow.scalar.maths.floating import INF, Guarded, constant, copysign, floor, format_of, trunc
from dualflow.scalar.tracing import Traced


def fmod(x: Traced, y: Traced) -> Guarded:
    """C's remainder, with the sign of `x`.

    It is exact: with a quotient below 2**22 (2**51 in float64), rounding increases its integer part by at
    most one, which changes the sign of the remainder.
    """
    ratio = x / y
    remainder = (-trunc(ratio)).fma(y, x)
    overshot = remainder.ne(0) & ((remainder < 0) ^ (x < 0))
    remainder = overshot.select(remainder + copysign(y, x), remainder)
    is_exact = (abs(ratio) < 2.0 ** (format_of(x).mantissa - 1)) & (abs(y) < INF)
    return Guarded(copysign(remainder, x), ~is_exact, "fmod")


def mod(x: Traced, y: Traced) -> Traced:
    """The remainder of `floor_divide`, with the sign of the divisor `y`."""
    remainder: Traced = x.m.fmod(x, y)
    signs_differ = (remainder < 0) ^ (y < 0)
    nonzero = remainder.ne(0)
    return nonzero.select(
        (nonzero & signs_differ).select(remainder + y, remainder), copysign(constant(y, 0.0), y)
    )


def floor_divide(x: Traced, y: Traced) -> Traced:
    """The quotient rounded down: ``floor`` of the exact quotient, not of the rounded ``x / y``."""
    remainder: Traced = x.m.fmod(x, y)
    quotient = (x - remainder) / y
    down = remainder.ne(0) & ((remainder < 0) ^ (y < 0))
    quotient = down.select(quotient - 1.0, quotient)
    rounded = floor(quotient)
    rounded = (quotient - rounded > 0.5).select(rounded + 1.0, rounded)
    rounded = quotient.ne(0).select(rounded, copysign(constant(x, 0.0), x / y))
    return y.eq(0).select(x / y, rounded)


def integer_floor_divide(x: Traced, y: Traced) -> Traced:
    """The quotient of integers, rounded down; 0 where `y` is 0."""
    return y.eq(0).select(0, _quotient(x, y))


def integer_mod(x: Traced, y: Traced) -> Traced:
    """The remainder of `integer_floor_divide`; 0 where `y` is 0."""
    return y.eq(0).select(0, x - _quotient(x, y) * y)


def _quotient(x: Traced, y: Traced) -> Traced:
    """The quotient of integers, rounded down; an arbitrary number, without a trap, where `y` is 0."""
    if x.bits <= 32:
        # float64 represents both numbers, and its quotient rounds to no wrong integer; vectors can divide it.
        return floor(x.cast(float64) / y.cast(float64)).cast(int64).cast(x.dtype)
    if x.dtype.is_unsigned:
        return x.m.quotient(x, y.eq(0).select(1, y))
    # The smallest integer over -1 traps as well: negation wraps.
    negated = y.eq(-1)
    divisor = (negated | y.eq(0)).select(1, y)
    remainder = x.m.remainder(x, divisor)
    down = remainder.ne(0) & ((remainder ^ divisor) < 0)
    return negated.select(-x, x.m.quotient(x, divisor) - down.cast(x.dtype))
