"""Float formats, polynomials, and functions that are one instruction, for definitions of functions."""

from __future__ import annotations

from collections.abc import Sequence

from dualflow.core.dtypes import DType, uint32, uint64
from dualflow.core.records import NamedTuple
from dualflow.scalar.tracing import Traced

INF, NAN = float("inf"), float("nan")


class Format(NamedTuple):
    """An IEEE 754 binary format, and a constant for rounding.

    Attributes:
        mantissa: the number of stored bits of the significand.
        bias: the bias of the exponent.
        magic: 1.5 * 2**mantissa. Adding it to a small number rounds that to an integer, which is then in the
            low bits of the sum.
        smallest_normal: the smallest number that is not denormal.
    """

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


class Guarded(NamedTuple):
    """A result that is exact unless ``needs_fallback`` holds, and the C function to call then.

    `symbol` is the name of the C function for float64; float32 adds an "f".
    """

    value: Traced
    needs_fallback: Traced
    symbol: str


def bits_of(x: Traced) -> Traced:
    """The bits of a float, as unsigned integers."""
    return x.bitcast(_UNSIGNED[x.bits])


def constant(like: Traced, number: float) -> Traced:
    """A constant of the dtype of another value."""
    return like.m.constant(number, like.dtype)


def polynomial(x: Traced, coefficients: Sequence[float], square: Traced | None = None) -> Traced:
    """``c[0] + c[1] x + c[2] x**2 + ...`` by Horner's rule, one fused multiply-add a term.

    With `square`, ``x**2``, terms of even and of odd degree are two sums, which processors compute at once
    (second-order Horner's rule; D. E. Knuth, "The Art of Computer Programming", 4.6.4).
    """
    if square is not None:
        odd = polynomial(square, coefficients[1::2])
        return odd.fma(x, polynomial(square, coefficients[::2]))
    *leading, last = coefficients
    result = constant(x, last)
    for coefficient in reversed(leading):
        result = result.fma(x, coefficient)
    return result


def sqrt(x: Traced) -> Traced:
    """Correctly rounded square root."""
    return x.m.sqrt(x)


def floor(x: Traced) -> Traced:
    """The largest integer that is not above `x`."""
    return x.m.floor(x)


def trunc(x: Traced) -> Traced:
    """The integer part of `x`."""
    return x.m.trunc(x)


def copysign(magnitude: Traced, sign: Traced) -> Traced:
    """`magnitude` with the sign bit of `sign`."""
    return magnitude.m.copysign(magnitude, sign)


def with_sign(magnitude: Traced, sign: Traced) -> Traced:
    """A `magnitude` that is not negative, with the sign bit of `sign`; one instruction less than copysign."""
    sign_bit = bits_of(sign) & (1 << sign.bits - 1)
    return (bits_of(magnitude) | sign_bit).bitcast(sign.dtype)


def clamp(x: Traced, low: float, high: float) -> Traced:
    """`x` clipped to bounds; NaN stays NaN."""
    x = (x < low).select(low, x)
    return (x > high).select(high, x)


def clip_above(x: Traced, high: float) -> Traced:
    """`x` clipped to an upper bound; NaN stays NaN."""
    return (x > high).select(high, x)


def power_of_two(biased: Traced, dtype: DType) -> Traced:
    """``2**(biased - bias)``: the float with the exponent field `biased`, whose higher bits are dropped."""
    mantissa = _FORMATS[8 * dtype.size].mantissa
    return (biased << mantissa).bitcast(dtype)


def small_integer(biased: Traced, dtype: DType, bias: int) -> Traced:
    """``biased - bias`` as a float, for an integer from 0 to 2**20; cheaper than a 64-bit conversion."""
    layout = _FORMATS[8 * dtype.size]
    magic_bits = (layout.bias + layout.mantissa << layout.mantissa) + (1 << layout.mantissa - 1)
    return (biased | magic_bits).bitcast(dtype) - (layout.magic + bias)
