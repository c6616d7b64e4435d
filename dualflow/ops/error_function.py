"""The error function, its complement and the normal distribution, vectorised.

The rational approximations are those of fdlibm's ``s_erf.c`` (Sun Microsystems, 1993): within 1 ULP in
float64, and 2 in the tails of erfc. Narrower floats are computed in float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Any, Final

import numpy as np

Array = np.ndarray[Any, Any]

# erf(x) = x + x R(x^2) below 0.84375
_SMALL: Final = (
    (1.28379167095512558561e-01, -3.25042107247001499370e-01, -2.84817495755985104766e-02,
     -5.77027029648944159157e-03, -2.37630166566501626084e-05),
    (1.0, 3.97917223959155352819e-01, 6.50222499887672944485e-02, 5.08130628187576562776e-03,
     1.32494738004321644526e-04, -3.96022827877536812320e-06),
)  # fmt: skip
# erf(x) = _ONE + R(x - 1) below 1.25
_ONE: Final = 8.45062911510467529297e-01
_MIDDLE: Final = (
    (-2.36211856075265944077e-03, 4.14856118683748331666e-01, -3.72207876035701323847e-01,
     3.18346619901161753674e-01, -1.10894694282396677476e-01, 3.54783043256182359371e-02,
     -2.16637559486879084300e-03),
    (1.0, 1.06420880400844228286e-01, 5.40397917702171048937e-01, 7.18286544141962662868e-02,
     1.26171219808761642112e-01, 1.36370839120290507362e-02, 1.19844998467991074170e-02),
)  # fmt: skip
# erfc(x) = exp(-x^2 - 0.5625 + R(1 / x^2)) / x, below and above 1 / 0.35
_LARGE: Final = (
    (-9.86494403484714822705e-03, -6.93858572707181764372e-01, -1.05586262253232909814e01,
     -6.23753324503260060396e01, -1.62396669462573470355e02, -1.84605092906711035994e02,
     -8.12874355063065934246e01, -9.81432934416914548592e00),
    (1.0, 1.96512716674392571292e01, 1.37657754143519042600e02, 4.34565877475229228821e02,
     6.45387271733267880336e02, 4.29008140027567833386e02, 1.08635005541779435134e02,
     6.57024977031928170135e00, -6.04244152148580987438e-02),
)  # fmt: skip
_HUGE: Final = (
    (-9.86494292470009928597e-03, -7.99283237680523006574e-01, -1.77579549177547519889e01,
     -1.60636384855821916062e02, -6.37566443368389627722e02, -1.02509513161107724954e03,
     -4.83519191608651397019e02),
    (1.0, 3.03380607434824582924e01, 3.25792512996573918826e02, 1.53672958608443695994e03,
     3.19985821950859553908e03, 2.55305040643316442583e03, 4.74528541206955367215e02,
     -2.24409524465858183362e01),
)  # fmt: skip


# -sqrt(1/2) as the sum of two numbers of 26 bits and a small one
_TURN: Final = (-0.7071067839860916, 2.7995440410322203e-09, 4.833646656726457e-17)

_BLOCK: Final = 1 << 14  # elements computed at a time: their temporary arrays stay in the cache


def _polynomial(coefficients: tuple[float, ...], x: Array) -> Array:
    """The polynomial by Horner's rule, computed in one array."""
    value = np.full_like(x, coefficients[-1])
    for c in coefficients[-2::-1]:
        value *= x
        value += c
    return value


def _rational(coefficients: tuple[tuple[float, ...], tuple[float, ...]], x: Array) -> Array:
    above, below = (_polynomial(c, x) for c in coefficients)
    above /= below
    return above


def _blockwise(function: Callable[[Array], Array]) -> Callable[[Any], Any]:
    """``function`` of a float64 vector, for floats of any width and shape."""

    @wraps(function)
    def of_any(x: Any) -> Any:
        array = np.asarray(x)
        flat = array.reshape(-1)
        results = np.empty_like(flat)
        with np.errstate(all="ignore"):
            for start in range(0, flat.size, _BLOCK):
                block = slice(start, start + _BLOCK)
                results[block] = function(flat[block].astype(np.float64))
        return results.reshape(array.shape)

    return of_any


def _tail(size: Array) -> Array:
    """``erfc`` for ``size`` of 1.25 or more."""
    inverse = 1 / (size * size)
    ratio = np.where(size < 1 / 0.35, _rational(_LARGE, inverse), _rational(_HUGE, inverse))
    high = (size.view(np.int64) & -(1 << 32)).view(np.float64)  # its square is exact
    return np.asarray(np.exp(-high * high - 0.5625) * np.exp((high - size) * (high + size) + ratio) / size)


@_blockwise
def erf(x: Array) -> Array:
    """The error function: the signed probability that a normal value of variance 1/2 is within ``x`` of 0."""
    values: Array = x + x * _rational(_SMALL, x * x)
    beyond = np.flatnonzero(np.abs(x) >= 0.84375)
    size = np.abs(x[beyond])
    large = 1 - _tail(np.clip(size, 1.25, 6.0))
    middle = _ONE + _rational(_MIDDLE, size - 1)
    values[beyond] = np.copysign(np.where(size < 1.25, middle, large), x[beyond])
    return values


@_blockwise
def erfc(x: Array) -> Array:
    """``1 - erf(x)``, exact to the last places where that is near 0."""
    return _complement(x)


def _complement(x: Array) -> Array:
    ratio = x * _rational(_SMALL, x * x)
    half = (x >= 0.25) * 0.5  # arithmetic in place of np.where, which is slow where neighbours differ
    ratio += x - half
    complement: Array = (1 - half) - ratio
    beyond = np.flatnonzero(np.abs(x) >= 0.84375)
    outer = x[beyond]
    size = np.abs(outer)
    middle = 1 - _ONE - _rational(_MIDDLE, size - 1)
    large = np.where(size < 1.25, middle, _tail(np.clip(size, 1.25, 28.0)))
    complement[beyond] = (1 - np.copysign(1, outer)) + np.copysign(large, outer)
    return complement


def ndtr(x: Any) -> Any:
    """The probability that a standard normal value is below ``x``: ``erfc(-x / sqrt(2)) / 2``."""
    return (_ndtr if np.asarray(x).itemsize == 8 else _narrow_ndtr)(x)


@_blockwise
def _narrow_ndtr(x: Array) -> Array:
    return np.asarray(0.5 * _complement(x * (_TURN[0] + _TURN[1])))


@_blockwise
def _ndtr(x: Array) -> Array:
    """``ndtr`` in double precision: where erfc is small, the rounding error of its argument is corrected."""
    x = np.clip(x, -40.0, 40.0)
    argument = x * (_TURN[0] + _TURN[1])
    high = (x.view(np.int64) & -(1 << 27)).view(np.float64)  # its products are exact
    low = x - high
    remainder = (
        high * _TURN[0] - argument + high * _TURN[1] + low * _TURN[0] + (low * _TURN[1] + x * _TURN[2])
    )
    slope = 2 / math.sqrt(math.pi) * np.exp(-argument * argument)
    return np.asarray(0.5 * (_complement(argument) - remainder * slope))
