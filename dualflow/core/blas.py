"""Addresses of the routines of NumPy's BLAS, for kernels to call.

Builds of BLAS differ in name decoration and in the width of integers. NumPy's wheels bring an
OpenBLAS with 64-bit integers whose ``cblas_sgemm`` is called ``scipy_cblas_sgemm64_``; a distribution's NumPy
uses the system's. Nothing is loaded that NumPy has not loaded itself, except Apple's Accelerate.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from collections.abc import Callable, Iterator

import numpy as np

from dualflow.core.library_functions import function_address
from dualflow.core.records import NamedTuple

ROUTINES = (
    *("cblas_sgemm", "cblas_dgemm", "cblas_cgemm", "cblas_zgemm", "cblas_sgemv", "cblas_dgemv"),
    *("cblas_strsm", "cblas_dtrsm", "cblas_ctrsm", "cblas_ztrsm"),
)
"""The routines to look up, by their undecorated names."""


class Blas(NamedTuple):
    """One BLAS in this process.

    ``symbols`` maps each name of ROUTINES to its address; its integer arguments (sizes, leading dimensions,
    strides) have ``int_bits`` bits, its enumerations 32. ``set_num_threads`` is the address of ``void
    (int)``, ``get_num_threads`` that of ``int (void)``; None where it has none. ``lapack`` gives the address
    of a routine of LAPACK by its undecorated name (``sgetrf``), or 0: its arguments are
    addresses, of integers of ``int_bits`` bits, followed by the length of each string.
    """

    symbols: dict[str, int]
    int_bits: int
    name: str
    set_num_threads: int | None
    get_num_threads: int | None
    lapack: Callable[[str], int]


@functools.cache
def find() -> Blas | None:
    """The BLAS that NumPy uses; None if it can't be found.

    >>> library = find()
    >>> library is None or sorted(library.symbols) == sorted(ROUTINES)
    True
    """
    for path in _candidates():
        try:
            library = ctypes.CDLL(path)
        except OSError:
            continue
        described = _describe(library, os.path.basename(path))
        if described is not None:
            return described
    return None


# The decorations of cblas_sgemm: prefix, suffix, and the width of integers.
_SPELLINGS = (
    ("scipy_", "64_", 64),
    ("", "64_", 64),
    ("", "_64", 64),
    ("scipy_", "", 32),
    ("", "", 32),
)
_LIBRARIES = ("openblas", "mkl_rt", "flexiblas", "libblis", "libcblas", "libblas", "libatlas")
_ACCELERATE = "/System/Library/Frameworks/Accelerate.framework/Accelerate"


def _candidates() -> Iterator[str]:
    package = os.path.dirname(np.__file__)
    for folder in (package + ".libs", os.path.join(package, ".dylibs")):  # where wheels bundle libraries
        if os.path.isdir(folder):
            yield from (os.path.join(folder, name) for name in sorted(os.listdir(folder)) if _is_blas(name))
    if sys.platform == "linux":
        yield from _mapped_libraries()
    if sys.platform == "darwin":
        yield _ACCELERATE


def _mapped_libraries() -> list[str]:
    """The libraries in memory that look like a BLAS, in the order of ``_LIBRARIES``."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as file:
        paths = {line[line.index("/") :].rstrip("\n") for line in file if ".so" in line and "/" in line}
    libraries = [path for path in paths if _is_blas(os.path.basename(path))]
    return sorted(libraries, key=lambda path: (_rank(os.path.basename(path)), path))


def _is_blas(name: str) -> bool:
    return _rank(name) < len(_LIBRARIES)


def _rank(name: str) -> int:
    return next((i for i, library in enumerate(_LIBRARIES) if library in name), len(_LIBRARIES))


def _describe(library: ctypes.CDLL, file_name: str) -> Blas | None:
    for before, after, bits in _SPELLINGS:
        symbols = {name: function_address(library, before + name + after) for name in ROUTINES}
        if not all(symbols.values()):
            continue
        config = _text(library, f"{before}openblas_get_config{after}")
        core = _text(library, f"{before}openblas_get_corename{after}")
        if "USE64BITINT" in config or _mkl_is_wide(file_name):
            bits = 64  # built with 64-bit integers under the plain names
        name = f"{' '.join(config.split()[:2])} ({core})" if config and core else file_name
        setter, getter = (
            function_address(library, f"{before}openblas_{verb}_num_threads{after}") or None
            for verb in ("set", "get")
        )
        lapack = functools.partial(_lapack_address, library, before, after)
        return Blas(symbols, bits, name, setter, getter, lapack)
    return None


def _lapack_address(library: ctypes.CDLL, before: str, after: str, name: str) -> int:
    return function_address(library, f"{before}{name}_{after}")


def _mkl_is_wide(file_name: str) -> bool:
    return "mkl_rt" in file_name and "ILP64" in os.environ.get("MKL_INTERFACE_LAYER", "").upper()


def _text(library: ctypes.CDLL, function: str) -> str:
    address = function_address(library, function)
    content = ctypes.CFUNCTYPE(ctypes.c_char_p)(address)() if address else b""
    return (content or b"").decode("ascii", "replace")
