"""Integrals by SciPy: Dawson's, Fresnel's and Spence's, and the exponential one."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from dualflow.ops.arithmetic import square
from dualflow.ops.comparison import equal
from dualflow.ops.docstrings import documented
from dualflow.ops.exponential import exp
from dualflow.ops.powers import log
from dualflow.ops.selection import where
from dualflow.ops.special_functions.scipy_kernels import OF_REALS, SpecialFunction, apply, between, by_scipy
from dualflow.ops.trigonometric import cos, sin

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike
    from dualflow.ops.tensor import Tensor


def _spence_slope(out: Any, x: Any) -> Any:
    one = equal(x, 1)
    safe = where(one, 2, x)
    return where(one, -1, log(safe) / (1 - safe))


_ANY = (between(-2, 2),)

INTEGRAL = by_scipy(
    "special_integral",
    """Integrals that are no elementary functions.""",
    {
        "dawsn": SpecialFunction(lambda special, x: special.dawsn(x), lambda out, x: 1 - 2 * x * out, _ANY),
        "expint": SpecialFunction(
            lambda special, x: special.expi(x), lambda out, x: exp(x) / x, (between(0.5, 5),)
        ),
        "fresnel_cos": SpecialFunction(
            lambda special, x: special.fresnel(x)[1], lambda out, x: cos(math.pi / 2 * square(x)), _ANY
        ),
        "fresnel_sin": SpecialFunction(
            lambda special, x: special.fresnel(x)[0], lambda out, x: sin(math.pi / 2 * square(x)), _ANY
        ),
        "spence": SpecialFunction(lambda special, x: special.spence(x), _spence_slope, (between(1.5, 4),)),
    },
)


@documented(OF_REALS)
def dawsn(x: TensorLike, name: str | None = None) -> Tensor:
    """Dawson's integral: ``exp(-x**2)`` times the integral of ``exp(t**2)`` from 0 to ``x``.

    >>> import dualflow as df
    >>> df.math.special.dawsn([2.0]).numpy().round(4)
    array([0.3013], dtype=float32)
    """
    return apply(INTEGRAL, "dawsn", x)


@documented(OF_REALS)
def expint(x: TensorLike, name: str | None = None) -> Tensor:
    """The exponential integral: that of ``exp(t) / t`` up to ``x``, from ``-inf``.

    >>> import dualflow as df
    >>> df.math.special.expint([2.0]).numpy().round(4)
    array([4.9542], dtype=float32)
    """
    return apply(INTEGRAL, "expint", x)


@documented(OF_REALS)
def fresnel_cos(x: TensorLike, name: str | None = None) -> Tensor:
    """Fresnel's cosine integral: that of ``cos(pi t**2 / 2)`` from 0 to ``x``.

    >>> import dualflow as df
    >>> df.math.special.fresnel_cos([2.0]).numpy().round(4)
    array([0.4883], dtype=float32)
    """
    return apply(INTEGRAL, "fresnel_cos", x)


@documented(OF_REALS)
def fresnel_sin(x: TensorLike, name: str | None = None) -> Tensor:
    """Fresnel's sine integral: that of ``sin(pi t**2 / 2)`` from 0 to ``x``.

    >>> import dualflow as df
    >>> df.math.special.fresnel_sin([2.0]).numpy().round(4)
    array([0.3434], dtype=float32)
    """
    return apply(INTEGRAL, "fresnel_sin", x)


@documented(OF_REALS)
def spence(x: TensorLike, name: str | None = None) -> Tensor:
    """Spence's integral: that of ``log(t) / (1 - t)`` from 1 to ``x``; nan below 0.

    >>> import dualflow as df
    >>> df.math.special.spence([2.0]).numpy().round(4)
    array([-0.8225], dtype=float32)
    """
    return apply(INTEGRAL, "spence", x)
