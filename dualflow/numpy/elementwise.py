"""NumPy's universal functions as functions of ops."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dualflow.core.dtypes import bool_
from dualflow.function.control.control_flow import while_loop
from dualflow.numpy.ufuncs import universal
from dualflow.ops import arithmetic, bitwise, comparison, complex_numbers, exponential, powers, rounding
from dualflow.ops import trigonometric as circular
from dualflow.ops.arithmetic import multiply_no_nan
from dualflow.ops.conversion import cast, identity
from dualflow.ops.creation import ones_like, zeros_like
from dualflow.ops.elementary import values
from dualflow.ops.floating_point import exponentials, logarithms, parts
from dualflow.ops.reduction import reduce_any
from dualflow.ops.selection import where


def _as_bool(x: Any) -> Any:
    return x if x.dtype.is_bool else comparison.not_equal(x, zeros_like(x))


# Arithmetic


def _add(x: Any, y: Any) -> Any:
    return comparison.logical_or(x, y) if x.dtype.is_bool else arithmetic.add(x, y)


def _multiply(x: Any, y: Any) -> Any:
    return comparison.logical_and(x, y) if x.dtype.is_bool else arithmetic.multiply(x, y)


def _nonzero(y: Any) -> tuple[Any, Any]:
    """Whether integers can be divided by, and the integers with 1 for the others."""
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
    return where(comparison.equal(arithmetic.abs(x), 1), x, zeros_like(x))  # what else has an integer inverse


def _fabs(x: Any) -> Any:
    return arithmetic.abs(x)


def _sign(x: Any) -> Any:
    return arithmetic.sign(x)


def _maximum(x: Any, y: Any) -> Any:
    if x.dtype.is_bool:
        return comparison.logical_or(x, y)
    return _greater_of(x, y, False) if x.dtype.is_complex else arithmetic.maximum(x, y)


def _minimum(x: Any, y: Any) -> Any:
    if x.dtype.is_bool:
        return comparison.logical_and(x, y)
    return _greater_of(x, y, True) if x.dtype.is_complex else arithmetic.minimum(x, y)


def _greater_of(x: Any, y: Any, smaller: bool) -> Any:
    """Of complex numbers the later one in the order of real and imaginary parts, or the earlier; nan wins."""
    first = (_greater_equal(y, x) if smaller else _greater_equal(x, y)) | comparison.isnan(x)
    return where(first, x, y)


def _fmax(x: Any, y: Any) -> Any:
    return _ignoring_nan(_maximum, x, y)


def _fmin(x: Any, y: Any) -> Any:
    return _ignoring_nan(_minimum, x, y)


def _ignoring_nan(extreme: Any, x: Any, y: Any) -> Any:
    if not x.dtype.is_inexact:
        return extreme(x, y)
    return where(comparison.isnan(x), y, where(comparison.isnan(y), x, extreme(x, y)))


def _gcd(x: Any, y: Any) -> Any:
    """Euclid's algorithm, on all elements until none is left."""
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


add = universal("add", "The sum.", _add)
subtract = universal("subtract", "The difference.", arithmetic.subtract)
multiply = universal("multiply", "The product.", _multiply)
divide = true_divide = universal("divide", "The quotient; that of integers is a float.", arithmetic.divide)
floor_divide = universal(
    "floor_divide", "The quotient rounded down; of an integer by 0 it is 0.", _floor_divide
)
mod = remainder = universal("remainder", "What ``floor_divide`` leaves, with the sign of ``y``.", _remainder)
fmod = universal("fmod", "What dividing towards zero leaves, with the sign of ``x``.", _fmod)
divmod = universal("divmod", "``floor_divide`` and ``remainder``.", _divmod)
negative = universal("negative", "``-x``.", arithmetic.negative)
positive = universal("positive", "``x`` itself.", _positive)
reciprocal = universal(
    "reciprocal", "``1 / x``; of integers, that of 1 and -1, and 0 of others.", _reciprocal
)
absolute = abs = universal("absolute", "The magnitude; of a complex number a real one.", arithmetic.abs)
fabs = universal("fabs", "The magnitude of real numbers, as floats.", _fabs)
sign = universal("sign", "-1, 0 or 1; ``z / abs(z)`` of a complex number.", _sign)
square = universal("square", "``x * x``.", lambda x: arithmetic.square(x))
maximum = universal("maximum", "The larger one; nan if one is.", _maximum)
minimum = universal("minimum", "The smaller one; nan if one is.", _minimum)
fmax = universal("fmax", "The larger one; where one is nan, the other.", _fmax)
fmin = universal("fmin", "The smaller one; where one is nan, the other.", _fmin)
gcd = universal("gcd", "The greatest common divisor of integers.", _gcd)
lcm = universal("lcm", "The least common multiple of integers.", _lcm)


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
    """The root of the magnitude, and a step of Newton's; the sign is put back."""
    size = arithmetic.abs(x)
    ok = comparison.isfinite(x) & comparison.not_equal(x, 0)
    safe = where(ok, size, ones_like(size))
    root = exponential.exp(powers.log(safe) / 3)
    root = root - (root - safe / (root * root)) / 3
    return where(ok, parts.copysign(root, x), x)


power = pow = universal("power", "``x`` to the power ``y``.", _power)
float_power = universal("float_power", "``x`` to the power ``y``, in float64 or complex128.", _power)
sqrt = universal("sqrt", "The square root.", powers.sqrt)
cbrt = universal("cbrt", "The cube root, which has the sign of ``x``.", _cbrt)
exp = universal("exp", "e to the power ``x``.", exponential.exp)
exp2 = universal("exp2", "2 to the power ``x``.", _exp2)
expm1 = universal("expm1", "``exp(x) - 1``, exact near 0.", exponential.expm1)
log = universal("log", "The natural logarithm.", powers.log)
log2 = universal("log2", "The logarithm to base 2.", logarithms.log2)
log10 = universal("log10", "The logarithm to base 10.", logarithms.log10)
log1p = universal("log1p", "``log(1 + x)``, exact near 0.", exponential.log1p)
logaddexp = universal("logaddexp", "``log(exp(x) + exp(y))``, without overflow.", exponential.logaddexp)
logaddexp2 = universal("logaddexp2", "``log2(2**x + 2**y)``, without overflow.", _logaddexp2)


# Angles


def _radians(x: Any) -> Any:
    return x * (math.pi / 180.0)


def _degrees(x: Any) -> Any:
    return x * (180.0 / math.pi)


sin = universal("sin", "The sine.", circular.sin)
cos = universal("cos", "The cosine.", circular.cos)
tan = universal("tan", "The tangent.", circular.tan)
arcsin = asin = universal("arcsin", "The angle in [-pi/2, pi/2] of a sine.", circular.asin)
arccos = acos = universal("arccos", "The angle in [0, pi] of a cosine.", circular.acos)
arctan = atan = universal("arctan", "The angle in [-pi/2, pi/2] of a tangent.", circular.atan)
arctan2 = atan2 = universal("arctan2", "The angle in [-pi, pi] of the point (x2, x1).", circular.atan2)
sinh = universal("sinh", "The hyperbolic sine.", circular.sinh)
cosh = universal("cosh", "The hyperbolic cosine.", circular.cosh)
tanh = universal("tanh", "The hyperbolic tangent.", circular.tanh)
arcsinh = asinh = universal("arcsinh", "The inverse of ``sinh``.", circular.asinh)
arccosh = acosh = universal("arccosh", "The inverse of ``cosh``.", circular.acosh)
arctanh = atanh = universal("arctanh", "The inverse of ``tanh``.", circular.atanh)
hypot = universal("hypot", "``sqrt(x**2 + y**2)``, without overflow.", logarithms.hypot)
deg2rad = universal("deg2rad", "Degrees as radians.", _radians)
radians = universal("radians", "Degrees as radians.", _radians)
rad2deg = universal("rad2deg", "Radians as degrees.", _degrees)
degrees = universal("degrees", "Radians as degrees.", _degrees)


# Rounding, signs and parts of floats


def _rint(x: Any) -> Any:
    if x.dtype.is_complex:
        return complex_numbers.complex(
            rounding.round(complex_numbers.real(x)), rounding.round(complex_numbers.imag(x))
        )
    return rounding.round(x)


def _spacing(x: Any) -> Any:
    return values.nextafter(x, parts.copysign(ones_like(x) * np.inf, x)) - x


def _modf(x: Any) -> Any:
    whole = rounding.trunc(x)
    fraction = where(comparison.isinf(x), zeros_like(x), x - whole)
    return parts.copysign(fraction, x), parts.copysign(whole, x)


def _scaled(x: Any, exponent: Any) -> Any:
    """``x * 2**exponent`` in steps, none of which leaves the floats where the result doesn't."""
    for step in (3, 2, 1):
        part = exponent if step == 1 else arithmetic.floordiv(exponent, zeros_like(exponent) + step)
        x = multiply_no_nan(exponentials.exp2(cast(part, x.dtype)), x)
        exponent = exponent - part
    return x


def _ldexp(x: Any, exponent: Any) -> Any:
    bound = 4 * 2 ** (x.dtype.size + 5 if x.dtype.size < 8 else 11)
    return _scaled(x, arithmetic.minimum(arithmetic.maximum(exponent, -bound), bound))


def _frexp(x: Any) -> Any:
    ok = comparison.isfinite(x) & comparison.not_equal(x, 0)
    safe = where(ok, x, ones_like(x))
    exponent = cast(rounding.floor(logarithms.log2(arithmetic.abs(safe))) + 1, np.int32)
    mantissa = _scaled(safe, -exponent)
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


floor = universal("floor", "The largest integer not above ``x``.", rounding.floor)
ceil = universal("ceil", "The smallest integer not below ``x``.", rounding.ceil)
trunc = universal("trunc", "The integer part.", rounding.trunc)
rint = universal("rint", "The nearest integer; halves go to the even one.", _rint)
copysign = universal("copysign", "The magnitude of ``x`` with the sign of ``y``.", parts.copysign)
signbit = universal("signbit", "Whether the sign is negative, which -0.0 has too.", parts.signbit)
modf = universal("modf", "The fraction and the integer part.", _modf)
frexp = universal("frexp", "A fraction in [0.5, 1) and the power of 2 to multiply it by.", _frexp)
ldexp = universal("ldexp", "``x * 2**exponent``.", _ldexp)
nextafter = universal("nextafter", "The float that follows ``x`` on the way to ``y``.", values.nextafter)
spacing = universal("spacing", "The distance to the float that follows, away from 0.", _spacing)
heaviside = universal("heaviside", "0 below zero, 1 above it, and the second input at zero.", _heaviside)
conjugate = conj = universal("conjugate", "The complex conjugate.", _conjugate)


# Comparisons and logic


def _lexical(strict: Any) -> Any:
    """A comparison of complex numbers by their real parts, and where these are equal by the others."""

    def compare(x: Any, y: Any) -> Any:
        if not x.dtype.is_complex:
            return strict(x, y)
        a, b = complex_numbers.real(x), complex_numbers.real(y)
        c, d = complex_numbers.imag(x), complex_numbers.imag(y)
        apart = comparison.not_equal(a, b)
        defined = comparison.equal(c, c) & comparison.equal(d, d) & comparison.equal(a, a)
        return where(apart, strict(a, b) & defined, strict(c, d) & defined)

    return compare


_less, _less_equal = _lexical(comparison.less), _lexical(comparison.less_equal)
_greater, _greater_equal = _lexical(comparison.greater), _lexical(comparison.greater_equal)


def _logical(of_bools: Any) -> Any:
    return lambda *x: of_bools(*[_as_bool(v) for v in x])


def _finite(x: Any) -> Any:
    return comparison.isfinite(x) if x.dtype.is_inexact else cast(ones_like(x), bool_)


def _isnan(x: Any) -> Any:
    return comparison.isnan(x) if x.dtype.is_inexact else cast(zeros_like(x), bool_)


def _isinf(x: Any) -> Any:
    return comparison.isinf(x) if x.dtype.is_inexact else cast(zeros_like(x), bool_)


def _exactly(compare: Any, mixed: Any) -> Any:
    """A comparison that NumPy also makes of int64 with uint64, of which no dtype holds all."""

    def call(x: Any, y: Any) -> Any:
        if x.dtype is y.dtype:
            return compare(x, y)
        return mixed(x, y)

    return call


def _signed_with_unsigned(compare: Any, below: bool, above: bool) -> Any:
    """``compare`` of int64 with uint64; ``below`` is the result for a negative ``x``, ``above`` for ``y``."""

    def mixed(x: Any, y: Any) -> Any:
        unsigned = x if x.dtype.is_unsigned else y
        signed = y if x.dtype.is_unsigned else x
        negative_one = comparison.less(signed, 0)
        lifted = cast(signed, unsigned.dtype)
        left, right = (unsigned, lifted) if x is unsigned else (lifted, unsigned)
        decided = above if x is unsigned else below
        return where(
            negative_one,
            cast(ones_like(left), bool_) if decided else cast(zeros_like(left), bool_),
            compare(left, right),
        )

    return mixed


equal = universal(
    "equal",
    "Whether two are equal.",
    _exactly(comparison.equal, _signed_with_unsigned(comparison.equal, False, False)),
)
not_equal = universal(
    "not_equal",
    "Whether two differ.",
    _exactly(comparison.not_equal, _signed_with_unsigned(comparison.not_equal, True, True)),
)
less = universal(
    "less",
    "Whether ``x < y``.",
    _exactly(_less, _signed_with_unsigned(comparison.less, True, False)),
)
less_equal = universal(
    "less_equal",
    "Whether ``x <= y``.",
    _exactly(_less_equal, _signed_with_unsigned(comparison.less_equal, True, False)),
)
greater = universal(
    "greater",
    "Whether ``x > y``.",
    _exactly(_greater, _signed_with_unsigned(comparison.greater, False, True)),
)
greater_equal = universal(
    "greater_equal",
    "Whether ``x >= y``.",
    _exactly(_greater_equal, _signed_with_unsigned(comparison.greater_equal, False, True)),
)
logical_and = universal("logical_and", "Whether both are true (not 0).", _logical(comparison.logical_and))
logical_or = universal("logical_or", "Whether one is true (not 0).", _logical(comparison.logical_or))
logical_xor = universal(
    "logical_xor", "Whether exactly one is true (not 0).", _logical(comparison.logical_xor)
)
logical_not = universal("logical_not", "Whether ``x`` is false (0).", _logical(comparison.logical_not))
isfinite = universal("isfinite", "Whether ``x`` is neither inf nor nan.", _finite)
isinf = universal("isinf", "Whether ``x`` is inf or -inf.", _isinf)
isnan = universal("isnan", "Whether ``x`` is nan.", _isnan)


# Bits


def _invert(x: Any) -> Any:
    return comparison.logical_not(x) if x.dtype.is_bool else bitwise.invert(x)


def _bitwise_count(x: Any) -> Any:
    """The number of bits that are set, added up in pairs, fours and bytes."""
    size = 8 * x.dtype.size
    unsigned = cast(arithmetic.abs(x) if x.dtype.kind == "i" else x, f"uint{size}")

    def mask(byte: int) -> int:
        return int.from_bytes(bytes([byte]) * (size // 8), "little")

    def constant(value: int) -> Any:
        return np.array(value, f"uint{size}")

    def down(v: Any, places: int) -> Any:
        return bitwise.right_shift(v, constant(places))

    v = unsigned - (down(unsigned, 1) & constant(mask(0x55)))
    v = (v & constant(mask(0x33))) + (down(v, 2) & constant(mask(0x33)))
    v = (v + down(v, 4)) & constant(mask(0x0F))
    total = zeros_like(v)
    for byte in range(size // 8):
        total = total + (down(v, 8 * byte) & constant(0xFF))
    return total


bitwise_and = universal("bitwise_and", "The bits that are set in both.", bitwise.bitwise_and)
bitwise_or = universal("bitwise_or", "The bits that are set in one of them.", bitwise.bitwise_or)
bitwise_xor = universal("bitwise_xor", "The bits that are set in exactly one.", bitwise.bitwise_xor)
bitwise_not = bitwise_invert = invert = universal(
    "invert", "Every bit flipped; of bools, the opposite.", _invert
)
left_shift = bitwise_left_shift = universal(
    "left_shift", "The bits moved up; 0 when none is left.", bitwise.left_shift
)
right_shift = bitwise_right_shift = universal(
    "right_shift", "The bits moved down, the sign filling in.", bitwise.right_shift
)
bitwise_count = universal("bitwise_count", "How many bits of the magnitude are set.", _bitwise_count)
