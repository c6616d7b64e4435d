"""floor_divide and expm1 by the standard's rules for infinities."""

from __future__ import annotations

import math
from typing import Any

from dualflow.ops.arithmetic import divide, floordiv, multiply, square, subtract
from dualflow.ops.comparison import equal, isfinite, isinf
from dualflow.ops.complex_numbers import complex as complex_of
from dualflow.ops.complex_numbers import imag, real
from dualflow.ops.conversion import stop_gradient
from dualflow.ops.exponential import exp, expm1
from dualflow.ops.record import promote_together
from dualflow.ops.selection import where
from dualflow.ops.trigonometric import cos, sin


def floor_quotient(x: Any, y: Any) -> Any:
    """``x // y``, which for floats with an infinite operand is ``x / y``: inf, or a zero of either sign.

    NumPy and Python have nan and -1 there.
    """
    x, y = promote_together(x, y)
    quotient = floordiv(x, y)
    if not x.dtype.is_floating:
        return quotient
    return where(isinf(x) | isinf(y), stop_gradient(divide(x, y)), quotient)


def exponential_minus_1(x: Any) -> Any:
    """``exp(x) - 1``, exact near 0; of complex numbers with the standard's results at infinities and nan.

    NumPy has nan in some of these. With ``x = a + b j``, the real part is ``exp(a) cos(b) - 1``.
    """
    if not x.dtype.is_complex:
        return expm1(x)
    a, b = real(x), imag(x)
    is_real, overflows, underflows = equal(b, 0), equal(a, math.inf), equal(a, -math.inf)
    angle = where(isfinite(b), b, 0)  # the selections below replace what this gives where b is not finite
    nan_like = b - b  # nan where b is not finite
    real_part = subtract(multiply(expm1(a), cos(angle)), 2 * square(sin(angle / 2)))
    real_part = where(isfinite(b), real_part, where(overflows, a, where(underflows, -1.0, nan_like)))
    imaginary_part = where(isfinite(b), multiply(exp(a), sin(angle)), where(underflows, 0.0, nan_like))
    return complex_of(where(is_real, expm1(a) + 0.0, real_part), where(is_real, b, imaginary_part))
