"""Products and quotients of polynomials with integer coefficients, as dicts of terms."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from operator import attrgetter
from typing import Any, Final

Terms = Mapping[tuple[Any, ...], int]
"""A polynomial: the coefficient of each product of factors, which are sorted by their attribute ``order``."""
_ORDER: Final = attrgetter("order")


def product(x: Terms, y: Terms) -> Terms:
    """The product of two polynomials; terms whose coefficients cancel remain, with 0.

    >>> product({(): 2}, {(): 3})
    {(): 6}
    """
    terms: dict[tuple[Any, ...], int] = {}
    for (a, m), (b, n) in itertools.product(x.items(), y.items()):
        monomial = tuple(sorted(a + b, key=_ORDER)) if a and b else a + b
        terms[monomial] = terms.get(monomial, 0) + m * n
    return terms


def divided(x: Terms, y: Terms) -> tuple[Terms, Terms]:
    """Quotient and remainder of polynomial division: the terms of ``x`` that ``y`` divides, and the others.

    The remainder of numbers is between 0 and ``y``.

    >>> divided({(): 7}, {(): 2})
    ({(): 3}, {(): 1})
    """
    if len(y) != 1:
        return ({(): 1}, {}) if x == y else ({}, x)
    ((divisor, coefficient),) = y.items()
    quotient: dict[tuple[Any, ...], int] = {}
    remainder: dict[tuple[Any, ...], int] = {}
    for monomial, c in x.items():
        factors = _without(monomial, divisor) if divisor else monomial
        whole, part = divmod(c, coefficient)
        if factors is not None and not part:
            quotient[factors] = whole
        elif monomial or divisor:
            remainder[monomial] = c
        else:
            quotient[()], remainder[()] = whole, part
    return quotient, remainder


def _without(monomial: tuple[Any, ...], divisor: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """The factors of ``monomial`` besides those of ``divisor``; None if some of these are not in it."""
    factors = list(monomial)
    for factor in divisor:
        if factor not in factors:
            return None
        factors.remove(factor)
    return tuple(factors)
