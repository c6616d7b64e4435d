"""sin, cos and tan: Cody-Waite reduction of the argument to +-pi/4, then minimax polynomials (Remez).

The reduction subtracts the nearest multiple n of pi/2 in three parts, by fused multiply-add: ``x - n * high -
n * middle - n * low``. It is exact up to a bound, above which libm computes lane by lane. (Cody and Waite,
"Software Manual for the Elementary Functions", 1980.)
"""

from __future__ import annotations

import math

from dualflow.core.records import NamedTuple
from dualflow.scalar.maths.floating import Guarded, bits_of, format_of, polynomial
from dualflow.scalar.tracing import Traced


class _AngleTables(NamedTuple):
    """The constants of one precision: pi/2 in three parts, the bound of the reduction, and the polynomials.

    The polynomials P are in ``sin(a) = a + a**3 P(a**2)`` and ``cos(a) = 1 - a**2 / 2 + a**4 P(a**2)``.
    """

    half_pi: tuple[float, float, float]
    bound: float
    sin: tuple[float, ...]
    cos: tuple[float, ...]


_TABLES = {
    32: _AngleTables(
        half_pi=(1.57079637050628662109375, -4.371139000186241e-08, -1.7151245100059e-15),
        bound=65536.0,
        sin=(-0.16666655242443085, 0.008332187309861183, -0.00019517895998433232),
        cos=(0.04166664555668831, -0.0013887309469282627, 2.4432327336398885e-05),
    ),
    64: _AngleTables(
        half_pi=(1.5707963267948966, 6.123233995736766e-17, -1.4973849048591833e-33),
        bound=2.0**30,
        sin=(
            -0.1666666666666663,
            0.00833333333332184,
            -0.00019841269829358514,
            2.755731353850447e-06,
            -2.5050734386972982e-08,
            1.589543311717652e-10,
        ),
        cos=(
            0.041666666666666595,
            -0.0013888888888873307,
            2.4801587288965223e-05,
            -2.7557314203075623e-07,
            2.087570313883626e-09,
            -1.1358616959737347e-11,
        ),
    ),
}
# tan(a) = a + a**3 (...) on +-pi/4 in float32, relative error 2**-29.
_TAN_32 = (
    0.33333349227905273,
    0.1333267241716385,
    0.05405944213271141,
    0.021282808855175972,
    0.010837557725608349,
    8.409265865338966e-05,
    0.004380233585834503,
)


def _cody_waite_reduction(x: Traced) -> tuple[Traced, Traced, Traced]:
    """The quadrant n, in the low bits of an integer; the angle ``x - n pi/2``; and its rounding error."""
    magic = format_of(x).magic
    shifted = x.fma(2 / math.pi, magic)
    n = shifted - magic
    high, middle, low = _TABLES[x.bits].half_pi
    remainder = n.fma(-high, x)  # exact
    angle = n.fma(-middle, remainder)
    # The rounding error of the angle. Small angles are exact, but their difference here would round.
    error = (abs(angle) > 2.0**-8).select(n.fma(-middle, remainder - angle), 0.0)
    return bits_of(shifted), angle, n.fma(-low, error)


def _sin_cos(angle: Traced, low: Traced) -> tuple[Traced, Traced]:
    """Sine and cosine of ``angle + low``, at most pi/4; the cosine ignores ``low``."""
    tables, square = _TABLES[angle.bits], angle * angle
    sine = angle + (angle * square).fma(polynomial(square, tables.sin), low)
    return sine, square.fma(square.fma(polynomial(square, tables.cos), -0.5), 1.0)


def _exceeds_bound(x: Traced) -> Traced:
    return abs(x) > _TABLES[x.bits].bound


def _shifted_sine(x: Traced, quarters: int, symbol: str) -> Guarded:
    """The sine of ``x + quarters * pi / 2``."""
    quadrant, angle, low = _cody_waite_reduction(x)
    quadrant = quadrant + quarters if quarters else quadrant
    sine, cosine = _sin_cos(angle, low)
    y = (quadrant & 1).eq(0).select(sine, cosine)
    sign = (quadrant & 2) << (x.bits - 2)
    return Guarded((bits_of(y) ^ sign).bitcast(x.dtype), _exceeds_bound(x), symbol)


def sin(x: Traced) -> Guarded:
    """Sine of an angle in radians."""
    y = _shifted_sine(x, 0, "sin")
    return Guarded(x.eq(0).select(x, y.value), y.needs_fallback, y.symbol)


def cos(x: Traced) -> Guarded:
    """Cosine of an angle in radians."""
    return _shifted_sine(x, 1, "cos")


def tan(x: Traced) -> Guarded:
    """Tangent of an angle in radians: the tangent of the reduced angle, or minus its inverse."""
    quadrant, angle, low = _cody_waite_reduction(x)
    even = (quadrant & 1).eq(0)
    if x.bits == 32:
        square = angle * angle
        tangent = angle + (angle * square).fma(polynomial(square, _TAN_32), low)
        y = even.select(tangent, -1.0 / tangent)
    else:
        sine, cosine = _sin_cos(angle, low)
        y = even.select(sine, -cosine) / even.select(cosine, sine)
    return Guarded(x.eq(0).select(x, y), _exceeds_bound(x), "tan")
