"""log and its relatives: the number as ``2**k (1 + f)`` with 1 + f between sqrt(1/2) and sqrt(2).

log(1 + f) is ``f + tail(f)``. The tail is in float32 a minimax polynomial (Remez, relative error 2**-27), and
in float64 that of FreeBSD's e_log.c, in ``s = f / (2 + f)``.
"""

from __future__ import annotations

import math

from dualflow.core.records import NamedTuple
from dualflow.scalar.maths.exponential import exp
from dualflow.scalar.maths.floating import (
    INF,
    NAN,
    bits_of,
    constant,
    copysign,
    format_of,
    polynomial,
    power_of_two,
    small_integer,
    sqrt,
)
from dualflow.scalar.tracing import Traced

_TAIL_32 = (
    -0.5,
    0.3333333134651184,
    -0.2500081956386566,
    0.20001228153705597,
    -0.1662336140871048,
    0.14201734960079193,
    -0.1316012442111969,
    0.12761689722537994,
    -0.0763477310538292,
)
_TAIL_64 = (
    6.666666666666735130e-01,
    3.999999999940941908e-01,
    2.857142874366239149e-01,
    2.222219843214978396e-01,
    1.818357216161805012e-01,
    1.531383769920937332e-01,
    1.479819860511658591e-01,
)


class _Base(NamedTuple):
    """``1 / log(base)`` in two parts, and log(2) in this base in two; exponents times the first are exact."""

    inverse_high: float
    inverse_low: float
    log2_high: float
    log2_low: float


_BASE_2 = {
    32: _Base(1.4426950216293335, 1.925962991126617e-08, 1.0, 0.0),
    64: _Base(1.4426950408889634, 2.0355273740931033e-17, 1.0, 0.0),
}
_BASE_E = {
    32: _Base(1.0, 0.0, 0.693145751953125, 1.4286068203094172e-06),
    64: _Base(1.0, 0.0, 6.93147180369123816490e-01, 1.90821492927058770002e-10),
}
_BASE_10 = {
    32: _Base(0.4342944920063019, -1.0103050052231683e-08, 0.301025390625, 4.605038981195214e-06),
    64: _Base(
        0.4342944819032518, 1.098319650216765e-17, 3.01029995663611771306e-01, 3.69423907715893078616e-13
    ),
}
_ROOT_HALF = {32: 0x3F3504F3, 64: 0x3FE6A09E667F3BCD}


def _tail(f: Traced) -> Traced:
    """``log(1 + f) - f`` for a reduced f."""
    if f.bits == 32:
        return f * f * polynomial(f, _TAIL_32)
    half = f * f * 0.5
    s = f / (f + 2.0)
    square = s * s
    return s.fma(square.fma(polynomial(square, _TAIL_64), half), -half)


def split(x: Traced) -> tuple[Traced, Traced]:
    """A positive number, denormal or not, as ``2**k (1 + f)``: the floats k and f."""
    layout, root_half = format_of(x), _ROOT_HALF[x.bits]
    denormal = x < layout.smallest_normal
    lift = layout.mantissa + 1
    bits = bits_of(denormal.select(x * 2.0**lift, x)) + (layout.one_bits - root_half)
    k = small_integer(bits >> layout.mantissa, x.dtype, layout.bias)
    k = k - denormal.select(constant(x, lift), 0.0)
    mantissa = (bits & ((1 << layout.mantissa) - 1)) + root_half
    return k, mantissa.bitcast(x.dtype) - 1.0


def _assemble(k: Traced, f: Traced, base: _Base) -> Traced:
    """The logarithm of ``2**k (1 + f)``, the smaller terms first."""
    if base.inverse_high == 1.0:
        return k.fma(base.log2_high, f + k.fma(base.log2_low, _tail(f)))
    r = f + _tail(f)
    low = r.fma(base.inverse_low, k * base.log2_low if base.log2_low else k)
    if not base.log2_low:
        return r.fma(base.inverse_high, low)
    return k.fma(base.log2_high, r.fma(base.inverse_high, low))


def _special(x: Traced, pole: float, y: Traced) -> Traced:
    """`y`, but -infinity at the pole, NaN below it and for NaN, and infinity at infinity."""
    edge = x.eq(pole).select(constant(x, -INF), (x > pole).select(x, NAN))
    return ((x > pole) & (x < INF)).select(y, edge)


def log(x: Traced) -> Traced:
    """Natural logarithm."""
    return _special(x, 0.0, _assemble(*split(x), _BASE_E[x.bits]))


def log2(x: Traced) -> Traced:
    """Logarithm to base 2, exact for powers of 2."""
    return _special(x, 0.0, _assemble(*split(x), _BASE_2[x.bits]))


def log10(x: Traced) -> Traced:
    """Logarithm to base 10."""
    return _special(x, 0.0, _assemble(*split(x), _BASE_10[x.bits]))


def log1p(x: Traced) -> Traced:
    """``log(1 + x)``: the exponent of the sum reduces 1 and x separately, so that x keeps its digits."""
    layout = format_of(x)
    biased = bits_of(x + 1.0) + (layout.one_bits - _ROOT_HALF[x.bits]) >> layout.mantissa
    k = small_integer(biased, x.dtype, layout.bias)
    # Four times 2**-k, since 2**-k would be denormal for the largest k.
    scale = power_of_two(2 * layout.bias + 2 - biased, x.dtype)
    f = (x * 0.25).fma(scale, scale.fma(0.25, -1.0))
    y = _special(x, -1.0, _assemble(k, f, _BASE_E[x.bits]))
    return (abs(x) < 2.0 ** -(layout.mantissa + 2)).select(x, y)


def logaddexp(x: Traced, y: Traced) -> Traced:
    """``log(exp(x) + exp(y))``."""
    larger = (x > y).select(x, y)
    apart = larger + log1p(exp(-abs(x - y)))
    return x.eq(y).select(x + math.log(2), apart)


_HUGE = {32: 2.0**30, 64: 2.0**60}


def asinh(x: Traced) -> Traced:
    """Inverse hyperbolic sine: log1p of the inverted definition of sinh, without cancellation or overflow."""
    magnitude = abs(x)
    square = x * x
    huge = magnitude > _HUGE[x.bits]
    argument = huge.select(magnitude, magnitude + square / (sqrt(square + 1.0) + 1.0))
    return copysign(log1p(argument) + huge.select(constant(x, math.log(2)), 0.0), x)


def acosh(x: Traced) -> Traced:
    """Inverse hyperbolic cosine; NaN below 1."""
    above = x - 1.0
    huge = x > _HUGE[x.bits]
    argument = huge.select(x, above + sqrt(above * (above + 2.0)))
    y = log1p(argument) + huge.select(constant(x, math.log(2)), 0.0)
    return (x < 1.0).select(NAN, y)


def atanh(x: Traced) -> Traced:
    """Inverse hyperbolic tangent; NaN beyond 1."""
    magnitude = abs(x)
    return copysign(log1p((magnitude + magnitude) / (1.0 - magnitude)) * 0.5, x)
