"""Powers of floats: ``exp(y log(x))``, with ``y log(x)`` as a double-double.

A double-double is the unevaluated sum ``a + a_low`` of two floats, which has twice the precision. Sums and
products are those of T. J. Dekker, "A floating-point technique for extending the available precision" (1971),
with fused multiply-add for the error of a product.
"""

from __future__ import annotations

from dualflow.core.dtypes import float64
from dualflow.scalar.maths.exponential import exp
from dualflow.scalar.maths.floating import INF, NAN, bits_of, floor, polynomial, sqrt
from dualflow.scalar.maths.logarithm import exponent_and_fraction, log
from dualflow.scalar.tracing import Traced

# log(1 + f) = 2 s + s z (2/3 + z P(z)) with s = f / (2 + f) and z = s**2: P is a minimax fit (Remez), 2**-54.
_LOG_POLYNOMIAL = (
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
    is_one = magnitude.eq(1) | y.eq(0)
    if x.bits == 32:
        exponent = y.cast(float64) * log(magnitude.cast(float64))
        power = exp(is_one.select(0.0, exponent)).cast(x.dtype)
    else:
        high, low = _y_log_x(y, magnitude)
        low = (abs(high) < 1024.0).select(low, 0.0)
        power = exp(is_one.select(0.0, high), is_one.select(0.0, low))
    half = y * 0.5
    is_odd = floor(half).ne(half) & floor(y).eq(y)
    sign = is_odd.select(bits_of(x) & -1 << x.bits - 1, 0)
    undefined = (x < 0) & (x > -INF) & floor(y).ne(y) & y.ne(0)
    return undefined.select(NAN, (bits_of(power) | sign).bitcast(x.dtype))


def _y_log_x(y: Traced, x: Traced) -> tuple[Traced, Traced]:
    """``y log(x)`` for a positive x, as a double-double."""
    k, f = exponent_and_fraction(x)
    # s = f / (2 + f), z = s**2
    divisor = f + 2.0
    s = f / divisor
    s_low = ((-s).fma(divisor, f) - s * (f - (divisor - 2.0))) / divisor
    z = s * s
    z_low = s.fma(s, -z) + s * s_low * 2.0
    # total = 2 + z (2/3 + z P(z)), so that log(1 + f) = s total
    tail = z * polynomial(z, _LOG_POLYNOMIAL)
    factor = tail + _TWO_THIRDS[0]
    factor_low = tail - (factor - _TWO_THIRDS[0]) + _TWO_THIRDS[1]
    product = z * factor
    product_low = z.fma(factor, -product) + (z * factor_low + z_low * factor)
    total = product + 2.0
    total_low = product - (total - 2.0) + product_low
    log_1f = s * total
    log_1f_low = s.fma(total, -log_1f) + (s * total_low + s_low * total)
    # log(x) = k log(2) + log(1 + f)
    k_log_2 = k * _LOG_2[0]
    high = k_log_2 + log_1f
    low = (log_1f - (high - k_log_2)) + k.fma(_LOG_2[1], log_1f_low)
    log_x = high + low
    log_x_low = low - (log_x - high)
    log_x = x.eq(0).select(-INF, (x < INF).select(log_x, x))
    y_log_x = y * log_x
    return y_log_x, y.fma(log_x, -y_log_x) + y * log_x_low


def rsqrt(x: Traced) -> Traced:
    """``1 / sqrt(x)``."""
    return 1.0 / sqrt(x)
