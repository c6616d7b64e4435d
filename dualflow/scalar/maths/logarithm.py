"""log and its relatives: ``log(x) = k log(2) + log(1 + f)`` for ``x = 2**k (1 + f)``.

1 + f is between sqrt(1/2) and sqrt(2).
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
    """The constants of the logarithms to one base.

    `inverse_high` and `inverse_low` are ``1 / log(base)`` in two parts. `log2_high` and `log2_low` are log(2)
    in this base, in two parts; the product of an exponent and the first part is exact.
    """

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


def _log1p_tail(f: Traced) -> Traced:
    """``log(1 + f) - f``, for 1 + f between sqrt(1/2) and sqrt(2)."""
    if f.bits == 32:
        return f * f * polynomial(f, _TAIL_32)
    half = f * f * 0.5
    s = f / (f + 2.0)
    square = s * s
    return s.fma(square.fma(polynomial(square, _TAIL_64), half), -half)


def exponent_and_fraction(x: Traced) -> tuple[Traced, Traced]:
    """The floats k and f of a positive number, denormal or not, which is ``2**k (1 + f)``."""
    layout, root_half = format_of(x), _ROOT_HALF[x.bits]
    denormal = x < layout.smallest_normal
    shift = layout.mantissa + 1
    bits = bits_of(denormal.select(x * 2.0**shift, x)) + (layout.one_bits - root_half)
    k = small_integer(bits >> layout.mantissa, x.dtype, layout.bias)
    k = k - denormal.select(constant(x, shift), 0.0)
    mantissa = (bits & ((1 << layout.mantissa) - 1)) + root_half
    return k, mantissa.bitcast(x.dtype) - 1.0


def _log_of_parts(k: Traced, f: Traced, base: _Base) -> Traced:
    """The logarithm of ``2**k (1 + f)`` to a base; the smaller terms are added first."""
    if base.inverse_high == 1.0:
        return k.fma(base.log2_high, f + k.fma(base.log2_low, _log1p_tail(f)))
    r = f + _log1p_tail(f)
    low = r.fma(base.inverse_low, k * base.log2_low if base.log2_low else k)
    if not base.log2_low:
        return r.fma(base.inverse_high, low)
    return k.fma(base.log2_high, r.fma(base.inverse_high, low))


def _with_special_cases(x: Traced, pole: float, y: Traced) -> Traced:
    """`y`, the logarithm of `x`, with its special cases: -infinity at the pole, NaN below, infinity."""
    special = x.eq(pole).select(constant(x, -INF), (x > pole).select(x, NAN))
    return ((x > pole) & (x < INF)).select(y, special)


def log(x: Traced) -> Traced:
    """Natural logarithm."""
    return _with_special_cases(x, 0.0, _log_of_parts(*exponent_and_fraction(x), _BASE_E[x.bits]))


def log2(x: Traced) -> Traced:
    """Logarithm to base 2, exact for powers of 2."""
    return _with_special_cases(x, 0.0, _log_of_parts(*exponent_and_fraction(x), _BASE_2[x.bits]))


def log10(x: Traced) -> Traced:
    """Logarithm to base 10."""
    return _with_special_cases(x, 0.0, _log_of_parts(*exponent_and_fraction(x), _BASE_10[x.bits]))


def log1p(x: Traced) -> Traced:
    """``log(1 + x)``: the exponent of the sum reduces 1 and x separately, so that x keeps its digits."""
    layout = format_of(x)
    biased = bits_of(x + 1.0) + (layout.one_bits - _ROOT_HALF[x.bits]) >> layout.mantissa
    k = small_integer(biased, x.dtype, layout.bias)
    # Four times 2**-k, since 2**-k would be denormal for the largest k.
    scale = power_of_two(2 * layout.bias + 2 - biased, x.dtype)
    f = (x * 0.25).fma(scale, scale.fma(0.25, -1.0))
    y = _with_special_cases(x, -1.0, _log_of_parts(k, f, _BASE_E[x.bits]))
    return (abs(x) < 2.0 ** -(layout.mantissa + 2)).select(x, y)


def logaddexp(x: Traced, y: Traced) -> Traced:
    """``log(exp(x) + exp(y))``."""
    larger = (x > y).select(x, y)
    if_different = larger + log1p(exp(-abs(x - y)))
    return x.eq(y).select(x + math.log(2), if_different)


_HUGE = {32: 2.0**30, 64: 2.0**60}


def asinh(x: Traced) -> Traced:
    """Inverse hyperbolic sine: ``log(|x| + sqrt(x**2 + 1))`` by log1p, without cancellation or overflow."""
    magnitude = abs(x)
    square = x * x
    huge = magnitude > _HUGE[x.bits]
    argument = huge.select(magnitude, magnitude + square / (sqrt(square + 1.0) + 1.0))
    return copysign(log1p(argument) + huge.select(constant(x, math.log(2)), 0.0), x)


def acosh(x: Traced) -> Traced:
    """Inverse hyperbolic cosine: ``log(x + sqrt(x**2 - 1))`` by log1p; NaN below 1."""
    above = x - 1.0
    huge = x > _HUGE[x.bits]
    argument = huge.select(x, above + sqrt(above * (above + 2.0)))
    y = log1p(argument) + huge.select(constant(x, math.log(2)), 0.0)
    return (x < 1.0).select(NAN, y)


def atanh(x: Traced) -> Traced:
    """Inverse hyperbolic tangent: ``log((1 + x) / (1 - x)) / 2`` by log1p; NaN beyond 1."""
    magnitude = abs(x)
    return copysign(log1p((magnitude + magnitude) / (1.0 - magnitude)) * 0.5, x)
