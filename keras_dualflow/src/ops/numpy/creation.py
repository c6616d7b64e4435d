"""Tensors from sizes and numbers."""

from __future__ import annotations

from typing import Any

from keras.src.backend import config, standardize_dtype

import dualflow as df
import dualflow.numpy as dnp
from keras_dualflow.src.ops.core import cast, convert_to_tensor, shape
from keras_dualflow.src.ops.promotion import kind_of, result_type, tensor, tensor_or_number


def _dtype(dtype: Any) -> str:
    name: str = standardize_dtype(dtype)
    return name


def array(x: Any, dtype: Any = None) -> Any:
    return convert_to_tensor(x, dtype=dtype)


def copy(x: Any) -> Any:
    return df.identity(tensor(x))


def view(x: Any, dtype: Any = None) -> Any:
    """The bytes of ``x`` as elements of ``dtype``; the last axis changes if the item sizes differ."""
    x = tensor(x)
    target = df.as_dtype(_dtype(dtype or x.dtype))
    old, new = x.dtype.size, target.size
    if old < new:
        if not x.shape or x.shape[-1] % (new // old):
            raise ValueError(
                f"view: the last axis of a tensor of shape {x.shape} and dtype {x.dtype.name} holds no whole "
                f"number of elements of {target.name}."
            )
        x = df.reshape(x, (*shape(x)[:-1], x.shape[-1] // (new // old), new // old))
    result = df.bitcast(x, target)
    return df.reshape(result, (*x.shape[:-1], x.shape[-1] * (old // new))) if old > new else result


def ones(shape: Any, dtype: Any = None) -> Any:
    return df.ones(shape, _dtype(dtype))


def zeros(shape: Any, dtype: Any = None) -> Any:
    return df.zeros(shape, _dtype(dtype))


def full(shape: Any, fill_value: Any, dtype: Any = None) -> Any:
    return df.broadcast_to(convert_to_tensor(fill_value, _dtype(dtype)), shape)


empty = zeros


def ones_like(x: Any, dtype: Any = None) -> Any:
    return df.ones_like(tensor(x), dtype and _dtype(dtype))


def zeros_like(x: Any, dtype: Any = None) -> Any:
    return df.zeros_like(tensor(x), dtype and _dtype(dtype))


empty_like = zeros_like


def full_like(x: Any, fill_value: Any, dtype: Any = None) -> Any:
    x = tensor(x)
    return dnp.full_like(x, convert_to_tensor(fill_value, dtype or x.dtype.name))


def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> Any:
    return dnp.eye(N, M, k, _dtype(dtype))


def identity(n: int, dtype: Any = None) -> Any:
    return dnp.eye(n, dtype=_dtype(dtype))


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> Any:
    return dnp.tri(N, M, k, _dtype(dtype))


def arange(start: Any, stop: Any = None, step: Any = None, dtype: Any = None) -> Any:
    if dtype is None:
        dtype = result_type(*[kind_of(x) for x in (start, stop, step) if x is not None])
    if stop is None:
        start, stop = 0, start
    step = 1 if step is None else step
    dtype = _dtype(dtype)
    return cast(dnp.arange(*[tensor_or_number(x) for x in (start, stop, step)], dtype=dtype), dtype)


def _endpoints(start: Any, stop: Any, dtype: Any) -> tuple[Any, Any, str]:
    """Start and stop as tensors of the dtype to compute in, and the dtype of the result."""
    start, stop = tensor_or_number(start), tensor_or_number(stop)
    result = _dtype(dtype) if dtype is not None else result_type(kind_of(start), kind_of(stop), float)
    inner = result if df.as_dtype(result).is_inexact else config.floatx()
    return convert_to_tensor(start, inner), convert_to_tensor(stop, inner), result


def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
) -> Any:
    start, stop, dtype = _endpoints(start, stop, dtype)
    result = dnp.linspace(start, stop, num, endpoint=endpoint, retstep=retstep, axis=axis)
    if retstep:
        return cast(result[0], dtype), result[1]
    return cast(result, dtype)


def logspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    base: Any = 10,
    dtype: Any = None,
    axis: int = 0,
) -> Any:
    start, stop, dtype = _endpoints(start, stop, dtype)
    return cast(dnp.logspace(start, stop, num, endpoint=endpoint, base=base, axis=axis), dtype)


def geomspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0
) -> Any:
    start, stop, dtype = _endpoints(start, stop, dtype or config.floatx())
    return cast(dnp.geomspace(start, stop, num, endpoint=endpoint, axis=axis), dtype)


def meshgrid(*x: Any, indexing: str = "xy") -> Any:
    return dnp.meshgrid(*[tensor(y) for y in x], indexing=indexing)


def vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:
    x = tensor(x)
    powers = dnp.vander(cast(x, result_type(x.dtype, config.floatx())), N, increasing)
    return cast(powers, result_type(x.dtype))


def bartlett(x: Any) -> Any:
    return cast(dnp.bartlett(_length(x)), config.floatx())


def blackman(x: Any) -> Any:
    return cast(dnp.blackman(_length(x)), config.floatx())


def hamming(x: Any) -> Any:
    return cast(dnp.hamming(_length(x)), config.floatx())


def hanning(x: Any) -> Any:
    return cast(dnp.hanning(_length(x)), config.floatx())


def kaiser(x: Any, beta: Any) -> Any:
    return cast(dnp.kaiser(_length(x), beta), config.floatx())


def _length(x: Any) -> Any:
    """The length of a window: a Python int if it is constant."""
    constant = df.get_static_value(tensor(x))
    return x if constant is None else int(constant)
