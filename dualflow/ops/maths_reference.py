"""NumPy implementation of the operations of scalar functions: the reference in tests of every backend.

``Elementwise.code(m, ...)`` and the functions of a ``Reduce`` call these names, which the compiler has too.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from dualflow.core.dtypes import DType, as_dtype, is_narrow
from dualflow.core.errors import InternalError, InvalidArgumentError
from dualflow.ops.error_function import erf as erf
from dualflow.ops.error_function import erfc as erfc
from dualflow.ops.error_function import ndtr as ndtr

add, subtract, multiply, divide, negative = np.add, np.subtract, np.multiply, np.divide, np.negative
bitwise_and, bitwise_or, bitwise_xor, invert = np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.invert
left_shift, right_shift = np.left_shift, np.right_shift
less, less_equal, greater, greater_equal = np.less, np.less_equal, np.greater, np.greater_equal
exp, exp2, expm1 = np.exp, np.exp2, np.expm1
log, log2, log10, log1p, logaddexp = np.log, np.log2, np.log10, np.log1p, np.logaddexp
sin, cos, tan = np.sin, np.cos, np.tan
asin, acos, atan, atan2 = np.arcsin, np.arccos, np.arctan, np.arctan2
sinh, cosh, tanh = np.sinh, np.cosh, np.tanh
asinh, acosh, atanh = np.arcsinh, np.arccosh, np.arctanh
sqrt = np.sqrt
abs, sign, copysign = np.abs, np.sign, np.copysign
floor, ceil, trunc = np.floor, np.ceil, np.trunc
maximum, minimum = np.maximum, np.minimum
mod, floor_divide, fmod = np.remainder, np.floor_divide, np.fmod
equal, not_equal = np.equal, np.not_equal
where, isnan, isinf, isfinite = np.where, np.isnan, np.isinf, np.isfinite


def round(x: Any) -> Any:
    """The nearest integer, ties to even."""
    return np.asarray(x).round()


def pow(x: Any, y: Any) -> Any:
    """``x ** y`` as IEEE 754 has it: inf for -inf to the power 0.5, and 0 for -0.0.

    NumPy takes the square root where it finds one exponent of 0.5 for many numbers, which differs in these.
    """
    x, y = np.asarray(x), np.asarray(y)
    if x.dtype.kind != "f" or (x.shape == y.shape and y.flags.c_contiguous and y.ndim):
        return np.power(x, y)
    if y.ndim == 0:
        return _root(x) if y.item() == 0.5 else np.power(x, y)
    corner = (y == 0.5) & ((x == 0) | (x == -np.inf))
    return np.where(corner, np.abs(x), np.power(x, y))


_CORNERS = {char: (np.array(0, char), np.array(-np.inf, char)) for char in "efdg"}
"""0 and -inf as NumPy scalars of each float dtype: NumPy would convert Python's in each call."""


def _root(x: Any) -> Any:
    """``x ** 0.5``."""
    zero, lowest = _CORNERS[x.dtype.char]
    root = np.sqrt(x) + zero  # no -0.0
    low = np.equal(x, lowest)
    return np.where(low, -x, root) if np.count_nonzero(low) else root


def rsqrt(x: Any) -> Any:
    """``1 / sqrt(x)``."""
    return 1 / np.sqrt(x)


def sigmoid(x: Any) -> Any:
    """``1 / (1 + exp(-x))``, from the side where the exponential can't overflow."""
    return np.exp(np.minimum(x, 0)) / (1 + np.exp(-np.abs(x)))


def cast(x: Any, dtype: DType) -> Any:
    """``x`` in another dtype: of a complex number the real part, of a float the integer part.

    Where C leaves the integer undefined, the nearest end of the dtype; nan gives 0. Narrow floats are cast
    from and to float32.
    """
    array = np.asarray(x)
    if is_narrow(array.dtype) or (dtype.narrow and array.dtype.kind != "c"):
        array = array.astype(np.float32)
    if array.dtype.kind == "c" and dtype.kind != "c":
        array = array.real
    if array.dtype.kind == "f" and dtype.is_integer:
        return _saturated(array, dtype)
    return array.astype(dtype.dtype)


def _saturated(x: Any, target: DType) -> Any:
    x = x.astype(np.float32) if x.itemsize == 2 else x  # which can hold the ends of all integers
    low, beyond = float(target.min), 2.0 ** (8 * target.size - (target.kind == "i"))
    with np.errstate(all="ignore"):
        converted = x.astype(target.dtype)
    if not x.size or (x.min() >= low and x.max() < beyond):
        return converted
    converted = np.where(x < low, target.min, np.where(x >= beyond, target.max, converted))
    return np.where(np.isnan(x), 0, converted).astype(target.dtype)


def constant(number: Any, dtype: DType) -> Any:
    """A number of a dtype, as an array without axes."""
    return np.asarray(number, dtype.dtype)


def dtype(x: Any) -> DType:
    """The dtype of the element, for code that differs between kinds of numbers."""
    return as_dtype(np.asarray(x).dtype)


def check(ok: Any, message: str) -> None:
    """Raise an error with ``message`` unless all elements of ``ok`` are true.

    Raises:
        InvalidArgumentError: an element of ``ok`` is false.
    """
    if not np.all(ok):
        raise InvalidArgumentError(message)


def index(axis: int) -> NoReturn:
    """Raise InternalError: an element's index exists only in the loops of compiled kernels."""
    raise InternalError(
        "m.index has no meaning for whole arrays: an op that uses it needs its own eager kernel"
    )
