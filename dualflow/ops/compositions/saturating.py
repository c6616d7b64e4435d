"""Casts that stay in the range of their dtype."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core.dtypes import as_dtype
from dualflow.ops.clipping import clip_by_value
from dualflow.ops.complex_numbers import real
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor

if TYPE_CHECKING:
    from dualflow.ops.tensor import Tensor


def saturate_cast(value: Any, dtype: Any, name: str | None = None) -> Tensor:
    """``value`` in another dtype, what is outside of its range being its smallest or largest number.

    Args:
        value: a tensor of any dtype; of complex numbers the real part is taken for a real dtype.
        dtype: of the result.
        name: ignored; as in TensorFlow.

    >>> import dualflow as df
    >>> df.saturate_cast([300.0, -5.0, 2.7], df.uint8).numpy()
    array([255,   0,   2], dtype=uint8)
    """
    x, wanted = convert_to_tensor(value), as_dtype(dtype)
    if x.dtype.is_complex and not wanted.is_complex:
        x = real(x)
    if x.dtype.is_complex or x.dtype.is_bool or wanted.is_bool or wanted.is_complex:
        return cast(x, wanted)
    low, high = _limits(x.dtype, wanted)
    return cast(clip_by_value(x, low, high), wanted)


def _limits(source: Any, target: Any) -> tuple[Any, Any]:
    """The smallest and the largest number of ``source`` that ``target`` can hold."""
    kind = source.dtype.type
    if source.is_integer and target.is_floating:
        return source.min, source.max
    low, high = max(source.min, target.min, key=float), min(source.max, target.max, key=float)
    if source.is_floating and target.is_integer:  # the largest integer may lie between two floats
        found = kind(high)
        return kind(low), found if float(found) <= target.max else np.nextafter(found, kind(0))
    return low, high
