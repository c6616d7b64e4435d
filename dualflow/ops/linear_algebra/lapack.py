"""Calls of LAPACK in the library that NumPy has loaded, in the precision of the matrices.

``np.linalg`` computes float32 in float64, which takes twice the time for large matrices. It is as good for
small ones, where it runs through a batch faster than separate calls.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from dualflow.core import blas
from dualflow.core.strided import row_major

SMALLEST: Final = 64
"""The least number of rows and columns for which LAPACK is called directly; NumPy handles smaller ones."""

_PREFIXES: Final = {"f": "s", "d": "d", "F": "c", "D": "z"}
_REAL_NAMES: Final = {"heevd": "syevd", "ungqr": "orgqr"}
"""The real routine for each complex routine that has another name."""


def is_available(x: Any, *names: str) -> bool:
    """Whether matrices are large enough, and the BLAS has all these routines for their dtype."""
    library = blas.find()
    return (
        library is not None
        and x.size > 0
        and min(x.shape[-2:]) >= SMALLEST
        and all(library.lapack(_name(x.dtype, name)) for name in names)
    )


def call(name: str, dtype: Any, *arguments: Any) -> int:
    """Call a routine, and return its ``info``.

    Args:
        name: without the character of the type; that of complex matrices where there are two.
        dtype: of the matrices.
        arguments: all but ``info``, which is the last: texts of one character, integers, and arrays, which
            are given by their addresses.
    """
    info = integers(1)
    _run(name, dtype, *arguments, info)
    return int(info[0])


def call_with_work(
    name: str, dtype: Any, *arguments: Any, kinds: str = "x", trailing: Sequence[Any] = ()
) -> int:
    """Call a routine with work memory, whose size a first call returns; return its ``info``.

    Args:
        name: see :func:`call`.
        dtype: of the matrices.
        arguments: those before the memory.
        kinds: of which dtype each piece of memory is, which is followed by its length: ``x`` of the matrices'
            own, ``r`` of that of their real parts, ``i`` of integers.
        trailing: the arguments after the memory.
    """
    dtypes = {"x": dtype, "r": np.empty(0, dtype).real.dtype, "i": integers(0).dtype}
    queries = [np.zeros(1, dtypes[kind]) for kind in kinds]
    call(name, dtype, *arguments, *[y for x in queries for y in (x, -1)], *trailing)
    # the query returns the size as a float, which may be rounded down: take the next float
    sizes = [int(np.nextafter(x[0].real, np.inf)) for x in queries]
    memory = [np.empty(max(1, size), x.dtype) for size, x in zip(sizes, queries, strict=True)]
    return call(name, dtype, *arguments, *[y for x in memory for y in (x, x.size)], *trailing)


def integers(count: int) -> Any:
    """An array of zeros of LAPACK's integer type."""
    library = blas.find()
    return np.zeros(count, np.int64 if library is not None and library.int_bits == 64 else np.int32)


def columns(x: Any) -> Any:
    """A column-major copy of a matrix, as LAPACK requires it."""
    return row_major(x.T).T


def clear_below(x: Any) -> None:
    """Set the elements below the diagonal of a column-major matrix to 0, by LAPACK's ``laset``."""
    rows, width = x.shape
    zero = np.zeros(1, x.dtype)
    if rows > 1:
        _run("laset", x.dtype, "L", rows - 1, min(rows - 1, width), zero, zero, x[1:], rows)


def _run(name: str, dtype: Any, *arguments: Any) -> None:
    texts = sum(isinstance(x, str) for x in arguments)
    routine, integer = _routine(_name(dtype, name), len(arguments), texts)
    routine(*[_argument(x, integer) for x in arguments], *[1] * texts)


def _argument(x: Any, integer: Any) -> Any:
    if isinstance(x, str):
        return x.encode()
    return ctypes.byref(integer(x)) if isinstance(x, int) else x.ctypes.data


def _name(dtype: Any, name: str) -> str:
    char = np.dtype(dtype).char
    return _PREFIXES[char] + (_REAL_NAMES.get(name, name) if char in "fd" else name)


@functools.cache
def _routine(name: str, pointers: int, texts: int) -> tuple[Callable[..., None], Any]:
    """A LAPACK routine, which releases the GIL during a call, and the type of its integers."""
    library = blas.find()
    assert library is not None, "is_available() returned True"
    kinds = (*[ctypes.c_void_p] * pointers, *[ctypes.c_size_t] * texts)
    integer = ctypes.c_int64 if library.int_bits == 64 else ctypes.c_int32
    return ctypes.CFUNCTYPE(None, *kinds)(library.lapack(name)), integer
