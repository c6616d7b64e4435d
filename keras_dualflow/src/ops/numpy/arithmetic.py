"""Elementwise functions of two tensors."""

from __future__ import annotations

from typing import Any

import dualflow as df
import dualflow.numpy as dnp
from keras_dualflow.src.ops.core import cast
from keras_dualflow.src.ops.promotion import (
    float_dtype,
    kind_of,
    operands,
    promote,
    result_type,
    tensor,
    wide_float_dtype,
)


def add(x1: Any, x2: Any) -> Any:
    x1, x2 = operands(x1, x2)
    return df.add(x1, x2)


def subtract(x1: Any, x2: Any) -> Any:
    x1, x2 = operands(x1, x2)
    return df.subtract(x1, x2)


def multiply(x1: Any, x2: Any) -> Any:
    x1, x2 = operands(x1, x2)
    return df.multiply(x1, x2)


def divide(x1: Any, x2: Any) -> Any:
    x1, x2 = operands(x1, x2)
    if not x1.dtype.is_inexact:
        x1, x2 = promote(x1, x2, also=(float,))
    return df.divide(x1, x2)


true_divide = divide


def divide_no_nan(x1: Any, x2: Any) -> Any:
    return df.math.divide_no_nan(*promote(x1, x2, also=(float,)))


def floor_divide(x1: Any, x2: Any) -> Any:
    return dnp.floor_divide(*promote(x1, x2))


def _promote_numbers(x1: Any, x2: Any) -> list[Any]:
    """Both values as tensors of their promoted dtype; int32 for bools."""
    tensors = promote(x1, x2)
    return [cast(x, "int32") for x in tensors] if tensors[0].dtype.is_bool else tensors


def mod(x1: Any, x2: Any) -> Any:
    return dnp.mod(*_promote_numbers(x1, x2))


def fmod(x1: Any, x2: Any) -> Any:
    return dnp.fmod(*_promote_numbers(x1, x2))


def power(x1: Any, x2: Any) -> Any:
    x1, x2 = operands(x1, x2)
    return df.pow(x1, x2) if x1.dtype.is_inexact else dnp.power(x1, x2)


def maximum(x1: Any, x2: Any) -> Any:
    x1, x2 = operands(x1, x2)
    return df.maximum(x1, x2)


def minimum(x1: Any, x2: Any) -> Any:
    x1, x2 = operands(x1, x2)
    return df.minimum(x1, x2)


def fmax(x1: Any, x2: Any) -> Any:
    return dnp.fmax(*promote(x1, x2))


def fmin(x1: Any, x2: Any) -> Any:
    return dnp.fmin(*promote(x1, x2))


def arctan2(x1: Any, x2: Any) -> Any:
    return df.atan2(*promote(x1, x2, also=(float,)))


def hypot(x1: Any, x2: Any) -> Any:
    return dnp.hypot(*_in_wide_floats(x1, x2))


def heaviside(x1: Any, x2: Any) -> Any:
    return dnp.heaviside(*_in_wide_floats(x1, x2))


def _in_wide_floats(x1: Any, x2: Any) -> list[Any]:
    tensors = [tensor(x1), tensor(x2)]
    dtype = result_type(*map(kind_of, tensors))
    return [cast(x, dtype if dtype == "bool" else wide_float_dtype(dtype)) for x in tensors]


def logaddexp(x1: Any, x2: Any) -> Any:
    return df.math.logaddexp(*promote(x1, x2, also=(float,)))


def logaddexp2(x1: Any, x2: Any) -> Any:
    return dnp.logaddexp2(*promote(x1, x2, also=(float,)))


def nextafter(x1: Any, x2: Any) -> Any:
    return dnp.nextafter(*promote(x1, x2, also=(float,)))


def gcd(x1: Any, x2: Any) -> Any:
    return dnp.gcd(*promote(x1, x2))


def lcm(x1: Any, x2: Any) -> Any:
    return dnp.lcm(*promote(x1, x2))


def ldexp(x1: Any, x2: Any) -> Any:
    x1, x2 = tensor(x1), tensor(x2)
    if not (x2.dtype.is_integer or x2.dtype.is_bool):
        raise TypeError(f"ldexp: the exponent x2 is {x2.dtype.name}, and has to be of an integer dtype.")
    dtype = float_dtype(result_type(x1.dtype, x2.dtype))
    return cast(dnp.ldexp(cast(x1, dtype), x2), dtype)


def bitwise_and(x: Any, y: Any) -> Any:
    return dnp.bitwise_and(*promote(x, y))


def bitwise_or(x: Any, y: Any) -> Any:
    return dnp.bitwise_or(*promote(x, y))


def bitwise_xor(x: Any, y: Any) -> Any:
    return dnp.bitwise_xor(*promote(x, y))


def bitwise_invert(x: Any) -> Any:
    return dnp.invert(tensor(x))


bitwise_not = bitwise_invert


def bitwise_left_shift(x: Any, y: Any) -> Any:
    return dnp.left_shift(*promote(x, y))


left_shift = bitwise_left_shift


def bitwise_right_shift(x: Any, y: Any) -> Any:
    return dnp.right_shift(*promote(x, y))


right_shift = bitwise_right_shift
