"""The inverses of the error function, of its complement, and of the normal distribution."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dualflow.ops.arithmetic import square
from dualflow.ops.docstrings import documented
from dualflow.ops.exponential import exp
from dualflow.ops.special_functions.scipy_kernels import OF_REALS, SpecialFunction, apply, between, by_scipy

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike
    from dualflow.ops.tensor import Tensor

_SLOPE = math.sqrt(math.pi) / 2
_NORMAL = math.sqrt(2 * math.pi)

INVERSE = by_scipy(
    "inverse_error_function",
    """The inverses of the error function, its complement, and the normal distribution.""",
    {
        "erfinv": SpecialFunction(
            lambda special, x: special.erfinv(x),
            lambda out, x: _SLOPE * exp(square(out)),
            (between(-0.9, 0.9),),
        ),
        "erfcinv": SpecialFunction(
            lambda special, x: special.erfcinv(x),
            lambda out, x: -_SLOPE * exp(square(out)),
            (between(0.1, 1.9),),
        ),
        "ndtri": SpecialFunction(
            lambda special, x: special.ndtri(x),
            lambda out, x: _NORMAL * exp(square(out) / 2),
            (between(0.05, 0.95),),
        ),
    },
)


@documented(OF_REALS)
def erfinv(x: TensorLike, name: str | None = None) -> Tensor:
    """The number whose :func:`dualflow.math.erf` is ``x``, in (-1, 1); infinite at the ends, nan beyond.

    >>> import dualflow as df
    >>> df.math.erfinv([0.0, 0.5, 1.0]).numpy().round(4)
    array([0.    , 0.4769,    inf], dtype=float32)
    """
    return apply(INVERSE, "erfinv", x)


@documented(OF_REALS)
def erfcinv(x: TensorLike, name: str | None = None) -> Tensor:
    """The number whose :func:`dualflow.math.erfc` is ``x``, in (0, 2); infinite at the ends, nan beyond.

    >>> import dualflow as df
    >>> df.math.erfcinv([1e-30, 0.5]).numpy().round(4)
    array([8.1486, 0.4769], dtype=float32)
    """
    return apply(INVERSE, "erfcinv", x)


@documented(OF_REALS)
def ndtri(x: TensorLike, name: str | None = None) -> Tensor:
    """The quantile function of the standard normal distribution, the inverse of ``ndtr``; nan outside [0, 1].

    >>> import dualflow as df
    >>> df.math.ndtri([0.5, 0.975]).numpy().round(4)
    array([0.  , 1.96], dtype=float32)
    """
    return apply(INVERSE, "ndtri", x)
