"""Powers, roots and the logarithm that their gradients need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core.errors import InvalidArgumentError
from dualflow.ops import maths_reference
from dualflow.ops.arithmetic import multiply_no_nan
from dualflow.ops.comparison import not_equal
from dualflow.ops.elementwise import as_float, elementwise, signed
from dualflow.ops.samples import Domain, numbers
from dualflow.ops.selection import where

if TYPE_CHECKING:
    pass

log = elementwise(
    "log",
    """Natural logarithm.""",
    example=("df.math.log([1.0])", "[0.0]"),
    dtype=as_float,
    eager=np.log,
    code=lambda m, x: m.log(x),
    vjp=lambda g, out, x: g / x,
    samples=numbers(1, 50),
    cost=10,
)

reciprocal = elementwise(
    "reciprocal",
    """``1 / x``.""",
    example=("df.math.reciprocal([2.0, 4.0])", "[0.5, 0.25]"),
    dtype=as_float,
    eager=np.reciprocal,
    code=lambda m, x: 1 / x,
    vjp=lambda g, out, x: -g * out * out,
    samples=numbers(1, 50),
    cost=4,
)

sqrt = elementwise(
    "sqrt",
    """Square root; nan for negative numbers.""",
    example=("df.sqrt([4.0, 9.0])", "[2.0, 3.0]"),
    dtype=as_float,
    eager=np.sqrt,
    code=lambda m, x: m.sqrt(x),
    vjp=lambda g, out, x: multiply_no_nan(0.5 / out, g),
    samples=numbers(1, 50),
    cost=5,
)

rsqrt = elementwise(
    "rsqrt",
    """``1 / sqrt(x)``.""",
    example=("df.math.rsqrt([4.0])", "[0.5]"),
    dtype=as_float,
    eager=lambda x: 1 / np.sqrt(x),
    code=lambda m, x: m.rsqrt(x),
    vjp=lambda g, out, x: multiply_no_nan(-0.5 * out / x, g),
    samples=numbers(1, 50),
    cost=8,
)

_NEGATIVE_POWER = "an integer to a negative power is not an integer. Cast the base to a float."


def _pow_kernel(x: Any, y: Any) -> Any:
    if y.dtype.kind == "i" and x.size and (y < 0).any():
        raise InvalidArgumentError(_NEGATIVE_POWER)
    return maths_reference.pow(x, y)


def _pow(m: Any, x: Any, y: Any) -> Any:
    if m.dtype(y).kind == "i":
        m.check(y >= 0, _NEGATIVE_POWER)
    return m.pow(x, y)


def _pow_vjp_base(g: Any, out: Any, x: Any, y: Any) -> Any:
    return g * y * pow(x, y - 1)


def _pow_vjp_exponent(g: Any, out: Any, x: Any, y: Any) -> Any:
    """Zero where ``log(x)`` is undefined, so that a constant exponent of a negative base gives no nan."""
    positive = not_equal(x, 0) if x.dtype.is_complex else x > 0
    return g * out * where(positive, log(where(positive, x, 1)), 0)


pow = elementwise(
    "pow",
    """``x`` to the power ``y``. An integer to a negative integer power is an InvalidArgumentError.""",
    example=("df.pow([2, 3], 2)", "[4, 9]"),
    dtype=signed,
    eager=_pow_kernel,
    code=_pow,
    vjp=(_pow_vjp_base, _pow_vjp_exponent),
    samples=(Domain(1, 3, "fi"), Domain(0, 4, "fi")),
    cost=30,
)
