"""Division that rounds down, and what it leaves: of floats and of integers, as NumPy has them."""

from __future__ import annotations

from dualflow.core.dtypes import float64, int64
from dualflow.scalar.maths.floating import INF, Partial, constant, copysign, floor, format_of, trunc
from dualflow.scalar.tracing import Traced


def fmod(x: Traced, y: Traced) -> Partial:
    """C's remainder, with the sign of `x`.

    It is exact: with a quotient below 2**22 (2**51 in float64), rounding puts its integer part wrong by at
    most one, upwards, which the sign of the remainder shows.
    """
    ratio = x / y
    rest = (-trunc(ratio)).fma(y, x)
    overshot = rest.ne(0) & ((rest < 0) ^ (x < 0))
    rest = overshot.select(rest + copysign(y, x), rest)
    right = (abs(ratio) < 2.0 ** (format_of(x).mantissa - 1)) & (abs(y) < INF)
    return Partial(copysign(rest, x), ~right, "fmod")


def mod(x: Traced, y: Traced) -> Traced:
    """The remainder with the sign of the divisor `y`."""
    rest = x.m.fmod(x, y)
    moved = (rest < 0) ^ (y < 0)
    nonzero = rest.ne(0)
    return nonzero.select((nonzero & moved).select(rest + y, rest), copysign(constant(y, 0.0), y))


def floor_divide(x: Traced, y: Traced) -> Traced:
    """The quotient, rounded down: exact where ``floor(x / y)`` is not."""
    rest = x.m.fmod(x, y)
    quotient = (x - rest) / y
    down = rest.ne(0) & ((rest < 0) ^ (y < 0))
    quotient = down.select(quotient - 1.0, quotient)
    whole = floor(quotient)
    whole = (quotient - whole > 0.5).select(whole + 1.0, whole)
    whole = quotient.ne(0).select(whole, copysign(constant(x, 0.0), x / y))
    return y.eq(0).select(x / y, whole)


def integer_floor_divide(x: Traced, y: Traced) -> Traced:
    """The quotient of integers, rounded down; 0 where `y` is 0."""
    return y.eq(0).select(0, _quotient(x, y))


def integer_mod(x: Traced, y: Traced) -> Traced:
    """What `integer_floor_divide` leaves; 0 where `y` is 0."""
    return y.eq(0).select(0, x - _quotient(x, y) * y)


def _quotient(x: Traced, y: Traced) -> Traced:
    """The rounded-down quotient where `y` is not 0, and no trap where it is."""
    if x.bits <= 32:
        # A double holds both numbers and tells their quotient from the next integer; vectors divide it.
        return floor(x.cast(float64) / y.cast(float64)).cast(int64).cast(x.dtype)
    if x.dtype.is_unsigned:
        return x.m.quotient(x, y.eq(0).select(1, y))
    # The smallest integer over -1 traps as well: negation wraps.
    negated = y.eq(-1)
    divisor = (negated | y.eq(0)).select(1, y)
    rest = x.m.remainder(x, divisor)
    down = rest.ne(0) & ((rest ^ divisor) < 0)
    return negated.select(-x, x.m.quotient(x, divisor) - down.cast(x.dtype))
