"""Sizes as operands: numbers and arrays for static sizes, integer tensors for symbolic ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from dualflow.core.dtypes import DType, float64, int32
from dualflow.ops.conversion import cast
from dualflow.ops.creation import constant
from dualflow.ops.positions import iota
from dualflow.ops.selection import where
from dualflow.ops.tensor_sizes import size_as_tensor


def numbers_below(count: int) -> Any:
    """``0, 1, ..., count - 1`` as int32: an array, or a tensor if ``count`` is symbolic."""
    return np.arange(count, dtype=np.int32) if type(count) is int else iota((count,), 0)


def operand(size: int, dtype: DType = int32) -> Any:
    """``size`` as it is, or a scalar of ``dtype`` if it is symbolic."""
    return size if type(size) is int else cast(size_as_tensor(size), dtype)


def selected(condition: Any, first: float, second: float) -> Any:
    """``first`` where ``condition``, an array or a tensor, is true, else ``second``, as float64."""
    if isinstance(condition, np.ndarray):
        return constant(np.where(condition, first, second))
    return where(condition, constant(first, float64), constant(second, float64))
