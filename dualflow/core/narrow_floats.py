"""The floats of the package ml_dtypes: of 16 bits with float32's range, and of 8 bits."""

from __future__ import annotations

from typing import Final

from dualflow.core.dtypes import DType, narrow_float

bfloat16: Final[DType] = narrow_float("bfloat16")
float8_e5m2: Final[DType] = narrow_float("float8_e5m2")
float8_e4m3fn: Final[DType] = narrow_float("float8_e4m3fn")
