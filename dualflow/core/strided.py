"""Strided views and copies of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.lib.stride_tricks import as_strided

from dualflow.core.dtypes import is_narrow

Array = np.ndarray[Any, Any]

_COLUMN_BYTES: Final = 128
"""The width of the columns by which a transposed matrix is copied: two cache lines."""
_MIN_BYTES: Final = 1 << 17
"""The size of arrays that are copied by columns: smaller ones stay in the nearest cache."""


def strided(flat: Array, shape: Sequence[int], strides: Sequence[int], *, writeable: bool = False) -> Array:
    """A view of a flat array by strides, which count elements; read-only by default.

    ``as_strided`` doesn't support the dtypes of packages, whose elements are viewed as integers meanwhile.

    >>> strided(np.arange(6), (2, 2), (3, 1)).tolist()
    [[0, 1], [3, 4]]
    """
    plain = flat.view(f"u{flat.itemsize}") if is_narrow(flat.dtype) else flat
    view = as_strided(plain, tuple(shape), [s * flat.itemsize for s in strides], writeable=writeable)
    return view if plain is flat else view.view(flat.dtype)


def row_major(x: Array) -> Array:
    """A row-major copy of an array.

    A large transposed matrix is copied by narrow columns. NumPy reads a whole column for each row of it;
    where the stride is a multiple of a large power of two, the cache lines of a long column evict each other
    before the next column, which needs the same lines.

    >>> row_major(np.arange(4).reshape(2, 2).T).ravel().tolist()
    [0, 2, 1, 3]
    """
    transposed = x.ndim > 1 and abs(x.strides[-1]) > abs(x.strides[-2])
    if not transposed or x.nbytes < _MIN_BYTES or x.dtype == object:
        return np.array(x, order="C")
    out = np.empty(x.shape, x.dtype)
    width = max(1, _COLUMN_BYTES // x.itemsize)
    for start in range(0, x.shape[-1], width):
        out[..., start : start + width] = x[..., start : start + width]
    return out
