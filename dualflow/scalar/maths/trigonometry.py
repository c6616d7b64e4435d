"""sin, cos and tan: the argument less a multiple of pi/2, then a minimax polynomial (Remez) on +-pi/4.

pi/2 is in three parts (Cody and Waite), subtracted by fused multiply-add: exact up to a bound, above which
libm computes lane by lane.
"""

from __future__ import annotations

import math

from dualflow.core.records import NamedTuple
from dualflow.scalar.maths.floating import Partial, bits_of, format_of, polynomial
from dualflow.scalar.tracing import Traced


class _AngleTables(NamedTuple):
    """pi/2 in three parts, the bound on the argument, and the polynomials in the square of the angle.

    They continue ``sin(a) = a + a**3 (...)`` and ``cos(a) = 1 - a**2 / 2 + a**4 (...)``.
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
# On +-pi/4 in float32, relative error 2**-29.
_TAN_32 = (
    0.33333349227905273,
    0.1333267241716385,
    0.05405944213271141,
    0.021282808855175972,
    0.010837557725608349,
    8.409265865338966e-05,
    0.004380233585834503,
)


def _reduce(x: Traced) -> tuple[Traced, Traced, Traced]:
    """The quadrant, as the low bits of an integer, the angle in it, at most pi/4, and its rounding error."""
    magic = format_of(x).magic
    shifted = x.fma(2 / math.pi, magic)
    n = shifted - magic
    high, middle, low = _TABLES[x.bits].half_pi
    exact = n.fma(-high, x)
    angle = n.fma(-middle, exact)
    # The rounding error of the angle. Small angles are exact, but their difference here would round.
    lost = (abs(angle) > 2.0**-8).select(n.fma(-middle, exact - angle), 0.0)
    return bits_of(shifted), angle, n.fma(-low, lost)


def _sin_cos(angle: Traced, low: Traced) -> tuple[Traced, Traced]:
    """Sine and cosine of ``angle + low``, at most pi/4; ``low`` doesn't change a cosine."""
    tables, square = _TABLES[angle.bits], angle * angle
    sine = angle + (angle * square).fma(polynomial(square, tables.sin), low)
    return sine, square.fma(square.fma(polynomial(square, tables.cos), -0.5), 1.0)


def _exceeds_bound(x: Traced) -> Traced:
    return abs(x) > _TABLES[x.bits].bound


def _sine_of_quarters(x: Traced, quarters: int, symbol: str) -> Partial:
    """The sine of ``x + quarters * pi / 2``."""
    quadrant, angle, low = _reduce(x)
    quadrant = quadrant + quarters if quarters else quadrant
    sine, cosine = _sin_cos(angle, low)
    y = (quadrant & 1).eq(0).select(sine, cosine)
    sign = (quadrant & 2) << (x.bits - 2)
    return Partial((bits_of(y) ^ sign).bitcast(x.dtype), _exceeds_bound(x), symbol)


def sin(x: Traced) -> Partial:
    """Sine of an angle in radians."""
    y = _sine_of_quarters(x, 0, "sin")
    return Partial(x.eq(0).select(x, y.value), y.wrong, y.symbol)


def cos(x: Traced) -> Partial:
    """Cosine of an angle in radians."""
    return _sine_of_quarters(x, 1, "cos")


def tan(x: Traced) -> Partial:
    """Tangent: of the angle in the quadrant, or minus its inverse."""
    quadrant, angle, low = _reduce(x)
    even = (quadrant & 1).eq(0)
    if x.bits == 32:
        square = angle * angle
        tangent = angle + (angle * square).fma(polynomial(square, _TAN_32), low)
        y = even.select(tangent, -1.0 / tangent)
    else:
        sine, cosine = _sin_cos(angle, low)
        y = even.select(sine, -cosine) / even.select(cosine, sine)
    return Partial(x.eq(0).select(x, y), _exceeds_bound(x), "tan")
