"""Derivatives of the incomplete gamma function with respect to ``a``, by Taylor arithmetic in NumPy.

Up to ``a`` (and for ``x`` up to 1) they are those of the power series (DLMF 8.11.4), elsewhere those of the
continued fraction of the upper function (DLMF 8.9.2). Each number in these is a Taylor series in ``a``: an
array whose first axis has the coefficients.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

Array = np.ndarray[Any, Any]

_TERMS: Final = 2000
_HUGE: Final = 2.0**200


def derivative_by_order(special: Any, a: Array, x: Array, degree: int) -> Array:
    """The ``degree``-th derivative by ``a`` of the lower regularized incomplete gamma function, or nan."""
    order, at = np.broadcast_arrays(a.astype(np.float64), x.astype(np.float64))
    out = np.full(order.shape, np.nan)
    inside = (order > 0) & (at >= 0)
    out[inside & ((at == 0) | np.isinf(at))] = 0
    proper = inside & (at > 0) & np.isfinite(at) & np.isfinite(order)
    far = proper & (at > 1) & (at > order)
    near = proper & ~far
    with np.errstate(all="ignore"):
        out[near] = _by_series(special, order[near], at[near], degree)
        out[far] = -_by_fraction(special, order[far], at[far], degree)
    return out * math.factorial(degree)


def _by_series(special: Any, a: Array, x: Array, degree: int) -> Array:
    """The highest Taylor coefficient of ``x**a exp(-x) / gamma(a + 1) sum x**n / ((a + 1) ... (a + n))``."""
    powers = np.arange(1, degree + 2)[:, None]
    term = _constant(1.0, x, degree)
    total = term
    for n in range(1, _TERMS):
        term = _product(term, -x * (-1 / (a + n)) ** powers)
        total = total + term
        if (np.abs(term) <= 1e-17 * np.abs(total)).all():
            break
    return np.asarray(_product(_factor(special, a, 1, x, degree), total)[-1])


def _by_fraction(special: Any, a: Array, x: Array, degree: int) -> Array:
    """The highest Taylor coefficient of the upper function, by its continued fraction.

    It is ``x**a exp(-x) / gamma(a)`` times ``1 / (x + 1 - a - 1 (1 - a) / (x + 3 - a - ...))``.

    ``p`` and ``q`` are the numerators and denominators of the last two convergents. The loop ends when each
    element has once stayed the same: later convergents differ by rounding, and never all agree at once.
    """
    zero, one = _constant(0.0, x, degree), _constant(1.0, x, degree)
    p, q = [zero, one], [one, _linear(x + 1 - a, -1.0, degree)]
    value = _quotient(p[1], q[1])
    converged = np.zeros(value.shape, bool)
    for n in range(1, _TERMS):
        b, c = _linear(x + 2 * n + 1 - a, -1.0, degree), _linear(n * (n - a), -float(n), degree)
        p = [p[1], _product(b, p[1]) - _product(c, p[0])]
        q = [q[1], _product(b, q[1]) - _product(c, q[0])]
        before, value = value, _quotient(p[1], q[1])
        converged |= ~(np.abs(value - before) > 1e-16 * np.abs(value))  # nan stays nan
        if converged.all():
            break
        scale = np.where(np.abs(q[1][0]) > _HUGE, 1 / _HUGE, 1.0)
        p, q = [part * scale for part in p], [part * scale for part in q]
    return np.asarray(_product(_factor(special, a, 0, x, degree), value)[-1])


# Series in the order


def _constant(value: float, like: Array, degree: int) -> Array:
    series = np.zeros((degree + 1, *like.shape))
    series[0] = value
    return series


def _linear(value: Array, slope: float, degree: int) -> Array:
    series = _constant(0.0, value, degree)
    series[0] = value
    series[1:2] = slope
    return series


def _product(x: Array, y: Array) -> Array:
    return np.stack([np.einsum("k...,k...", x[: k + 1], y[k::-1]) for k in range(len(x))])


def _quotient(x: Array, y: Array) -> Array:
    series: list[Array] = []
    for k in range(len(x)):
        convolved = sum((series[j] * y[k - j] for j in range(k)), start=np.zeros_like(x[0]))
        series.append((x[k] - convolved) / y[0])
    return np.stack(series)


def _factor(special: Any, a: Array, shift: int, x: Array, degree: int) -> Array:
    """``x**a exp(-x) / gamma(a + shift)``, the exponential of a series."""
    at = a + shift
    exponent = [special.xlogy(a, x) - x - special.gammaln(at), np.log(x) - special.psi(at)]
    exponent += [-special.polygamma(k - 1, at) / math.factorial(k) for k in range(2, degree + 1)]
    series = [np.exp(exponent[0])]
    for k in range(1, degree + 1):
        series.append(sum(j * exponent[j] * series[k - j] for j in range(1, k + 1)) / k)
    return np.stack(series)
