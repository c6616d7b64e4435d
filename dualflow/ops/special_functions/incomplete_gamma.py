"""The derivative of the incomplete gamma function by its order, in NumPy.

Below ``a + 1`` (and for ``x`` up to 1) it is that of the power series (DLMF 8.11.4), elsewhere that of the
continued fraction of the upper function (DLMF 8.9.2), whose recurrences are differentiated term by term.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

Array = np.ndarray[Any, Any]

_TERMS: Final = 2000
_HUGE: Final = 2.0**200


def slope_by_order(special: Any, a: Array, x: Array) -> Array:
    """The derivative of the lower regularized incomplete gamma function by ``a``; nan outside."""
    order, at = np.broadcast_arrays(a.astype(np.float64), x.astype(np.float64))
    out = np.full(order.shape, np.nan)
    inside = (order > 0) & (at >= 0)
    out[inside & ((at == 0) | np.isinf(at))] = 0
    proper = inside & (at > 0) & np.isfinite(at) & np.isfinite(order)
    far = proper & (at > 1) & (at > order)
    near = proper & ~far
    with np.errstate(all="ignore"):
        out[near] = _by_series(special, order[near], at[near])
        out[far] = _by_fraction(special, order[far], at[far])
    return out


def _by_series(special: Any, a: Array, x: Array) -> Array:
    """``sum x**n / ((a + 1) ... (a + n))`` times ``x**a exp(-x) / gamma(a + 1)``, differentiated."""
    term, slope = np.ones_like(x), np.zeros_like(x)
    total, total_slope = np.ones_like(x), np.zeros_like(x)
    for n in range(1, _TERMS):
        ratio = x / (a + n)
        slope = (slope - term / (a + n)) * ratio
        term = term * ratio
        total, total_slope = total + term, total_slope + slope
        if (np.abs(slope) <= 1e-17 * np.abs(total_slope)).all() and (term <= 1e-17 * total).all():
            break
    factor = np.exp(special.xlogy(a, x) - x - special.gammaln(a + 1))
    return np.asarray(factor * (total_slope + total * (np.log(x) - special.psi(a + 1))))


def _by_fraction(special: Any, a: Array, x: Array) -> Array:
    """``x**a exp(-x) / gamma(a)`` times ``1 / (x + 1 - a - 1 (1 - a) / (x + 3 - a - ...))``, differentiated.

    ``p`` and ``q`` are the numerators and denominators of the last two convergents, with their slopes.
    """
    zero, one = np.zeros_like(x), np.ones_like(x)
    p, q = np.stack([zero, one]), np.stack([one, x + 1 - a])
    p_slope, q_slope = np.stack([zero, zero]), np.stack([zero, -one])
    value, slope = one / q[1], one / q[1] ** 2
    for n in range(1, _TERMS):
        b, c = x + 2 * n + 1 - a, n * (n - a)  # their slopes by a are -1 and -n
        p_slope = np.stack([p_slope[1], b * p_slope[1] - p[1] - c * p_slope[0] + n * p[0]])
        q_slope = np.stack([q_slope[1], b * q_slope[1] - q[1] - c * q_slope[0] + n * q[0]])
        p, q = np.stack([p[1], b * p[1] - c * p[0]]), np.stack([q[1], b * q[1] - c * q[0]])
        value = p[1] / q[1]
        before, slope = slope, (p_slope[1] - value * q_slope[1]) / q[1]
        if (np.abs(slope - before) <= 1e-16 * np.abs(slope)).all():
            break
        large = np.abs(q[1]) > _HUGE
        if large.any():
            for part in (p, q, p_slope, q_slope):
                part[:, large] /= _HUGE
    factor = np.exp(special.xlogy(a, x) - x - special.gammaln(a))
    return np.asarray(-factor * (slope + value * (np.log(x) - special.psi(a))))
