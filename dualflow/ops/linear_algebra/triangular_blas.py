"""One triangular system solved by the BLAS that NumPy has loaded, or by SciPy's where that is not found.

Both libraries have threads that stay awake for a while: where a program goes from one to the other, as from a
factorisation to a solution, they take the processors from each other.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from dualflow.core import blas
from dualflow.core.array_address import address_of
from dualflow.core.blas_threads import for_matrices
from dualflow.core.exported import exported_as
from dualflow.core.strided import row_major

_NAMES: Final = {"f": "s", "d": "d", "F": "c", "D": "z"}
_SCALARS: Final = {"f": ctypes.c_float, "d": ctypes.c_double}
_ROW_MAJOR, _LEFT, _AS_IT_IS, _TRANSPOSED, _ANY_DIAGONAL = 101, 141, 111, 112, 131
_UPPER, _LOWER = 121, 122


def _by_scipy(a: Any, b: Any, lower: bool) -> Any:
    """The transposed equation ``x.T @ a.T = b.T``, as SciPy's BLAS reads matrices by columns."""
    from scipy.linalg import blas

    if not b.size:
        return np.empty_like(b)
    (trsm,) = blas.get_blas_funcs(("trsm",), (a, b))
    return trsm(1, a.T, b.T, side=1, lower=not lower).T


@exported_as(_by_scipy)
def solve(a: Any, b: Any, lower: bool) -> Any:
    """``x`` in ``a @ x = b``, of two matrices of one dtype."""
    if not b.size:
        return np.empty_like(b)
    routine = _routine(a.dtype.char)
    if routine is None:
        return _by_scipy(a, b, lower)
    by_columns = a.flags.f_contiguous
    matrix, out = a.T if by_columns else np.ascontiguousarray(a), row_major(b)
    triangle = _LOWER if lower != by_columns else _UPPER
    transposition = _TRANSPOSED if by_columns else _AS_IT_IS
    one = np.ones(1, a.dtype)  # complex numbers are passed by their address
    scale = 1.0 if a.dtype.char in _SCALARS else address_of(one)
    sizes = (*out.shape, scale, address_of(matrix), len(matrix), address_of(out), out.shape[1])
    with for_matrices(max(matrix.size, out.size)):
        routine(_ROW_MAJOR, _LEFT, triangle, transposition, _ANY_DIAGONAL, *sizes)
    return out


@functools.cache
def _routine(char: str) -> Callable[..., None] | None:
    library = blas.find()
    if library is None:
        return None
    integer = ctypes.c_int64 if library.int_bits == 64 else ctypes.c_int32
    matrix = ctypes.c_void_p, integer
    kinds = (*[ctypes.c_int32] * 5, integer, integer, _SCALARS.get(char, ctypes.c_void_p), *matrix, *matrix)
    return ctypes.CFUNCTYPE(None, *kinds)(library.symbols[f"cblas_{_NAMES[char]}trsm"])
