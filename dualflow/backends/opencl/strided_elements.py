"""Elements of a flat array that a layout describes, for operands that the host copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def extremes(shape: Sequence[int], strides: Sequence[int], offset: int) -> tuple[int, int]:
    """The positions of the first and the last element of a layout; the last is smaller if there is none."""
    if 0 in shape:
        return offset, offset - 1
    steps = [(n - 1) * s for n, s in zip(shape, strides, strict=True)]
    return offset + sum(s for s in steps if s < 0), offset + sum(s for s in steps if s > 0)


def assign(flat: Array, offset: int, strides: Sequence[int], value: Array) -> None:
    """Write ``value`` to the elements of a flat array that a layout describes."""
    places = np.full(value.shape, offset)
    for axis, stride in enumerate(strides):
        index = np.arange(value.shape[axis]).reshape([-1 if i == axis else 1 for i in range(value.ndim)])
        places += index * stride
    flat[places] = value
