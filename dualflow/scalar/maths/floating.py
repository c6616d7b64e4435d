"""Building blocks: float formats, polynomials, and functions that are one instruction."""

from __future__ import annotations

from collections.abc import Sequence

from dualflow.core.dtypes import DType, uint32, uint64
from dualflow.core.records import NamedTuple
from dualflow.scalar.tracing import Traced

INF, NAN = float("inf"), float("nan")


class Format(NamedTuple):
    """An IEEE 754 format, and the number `magic`: adding it rounds to an integer, in the low bits."""

    mantissa: int
    bias: int
    magic: float
    smallest_normal: float

    @property
    def one_bits(self) -> int:
        """The bits of 1.0."""
        return self.bias << self.mantissa


_UNSIGNED = {32: uint32, 64: uint64}
_FORMATS = {32: Format(23, 127, 1.5 * 2**23, 2.0**-126), 64: Format(52, 1023, 1.5 * 2**52, 2.0**-1022)}


def format_of(x: Traced) -> Format:
    """The format of a float32 or float64 value."""
    return _FORMATS[x.bits]


class Partial(NamedTuple):
    """A result that is right unless `wrong` holds; then the C function `symbol` of the operands is right.

    `symbol` is the name for float64; float32 adds an "f".
    """

    value: Traced
    wrong: Traced
    symbol: str


def bits_of(x: Traced) -> Traced:
    """The bits of a float, as unsigned integers."""
    return x.bitcast(_UNSIGNED[x.bits])


def constant(like: Traced, number: float) -> Traced:
    """A constant of another value's type."""
    return like.m.constant(number, like.dtype)


def polynomial(x: Traced, coefficients: Sequence[float]) -> Traced:
    """``c[0] + c[1] x + c[2] x**2 + ...`` by Horner's rule, one fused multiply-add a term."""
    *leading, last = coefficients
    result = constant(x, last)
    for coefficient in reversed(leading):
        result = result.fma(x, coefficient)
    return result


def sqrt(x: Traced) -> Traced:
    """Correctly rounded square root."""
    return x.m.sqrt(x)


def floor(x: Traced) -> Traced:
    """The integer at or below."""
    return x.m.floor(x)


def trunc(x: Traced) -> Traced:
    """The integer towards zero."""
    return x.m.trunc(x)


def copysign(magnitude: Traced, sign: Traced) -> Traced:
    """`magnitude` with the sign bit of `sign`."""
    return magnitude.m.copysign(magnitude, sign)


def clamp(x: Traced, low: float, high: float) -> Traced:
    """`x` clipped to bounds; NaN stays NaN."""
    x = (x < low).select(low, x)
    return (x > high).select(high, x)


def at_most(x: Traced, high: float) -> Traced:
    """The smaller of `x` and a bound; NaN stays NaN."""
    return (x > high).select(high, x)


def power_of_two(biased: Traced, dtype: DType) -> Traced:
    """The float whose exponent field is the low bits of an integer; higher bits are dropped."""
    mantissa = _FORMATS[8 * dtype.size].mantissa
    return (biased << mantissa).bitcast(dtype)


def small_integer(biased: Traced, dtype: DType, bias: int) -> Traced:
    """An integer below 2**20, less `bias`, as a float; cheaper than a 64-bit conversion."""
    layout = _FORMATS[8 * dtype.size]
    magic_bits = (layout.bias + layout.mantissa << layout.mantissa) + (1 << layout.mantissa - 1)
    return (biased | magic_bits).bitcast(dtype) - (layout.magic + bias)
