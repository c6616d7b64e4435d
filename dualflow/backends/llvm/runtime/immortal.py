"""Memory that is never freed: threads and arrays may outlive every Python object."""

from __future__ import annotations

import ctypes

_allocate = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)(
    ("PyMem_RawCalloc", ctypes.pythonapi)
)


def zeroed(nbytes: int, alignment: int) -> int:
    """The address of ``nbytes`` zeroed bytes, which are never freed.

    Raises MemoryError if memory is exhausted.

    >>> zeroed(10, 64) % 64
    0
    """
    start: int | None = _allocate(1, nbytes + alignment)
    if start is None:
        raise MemoryError
    return -(-start // alignment) * alignment
