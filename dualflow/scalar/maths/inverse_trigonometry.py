"""asin, acos, atan and atan2: odd minimax polynomials (Remez) after a reduction of the argument.

The argument of the polynomial is at most a half; of atan in float32 at most 1.
"""

from __future__ import annotations

import math

from dualflow.core.dtypes import int32, int64
from dualflow.core.records import NamedTuple
from dualflow.scalar.maths.floating import INF, constant, copysign, polynomial, sqrt
from dualflow.scalar.tracing import Traced


class _ArcTables(NamedTuple):
    """Coefficients of ``asin(x) = x + x**3 A(x**2)`` up to 1/2, and of atan; in float32 up to 1."""

    asin: tuple[float, ...]
    atan: tuple[float, ...]


_TABLES = {
    32: _ArcTables(
        asin=(
            0.16666659712791443,
            0.07500521838665009,
            0.04451371729373932,
            0.03183310106396675,
            0.014348417520523071,
            0.03763602674007416,
        ),
        atan=(
            -0.33333298563957214,
            0.1999852955341339,
            -0.14264042675495148,
            0.1095128059387207,
            -0.08401551842689514,
            0.05794317647814751,
            -0.031185530126094818,
            0.01093197800219059,
            -0.0018006344325840473,
        ),
    ),
    64: _ArcTables(
        asin=(
            0.1666666666666676,
            0.0749999999997081,
            0.044642857174645695,
            0.03038194270472168,
            0.02237221510437631,
            0.017351609478623693,
            0.013980855337076475,
            0.011398596397458379,
            0.010782178191724424,
            0.0036986052395887197,
            0.021727620413414833,
            -0.021029172468786664,
            0.03264837046410044,
        ),
        atan=(
            -0.33333333333333315,
            0.19999999999993756,
            -0.14285714284996717,
            0.11111111069952832,
            -0.09090907702460574,
            0.07692277581485019,
            -0.06666224210933165,
            0.05877808650390906,
            -0.05230004127789896,
            0.04589365289590531,
            -0.03711577132175131,
            0.023649736967432815,
            -0.008361821822453168,
        ),
    ),
}
# pi/2 less the nearest float.
_HALF_PI_LOW = {32: -4.371139000186241e-08, 64: 6.123233995736766e-17}


def _reduced_asin(x: Traced) -> tuple[Traced, Traced, Traced]:
    """Whether ``|x|`` is above a half; the reduced argument r; and ``asin(r) - r``.

    Up to a half, r is ``|x|``. Above, ``r = sqrt((1 - |x|) / 2)``, so that ``acos(|x|) = 2 asin(r)``.
    """
    magnitude = abs(x)
    outer = magnitude > 0.5
    square = outer.select((1.0 - magnitude) * 0.5, x * x)
    r = outer.select(sqrt(square), magnitude)
    return outer, r, r * square * polynomial(square, _TABLES[x.bits].asin)


def asin(x: Traced) -> Traced:
    """Arc sine, in radians; NaN beyond 1."""
    outer, r, tail = _reduced_asin(x)
    low = _HALF_PI_LOW[x.bits]
    from_acos = (math.pi / 2 - (r + r)) - ((tail + tail) - low)
    return copysign(outer.select(from_acos, r + tail), x)


def acos(x: Traced) -> Traced:
    """Arc cosine, in radians; NaN beyond 1."""
    outer, r, tail = _reduced_asin(x)
    low = _HALF_PI_LOW[x.bits]
    negative = x < 0
    asin_r = r + tail
    if_outer = negative.select(math.pi - ((asin_r + asin_r) - 2 * low), asin_r + asin_r)
    if_inner = math.pi / 2 - (copysign(r, x) + (copysign(tail, x) - low))
    return outer.select(if_outer, if_inner)


def atan(x: Traced) -> Traced:
    """Arc tangent, in radians."""
    return copysign(_angle(abs(x), constant(x, 1.0), None), x)


def atan2(y: Traced, x: Traced) -> Traced:
    """The angle of the point (x, y), in radians, with C's results for zeros and infinities."""
    x_size, y_size = abs(x), abs(y)
    x_size = (x_size + y_size).eq(0).select(1.0, x_size)
    both_infinite = x_size.eq(INF) & y_size.eq(INF)
    x_size, y_size = both_infinite.select(1.0, x_size), both_infinite.select(1.0, y_size)
    if x.bits == 64:
        # The sum of the two, which `_angle` needs, must not overflow.
        scale = ((x_size > 2.0**1022) | (y_size > 2.0**1022)).select(constant(x, 0.25), 1.0)
        x_size, y_size = x_size * scale, y_size * scale
    return copysign(_angle(y_size, x_size, x.bitcast(int32 if x.bits == 32 else int64) < 0), y)


def _angle(y: Traced, x: Traced, mirrored: Traced | None) -> Traced:
    """The angle of a point in the first quadrant, or of its mirror image in the second if `mirrored`.

    The angle is a multiple of pi/4 plus or minus atan(t): t is the smaller coordinate divided by the larger
    and, in float64, it is reduced to -1/3..1/2.
    """
    bits = x.bits
    steep = y > x
    smaller, larger = steep.select(x, y), steep.select(y, x)
    eighths = steep.select(constant(x, 2.0), 0.0)
    subtracted = steep
    if mirrored is not None:
        subtracted = steep ^ mirrored
        eighths = steep.select(eighths, mirrored.select(constant(x, 4.0), 0.0))
    if bits == 64:
        # tan(a - pi/4) = (tan(a) - 1) / (tan(a) + 1) brings 1/2..1 to -1/3..0.
        middle = smaller > larger * 0.5
        eighths = eighths + middle.select(subtracted.select(constant(x, -1.0), 1.0), 0.0)
        smaller, larger = middle.select(smaller - larger, smaller), middle.select(smaller + larger, larger)
    t = smaller / larger
    square = t * t
    tail = t * square * polynomial(square, _TABLES[bits].atan)
    base = eighths * (math.pi / 4)
    base_low = eighths.fma(_HALF_PI_LOW[bits] / 2, eighths.fma(math.pi / 4, -base))
    return base + (subtracted.select(-t, t) + (subtracted.select(-tail, tail) + base_low))
