"""Strided views of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from dualflow.core.dtypes import is_narrow

Array = np.ndarray[Any, Any]


def strided(flat: Array, shape: Sequence[int], strides: Sequence[int], *, writeable: bool = False) -> Array:
    """A view of a flat array by strides, which count elements; read-only by default.

    ``as_strided`` doesn't support the dtypes of packages, whose elements are viewed as integers meanwhile.

    >>> strided(np.arange(6), (2, 2), (3, 1)).tolist()
    [[0, 1], [3, 4]]
    """
    plain = flat.view(f"u{flat.itemsize}") if is_narrow(flat.dtype) else flat
    view = as_strided(plain, tuple(shape), [s * flat.itemsize for s in strides], writeable=writeable)
    return view if plain is flat else view.view(flat.dtype)
