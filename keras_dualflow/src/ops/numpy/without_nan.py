"""Reductions that ignore NaN."""

from __future__ import annotations

from typing import Any

from keras.src.backend.common.backend_utils import standardize_axis_for_numpy

import dualflow as df
import dualflow.numpy as dnp
from keras_dualflow.src.ops.core import cast
from keras_dualflow.src.ops.numpy.reductions import argmax, argmin, cumprod, cumsum, median, quantile
from keras_dualflow.src.ops.promotion import floats, result_type, sum_dtype, tensor


def _replace_nan(x: Any, value: float) -> Any:
    """``x`` with NaN replaced by ``value``."""
    return df.where(df.isnan(x), value, x) if x.dtype.is_inexact else x


def nansum(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    x = tensor(x)
    return df.reduce_sum(cast(_replace_nan(x, 0.0), sum_dtype(x.dtype)), axis, keepdims)


def nanprod(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    x = tensor(x)
    return df.reduce_prod(cast(_replace_nan(x, 1.0), sum_dtype(result_type(x.dtype))), axis, keepdims)


def nancumsum(x: Any, axis: int | None = None, dtype: Any = None) -> Any:
    return cumsum(_replace_nan(tensor(x), 0.0), axis, dtype)


def nancumprod(x: Any, axis: int | None = None, dtype: Any = None) -> Any:
    return cumprod(_replace_nan(tensor(x), 1.0), axis, dtype)


def nanmax(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return dnp.nanmax(tensor(x), standardize_axis_for_numpy(axis), keepdims=keepdims)


def nanmin(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return dnp.nanmin(tensor(x), standardize_axis_for_numpy(axis), keepdims=keepdims)


def nanargmax(x: Any, axis: int | None = None, keepdims: bool = False) -> Any:
    """The index of the largest element; -1 if all are NaN."""
    x = tensor(x)
    return _minus_one_if_all_nan(x, argmax(_replace_nan(x, float("-inf")), axis, keepdims), axis, keepdims)


def nanargmin(x: Any, axis: int | None = None, keepdims: bool = False) -> Any:
    """The index of the smallest element; -1 if all are NaN."""
    x = tensor(x)
    return _minus_one_if_all_nan(x, argmin(_replace_nan(x, float("inf")), axis, keepdims), axis, keepdims)


def _minus_one_if_all_nan(x: Any, indices: Any, axis: int | None, keepdims: bool) -> Any:
    if not x.dtype.is_inexact:
        return indices
    return df.where(df.reduce_all(df.isnan(x), axis, keepdims), -1, indices)


def nanmean(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    x = tensor(x)
    axis = standardize_axis_for_numpy(axis)
    return dnp.nanmean(cast(x, result_type(x.dtype, float)), axis, keepdims=keepdims)


def nanvar(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    x = tensor(x)
    axis = standardize_axis_for_numpy(axis)
    variance = dnp.nanvar(cast(x, result_type(x.dtype, "float32")), axis, keepdims=keepdims)
    return cast(variance, result_type(x.dtype, float))


def nanstd(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return df.sqrt(nanvar(x, axis, keepdims))


def nanmedian(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    x = tensor(x)
    if not x.dtype.is_inexact:
        return median(x, axis, keepdims)
    axis = standardize_axis_for_numpy(axis)
    return dnp.nanmedian(cast(x, result_type(x.dtype, float)), axis, keepdims=keepdims)


def nanquantile(x: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False) -> Any:
    x = tensor(x)
    if not x.dtype.is_inexact:
        return quantile(cast(x, result_type(x.dtype, float)), q, axis, method, keepdims)
    x = floats(x)
    q = cast(q, "float64" if x.dtype.name == "float64" else "float32")
    axis = standardize_axis_for_numpy(axis)
    return cast(dnp.nanquantile(x, q, axis, method=method, keepdims=keepdims), x.dtype.name)


def nanpercentile(x: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False) -> Any:
    return nanquantile(x, df.divide(cast(q, "float32"), 100.0), axis, method, keepdims)
