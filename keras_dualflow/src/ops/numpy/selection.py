"""Elements selected by index or by a condition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dualflow as df
import dualflow.numpy as dnp
from keras_dualflow.src.ops.core import cast
from keras_dualflow.src.ops.promotion import promote, result_type, sum_dtype, tensor


def where(condition: Any, x1: Any = None, x2: Any = None) -> Any:
    condition = cast(condition, "bool")
    if x1 is None or x2 is None:
        return nonzero(condition)
    return df.where(condition, *promote(x1, x2))


def nonzero(x: Any) -> tuple[Any, ...]:
    return tuple(cast(indices, "int32") for indices in dnp.nonzero(tensor(x)))


def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Any:
    *choices, default = promote(*choicelist, default)
    return dnp.select([cast(x, "bool") for x in condlist], choices, default)


def take(x: Any, indices: Any, axis: int | None = None) -> Any:
    x, indices = tensor(x), tensor(indices)
    if axis is None:
        x, axis = df.reshape(x, (-1,)), 0
    return dnp.take(x, indices if indices.dtype.is_integer else cast(indices, "int32"), axis)


def take_along_axis(x: Any, indices: Any, axis: int | None = None) -> Any:
    x, indices = tensor(x), tensor(indices)
    if axis is None:
        x, axis = df.reshape(x, (-1,)), 0
    return dnp.take_along_axis(x, indices, axis)


def diag(x: Any, k: int = 0) -> Any:
    return dnp.diag(tensor(x), k)


def diagflat(x: Any, k: int = 0) -> Any:
    return dnp.diagflat(tensor(x), k)


def diagonal(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    return dnp.diagonal(tensor(x), offset, axis1, axis2)


def trace(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    x = tensor(x)
    return dnp.trace(x, offset, axis1, axis2, dtype=sum_dtype(x.dtype))


def tril(x: Any, k: int = 0) -> Any:
    return dnp.tril(tensor(x), k)


def triu(x: Any, k: int = 0) -> Any:
    return dnp.triu(tensor(x), k)


def unravel_index(indices: Any, shape: Sequence[int]) -> tuple[Any, ...]:
    indices = tensor(indices)
    dtype = result_type(indices.dtype)
    return tuple(cast(positions, dtype) for positions in dnp.unravel_index(indices, shape))


def searchsorted(sorted_sequence: Any, values: Any, side: str = "left") -> Any:
    sorted_sequence, values = tensor(sorted_sequence), tensor(values)
    if len(sorted_sequence.shape) != 1:
        raise ValueError(
            "`searchsorted` only supports 1-D sorted sequences. You can use `keras.ops.vectorized_map` "
            f"to extend it to N-D sequences. Received: sorted_sequence.shape={sorted_sequence.shape}"
        )
    if sorted_sequence.dtype is not values.dtype:
        sorted_sequence, values = promote(sorted_sequence, values)
    return cast(dnp.searchsorted(sorted_sequence, values, side), "int32")


def digitize(x: Any, bins: Any) -> Any:
    x, bins = tensor(x), tensor(bins)
    if x.dtype is not bins.dtype:
        x, bins = promote(x, bins)
    return cast(dnp.digitize(x, bins), "int32")
