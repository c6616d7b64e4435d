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
from dualflow.core.array_address import address_of
from dualflow.core.strided import row_major

SMALLEST: Final = 64
"""The least number of rows and columns for which LAPACK is called directly; NumPy handles smaller ones."""

_PREFIXES: Final = {"f": "s", "d": "d", "F": "c", "D": "z"}
_REAL_NAMES: Final = {"heevd": "syevd", "ungqr": "orgqr"}
"""The real routine for each complex routine that has another name."""


def is_available(x: Any, *names: str) -> bool:
    """Whether matrices are large enough, and the BLAS has all these routines for their dtype."""
    return x.size > 0 and min(x.shape[-2:]) >= SMALLEST and _has_routines(x.dtype.char, names)


@functools.cache
def _has_routines(char: str, names: tuple[str, ...]) -> bool:
    library = blas.find()
    return library is not None and all(library.lapack(_name(char, name)) for name in names)


def call(name: str, dtype: Any, *arguments: Any) -> int:
    """Call a routine, and return its ``info``.

    Args:
        name: without the character of the type; that of complex matrices where there are two.
        dtype: of the matrices.
        arguments: all but ``info``, which is the last: texts of one character, integers, and arrays, which
            are given by their addresses.
    """
    info = _integer_type()()
    _run(name, dtype, *arguments, info)
    return int(info.value)


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
    return np.zeros(count, np.int64 if _integer_type() is ctypes.c_int64 else np.int32)


@functools.cache
def _integer_type() -> type[ctypes.c_int32 | ctypes.c_int64]:
    library = blas.find()
    return ctypes.c_int64 if library is not None and library.int_bits == 64 else ctypes.c_int32


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
    integer = _integer_type()
    passed: list[Any] = []
    lengths: list[int] = []
    for x in arguments:
        if type(x) is np.ndarray:
            passed.append(address_of(x))
        elif type(x) is int:
            passed.append(ctypes.byref(integer(x)))
        elif type(x) is str:
            passed.append(x.encode())
            lengths.append(1)
        else:  # an integer that the routine writes
            passed.append(ctypes.byref(x))
    _routine(dtype.char, name, len(passed), len(lengths))(*passed, *lengths)


def _name(char: str, name: str) -> str:
    return _PREFIXES[char] + (_REAL_NAMES.get(name, name) if char in "fd" else name)


@functools.cache
def _routine(char: str, name: str, pointers: int, texts: int) -> Callable[..., None]:
    """The LAPACK routine for a dtype, which releases the GIL during a call."""
    library = blas.find()
    assert library is not None, "is_available() returned True"
    kinds = (*[ctypes.c_void_p] * pointers, *[ctypes.c_size_t] * texts)
    return ctypes.CFUNCTYPE(None, *kinds)(library.lapack(_name(char, name)))
