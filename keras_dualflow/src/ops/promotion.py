"""Dtype promotion by Keras's rules: those of jax, without results of 64 bits.

The dtypes of results, where Keras's default floating dtype is float32; other floating dtypes stay as float16:

=============================================  =======  ================  =======  =======
function                                       bool     int8, int32, ...  int64    float16
=============================================  =======  ================  =======  =======
``floats``, ``inexact``, ``also=(float,)``     float32  float32           float32  float16
``wide_floats``                                float32  float32           float64  float16
``bools_as_int32``                             int32    unchanged         int64    float16
``sum_dtype``                                  int32    32 bits or more   int64    float16
=============================================  =======  ================  =======  =======
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from keras.src.backend import config
from keras.src.backend.common import dtypes

import dualflow as df
from keras_dualflow.src.ops.core import cast, convert_to_tensor

_CLOSED = frozenset(
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
"""Dtypes for which two values of the same dtype have a result of that dtype."""

_NUMBERS = (int, float)


@functools.lru_cache(maxsize=4096)
def _result_type(floatx: str, kinds: tuple[Any, ...]) -> str:
    name: str = dtypes.result_type(*kinds)
    return name


def result_type(*kinds: Any) -> str:
    """The promoted dtype of these dtypes; Python's ``int`` and ``float`` are weak."""
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


def promote(*values: Any, also: tuple[Any, ...] = ()) -> list[Any]:
    """The values as tensors of the promoted dtype of them and of the dtypes ``also``."""
    tensors = [tensor_or_number(x) for x in values]
    dtype = result_type(*map(kind_of, tensors), *also)
    return [convert_to_tensor(x, dtype) for x in tensors]


def operands(x1: Any, x2: Any) -> Any:
    """Two values for one op: tensors of one dtype, or a tensor and a Python number."""
    if isinstance(x1, df.Tensor) and x1.dtype in _CLOSED:
        if isinstance(x2, df.Tensor):
            if x1.dtype is x2.dtype:
                return x1, x2
        elif type(x2) is float and x1.dtype.is_floating:
            return x1, x2
    return promote(x1, x2)


def of_one_dtype(xs: Sequence[Any]) -> list[Any]:
    """The values as tensors of one dtype."""
    tensors = [tensor(x) for x in xs]
    kinds = {x.dtype for x in tensors}
    return tensors if len(kinds) < 2 else [cast(x, result_type(*kinds)) for x in tensors]


def floats(x: Any) -> Any:
    """``x`` in the floating dtype that a function with real results returns for it."""
    t = tensor(x)
    if t.dtype in _CLOSED and t.dtype.is_floating:
        return t
    return cast(t, float_dtype(t.dtype))


def float_dtype(dtype: Any) -> str:
    """The floating (or complex) dtype for results of ``dtype``; that of int64 is the default."""
    name = df.as_dtype(dtype).name
    result: str = config.floatx() if name == "int64" else result_type(name, float)
    return result


def inexact(x: Any) -> Any:
    """``x`` as a tensor; integers and bools are cast to the default floating dtype."""
    t = tensor(x)
    return t if t.dtype.is_inexact else cast(t, config.floatx())


def wide_floats(x: Any) -> Any:
    """``x`` in a floating dtype that preserves its precision: float64 for int64."""
    t = tensor(x)
    return t if t.dtype.is_inexact else cast(t, wide_float_dtype(t.dtype))


def wide_float_dtype(dtype: Any) -> str:
    """``dtype`` if it is inexact, float64 for int64, and the default floating dtype for other integers."""
    own = df.as_dtype(dtype)
    if own.is_inexact:
        name: str = own.name
        return name
    default: str = config.floatx()
    return "float64" if own.name == "int64" else default


def sum_dtype(dtype: Any) -> str:
    """The dtype of sums and products: at least 32 bits for integers and bools."""
    name: str = df.as_dtype(dtype).name
    if name in ("bool", "int8", "int16"):
        return "int32"
    return "uint32" if name in ("uint8", "uint16") else name


def bools_as_int32(x: Any) -> Any:
    """``x`` as a tensor of numbers; bools become int32."""
    t = tensor(x)
    return cast(t, "int32") if t.dtype.is_bool else t
