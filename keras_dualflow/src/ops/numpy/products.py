"""Products of vectors and matrices."""

from __future__ import annotations

from typing import Any

import dualflow as df
import dualflow.numpy as dnp
from keras_dualflow.src.ops.core import cast
from keras_dualflow.src.ops.promotion import kind_of, operands, promote, result_type, tensor


def matmul(x1: Any, x2: Any) -> Any:
    x1, x2 = tensor(x1), tensor(x2)
    if x1.dtype is df.int8 and x2.dtype is df.int8:  # sums of int8 products overflow
        return dnp.matmul(cast(x1, "int32"), cast(x2, "int32"))
    x1, x2 = operands(x1, x2)
    if x1.dtype.is_inexact and len(x1.shape) > 1 and len(x2.shape) > 1:
        return df.matmul(x1, x2)
    return dnp.matmul(x1, x2)


def einsum(subscripts: str, *operands: Any, **kwargs: Any) -> Any:
    xs = [tensor(x) for x in operands]
    kinds = {x.dtype for x in xs}
    dtype = "int32" if kinds == {df.int8} else result_type(*map(kind_of, xs))
    return dnp.einsum(subscripts, *[cast(x, dtype) for x in xs], **kwargs)


def dot(x1: Any, x2: Any) -> Any:
    return dnp.dot(*promote(x1, x2))


def tensordot(x1: Any, x2: Any, axes: Any = 2) -> Any:
    x1, x2 = promote(x1, x2)
    return dnp.tensordot(x1, x2, tuple(axes) if isinstance(axes, list) else axes)


def inner(x1: Any, x2: Any) -> Any:
    return dnp.inner(*promote(x1, x2))


def outer(x1: Any, x2: Any) -> Any:
    return dnp.outer(*promote(x1, x2))


def vdot(x1: Any, x2: Any) -> Any:
    return dnp.vdot(*promote(x1, x2))


def cross(
    x1: Any, x2: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Any:
    x1, x2 = promote(x1, x2)
    return dnp.cross(x1, x2, axisa=axisa, axisb=axisb, axisc=axisc, axis=axis)


def kron(x1: Any, x2: Any) -> Any:
    return dnp.kron(*promote(x1, x2))


def slogdet(x: Any) -> Any:
    return tuple(df.linalg.slogdet(tensor(x)))
