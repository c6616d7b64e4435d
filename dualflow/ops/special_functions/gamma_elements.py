"""One element of the gamma function's logarithm and of its derivative, for the compiler.

Narrower floats are computed in float64. Below 8 the recurrences lead to an interval in which the function is
its roots times a polynomial, interpolated at Chebyshev's points; from there on it is Stirling's series (DLMF
5.11.1 and 5.11.2), and below 0 the reflection (DLMF 5.5.3 and 5.5.4). Above 0 they are within 4 units in the
last place, also near the roots.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from dualflow.core.dtypes import float64

# lgamma(2 + t) = t (1 + t) P(t) for t in -1..1
_NEAR_TWO: Final = (
    0.42278433509846713,
    -0.1003173016743539,
    0.032965000621155816,
    -0.012384192193374183,
    0.004998641164698706,
    -0.0021081308338353785,
    0.0009153769221939477,
    -0.0004057073998333553,
    0.00018255264018626728,
    -8.309510094797398e-05,
    3.8168877217049974e-05,
    -1.7661849545809686e-05,
    8.22227252824938e-06,
    -3.8465374565754054e-06,
    1.8077244952477939e-06,
    -8.554195306752008e-07,
    4.0491176292722286e-07,
    -1.8624721164419038e-07,
    8.858800462314761e-08,
    -5.1889381335192836e-08,
    2.4876913129422816e-08,
    -9.172949166290702e-10,
    3.821541398410965e-10,
    -8.87711600370437e-09,
    4.305220610785349e-09,
    2.444386936885692e-09,
    -1.1901740908188623e-09,
    -8.152852870624974e-10,
    3.9592899392841773e-10,
)
# digamma(1.5 + t / 2) = (1.5 + t / 2 - root) P(t) for t in -1..1
_NEAR_ROOT: Final = (
    0.9510558760318328,
    -0.21181371064072865,
    0.060135621060196195,
    -0.01855061538185726,
    0.005936795278346364,
    -0.001935066662210221,
    0.0006368880294427922,
    -0.00021074843772854427,
    6.995019751413975e-05,
    -2.3258098660110816e-05,
    7.741184312154647e-06,
    -2.5785659502395533e-06,
    8.590699307116732e-07,
    -2.8534578211707985e-07,
    9.509734580818946e-08,
    -3.288837880625679e-08,
    1.0962078810190396e-08,
    -2.7066308634469587e-09,
    9.021824538932729e-10,
    -7.217231554506031e-10,
    2.4057297773026326e-10,
)
_ROOT: Final = 1.4616321449683622
_ROOT_REST: Final = 9.549995429965697e-17  # the rest of the root after rounding to a float
# B(2k) / (2k (2k - 1)) and B(2k) / 2k
_STIRLING: Final = (
    1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400,
)  # fmt: skip
_STIRLING_SLOPE: Final = (
    1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12, -3617 / 8160,
)  # fmt: skip
_HALF_LOG: Final = 0.4189385332046727  # (log(2 pi) - 1) / 2
_STIRLING_FROM: Final = 8.0


def _polynomial(x: Any, coefficients: Sequence[float]) -> Any:
    value: Any = coefficients[-1]
    for c in coefficients[-2::-1]:
        value = value * x + c
    return value


def lgamma(m: Any, x: Any) -> Any:
    """``log(abs(gamma(x)))``."""
    wide = m.cast(x, float64)
    size = m.abs(wide)
    above = _lgamma_above_zero(m, size)
    away = m.abs(size - m.round(size))  # from the nearest pole, exactly
    below = m.log(math.pi / m.sin(math.pi * away)) - (above + m.log(size))
    below = m.where(m.equal(away, 0), math.inf, below)  # where both sides may be infinite
    value = m.where(wide < 0, below, above)
    return m.cast(m.where(m.isinf(wide), math.inf, value), m.dtype(x))


def _lgamma_above_zero(m: Any, x: Any) -> Any:
    small = x < 1
    t, factor = m.where(small, x - 1, x - 2), m.where(small, x, 1)  # exact near the roots
    for _ in range(5):
        large = t >= 1
        t = m.where(large, t - 1, t)
        factor = m.where(large, factor * (t + 2), factor)
    log = m.log(factor)
    near = (t + 1) * t * _polynomial(t, _NEAR_TWO) + m.where(small, -log, log)
    inverse = 1 / x
    series = inverse * _polynomial(inverse * inverse, _STIRLING)
    far = (x - 0.5) * (m.log(x) - 1) + (_HALF_LOG + series)
    return m.where(x < _STIRLING_FROM, near, far)


def digamma(m: Any, x: Any) -> Any:
    """The derivative of :func:`lgamma`."""
    wide = m.cast(x, float64)
    above = _digamma_above_zero(m, m.where(wide < 0, 1 - wide, wide))
    away = wide - m.round(wide)  # from the nearest pole, exactly
    below = m.where(m.equal(away, 0), math.nan, above - math.pi / m.tan(math.pi * away))
    return m.cast(m.where(wide < 0, below, above), m.dtype(x))


def _digamma_above_zero(m: Any, x: Any) -> Any:
    small = x < 1
    y, total = m.where(small, x + 1, x), m.where(small, -1 / x, 0)
    for _ in range(6):
        large = y >= 2
        y = m.where(large, y - 1, y)
        total = m.where(large, total + 1 / y, total)
    near = ((y - _ROOT) - _ROOT_REST) * _polynomial(2 * y - 3, _NEAR_ROOT) + total
    inverse = 1 / x
    square = inverse * inverse
    far = m.log(x) - (inverse / 2 + square * _polynomial(square, _STIRLING_SLOPE))
    return m.where(x < _STIRLING_FROM, near, far)
