"""exp and its relatives: ``exp(x) = 2**n exp(r)``, with n = x / log(2) rounded and a polynomial for exp(r).

The polynomials are minimax fits (Remez) of ``exp(r) = 1 + r + r**2 p(r)`` on ``|r| <= log(2)/2``, by relative
error: of exp 2**-28 and 2**-63.6, of expm1 2**-31 and 2**-59.4.
"""

from __future__ import annotations

import math

from dualflow.core.records import NamedTuple
from dualflow.scalar.maths.floating import (
    bits_of,
    clamp,
    clip_above,
    constant,
    copysign,
    format_of,
    polynomial,
    power_of_two,
    with_sign,
)
from dualflow.scalar.tracing import Traced


class _ExpTables(NamedTuple):
    """The constants of one precision.

    Beyond `bounds`, exp is 0 and infinity. log(2) is in two parts, the first with zeros at its end,
    so that n times it is exact. `log2_parts` are those that :func:`exp_of_multiple` uses.
    """

    bounds: tuple[float, float]
    log2_high: float
    log2_low: float
    log2_parts: tuple[float, ...]
    exp: tuple[float, ...]
    expm1_bounds: tuple[float, float]
    expm1: tuple[float, ...]
    sinh: tuple[float, ...]
    tanh: tuple[float, ...]


_TABLES = {
    32: _ExpTables(
        bounds=(-104.0, 89.9),
        log2_high=0.693145751953125,
        log2_low=1.4286068203094172e-06,
        log2_parts=(math.log(2),),
        exp=(
            0.4999999403953552,
            0.16666515171527863,
            0.041668083518743515,
            0.008369349874556065,
            0.0013840427855029702,
        ),
        expm1_bounds=(-18.0, 89.0),
        expm1=(
            0.5000000596046448,
            0.1666666865348816,
            0.041664961725473404,
            0.00833276379853487,
            0.001401066081598401,
            0.00020127608149778098,
        ),
        sinh=(0.1666666716337204, 0.008333349600434303, 0.0001983615948120132, 2.8169515644549392e-06),
        tanh=(
            -0.33333247900009155,
            0.13330517709255219,
            -0.05366308242082596,
            0.02039213851094246,
            -0.005433556158095598,
        ),
    ),
    64: _ExpTables(
        bounds=(-746.0, 711.0),
        log2_high=6.93147180369123816490e-01,
        log2_low=1.90821492927058770002e-10,
        log2_parts=(6.93147180369123816490e-01, 1.90821492927058770002e-10),
        exp=(
            0.5,
            0.16666666666666688,
            0.04166666666666682,
            0.00833333333331401,
            0.0013888888888787948,
            0.0001984126990283493,
            2.480158752432982e-05,
            2.755722937327275e-06,
            2.7557109407076576e-07,
            2.511366224513769e-08,
            2.0961784001191446e-09,
        ),
        expm1_bounds=(-38.0, 710.0),
        expm1=(
            0.5,
            0.16666666666666669,
            0.041666666666667206,
            0.008333333333332167,
            0.0013888888888644723,
            0.00019841269843473412,
            2.480158768664204e-05,
            2.7557317509513615e-06,
            2.755704393918603e-07,
            2.505265687170244e-08,
            2.096821743510444e-09,
            1.602004439469515e-10,
        ),
        sinh=(
            0.16666666666666669,
            0.008333333333332912,
            0.0001984126984159341,
            2.7557319106756325e-06,
            2.5052130998838907e-08,
            1.6056659155204736e-10,
            7.776600568919436e-13,
        ),
        tanh=(
            -0.33333333333333265,
            0.1333333333332259,
            -0.05396825396236156,
            0.021869488373702988,
            -0.008863232897701209,
            0.0035921007810706465,
            -0.001455645198354443,
            0.0005891242986381616,
            -0.00023613748413391436,
            9.008238466880073e-05,
            -2.875862069477743e-05,
            5.438529112074569e-06,
        ),
    ),
}


def exp(x: Traced, low: Traced | None = None, halved: bool = False) -> Traced:
    """``exp(x)``, or ``exp(x + low)`` for a small ``low``; half of it if `halved`, which overflows later."""
    tables, layout = _TABLES[x.bits], format_of(x)
    x = clamp(x, *tables.bounds)
    # It includes the bias of both factors of the scale, so that shifts alone compute them.
    magic = layout.magic + 2 * layout.bias
    shifted = x.fma(math.log2(math.e), magic)
    n = shifted - magic
    r = n.fma(-tables.log2_low, n.fma(-tables.log2_high, x))
    if low is not None:
        r = r + low
    bits = bits_of(shifted)
    return _scaled((r * r).fma(polynomial(r, tables.exp), r) + 1.0, bits - 1 if halved else bits)


def exp2(x: Traced) -> Traced:
    """``2**x``, exact for integers."""
    tables, layout = _TABLES[x.bits], format_of(x)
    low, high = tables.bounds
    x = clamp(x, low * 1.4427, high * 1.4427)
    magic = layout.magic + 2 * layout.bias
    shifted = x + magic
    part = x - (shifted - magic)
    r = part * math.log(2)
    low_part = part.fma(tables.log2_high, -r)
    low_part = part.fma(tables.log2_low, low_part)
    square = r * r
    y = square.fma(polynomial(r, tables.exp), low_part) + r + 1.0
    return _scaled(y, bits_of(shifted))


def _scaled(y: Traced, bits: Traced) -> Traced:
    """``y * 2**n``, rounded once; `bits` is n plus twice the bias. Two factors reach the denormals."""
    half = bits >> 1
    return y * power_of_two(half, y.dtype) * power_of_two(bits - half, y.dtype)


def expm1(x: Traced) -> Traced:
    """``exp(x) - 1`` without cancellation: ``2**n (exp(r) - 1) + (2**n - 1)``, with n = 0 if `x` is small."""
    tables, layout = _TABLES[x.bits], format_of(x)
    magnitude = abs(x)
    bounded = clamp(x, *tables.expm1_bounds)
    # Half of 2**n, since 2**n would overflow before the result does.
    magic = layout.magic + layout.bias - 1
    shifted = (magnitude < 0.5).select(magic, bounded.fma(math.log2(math.e), magic))
    n = shifted - magic
    r = n.fma(-tables.log2_low, n.fma(-tables.log2_high, bounded))
    scale = power_of_two(bits_of(shifted), x.dtype)
    q = (r * r).fma(polynomial(r, tables.expm1), r)
    y = scale.fma(q, scale - 0.5)
    return (magnitude < 2.0 ** -(layout.mantissa + 2)).select(x, y + y)


def sigmoid(x: Traced) -> Traced:
    """``1 / (1 + exp(-x))``, computed with ``exp(-|x|)``, which cannot overflow."""
    decay = exp(-abs(x))
    return (x < 0).select(decay, 1.0) / (decay + 1.0)


def sinh(x: Traced) -> Traced:
    """Hyperbolic sine: an odd polynomial up to 1, then ``(exp(x) - exp(-x)) / 2`` for ``|x|``."""
    magnitude, square = abs(x), x * x
    near = (x * square).fma(polynomial(square, _TABLES[x.bits].sinh), x)
    half = exp(magnitude, halved=True)
    return (magnitude < 1.0).select(near, copysign(half - constant(x, 0.25) / half, x))


def cosh(x: Traced) -> Traced:
    """Hyperbolic cosine: ``(exp(|x|) + exp(-|x|)) / 2``."""
    half = exp(abs(x), halved=True)
    return half + constant(x, 0.25) / half


def tanh(x: Traced) -> Traced:
    """Hyperbolic tangent: an odd polynomial up to 0.66, then ``1 - 2 / (exp(2 |x|) + 1)``."""
    tables, magnitude, square = _TABLES[x.bits], abs(x), x * x
    near = (magnitude * square).fma(polynomial(square, tables.tanh), magnitude)
    # From this bound on, adding 1 to the exponential has no effect.
    bounded = clip_above(magnitude, 0.35 * format_of(x).mantissa + 2)
    y, scale = exp_of_multiple(bounded, 2.0)
    far = 1.0 - constant(x, 2.0) / y.fma(scale, 1.0)
    return with_sign((magnitude < 0.66).select(near, far), x)


def exp_of_multiple(x: Traced, factor: float) -> tuple[Traced, Traced]:
    """``exp(factor * x)`` as ``(m, p)``: ``m`` is near 1, ``p`` a power of 2, and their product is exact.

    ``factor`` is plus or minus a power of 2. For results that are added to larger numbers: in float32 log(2)
    is one constant, so that n adds an error of n times 2**-29. The result must not be denormal, nor overflow.
    """
    tables, layout = _TABLES[x.bits], format_of(x)
    magic = layout.magic + layout.bias
    shifted = x.fma(factor * math.log2(math.e), magic)
    n = shifted - magic
    # exp(factor * r) is a polynomial in r, whose coefficients are those of exp, scaled exactly.
    r = x
    for part in tables.log2_parts:
        r = n.fma(-part / factor, r)
    square = r * r
    p = polynomial(r, [c * factor ** (k + 2) for k, c in enumerate(tables.exp)], square)
    return square.fma(p, r.fma(factor, 1.0)), power_of_two(bits_of(shifted), x.dtype)
