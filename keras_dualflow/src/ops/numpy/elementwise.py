"""Elementwise functions of one tensor."""

from __future__ import annotations

from typing import Any

import dualflow as df
import dualflow.numpy as dnp
from keras_dualflow.src.ops.core import cast
from keras_dualflow.src.ops.promotion import (
    bools_as_int32,
    float_dtype,
    floats,
    inexact,
    promote,
    tensor,
    wide_floats,
)


def absolute(x: Any) -> Any:
    x = tensor(x)
    return x if x.dtype.is_bool else df.abs(x)


abs = absolute


def fabs(x: Any) -> Any:
    return df.abs(inexact(x))


def negative(x: Any) -> Any:
    return df.negative(tensor(x))


def reciprocal(x: Any) -> Any:
    return dnp.reciprocal(tensor(x))


def sign(x: Any) -> Any:
    x = tensor(x)
    return x if x.dtype.is_bool else df.sign(x)


def signbit(x: Any) -> Any:
    x = tensor(x)
    return df.zeros_like(x) if x.dtype.is_bool else dnp.signbit(x)


def square(x: Any) -> Any:
    return df.square(bools_as_int32(x))


def sqrt(x: Any) -> Any:
    return df.sqrt(floats(x))


def cbrt(x: Any) -> Any:
    return dnp.cbrt(wide_floats(x))


def exp(x: Any) -> Any:
    return df.exp(inexact(x))


def exp2(x: Any) -> Any:
    return dnp.exp2(inexact(x))


def expm1(x: Any) -> Any:
    return df.math.expm1(inexact(x))


def log(x: Any) -> Any:
    return df.math.log(floats(x))


def log10(x: Any) -> Any:
    return dnp.log10(floats(x))


def log1p(x: Any) -> Any:
    return df.math.log1p(floats(x))


def log2(x: Any) -> Any:
    return dnp.log2(floats(x))


def ceil(x: Any) -> Any:
    return df.math.ceil(floats(x))


def floor(x: Any) -> Any:
    return df.math.floor(floats(x))


def trunc(x: Any) -> Any:
    x = tensor(x)
    return df.math.trunc(x) if x.dtype.is_inexact else x


def round(x: Any, decimals: int = 0) -> Any:
    x = tensor(x)
    if decimals == 0 and not x.dtype.is_bool:
        return df.round(x)
    return dnp.round(x, decimals)


def sin(x: Any) -> Any:
    return df.sin(floats(x))


def cos(x: Any) -> Any:
    return df.cos(floats(x))


def tan(x: Any) -> Any:
    return df.tan(floats(x))


def sinh(x: Any) -> Any:
    return df.sinh(floats(x))


def cosh(x: Any) -> Any:
    return df.cosh(floats(x))


def tanh(x: Any) -> Any:
    return df.tanh(floats(x))


def arcsin(x: Any) -> Any:
    return df.asin(floats(x))


def arccos(x: Any) -> Any:
    return df.acos(floats(x))


def arctan(x: Any) -> Any:
    return df.atan(floats(x))


def arcsinh(x: Any) -> Any:
    return df.asinh(floats(x))


def arccosh(x: Any) -> Any:
    return df.acosh(floats(x))


def arctanh(x: Any) -> Any:
    return df.atanh(floats(x))


def sinc(x: Any) -> Any:
    return dnp.sinc(floats(x))


def i0(x: Any) -> Any:
    x = tensor(x)
    return dnp.i0(cast(x, "float64" if x.dtype.name in ("int64", "float64") else float_dtype(x.dtype)))


def deg2rad(x: Any) -> Any:
    return dnp.deg2rad(wide_floats(x))


def rad2deg(x: Any) -> Any:
    return dnp.rad2deg(wide_floats(x))


def angle(x: Any) -> Any:
    return dnp.angle(floats(x))


def real(x: Any) -> Any:
    return df.math.real(tensor(x))


def imag(x: Any) -> Any:
    return df.math.imag(tensor(x))


def conjugate(x: Any) -> Any:
    return df.math.conj(tensor(x))


conj = conjugate


def clip(x: Any, x_min: Any, x_max: Any) -> Any:
    x = bools_as_int32(x)
    dtype = x.dtype
    if x_min is not None:
        x = df.maximum(*promote(x, x_min))
    if x_max is not None:
        x = df.minimum(*promote(x, x_max))
    return cast(x, dtype.name)


def nan_to_num(x: Any, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Any:
    return dnp.nan_to_num(tensor(x), nan=nan, posinf=posinf, neginf=neginf)
