"""The distribution function of the standard normal distribution, ``ndtr``.

It is ``exp(-a**2 / 2) f(a)`` at ``-a``, and 1 less this at ``a``. ``f`` falls from 1/2 as slowly as
``1 / (a sqrt(2 pi))``. It is ``P(a) / (l(a) P(a) + N(a))`` with a line ``l`` close to ``a sqrt(2 pi)``: where
the line is larger than ``N / P``, rounding errors of ``P`` cancel. The coefficients are minimax fits of
relative error 2**-27.1 and 2**-58.9 (least squares, with weights that level the errors), rounded one by one,
each time with the others fitted again.

The exponential needs no correction for a rounded square: a fused multiply-add subtracts the multiple of
log(4) from the exact one. The scale stays above the denormals until the last step, which rounds once.
"""

from __future__ import annotations

import math

from dualflow.core.records import NamedTuple
from dualflow.scalar.maths.floating import bits_of, clip_above, constant, format_of, polynomial
from dualflow.scalar.tracing import Traced


class _NormalTables(NamedTuple):
    """The constants of one precision.

    From `zero` on, the probability below ``-a`` is 0. log(4) is in two parts, the first with zeros at its
    end, so that n times it is exact. `exp` is the polynomial ``(exp(-r / 2) - 1) / r`` on ``|r| <= log(2)``.
    Results are larger by 2**`scale_exponent` before the last step. `line` is l, `p` is P and `n` is N.
    """

    zero: float
    log4_high: float
    log4_low: float
    scale_exponent: int
    exp: tuple[float, ...]
    line: tuple[float, float]
    p: tuple[float, ...]
    n: tuple[float, ...]


_TABLES = {
    32: _NormalTables(
        zero=14.5,
        log4_high=1.38629150390625,
        log4_low=2.857213530660374e-06,
        scale_exponent=48,
        exp=(
            -0.5,
            0.1249999850988388,
            -0.020833151414990425,
            0.0026042668614536524,
            -0.0002615214034449309,
            2.159440737159457e-05,
        ),
        line=(0.0019097358454018831, 2.5065982341766357),
        p=(
            0.8999999761581421,
            0.7876337170600891,
            0.32881203293800354,
            0.07278413325548172,
            0.007352001499384642,
        ),
        n=(
            1.798281192779541,
            0.7540175318717957,
            0.18550558388233185,
            0.0180251132696867,
        ),
    ),
    64: _NormalTables(
        zero=38.7,
        log4_high=1.3862943611197807,
        log4_low=1.0995846037416742e-13,
        scale_exponent=100,
        exp=(
            -0.5,
            0.12500000000000028,
            -0.020833333333333048,
            0.002604166666657921,
            -0.0002604166666712177,
            2.1701388975707724e-05,
            -1.5500991827251032e-06,
            9.688082926322405e-08,
            -5.3823355897509345e-09,
            2.6982936458486106e-10,
            -1.2211348504424748e-11,
        ),
        line=(1.5803098224717496e-10, 2.5066282746303985),
        p=(
            0.75,
            1.2412628408384887,
            1.0184410594382,
            0.5352685692288108,
            0.19770307406785217,
            0.053377521938369484,
            0.010654147898595333,
            0.0015543239550755547,
            0.00015922598753519778,
            1.0415588227804737e-05,
            3.34467308947537e-07,
        ),
        n=(
            1.4999999998814768,
            1.799381316712319,
            1.111196157379674,
            0.4460819415032098,
            0.12626667614364778,
            0.025916120400397806,
            0.0038438968057951067,
            0.000397443577808351,
            2.6108008240815627e-05,
            8.383852070772442e-07,
        ),
    ),
}


def ndtr(x: Traced) -> Traced:
    """The probability that a normal value of mean 0 and variance 1 is below ``x``."""
    tables, layout = _TABLES[x.bits], format_of(x)
    a = clip_above(abs(x), tables.zero)
    magic = layout.magic + tables.scale_exponent
    shifted = (a * a).fma(-0.5 * math.log2(math.e), magic)
    n = shifted - magic
    r = n.fma(tables.log4_low, a.fma(a, n * tables.log4_high))
    p = polynomial(a, tables.p)
    p_exp = (p * r).fma(polynomial(r, tables.exp), p)
    scaled = bits_of(p_exp) + (bits_of(shifted) << layout.mantissa)
    line = a.fma(tables.line[1], tables.line[0])
    y = scaled.bitcast(x.dtype) / line.fma(p, polynomial(a, tables.n))
    unscale = 2.0**-tables.scale_exponent
    negative = x < 0
    scale = negative.select(constant(x, unscale), constant(x, -unscale))
    return y.fma(scale, negative.select(constant(x, 0.0), constant(x, 1.0)))
