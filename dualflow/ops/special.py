"""The error function, its complement, and the normal distribution."""

from __future__ import annotations

import math

from dualflow.ops import error_function
from dualflow.ops.arithmetic import square
from dualflow.ops.elementwise import as_real_float, elementwise
from dualflow.ops.exponential import exp
from dualflow.ops.samples import numbers

_SLOPE = 2 / math.sqrt(math.pi)
_DENSITY = 1 / math.sqrt(2 * math.pi)

erf = elementwise(
    "erf",
    """The error function: the integral of ``2 / sqrt(pi) exp(-t^2)`` from 0 to ``x``.""",
    example=("df.math.erf([0.0, 9.0])", "[0.0, 1.0]"),
    dtype=as_real_float,
    eager=error_function.erf,
    code=lambda m, x: m.erf(x),
    vjp=lambda g, out, x: g * (_SLOPE * exp(-square(x))),
    samples=numbers(-3, 3),
    cost=20,
)

erfc = elementwise(
    "erfc",
    """``1 - erf(x)``, with full relative precision where it is small.""",
    example=("df.math.erfc([0.0, -9.0])", "[1.0, 2.0]"),
    dtype=as_real_float,
    eager=error_function.erfc,
    code=lambda m, x: m.erfc(x),
    vjp=lambda g, out, x: g * (-_SLOPE * exp(-square(x))),
    samples=numbers(-3, 3),
    cost=25,
)

ndtr = elementwise(
    "ndtr",
    """The probability that a normal value of mean 0 and variance 1 is below ``x``.""",
    dtype=as_real_float,
    eager=error_function.ndtr,
    code=lambda m, x: m.ndtr(x),
    vjp=lambda g, out, x: g * (_DENSITY * exp(-0.5 * square(x))),
    samples=numbers(-3, 3),
    cost=25,
)
