"""ONNX's element types of dtypes, and the dtypes in which ONNX Runtime computes an op."""

from __future__ import annotations

from typing import Any, Final

import onnx

from dualflow.core import dtypes
from dualflow.core.dtypes import DType, as_dtype

_NAMES: Final = {
    "bool": "BOOL",
    "int8": "INT8",
    "int16": "INT16",
    "int32": "INT32",
    "int64": "INT64",
    "uint8": "UINT8",
    "uint16": "UINT16",
    "uint32": "UINT32",
    "uint64": "UINT64",
    "float16": "FLOAT16",
    "float32": "FLOAT",
    "float64": "DOUBLE",
    "bfloat16": "BFLOAT16",
    "float8_e4m3fn": "FLOAT8E4M3FN",
    "float8_e5m2": "FLOAT8E5M2",
    "string": "STRING",
}

_COMMON: Final = "int32 int64 float16 float32 float64"
_RUNTIME_DTYPES: Final = {
    "Where": f"string int8 uint8 uint32 {_COMMON}",
    "Max": f"int8 uint8 uint32 uint64 {_COMMON}",
    "Min": f"int8 uint8 uint32 uint64 {_COMMON}",
    "Pow": _COMMON,
    "ReduceSum": _COMMON,
    "ReduceProd": _COMMON,
    "ReduceMax": f"int8 uint8 {_COMMON}",
    "ReduceMin": f"int8 uint8 {_COMMON}",
    "ArgMax": f"int8 uint8 {_COMMON}",
    "ArgMin": f"int8 uint8 {_COMMON}",
    "CumSum": _COMMON,
    "MatMul": f"uint32 uint64 {_COMMON}",
    "Pad": f"bool int8 uint8 uint32 uint64 {_COMMON}",
    "TopK": f"int8 int16 uint8 {_COMMON}",
    "Expand": f"bool string int8 int16 uint8 uint16 uint32 uint64 {_COMMON}",
}
"""The dtypes that ONNX Runtime's CPU kernels support, for ops that don't support all.

Its reductions of bools reject empty tensors.
"""

_WIDER: Final = {
    "bool": ("uint8", "int32"),
    "int8": ("int32",),
    "int16": ("int32",),
    "uint8": ("int32",),
    "uint16": ("int32",),
    "uint32": ("int64",),
    "uint64": ("int64",),
    "bfloat16": ("float32",),
    "float8_e4m3fn": ("float32",),
    "float8_e5m2": ("float32",),
}
"""Wider dtypes, the first best. Sums, products and selections of uint64 have the same bits in int64."""

INT64: Final = dtypes.int64


def has_element_type(dtype: DType) -> bool:
    """Whether ONNX has tensors of ``dtype``."""
    return dtype.name in _NAMES


def element_type(dtype: DType) -> int:
    """The number of ONNX's element type of ``dtype``."""
    number: int = getattr(onnx.TensorProto, _NAMES[dtype.name])
    return number


def dtype_of_element_type(number: int) -> DType | None:
    """The dtype of ONNX's element type ``number``; None if dualflow has none."""
    for name, element in _NAMES.items():
        if getattr(onnx.TensorProto, element) == number:
            return dtype_named(name)
    return None


def dtype_named(name: str) -> DType:
    """The dtype ``name``."""
    dtype: Any = as_dtype(name)
    return dtype  # type: ignore[no-any-return]  # as_dtype is typed for users' values


def runtime_dtype(op_type: str, dtype: DType) -> DType:
    """The dtype in which the runtime computes ``op_type`` of operands of ``dtype``: it, or a wider one."""
    present = _RUNTIME_DTYPES.get(op_type)
    if present is None or dtype.name in present.split():
        return dtype
    wider = [name for name in _WIDER.get(dtype.name, ()) if name in present.split()]
    return dtype_named(wider[0]) if wider else dtype
