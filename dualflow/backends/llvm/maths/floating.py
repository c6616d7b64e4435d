"""What every function here builds on: the float formats, polynomials, and one-instruction functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dualflow.backends.llvm.text import EmittedValue, Type

INF, NAN = float("inf"), float("nan")


class Format(NamedTuple):
    """An IEEE 754 format, and the number that rounds: adding `magic` leaves an integer in the low bits."""

    mantissa: int
    bias: int
    magic: float
    smallest_normal: float

    @property
    def one_bits(self) -> int:
        """The bits of 1.0."""
        return self.bias << self.mantissa


_FORMATS = {32: Format(23, 127, 1.5 * 2**23, 2.0**-126), 64: Format(52, 1023, 1.5 * 2**52, 2.0**-1022)}


def format_of(x: EmittedValue) -> Format:
    """The format of a float32 or float64 value."""
    return _FORMATS[x.type.bits]


class Partial(NamedTuple):
    """A result that is right but in the lanes `wrong`: there, libm's function `symbol` of `args` is.

    `symbol` is the name for float64; float32 adds an "f".
    """

    value: EmittedValue
    wrong: EmittedValue
    symbol: str
    args: tuple[EmittedValue, ...]


def bits_of(x: EmittedValue) -> EmittedValue:
    """The bits of a float, as unsigned integers."""
    return x.bitcast(Type("u", x.type.bits, x.type.lanes))


def constant(like: EmittedValue, number: float) -> EmittedValue:
    """A constant of another value's type."""
    return like.emitter.constant(like.type, number)


def polynomial(x: EmittedValue, coefficients: Sequence[float]) -> EmittedValue:
    """``c[0] + c[1] x + c[2] x**2 + ...`` by Horner's rule, one fused multiply-add a term."""
    *rest, last = coefficients
    result = constant(x, last)
    for coefficient in reversed(rest):
        result = result.fma(x, coefficient)
    return result


def sqrt(x: EmittedValue) -> EmittedValue:
    """Correctly rounded square root."""
    return x.emitter.intrinsic("llvm.sqrt", x)


def floor(x: EmittedValue) -> EmittedValue:
    """The integer at or below."""
    return x.emitter.intrinsic("llvm.floor", x)


def trunc(x: EmittedValue) -> EmittedValue:
    """The integer towards zero."""
    return x.emitter.intrinsic("llvm.trunc", x)


def copysign(magnitude: EmittedValue, sign: EmittedValue) -> EmittedValue:
    """`magnitude` with the sign bit of `sign`."""
    return magnitude.emitter.intrinsic("llvm.copysign", magnitude, sign)


def clamp(x: EmittedValue, low: float, high: float) -> EmittedValue:
    """`x` kept within bounds; NaN passes through."""
    x = (x < low).select(low, x)
    return (x > high).select(high, x)


def at_most(x: EmittedValue, high: float) -> EmittedValue:
    """`x` kept below a bound; NaN passes through."""
    return (x > high).select(high, x)


def power_of_two(biased: EmittedValue, type: Type) -> EmittedValue:
    """The float whose exponent field is the low bits of an integer; higher bits fall off."""
    mantissa = _FORMATS[type.bits].mantissa
    return (biased << mantissa).bitcast(type)


def small_integer(biased: EmittedValue, type: Type, bias: int) -> EmittedValue:
    """An integer below 2**20, less `bias`, as a float; cheaper than a 64-bit conversion."""
    layout = _FORMATS[type.bits]
    magic_bits = (layout.bias + layout.mantissa << layout.mantissa) + (1 << layout.mantissa - 1)
    return (biased | magic_bits).bitcast(type) - (layout.magic + bias)
