"""Sums, means, extremes and running sums along axes."""

from __future__ import annotations

from typing import Any

from keras.src.backend import config, standardize_dtype
from keras.src.backend.common.backend_utils import standardize_axis_for_numpy

import dualflow as df
import dualflow.numpy as dnp
from keras_dualflow.src.ops.core import cast
from keras_dualflow.src.ops.promotion import (
    bools_as_int32,
    floats,
    inexact,
    promote,
    result_type,
    sum_dtype,
    tensor,
)


def sum(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    x = tensor(x)
    return df.reduce_sum(cast(x, sum_dtype(x.dtype)), axis, keepdims)


def prod(x: Any, axis: Any = None, keepdims: bool = False, dtype: Any = None) -> Any:
    x = tensor(x)
    dtype = standardize_dtype(dtype) if dtype else sum_dtype(result_type(x.dtype))
    return df.reduce_prod(cast(x, dtype), axis, keepdims)


def mean(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return df.reduce_mean(_at_least_float32(x), axis, keepdims)


def _at_least_float32(x: Any) -> Any:
    """``x`` as floats if it is not inexact already; float64 stays float64."""
    x = tensor(x)
    return x if x.dtype.is_inexact else cast(x, result_type(x.dtype, "float32"))


def std(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return df.math.reduce_std(inexact(x), axis, keepdims)


def var(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    x = tensor(x)
    variance = df.math.reduce_variance(cast(x, result_type(x.dtype, "float32")), axis, keepdims)
    return cast(variance, result_type(x.dtype, float))


def max(x: Any, axis: Any = None, keepdims: bool = False, initial: Any = None) -> Any:
    x = tensor(x)
    if initial is not None:
        return dnp.max(x, standardize_axis_for_numpy(axis), keepdims=keepdims, initial=initial)
    _reject_empty(x, axis, "maximum")
    return df.reduce_max(x, axis, keepdims)


def min(x: Any, axis: Any = None, keepdims: bool = False, initial: Any = None) -> Any:
    x = tensor(x)
    if initial is not None:
        return dnp.min(x, standardize_axis_for_numpy(axis), keepdims=keepdims, initial=initial)
    _reject_empty(x, axis, "minimum")
    return df.reduce_min(x, axis, keepdims)


def _reject_empty(x: Any, axis: Any, what: str) -> None:
    if x.size == 0 and axis is None:
        raise ValueError(f"The {what} of an empty tensor needs `initial`. Received: shape={x.shape}")


def amax(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return max(x, axis, keepdims)


def amin(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return min(x, axis, keepdims)


def ptp(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    x = tensor(x)
    return df.subtract(df.reduce_max(x, axis, keepdims), df.reduce_min(x, axis, keepdims))


def argmax(x: Any, axis: int | None = None, keepdims: bool = False) -> Any:
    return cast(dnp.argmax(_with_ordered_zeros(x), axis, keepdims=keepdims), "int32")


def argmin(x: Any, axis: int | None = None, keepdims: bool = False) -> Any:
    return cast(dnp.argmin(_with_ordered_zeros(x), axis, keepdims=keepdims), "int32")


def _with_ordered_zeros(x: Any) -> Any:
    """``x`` with -0.0 replaced by the largest negative number, so that it is less than 0.0."""
    x = tensor(x)
    if not x.dtype.is_floating or not x.shape:
        return x
    x = cast(x, result_type(x.dtype, "float32"))
    minus_zero = df.logical_and(df.equal(x, 0.0), dnp.signbit(x))
    return df.where(minus_zero, -float(dnp.finfo(x.dtype.dtype).tiny), x)


def count_nonzero(x: Any, axis: Any = None) -> Any:
    return cast(dnp.count_nonzero(tensor(x), standardize_axis_for_numpy(axis)), "int32")


def cumsum(x: Any, axis: int | None = None, dtype: Any = None) -> Any:
    terms = _as_terms(x, dtype)
    return dnp.cumsum(terms, axis, dtype=terms.dtype)


def cumprod(x: Any, axis: int | None = None, dtype: Any = None) -> Any:
    terms = _as_terms(x, dtype)
    return dnp.cumprod(terms, axis, dtype=terms.dtype)


def _as_terms(x: Any, dtype: Any) -> Any:
    """``x`` in the dtype of its running sums or products; bools count as int32."""
    x = tensor(x)
    return bools_as_int32(cast(x, result_type(dtype or x.dtype)))


def average(x: Any, axis: Any = None, weights: Any = None) -> Any:
    axis = standardize_axis_for_numpy(axis)
    if weights is None:
        return df.reduce_mean(floats(x), axis)
    x, weights = promote(x, weights, also=(float,))
    return dnp.average(x, axis, weights)


def median(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return dnp.median(_as_floats(x), standardize_axis_for_numpy(axis), keepdims=keepdims)


def _as_floats(x: Any) -> Any:
    """``x`` in the dtype to which it promotes with a Python float."""
    x = tensor(x)
    return cast(x, result_type(x.dtype, float))


def quantile(x: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False) -> Any:
    x = floats(x)
    q = cast(q, "float64" if x.dtype.name == "float64" else "float32")
    return cast(
        dnp.quantile(x, q, standardize_axis_for_numpy(axis), method=method, keepdims=keepdims), x.dtype.name
    )


def percentile(x: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False) -> Any:
    return quantile(_as_floats(x), df.divide(cast(q, "float32"), 100.0), axis, method, keepdims)


def diff(a: Any, n: int = 1, axis: int = -1) -> Any:
    return dnp.diff(tensor(a), n, axis)


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    y = tensor(y)
    dtype = result_type(y.dtype, float)
    inner = result_type(dtype, config.floatx())
    x = None if x is None else cast(x, inner)
    return cast(dnp.trapezoid(cast(y, inner), x, cast(dx, inner), axis), dtype)
