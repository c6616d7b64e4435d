"""The dtypes of the package ml_dtypes: bfloat16, and floats of 8 bits."""

from __future__ import annotations

from typing import Final

from dualflow.core.dtypes import DType, late_dtype

bfloat16: Final[DType] = late_dtype("bfloat16")
float8_e5m2: Final[DType] = late_dtype("float8_e5m2")
float8_e4m3fn: Final[DType] = late_dtype("float8_e4m3fn")
