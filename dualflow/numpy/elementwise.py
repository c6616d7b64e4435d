"""NumPy's universal functions of arithmetic, powers, angles and rounding, as functions of ops."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from dualflow.function.control.control_flow import while_loop
from dualflow.numpy import ufuncs
from dualflow.numpy.comparisons import greater_or_equal
from dualflow.ops import arithmetic, comparison, complex_numbers, exponential, powers, rounding
from dualflow.ops import trigonometric as circular
from dualflow.ops.arithmetic import multiply_no_nan
from dualflow.ops.conversion import cast, identity
from dualflow.ops.creation import ones_like, zeros_like
from dualflow.ops.elementary.values import nextafter as next_float
from dualflow.ops.floating_point import exponentials, logarithms, signs
from dualflow.ops.reduction import reduce_any
from dualflow.ops.selection import where

unary = functools.partial(ufuncs.unary, __name__)
binary = functools.partial(ufuncs.binary, __name__)
universal = functools.partial(ufuncs.universal, __name__)


# Arithmetic


def _add(x: Any, y: Any) -> Any:
    return comparison.logical_or(x, y) if x.dtype.is_bool else arithmetic.add(x, y)


def _multiply(x: Any, y: Any) -> Any:
    return comparison.logical_and(x, y) if x.dtype.is_bool else arithmetic.multiply(x, y)


def _nonzero(y: Any) -> tuple[Any, Any]:
    """A mask of the integers that are not 0, and the integers with 0 replaced by 1."""
    ok = comparison.not_equal(y, 0)
    return ok, where(ok, y, ones_like(y))


def _floor_divide(x: Any, y: Any) -> Any:
    if x.dtype.is_inexact:
        return arithmetic.floordiv(x, y)
    ok, safe = _nonzero(y)
    return where(ok, arithmetic.floordiv(x, safe), zeros_like(x))


def _remainder(x: Any, y: Any) -> Any:
    if x.dtype.is_inexact:
        return arithmetic.mod(x, y)
    ok, safe = _nonzero(y)
    return where(ok, arithmetic.mod(x, safe), zeros_like(x))


def _fmod(x: Any, y: Any) -> Any:
    if x.dtype.is_inexact:
        return arithmetic.truncatemod(x, y)
    ok, safe = _nonzero(y)
    return where(ok, arithmetic.truncatemod(x, safe), zeros_like(x))


def _divmod(x: Any, y: Any) -> Any:
    return _floor_divide(x, y), _remainder(x, y)


def _positive(x: Any) -> Any:
    return identity(x)


def _reciprocal(x: Any) -> Any:
    if x.dtype.is_inexact:
        return powers.reciprocal(x)
    return where(
        comparison.equal(arithmetic.abs(x), 1), x, zeros_like(x)
    )  # 1 and -1 alone have an integer inverse


def _fabs(x: Any) -> Any:
    return arithmetic.abs(x)


def _sign(x: Any) -> Any:
    return arithmetic.sign(x)


def _maximum(x: Any, y: Any) -> Any:
    if x.dtype.is_bool:
        return comparison.logical_or(x, y)
    return _extreme_of_complex(x, y, largest=True) if x.dtype.is_complex else arithmetic.maximum(x, y)


def _minimum(x: Any, y: Any) -> Any:
    if x.dtype.is_bool:
        return comparison.logical_and(x, y)
    return _extreme_of_complex(x, y, largest=False) if x.dtype.is_complex else arithmetic.minimum(x, y)


def _extreme_of_complex(x: Any, y: Any, *, largest: bool) -> Any:
    """The larger or smaller complex number, by real and then imaginary parts; nan if either is nan."""
    takes_x = (greater_or_equal(x, y) if largest else greater_or_equal(y, x)) | comparison.isnan(x)
    return where(takes_x, x, y)


def _fmax(x: Any, y: Any) -> Any:
    return _ignoring_nan(_maximum, x, y)


def _fmin(x: Any, y: Any) -> Any:
    return _ignoring_nan(_minimum, x, y)


def _ignoring_nan(extreme: Any, x: Any, y: Any) -> Any:
    if not x.dtype.is_inexact:
        return extreme(x, y)
    return where(comparison.isnan(x), y, where(comparison.isnan(y), x, extreme(x, y)))


def _gcd(x: Any, y: Any) -> Any:
    """The greatest common divisor by Euclid's algorithm, for all elements at once."""
    a, b = arithmetic.abs(x), arithmetic.abs(y)
    shape = (a + b).shape
    if shape.is_static:
        a, b = a + zeros_like(b), b + zeros_like(a)
    divisor, _ = while_loop(
        lambda a, b: reduce_any(comparison.not_equal(b, 0)),
        lambda a, b: (where(comparison.equal(b, 0), a, b), _remainder(a, b)),
        (a, b),
    )
    return arithmetic.abs(divisor)


def _lcm(x: Any, y: Any) -> Any:
    return arithmetic.abs(_floor_divide(x, _gcd(x, y)) * y)


add = binary("add", "The sum.", _add, "[1, 2], 0.5", "array([1.5, 2.5])")
subtract = binary("subtract", "The difference.", arithmetic.subtract, "[1, 2], 0.5", "array([0.5, 1.5])")
multiply = binary("multiply", "The product.", _multiply, "[1, 2], 3", "array([3, 6])")
divide = true_divide = binary(
    "divide", "The quotient; for integers a float.", arithmetic.divide, "[1, 2], 4", "array([0.25, 0.5 ])"
)
floor_divide = binary(
    "floor_divide",
    "The quotient, rounded down; 0 for an integer divided by 0.",
    _floor_divide,
    "[7, -7], 2",
    "array([ 3, -4])",
)
mod = remainder = binary(
    "remainder",
    "The remainder of ``floor_divide``, with the sign of ``x2``.",
    _remainder,
    "[7, -7], 3",
    "array([1, 2])",
)
fmod = binary(
    "fmod",
    "The remainder of division towards zero, with the sign of ``x1``.",
    _fmod,
    "[7, -7], 3",
    "array([ 1, -1])",
)
divmod = universal(
    "divmod", "``floor_divide`` and ``remainder``.", _divmod, "[7, -7], 2", "[[3, -4], [1, 1]]"
)
negative = unary("negative", "``-x``.", arithmetic.negative, "[1, -2]", "array([-1,  2])")
positive = unary("positive", "``x`` itself.", _positive, "[1, -2]", "array([ 1, -2])")
reciprocal = unary(
    "reciprocal",
    "``1 / x``; for integers truncated, so 0 unless ``x`` is 1 or -1.",
    _reciprocal,
    "[2.0, 4.0]",
    "array([0.5 , 0.25])",
)
absolute = abs = unary(
    "absolute", "The magnitude; of a complex number a real one.", arithmetic.abs, "[-3, 4]", "array([3, 4])"
)
fabs = unary("fabs", "The magnitude of real numbers, as floats.", _fabs, "[-3, 4]", "array([3., 4.])")
sign = unary(
    "sign", "-1, 0 or 1; ``z / abs(z)`` of a complex number.", _sign, "[-3, 0, 5]", "array([-1,  0,  1])"
)
square = unary("square", "``x * x``.", lambda x: arithmetic.square(x), "[-3, 4]", "array([ 9, 16])")
maximum = binary("maximum", "The larger one; nan if one is.", _maximum, "[1, 5], 3", "array([3, 5])")
minimum = binary("minimum", "The smaller one; nan if one is.", _minimum, "[1, 5], 3", "array([1, 3])")
fmax = binary(
    "fmax",
    "The larger one; where one is nan, the other.",
    _fmax,
    "[1.0, float('nan')], 3.0",
    "array([3., 3.])",
)
fmin = binary(
    "fmin",
    "The smaller one; where one is nan, the other.",
    _fmin,
    "[1.0, float('nan')], 3.0",
    "array([1., 3.])",
)
gcd = binary("gcd", "The greatest common divisor of integers.", _gcd, "[12, 18], 8", "array([4, 2])")
lcm = binary("lcm", "The least common multiple of integers.", _lcm, "[4, 6], 10", "array([20, 30])")


# Powers, exponentials and logarithms

_LN2 = math.log(2.0)


def _power(x: Any, y: Any) -> Any:
    return powers.pow(x, y)


def _exp2(x: Any) -> Any:
    return exponential.exp(x * _LN2) if x.dtype.is_complex else exponentials.exp2(x)


def _logaddexp2(x: Any, y: Any) -> Any:
    high = arithmetic.maximum(x, y)
    low = -arithmetic.abs(x - y)
    result = high + exponential.log1p(exponentials.exp2(low)) / _LN2
    return where(comparison.equal(x, y), x + 1, result)


def _cbrt(x: Any) -> Any:
    """The cube root: by logarithm and exponential of the magnitude, then one Newton step."""
    size = arithmetic.abs(x)
    ok = comparison.isfinite(x) & comparison.not_equal(x, 0)
    safe = where(ok, size, ones_like(size))
    root = exponential.exp(powers.log(safe) / 3)
    root = root - (root - safe / (root * root)) / 3
    return where(ok, signs.copysign(root, x), x)


power = pow = binary("power", "``x1`` to the power ``x2``.", _power, "[2, 3], 2", "array([4, 9])")
float_power = binary(
    "float_power",
    "``x1`` to the power ``x2``, in float64 or complex128.",
    _power,
    "[2, 3], 2",
    "array([4., 9.])",
)
sqrt = unary("sqrt", "The square root.", powers.sqrt, "[4.0, 9.0]", "array([2., 3.])")
cbrt = unary("cbrt", "The cube root, which has the sign of ``x``.", _cbrt, "[0.0, -1.0]", "array([ 0., -1.])")
exp = unary("exp", "e to the power ``x``.", exponential.exp, "[0.0]", "array([1.])")
exp2 = unary("exp2", "2 to the power ``x``.", _exp2, "[0.0, 3.0]", "array([1., 8.])")
expm1 = unary("expm1", "``exp(x) - 1``, exact near 0.", exponential.expm1, "[0.0]", "array([0.])")
log = unary("log", "The natural logarithm.", powers.log, "[1.0]", "array([0.])")
log2 = unary("log2", "The logarithm to base 2.", logarithms.log2, "[1.0, 8.0]", "array([0., 3.])")
log10 = unary("log10", "The logarithm to base 10.", logarithms.log10, "[1.0]", "array([0.])")
log1p = unary("log1p", "``log(1 + x)``, exact near 0.", exponential.log1p, "[0.0]", "array([0.])")
logaddexp = binary(
    "logaddexp",
    "``log(exp(x1) + exp(x2))``, without overflow.",
    exponential.logaddexp,
    "[-1e9], 3.0",
    "array([3.])",
)
logaddexp2 = binary(
    "logaddexp2", "``log2(2**x1 + 2**x2)``, without overflow.", _logaddexp2, "[1.0], 1.0", "array([2.])"
)


# Angles


def _radians(x: Any) -> Any:
    return x * (math.pi / 180.0)


def _degrees(x: Any) -> Any:
    return x * (180.0 / math.pi)


sin = unary("sin", "The sine.", circular.sin, "[0.0]", "array([0.])")
cos = unary("cos", "The cosine.", circular.cos, "[0.0]", "array([1.])")
tan = unary("tan", "The tangent.", circular.tan, "[0.0]", "array([0.])")
arcsin = asin = unary(
    "arcsin", "The angle in [-pi/2, pi/2] of a sine.", circular.asin, "[0.0]", "array([0.])"
)
arccos = acos = unary("arccos", "The angle in [0, pi] of a cosine.", circular.acos, "[1.0]", "array([0.])")
arctan = atan = unary(
    "arctan", "The angle in [-pi/2, pi/2] of a tangent.", circular.atan, "[0.0]", "array([0.])"
)
arctan2 = atan2 = binary(
    "arctan2", "The angle in [-pi, pi] of the point (x2, x1).", circular.atan2, "[0.0], [1.0]", "array([0.])"
)
sinh = unary("sinh", "The hyperbolic sine.", circular.sinh, "[0.0]", "array([0.])")
cosh = unary("cosh", "The hyperbolic cosine.", circular.cosh, "[0.0]", "array([1.])")
tanh = unary("tanh", "The hyperbolic tangent.", circular.tanh, "[0.0]", "array([0.])")
arcsinh = asinh = unary("arcsinh", "The inverse of ``sinh``.", circular.asinh, "[0.0]", "array([0.])")
arccosh = acosh = unary("arccosh", "The inverse of ``cosh``.", circular.acosh, "[1.0]", "array([0.])")
arctanh = atanh = unary("arctanh", "The inverse of ``tanh``.", circular.atanh, "[0.0]", "array([0.])")
hypot = binary(
    "hypot", "``sqrt(x1**2 + x2**2)``, without overflow.", logarithms.hypot, "[3.0], [4.0]", "array([5.])"
)
deg2rad = unary("deg2rad", "Degrees as radians.", _radians, "[0.0]", "array([0.])")
radians = unary("radians", "Degrees as radians.", _radians, "[0.0]", "array([0.])")
rad2deg = unary("rad2deg", "Radians as degrees.", _degrees, "[0.0]", "array([0.])")
degrees = unary("degrees", "Radians as degrees.", _degrees, "[0.0]", "array([0.])")


# Rounding, signs and parts of floats


def _rint(x: Any) -> Any:
    if x.dtype.is_complex:
        return complex_numbers.complex(
            rounding.round(complex_numbers.real(x)), rounding.round(complex_numbers.imag(x))
        )
    return rounding.round(x)


def _spacing(x: Any) -> Any:
    return next_float(x, signs.copysign(ones_like(x) * np.inf, x)) - x


def _modf(x: Any) -> Any:
    whole = rounding.trunc(x)
    fraction = where(comparison.isinf(x), zeros_like(x), x - whole)
    return signs.copysign(fraction, x), signs.copysign(whole, x)


def _times_power_of_two(x: Any, exponent: Any) -> Any:
    """``x * 2**exponent`` in three steps, so that no intermediate result overflows unless the result does."""
    for step in (3, 2, 1):
        part = exponent if step == 1 else arithmetic.floordiv(exponent, zeros_like(exponent) + step)
        x = multiply_no_nan(exponentials.exp2(cast(part, x.dtype)), x)
        exponent = exponent - part
    return x


def _ldexp(x: Any, exponent: Any) -> Any:
    # beyond four times the range of exponents the result is 0 or inf anyhow
    exponent_limit = 4 * 2 ** (x.dtype.size + 5 if x.dtype.size < 8 else 11)
    limited = arithmetic.minimum(arithmetic.maximum(exponent, -exponent_limit), exponent_limit)
    return _times_power_of_two(x, limited)


def _frexp(x: Any) -> Any:
    ok = comparison.isfinite(x) & comparison.not_equal(x, 0)
    safe = where(ok, x, ones_like(x))
    exponent = cast(rounding.floor(logarithms.log2(arithmetic.abs(safe))) + 1, np.int32)
    mantissa = _times_power_of_two(safe, -exponent)
    over = arithmetic.abs(mantissa) >= 1
    under = arithmetic.abs(mantissa) < 0.5
    mantissa = where(over, mantissa / 2, where(under, mantissa * 2, mantissa))
    exponent = exponent + cast(over, np.int32) - cast(under, np.int32)
    return where(ok, mantissa, x), where(ok, exponent, zeros_like(exponent))


def _heaviside(x: Any, at_zero: Any) -> Any:
    step = where(comparison.less(x, 0), zeros_like(x), ones_like(x))
    return where(comparison.isnan(x), x, where(comparison.equal(x, 0), at_zero, step))


def _conjugate(x: Any) -> Any:
    return complex_numbers.conj(x) if x.dtype.is_complex else identity(x)


floor = unary(
    "floor", "The largest integer not above ``x``.", rounding.floor, "[-1.5, 1.5]", "array([-2.,  1.])"
)
ceil = unary(
    "ceil", "The smallest integer not below ``x``.", rounding.ceil, "[-1.5, 1.5]", "array([-1.,  2.])"
)
trunc = unary("trunc", "The integer part.", rounding.trunc, "[-1.5, 1.5]", "array([-1.,  1.])")
rint = unary(
    "rint", "The nearest integer; halves go to the even one.", _rint, "[1.5, 2.5]", "array([2., 2.])"
)
copysign = binary(
    "copysign",
    "The magnitude of ``x1`` with the sign of ``x2``.",
    signs.copysign,
    "[1.0, 2.0], -0.0",
    "array([-1., -2.])",
)
signbit = unary(
    "signbit",
    "Whether the sign is negative; -0.0 has a negative sign.",
    signs.signbit,
    "[-0.0, 1.0]",
    "array([ True, False])",
)
modf = universal(
    "modf", "The fraction and the integer part.", _modf, "[1.5, -1.5]", "[[0.5, -0.5], [1.0, -1.0]]"
)
frexp = universal(
    "frexp",
    "The mantissa in [0.5, 1) and the exponent of 2: ``x = mantissa * 2**exponent``.",
    _frexp,
    "[12.0]",
    "[[0.75], [4]]",
)
ldexp = binary("ldexp", "``x1 * 2**x2``.", _ldexp, "[0.75], 4", "array([12.])")
nextafter = binary(
    "nextafter", "The next float after ``x1`` towards ``x2``.", next_float, "[1.0], 2.0", "array([1.])"
)
spacing = unary(
    "spacing", "The distance to the next float away from 0.", _spacing, "[1.0]", "array([2.22044605e-16])"
)
heaviside = binary(
    "heaviside",
    "0 where ``x1`` is negative, 1 where it is positive, ``x2`` where it is 0.",
    _heaviside,
    "[-1.0, 0.0, 2.0], 0.5",
    "array([0. , 0.5, 1. ])",
)
conjugate = conj = unary("conjugate", "The complex conjugate.", _conjugate, "[1 + 2j]", "array([1.-2.j])")
