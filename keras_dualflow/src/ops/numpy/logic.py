"""Comparisons and logical functions."""

from __future__ import annotations

from typing import Any

import dualflow as df
import dualflow.numpy as dnp
from keras_dualflow.src.ops.core import cast, is_tensor
from keras_dualflow.src.ops.promotion import kind_of, operands, tensor, tensor_or_number


def _comparable(x1: Any, x2: Any) -> Any:
    """Both operands in their common dtype, which is 64-bit only if both are."""
    x1, x2 = tensor_or_number(x1), tensor_or_number(x2)
    return (x1, x2) if kind_of(x1) is kind_of(x2) and is_tensor(x1) else operands(x1, x2)


def equal(x1: Any, x2: Any) -> Any:
    x1, x2 = _comparable(x1, x2)
    return df.equal(x1, x2)


def not_equal(x1: Any, x2: Any) -> Any:
    x1, x2 = _comparable(x1, x2)
    return df.not_equal(x1, x2)


def greater(x1: Any, x2: Any) -> Any:
    x1, x2 = _comparable(x1, x2)
    return df.greater(x1, x2)


def greater_equal(x1: Any, x2: Any) -> Any:
    x1, x2 = _comparable(x1, x2)
    return df.greater_equal(x1, x2)


def less(x1: Any, x2: Any) -> Any:
    x1, x2 = _comparable(x1, x2)
    return df.less(x1, x2)


def less_equal(x1: Any, x2: Any) -> Any:
    x1, x2 = _comparable(x1, x2)
    return df.less_equal(x1, x2)


def logical_and(x1: Any, x2: Any) -> Any:
    return df.logical_and(cast(x1, "bool"), cast(x2, "bool"))


def logical_or(x1: Any, x2: Any) -> Any:
    return df.logical_or(cast(x1, "bool"), cast(x2, "bool"))


def logical_xor(x1: Any, x2: Any) -> Any:
    return df.math.logical_xor(cast(x1, "bool"), cast(x2, "bool"))


def logical_not(x: Any) -> Any:
    return df.logical_not(cast(x, "bool"))


def all(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return df.reduce_all(cast(x, "bool"), axis, keepdims)


def any(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return df.reduce_any(cast(x, "bool"), axis, keepdims)


def isfinite(x: Any) -> Any:
    return df.isfinite(tensor(x))


def isinf(x: Any) -> Any:
    return df.isinf(tensor(x))


def isnan(x: Any) -> Any:
    return df.isnan(tensor(x))


def isneginf(x: Any) -> Any:
    return dnp.isneginf(tensor(x))


def isposinf(x: Any) -> Any:
    return dnp.isposinf(tensor(x))


def isreal(x: Any) -> Any:
    return dnp.isreal(tensor(x))


def isin(x1: Any, x2: Any, assume_unique: bool = False, invert: bool = False) -> Any:
    x1, x2 = _comparable(x1, x2)
    return dnp.isin(x1, x2, assume_unique=assume_unique, invert=invert)


def isclose(x1: Any, x2: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    x1, x2 = _comparable(x1, x2)
    return dnp.isclose(x1, x2, rtol, atol, equal_nan)


def allclose(x1: Any, x2: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    return df.reduce_all(isclose(x1, x2, rtol, atol, equal_nan))
