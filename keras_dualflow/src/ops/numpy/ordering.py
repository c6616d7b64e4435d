"""Sorting, distinct elements, and their counts."""

from __future__ import annotations

import builtins
from typing import Any

from keras.src.backend import config
from keras.src.backend.common.backend_utils import canonicalize_axis, vectorize_impl

import dualflow as df
import dualflow.numpy as dnp
from keras_dualflow.src.ops.core import cast, convert_to_tensor, vectorized_map
from keras_dualflow.src.ops.promotion import kind_of, result_type, tensor, wide_float_dtype


def sort(x: Any, axis: int | None = -1) -> Any:
    return dnp.sort(tensor(x), axis)


def argsort(x: Any, axis: int | None = -1) -> Any:
    x = tensor(x)
    return cast(dnp.argsort(dnp.atleast_1d(x), axis) if x.shape else df.zeros_like(x), "int32")


def argpartition(x: Any, kth: int, axis: int | None = -1) -> Any:
    return cast(dnp.argpartition(tensor(x), kth, axis), "int32")


def bincount(x: Any, weights: Any = None, minlength: int = 0, sparse: bool = False) -> Any:
    if sparse:
        raise ValueError("Unsupported value `sparse=True` with dualflow backend")
    x = tensor(x)
    dtype = "int32"
    if weights is not None:
        weights = tensor(weights)
        dtype = result_type(x.dtype, weights.dtype)
        weights = cast(weights, dtype)
    axis = None if len(x.shape) < 2 else -1
    counts = df.math.bincount(cast(x, "int32"), weights, minlength=minlength or None, axis=axis)
    return cast(counts, dtype)


def histogram(x: Any, bins: Any = 10, range: Any = None) -> Any:
    x = tensor(x)
    counts, edges = dnp.histogram(x, bins, range)
    return cast(counts, "int32"), cast(edges, result_type(x.dtype, float))


def unique(
    x: Any,
    sorted: bool = True,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """The distinct elements in order, or the first ``size`` of them, padded with ``fill_value``."""
    x = tensor(x)
    options = {"return_index": return_index, "return_inverse": return_inverse, "return_counts": return_counts}
    result = dnp.unique(x, axis=axis, equal_nan=False, **options)
    outputs = list(result) if any(options.values()) else [result]
    if size is not None:
        along = 0 if axis is None else canonicalize_axis(axis, len(x.shape))
        outputs[0] = _cut_or_pad(outputs[0], size, along, 0 if fill_value is None else fill_value)
        if return_index:
            outputs[1] = _cut_or_pad(outputs[1], size, 0, 1)  # as Keras's NumPy backend
        if return_counts:
            outputs[-1] = _cut_or_pad(outputs[-1], size, 0, 0)
    outputs[1:] = [cast(output, "int32") for output in outputs[1:]]
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


def _cut_or_pad(x: Any, size: int, axis: int, fill: Any) -> Any:
    """``x`` with ``size`` elements along ``axis``: truncated or padded."""
    widths = [(0, size if i == axis else 0) for i in builtins.range(len(x.shape))]
    slices = tuple(slice(size) if i == axis else slice(None) for i in builtins.range(len(x.shape)))
    return dnp.pad(x, widths, constant_values=convert_to_tensor(fill, x.dtype.name))[slices]


def corrcoef(x: Any) -> Any:
    x = tensor(x)
    dtype = wide_float_dtype(x.dtype)
    return cast(dnp.corrcoef(cast(x, dtype)), dtype)


def correlate(x1: Any, x2: Any, mode: str = "valid") -> Any:
    x1, x2 = tensor(x1), tensor(x2)
    dtype = result_type(kind_of(x1), kind_of(x2))
    dtype = dtype if df.as_dtype(dtype).is_inexact else config.floatx()
    x1, x2 = cast(x1, dtype), cast(x2, dtype)
    return dnp.correlate(x1, x2, mode)


def vectorize(pyfunc: Any, *, excluded: Any = None, signature: str | None = None) -> Any:
    return vectorize_impl(pyfunc, vectorized_map, excluded=excluded, signature=signature)
