"""Views of arrays by strides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from dualflow.core.dtypes import is_narrow

Array = np.ndarray[Any, Any]


def strided(flat: Array, shape: Sequence[int], strides: Sequence[int]) -> Array:
    """The elements of a flat array at these distances, in elements, for reading.

    ``as_strided`` can't spell the dtypes of packages, whose elements are seen as integers on the way.

    >>> strided(np.arange(6), (2, 2), (3, 1)).tolist()
    [[0, 1], [3, 4]]
    """
    plain = flat.view(f"u{flat.itemsize}") if is_narrow(flat.dtype) else flat
    seen = as_strided(plain, tuple(shape), [s * flat.itemsize for s in strides], writeable=False)
    return seen if plain is flat else seen.view(flat.dtype)
