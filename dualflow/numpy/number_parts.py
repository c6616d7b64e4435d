"""Tests and parts of numbers, rounding and limits."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core.errors import DTypeError
from dualflow.core.tracebacks import make_entries
from dualflow.numpy.docstrings import complete_docstrings
from dualflow.numpy.elementwise import arctan2
from dualflow.numpy.operands import inexact, promote_together, reject_unsupported, tensor, to
from dualflow.ops import complex_numbers, rounding
from dualflow.ops.arithmetic import maximum, minimum
from dualflow.ops.comparison import equal, isinf, isnan, not_equal
from dualflow.ops.conversion import identity
from dualflow.ops.creation import ones_like, zeros_like
from dualflow.ops.selection import where as where_op
from dualflow.ops.special_functions.bessel import bessel_i0
from dualflow.ops.static import static_int, static_value
from dualflow.ops.tensor import Tensor
from dualflow.ops.trigonometric import atan2, sin

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike


def isreal(x: TensorLike) -> Tensor:
    """Whether the imaginary part of each element is 0.

    Returns:
        A bool tensor with the shape of ``x``.

    >>> import dualflow as df
    >>> df.numpy.isreal([1 + 0j, 2j]).numpy()
    array([ True, False])
    """
    return equal(imag(x), 0)


def iscomplex(x: TensorLike) -> Tensor:
    """Whether the imaginary part of each element is not 0.

    Returns:
        A bool tensor with the shape of ``x``.

    >>> import dualflow as df
    >>> df.numpy.iscomplex([1 + 0j, 2j]).numpy()
    array([False,  True])
    """
    return not_equal(imag(x), 0)


def iscomplexobj(x: TensorLike) -> bool:
    """Whether the dtype is complex.

    Returns:
        A Python bool.

    >>> import dualflow as df
    >>> df.numpy.iscomplexobj([1j])
    True
    """
    return tensor(x).dtype.is_complex


def isrealobj(x: TensorLike) -> bool:
    """Whether the dtype is not complex.

    Returns:
        A Python bool.

    >>> import dualflow as df
    >>> df.numpy.isrealobj([1j])
    False
    """
    return not iscomplexobj(x)


def isscalar(element: object) -> bool:
    """Whether ``element`` is a number of Python's or NumPy's; False for tensors.

    Raises nothing.

    Args:
        element: any object.

    Returns:
        A Python bool.

    >>> import dualflow as df
    >>> df.numpy.isscalar(3.0), df.numpy.isscalar(df.constant(3.0))
    (True, False)
    """
    return np.isscalar(element)


def isposinf(x: TensorLike, out: None = None) -> Tensor:
    """Whether each element is inf.

    Args:
        x: real numbers of any shape.

    Returns:
        A bool tensor with the shape of ``x``.

    Raises:
        DTypeError: ``x`` is complex.

    >>> import dualflow as df
    >>> df.numpy.isposinf([1.0, float("inf")]).numpy()
    array([False,  True])
    """
    reject_unsupported("isposinf", out=out)
    return _infinite(x, 1)


def isneginf(x: TensorLike, out: None = None) -> Tensor:
    """Whether each element is -inf.

    Args:
        x: real numbers of any shape.

    Returns:
        A bool tensor with the shape of ``x``.

    Raises:
        DTypeError: ``x`` is complex.

    >>> import dualflow as df
    >>> df.numpy.isneginf([1.0, float("-inf")]).numpy()
    array([False,  True])
    """
    reject_unsupported("isneginf", out=out)
    return _infinite(x, -1)


def _infinite(x: Any, sign: int) -> Tensor:
    v = tensor(x)
    if v.dtype.is_complex:
        raise DTypeError("Complex numbers have no sign; use their real or imaginary parts.")
    return equal(v, sign * math.inf) if v.dtype.is_floating else zeros_like(v, bool)


def iterable(y: TensorLike) -> bool:
    """Whether ``y`` can be iterated over.

    Raises nothing.

    Args:
        y: any object.

    Returns:
        A Python bool; False for tensors without axes.

    >>> import dualflow as df
    >>> df.numpy.iterable([1, 2]), df.numpy.iterable(3)
    (True, False)
    """
    return bool(tensor(y).shape) if hasattr(y, "dtype") else np.iterable(y)


# Parts


def real(val: TensorLike) -> Tensor:
    """The real part of each element.

    Args:
        val: numbers of any shape.

    Returns:
        A tensor with the shape of ``val``, and its real dtype.

    Raises:
        DTypeError: ``val`` can't become a tensor.

    >>> import dualflow as df
    >>> df.numpy.real([1 + 2j]).numpy()
    array([1.])
    """
    x = tensor(val)
    return complex_numbers.real(x) if x.dtype.is_complex else identity(x)


def imag(val: TensorLike) -> Tensor:
    """The imaginary part of each element; 0 for real numbers.

    Args:
        val: numbers of any shape.

    Returns:
        A tensor with the shape of ``val``, and its real dtype.

    Raises:
        DTypeError: ``val`` can't become a tensor.

    >>> import dualflow as df
    >>> df.numpy.imag([1 + 2j]).numpy()
    array([2.])
    """
    x = tensor(val)
    return complex_numbers.imag(x) if x.dtype.is_complex else zeros_like(x)


def angle(z: TensorLike, deg: bool = False) -> Tensor:
    """The angle of complex numbers, in (-pi, pi].

    Args:
        z: numbers of any shape.
        deg: whether to return degrees instead of radians.

    Returns:
        A real tensor with the shape of ``z``, float64 for integers.

    Raises:
        DTypeError: ``z`` can't become a tensor.

    >>> import dualflow as df
    >>> float(df.numpy.angle(1j, deg=True))
    90.0
    """
    x = tensor(z)
    radians = atan2(imag(x), real(x)) if x.dtype.is_complex else arctan2(0, x)
    return radians * (180 / math.pi) if deg else radians


def real_if_close(a: TensorLike, tol: float = 100) -> Tensor:
    """The real parts if all imaginary parts are close to 0, else ``a``.

    Args:
        tol: the tolerance, as a multiple of the dtype's ``eps``.

    Returns:
        A tensor with the shape of ``a``, real or complex.

    Raises:
        DTypeError: ``a`` is symbolic, as the dtype depends on the elements.

    >>> import dualflow as df
    >>> df.numpy.real_if_close([1 + 0j, 2 + 1e-20j]).numpy()
    array([1., 2.])
    """
    x = tensor(a)
    if not x.dtype.is_complex:
        return x
    static = static_value(x)
    if static is None:
        raise DTypeError(
            "real_if_close's dtype depends on the elements, which have no values in a trace; use real."
        )
    return tensor(np.real_if_close(static, tol)) if np.isrealobj(np.real_if_close(static, tol)) else x


# Rounding and limits


def round(a: TensorLike, decimals: TensorLike = 0, out: None = None) -> Tensor:
    """The elements rounded to ``decimals`` decimal places; halves go to the even neighbour.

    Args:
        decimals: the number of decimal places, an integer; a negative one rounds to tens, hundreds and so on.

    Returns:
        A tensor with the shape and dtype of ``a``; float16 for bools.

    Raises:
        DTypeError: ``a`` is of bools and ``decimals`` isn't 0, or ``decimals`` is no integer.

    >>> import dualflow as df
    >>> df.numpy.round([1.25, 2.5], 1).numpy()
    array([1.2, 2.5])
    """
    reject_unsupported("round", out=out)
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


around = round


def fix(x: TensorLike, out: None = None) -> Tensor:
    """The integer part of each element: rounding towards zero.

    Args:
        x: real numbers of any shape.

    Returns:
        A tensor with the shape and dtype of ``x``.

    >>> import dualflow as df
    >>> df.numpy.fix([1.7, -1.7]).numpy()
    array([ 1., -1.])
    """
    reject_unsupported("fix", out=out)
    return rounding.trunc(tensor(x))


def clip(
    a: TensorLike,
    a_min: TensorLike | None = None,
    a_max: TensorLike | None = None,
    out: None = None,
    *,
    min: TensorLike | None = None,
    max: TensorLike | None = None,
    **kwargs: Any,
) -> Tensor:
    """The elements limited to the range from ``a_min`` to ``a_max``.

    Args:
        a: real numbers of any shape.
        a_min: the lower limit, a number or numbers that broadcast; None for no limit.
        a_max: the upper limit, as ``a_min``; it wins where the limits cross.
        min: another name of ``a_min``; None by default.
        max: another name of ``a_max``; None by default.
        **kwargs: none: tensors don't change.

    Returns:
        A tensor with the shape to which the inputs broadcast, and the common dtype.

    Raises:
        InvalidArgumentError: the shapes do not broadcast.
        DTypeError: ``a`` is complex.

    >>> import dualflow as df
    >>> df.numpy.clip([1, 5, 9], 2, 6).numpy()
    array([2, 5, 6])
    """
    reject_unsupported("clip", out=out, **kwargs)
    low, high = (a_min if a_min is not None else min), (a_max if a_max is not None else max)
    x = tensor(a)
    if low is not None and high is not None:
        x, lower, upper = promote_together(x, low, high)
        return minimum(maximum(x, lower), upper)
    if low is not None:
        x, lower = promote_together(x, low)
        return maximum(x, lower)
    if high is not None:
        x, upper = promote_together(x, high)
        return minimum(x, upper)
    return identity(x)


def nan_to_num(
    x: TensorLike,
    copy: bool = True,
    nan: TensorLike = 0.0,
    posinf: TensorLike | None = None,
    neginf: TensorLike | None = None,
) -> Tensor:
    """The elements with nan and the infinities replaced by numbers.

    Args:
        nan: the number for nan.
        posinf: the number for inf; the largest of the dtype by default.
        neginf: the number for -inf; the lowest of the dtype by default.

    Returns:
        A tensor with the shape and dtype of ``x``.

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
    finite = where_op(isnan(v), tensor(nan, v.dtype), v)
    at_infinity = where_op(v > 0, tensor(high, v.dtype), tensor(low, v.dtype))
    return where_op(isinf(v), at_infinity, finite)


def i0(x: TensorLike) -> Tensor:
    """The modified Bessel function of the first kind of order 0.

    Args:
        x: real numbers of any shape; integers count as float64.

    Returns:
        A tensor with the shape and dtype of ``x``.

    Raises:
        DTypeError: ``x`` is complex.

    >>> import dualflow as df
    >>> df.numpy.i0([0.0, 1.0]).numpy().round(4)
    array([1.    , 1.2661])
    """
    return bessel_i0(inexact(x))


def sinc(x: TensorLike) -> Tensor:
    """``sin(pi * x) / (pi * x)``, and 1 at 0.

    Returns:
        A tensor with the shape and dtype of ``x``, float64 for integers.

    >>> import dualflow as df
    >>> df.numpy.sinc([0.0, 0.5]).numpy().round(4)
    array([1.    , 0.6366])
    """
    v = inexact(x) * math.pi
    zero = equal(v, 0)
    safe = where_op(zero, ones_like(v), v)
    return where_op(zero, ones_like(v), sin(safe) / safe)


complete_docstrings(globals())
make_entries(globals())
