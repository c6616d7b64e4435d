"""The dtypes in which values meet, by Keras's rules: those of jax, without results of 64 bits."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from keras.src.backend import config
from keras.src.backend.common import dtypes

import dualflow as df
from keras_dualflow.src.ops.core import cast, convert_to_tensor

_KEPT = frozenset(
    df.as_dtype(name)
    for name in (
        "float32",
        "float16",
        "bfloat16",
        "int32",
        "int8",
        "int16",
        "uint8",
        "uint16",
        "uint32",
        "bool",
    )
)
"""Dtypes of which two meet in the same one."""

_NUMBERS = (int, float)


@functools.lru_cache(maxsize=4096)
def _result_type(floatx: str, kinds: tuple[Any, ...]) -> str:
    found: str = dtypes.result_type(*kinds)
    return found


def result_type(*kinds: Any) -> str:
    """The dtype in which values of these dtypes meet; Python's ``int`` and ``float`` are weak."""
    return _result_type(config.floatx(), kinds)


def kind_of(x: Any) -> Any:
    """The dtype of a tensor, variable or array, or the type of a Python number."""
    return getattr(x, "dtype", type(x))


def tensor(x: Any) -> Any:
    """``x`` as a tensor in its own dtype."""
    return x if isinstance(x, df.Tensor) else convert_to_tensor(x)


def tensor_or_number(x: Any) -> Any:
    """``x`` as a tensor, unless it is a Python int, float or bool."""
    return x if isinstance(x, _NUMBERS) else tensor(x)


def meet(*values: Any, also: tuple[Any, ...] = ()) -> list[Any]:
    """The values as tensors of the dtype in which they, and the dtypes ``also``, meet."""
    found = [tensor_or_number(x) for x in values]
    dtype = result_type(*map(kind_of, found), *also)
    return [convert_to_tensor(x, dtype) for x in found]


def operands(x1: Any, x2: Any) -> Any:
    """Two values in one dtype: tensors, or a tensor and a Python number that takes its dtype."""
    if isinstance(x1, df.Tensor) and x1.dtype in _KEPT:
        if isinstance(x2, df.Tensor):
            if x1.dtype is x2.dtype:
                return x1, x2
        elif type(x2) is float and x1.dtype.is_floating:
            return x1, x2
    return meet(x1, x2)


def joined(xs: Sequence[Any]) -> list[Any]:
    """The values as tensors, in one dtype where theirs differ."""
    found = [tensor(x) for x in xs]
    kinds = {x.dtype for x in found}
    return found if len(kinds) < 2 else [cast(x, result_type(*kinds)) for x in found]


def floats(x: Any) -> Any:
    """``x`` in the floating dtype that a function with real results returns for it."""
    found = tensor(x)
    if found.dtype in _KEPT and found.dtype.is_floating:
        return found
    return cast(found, float_dtype(found.dtype))


def float_dtype(dtype: Any) -> str:
    """The floating (or complex) dtype for results of ``dtype``; that of int64 is the default."""
    name = df.as_dtype(dtype).name
    found: str = config.floatx() if name == "int64" else result_type(name, float)
    return found


def inexact(x: Any) -> Any:
    """``x``, of which integers and bools become the default floating dtype."""
    found = tensor(x)
    return found if found.dtype.is_inexact else cast(found, config.floatx())


def wide_floats(x: Any) -> Any:
    """``x`` in a floating dtype that keeps its precision: float64 for int64."""
    found = tensor(x)
    return found if found.dtype.is_inexact else cast(found, wide_float_dtype(found.dtype))


def wide_float_dtype(dtype: Any) -> str:
    """``dtype`` if it is inexact, float64 for int64, and the default floating dtype for other integers."""
    found = df.as_dtype(dtype)
    if found.is_inexact:
        name: str = found.name
        return name
    default: str = config.floatx()
    return "float64" if found.name == "int64" else default


def sum_dtype(dtype: Any) -> str:
    """The dtype of sums and products: at least 32 bits for integers and bools."""
    name: str = df.as_dtype(dtype).name
    if name in ("bool", "int8", "int16"):
        return "int32"
    return "uint32" if name in ("uint8", "uint16") else name


def counted(x: Any) -> Any:
    """``x`` as numbers: bools become int32."""
    found = tensor(x)
    return cast(found, "int32") if found.dtype.is_bool else found
