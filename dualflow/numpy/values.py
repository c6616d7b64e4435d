"""Comparisons with a tolerance, parts of numbers, rounding and limits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dualflow.core.errors import DTypeError
from dualflow.core.tracebacks import make_entries
from dualflow.numpy.elementwise import arctan2
from dualflow.numpy.operands import agreed, inexact, refuse, tensor, to
from dualflow.ops import complex_numbers, rounding
from dualflow.ops.arithmetic import abs as magnitude
from dualflow.ops.arithmetic import maximum, minimum
from dualflow.ops.comparison import equal, isfinite, isinf, isnan, logical_and, logical_or, not_equal
from dualflow.ops.conversion import identity
from dualflow.ops.creation import ones_like, zeros_like
from dualflow.ops.reduction import reduce_all
from dualflow.ops.selection import where as choose
from dualflow.ops.special_functions.bessel import bessel_i0
from dualflow.ops.static import known_value, static_int
from dualflow.ops.tensor import Tensor
from dualflow.ops.trigonometric import atan2, sin


def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Tensor:
    """Whether ``abs(a - b) <= atol + rtol * abs(b)``; infinities are close if they are equal.

    >>> import dualflow as df
    >>> df.numpy.isclose([1.0, 1.1], 1.0 + 1e-9).numpy()
    array([ True, False])
    """
    x, y = agreed(tensor(a), tensor(b))
    if not x.dtype.is_inexact:
        x, y = to(x, np.float64), to(y, np.float64)
    reach = magnitude(y) * rtol + atol
    near = logical_and(magnitude(x - y) <= reach, isfinite(y))
    close = logical_or(near, equal(x, y))
    return logical_or(close, logical_and(isnan(x), isnan(y))) if equal_nan else close


def allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Tensor:
    """Whether all elements are close; see :func:`isclose`."""
    return reduce_all(isclose(a, b, rtol, atol, equal_nan))


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Tensor:
    """Whether both have one shape and equal elements.

    >>> import dualflow as df
    >>> bool(df.numpy.array_equal([1, 2], [1, 2])), bool(df.numpy.array_equal([1, 2], [[1, 2]]))
    (True, False)
    """
    x, y = agreed(tensor(a1), tensor(a2))
    if x.shape != y.shape:
        return tensor(False)
    same = equal(x, y)
    if equal_nan and x.dtype.is_inexact:
        same = logical_or(same, logical_and(isnan(x), isnan(y)))
    return reduce_all(same)


def array_equiv(a1: Any, a2: Any) -> Tensor:
    """Whether both broadcast to one shape, and have equal elements there."""
    x, y = agreed(tensor(a1), tensor(a2))
    try:
        return reduce_all(equal(x, y))
    except ValueError:
        return tensor(False)


def isreal(x: Any) -> Tensor:
    """Whether the imaginary part is 0, element by element."""
    return equal(imag(x), 0)


def iscomplex(x: Any) -> Tensor:
    """Whether the imaginary part is not 0, element by element."""
    return not_equal(imag(x), 0)


def iscomplexobj(x: Any) -> bool:
    """Whether the dtype is one of complex numbers."""
    return tensor(x).dtype.is_complex


def isrealobj(x: Any) -> bool:
    """Whether the dtype is not one of complex numbers."""
    return not iscomplexobj(x)


def isscalar(element: Any) -> bool:
    """Whether ``element`` is a number of Python's or NumPy's; a tensor is none."""
    return np.isscalar(element)


def isposinf(x: Any, out: Any = None) -> Tensor:
    """Whether elements are inf."""
    refuse("isposinf", out=out)
    return _infinite(x, 1)


def isneginf(x: Any, out: Any = None) -> Tensor:
    """Whether elements are -inf."""
    refuse("isneginf", out=out)
    return _infinite(x, -1)


def _infinite(x: Any, sign: int) -> Tensor:
    v = tensor(x)
    if v.dtype.is_complex:
        raise DTypeError("Complex numbers have no sign; use their real or imaginary parts.")
    return equal(v, sign * math.inf) if v.dtype.is_floating else zeros_like(v, bool)


def iterable(y: Any) -> bool:
    """Whether ``y`` can be iterated over."""
    return bool(tensor(y).shape) if hasattr(y, "dtype") else np.iterable(y)


# Parts


def real(val: Any) -> Tensor:
    """The real part."""
    x = tensor(val)
    return complex_numbers.real(x) if x.dtype.is_complex else identity(x)


def imag(val: Any) -> Tensor:
    """The imaginary part; of real numbers 0."""
    x = tensor(val)
    return complex_numbers.imag(x) if x.dtype.is_complex else zeros_like(x)


def angle(z: Any, deg: bool = False) -> Tensor:
    """The angle of complex numbers, in radians, or in degrees.

    >>> import dualflow as df
    >>> float(df.numpy.angle(1j, deg=True))
    90.0
    """
    x = tensor(z)
    radians = atan2(imag(x), real(x)) if x.dtype.is_complex else arctan2(0, x)
    return radians * (180 / math.pi) if deg else radians


def real_if_close(a: Any, tol: Any = 100) -> Tensor:
    """The real part where all imaginary parts are within ``tol`` rounding errors of 0, else ``a``.

    Raises:
        DTypeError: a symbol, of which the dtype of the result depends on the elements.
    """
    x = tensor(a)
    if not x.dtype.is_complex:
        return x
    static = known_value(x)
    if static is None:
        raise DTypeError(
            "real_if_close's dtype depends on the elements, which have no values in a trace; use real."
        )
    return tensor(np.real_if_close(static, tol)) if np.isrealobj(np.real_if_close(static, tol)) else x


# Rounding and limits


def round(a: Any, decimals: Any = 0, out: Any = None) -> Tensor:
    """The elements rounded to ``decimals`` digits after the point; halves go to the even neighbour.

    >>> import dualflow as df
    >>> df.numpy.round([1.25, 2.5], 1).numpy()
    array([1.2, 2.5])
    """
    refuse("round", out=out)
    x, digits = tensor(a), static_int(decimals, "decimals")
    if x.dtype.is_bool and digits:
        raise DTypeError("Bools have no decimals to round to; cast them to numbers.")
    if x.dtype.is_bool:
        return to(x, np.float16)
    if x.dtype.is_complex:
        return complex_numbers.complex(round(real(x), digits), round(imag(x), digits))
    if x.dtype.is_integer:
        if digits >= 0:
            return identity(x)
        unit = 10**-digits
        return to(rounding.round(to(x, np.float64) / unit) * unit, x.dtype)
    if not digits:
        return rounding.round(x)
    unit = float(10 ** abs(digits))
    return rounding.round(x * unit) / unit if digits > 0 else rounding.round(x / unit) * unit


def around(a: Any, decimals: Any = 0, out: Any = None) -> Tensor:
    """The elements rounded to ``decimals`` digits after the point; see :func:`round`."""
    return round(a, decimals, out)


def fix(x: Any, out: Any = None) -> Tensor:
    """The integer part."""
    refuse("fix", out=out)
    return rounding.trunc(tensor(x))


def clip(
    a: Any,
    a_min: Any = None,
    a_max: Any = None,
    out: Any = None,
    *,
    min: Any = None,
    max: Any = None,
    **kwargs: Any,
) -> Tensor:
    """``a``, but not below ``a_min`` and not above ``a_max``; a limit of None is none.

    >>> import dualflow as df
    >>> df.numpy.clip([1, 5, 9], 2, 6).numpy()
    array([2, 5, 6])
    """
    refuse("clip", out=out, **kwargs)
    low, high = (a_min if a_min is not None else min), (a_max if a_max is not None else max)
    x = tensor(a)
    if low is not None and high is not None:
        x, lower, upper = agreed(x, low, high)
        return minimum(maximum(x, lower), upper)
    if low is not None:
        x, lower = agreed(x, low)
        return maximum(x, lower)
    if high is not None:
        x, upper = agreed(x, high)
        return minimum(x, upper)
    return identity(x)


def nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Tensor:
    """Numbers in place of nan and the infinities, which by default are the largest of the dtype.

    >>> import dualflow as df
    >>> df.numpy.nan_to_num([float("nan"), float("inf")], posinf=9.0).numpy()
    array([0., 9.])
    """
    v = tensor(x)
    if v.dtype.is_complex:
        first, second = (nan_to_num(part, copy, nan, posinf, neginf) for part in (real(v), imag(v)))
        return complex_numbers.complex(first, second)
    if not v.dtype.is_floating:
        return identity(v)
    high = v.dtype.max if posinf is None else posinf
    low = v.dtype.min if neginf is None else neginf
    finite = choose(isnan(v), tensor(nan, v.dtype), v)
    at_infinity = choose(v > 0, tensor(high, v.dtype), tensor(low, v.dtype))
    return choose(isinf(v), at_infinity, finite)


def i0(x: Any) -> Tensor:
    """The modified Bessel function of order 0."""
    return bessel_i0(inexact(x))


def sinc(x: Any) -> Tensor:
    """``sin(pi * x) / (pi * x)``, and 1 at 0.

    >>> import dualflow as df
    >>> df.numpy.sinc([0.0, 0.5]).numpy().round(4)
    array([1.    , 0.6366])
    """
    v = inexact(x) * math.pi
    zero = equal(v, 0)
    safe = choose(zero, ones_like(v), v)
    return choose(zero, ones_like(v), sin(safe) / safe)


make_entries(globals())
