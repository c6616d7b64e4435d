"""Division that rounds down, and what it leaves: of floats and of integers, as NumPy has them."""

from __future__ import annotations

from dualflow.backends.llvm.maths.floating import INF, Partial, constant, copysign, floor, format_of, trunc
from dualflow.backends.llvm.text import F64, EmittedValue, Type


def fmod(x: EmittedValue, y: EmittedValue) -> Partial:
    """C's remainder, with the sign of `x`.

    It is exact: with a quotient below 2**22 (2**51 in float64), rounding puts its integer part wrong by at
    most one, upwards, which the sign of the remainder shows.
    """
    ratio = x / y
    rest = (-trunc(ratio)).fma(y, x)
    overshot = rest.ne(0) & ((rest < 0) ^ (x < 0))
    rest = overshot.select(rest + copysign(y, x), rest)
    right = (abs(ratio) < 2.0 ** (format_of(x).mantissa - 1)) & (abs(y) < INF)
    return Partial(copysign(rest, x), ~right, "fmod", (x, y))


def mod(y: EmittedValue, rest: EmittedValue) -> EmittedValue:
    """The remainder with the sign of the divisor `y`, given that of `fmod`."""
    moved = (rest < 0) ^ (y < 0)
    nonzero = rest.ne(0)
    return nonzero.select((nonzero & moved).select(rest + y, rest), copysign(constant(y, 0.0), y))


def floor_divide(x: EmittedValue, y: EmittedValue, rest: EmittedValue) -> EmittedValue:
    """The quotient, rounded down, given the remainder of `fmod`: exact where ``floor(x / y)`` is not."""
    quotient = (x - rest) / y
    down = rest.ne(0) & ((rest < 0) ^ (y < 0))
    quotient = down.select(quotient - 1.0, quotient)
    whole = floor(quotient)
    whole = (quotient - whole > 0.5).select(whole + 1.0, whole)
    whole = quotient.ne(0).select(whole, copysign(constant(x, 0.0), x / y))
    return y.eq(0).select(x / y, whole)


def is_known(y: EmittedValue) -> bool:
    """Whether `y` is a scalar constant, neither 0 nor -1: dividing by it is shifts and products."""
    bits = y.literal
    return bits is not None and bits not in (0, (1 << y.type.bits) - 1)


def integer_floor_divide(x: EmittedValue, y: EmittedValue) -> EmittedValue:
    """The quotient of integers, rounded down; 0 where `y` is 0."""
    power = _known_power(y)
    return y.eq(0).select(0, _quotient(x, y)) if power is None else x >> power


def integer_mod(x: EmittedValue, y: EmittedValue) -> EmittedValue:
    """What `integer_floor_divide` leaves; 0 where `y` is 0."""
    power = _known_power(y)
    return y.eq(0).select(0, x - _quotient(x, y) * y) if power is None else x & ((1 << power) - 1)


def _known_power(y: EmittedValue) -> int | None:
    """The exponent of a scalar constant that is a positive power of two."""
    bits = y.literal
    if bits is None or not is_known(y) or (y.type.kind == "i" and bits >> (y.type.bits - 1)):
        return None
    return bits.bit_length() - 1 if bits & (bits - 1) == 0 else None


def _quotient(x: EmittedValue, y: EmittedValue) -> EmittedValue:
    """The rounded-down quotient where `y` is not 0, and no trap where it is."""
    if is_known(y):
        return x // y
    if x.type.bits <= 32:
        # A double holds both numbers and tells their quotient from the next integer; vectors divide it.
        wide = F64.vector(x.type.lanes)
        long = Type("i", 64, x.type.lanes)
        return floor(x.cast(wide) / y.cast(wide)).cast(long).cast(x.type)
    if x.type.kind == "u":
        return x.quotient(y.eq(0).select(1, y))
    # The smallest integer over -1 traps as well: negation wraps.
    negated = y.eq(-1)
    return negated.select(-x, x // (negated | y.eq(0)).select(1, y))
