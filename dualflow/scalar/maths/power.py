"""Powers of floats, through the logarithm to twice the precision."""

from __future__ import annotations

from dualflow.core.dtypes import float64
from dualflow.scalar.maths.exponential import exp
from dualflow.scalar.maths.floating import INF, NAN, bits_of, floor, polynomial, sqrt
from dualflow.scalar.maths.logarithm import log, split
from dualflow.scalar.tracing import Traced

# log(1 + f) = 2 s + s z (2/3 + z P(z)) with s = f / (2 + f) and z = s**2: P is a minimax fit (Remez), 2**-54.
_ATANH_REST = (
    0.4,
    0.28571428571428553,
    0.22222222222233237,
    0.1818181817868671,
    0.15384615867160295,
    0.1333328989086774,
    0.11767051926933356,
    0.10451752080394155,
    0.1079862796738029,
)
_TWO_THIRDS = (0.6666666666666666, 3.7007434154171886e-17)
_LOG_2 = (6.93147180369123816490e-01, 1.9082149292705877e-10)


def pow(x: Traced, y: Traced) -> Traced:
    """``x**y`` with C's special cases: 1 where y is 0 or x is 1, NaN for a negative x and a fractional y."""
    magnitude = abs(x)
    unit = magnitude.eq(1) | y.eq(0)
    if x.bits == 32:
        exponent = y.cast(float64) * log(magnitude.cast(float64))
        size = exp(unit.select(0.0, exponent)).cast(x.dtype)
    else:
        high, low = _times_log(y, magnitude)
        low = (abs(high) < 1024.0).select(low, 0.0)
        size = exp(unit.select(0.0, high), unit.select(0.0, low))
    half = y * 0.5
    odd = floor(half).ne(half) & floor(y).eq(y)
    sign = odd.select(bits_of(x) & -1 << x.bits - 1, 0)
    undefined = (x < 0) & (x > -INF) & floor(y).ne(y) & y.ne(0)
    return undefined.select(NAN, (bits_of(size) | sign).bitcast(x.dtype))


def _times_log(y: Traced, x: Traced) -> tuple[Traced, Traced]:
    """``y log(x)`` for a positive x, to twice the precision, as the sum of two floats."""
    k, f = split(x)
    top = f + 2.0
    s = f / top
    s_low = ((-s).fma(top, f) - s * (f - (top - 2.0))) / top
    z = s * s
    z_low = s.fma(s, -z) + s * s_low * 2.0
    tail = z * polynomial(z, _ATANH_REST)
    c = tail + _TWO_THIRDS[0]
    c_low = tail - (c - _TWO_THIRDS[0]) + _TWO_THIRDS[1]
    e = z * c
    e_low = z.fma(c, -e) + (z * c_low + z_low * c)
    g = e + 2.0
    g_low = e - (g - 2.0) + e_low
    part = s * g
    part_low = s.fma(g, -part) + (s * g_low + s_low * g)
    octaves = k * _LOG_2[0]
    log_x = octaves + part
    log_low = (part - (log_x - octaves)) + k.fma(_LOG_2[1], part_low)
    total = log_x + log_low
    log_low = log_low - (total - log_x)
    total = x.eq(0).select(-INF, (x < INF).select(total, x))
    high = y * total
    return high, y.fma(total, -high) + y * log_low


def rsqrt(x: Traced) -> Traced:
    """``1 / sqrt(x)``."""
    return 1.0 / sqrt(x)
