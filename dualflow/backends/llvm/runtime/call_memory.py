"""The arena that a graph's C fast calls share, one call at a time."""

from __future__ import annotations

import ctypes

import numpy as np

ALIGNMENT = 64


class CallMemory:
    """An arena whose address is in a cell: a call swaps it out atomically, and stores it back at its end.

    All C fast calls of a graph share it. A concurrent or nested call reads null from the cell and allocates
    its own arena. Pages are allocated by the system at the first write.

    Attributes:
        nbytes: the size of the arena.
        cell: the address of the cell.

    >>> memory = CallMemory(1 << 20)
    >>> memory.nbytes
    1048576
    """

    __slots__ = ("_cell", "_memory", "cell", "nbytes")

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes
        self._memory = aligned_bytes(nbytes)
        self._cell = np.array([self._memory.__array_interface__["data"][0]], np.uintp)
        self.cell: int = self._cell.__array_interface__["data"][0]


class GrowingCallMemory:
    """The memory of a graph whose calls have different sizes: the last arena, and two parameter tables.

    Three cells in a row have the addresses of the arena, of the parameter table with the latest sizes, and of
    a table for other sizes; ``entry.ll`` allocates all of them. It allocates another arena where the kept one
    is too small. The two words before an arena are the address of its allocation and its bytes; a table
    begins at byte 16 of its allocation.

    Attributes:
        nbytes: 0; a call computes the bytes that it needs.
        cell: the address of the first cell.
    """

    __slots__ = ("_cells", "cell", "nbytes")

    def __init__(self) -> None:
        self.nbytes = 0
        self._cells = np.zeros(3, np.uintp)
        self.cell: int = self._cells.__array_interface__["data"][0]

    def __del__(self) -> None:
        arena, *tables = self._cells.tolist()
        if arena:
            _free(ctypes.c_size_t.from_address(arena - 16).value)
        for table in tables:
            if table:
                _free(table - 16)


_free = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(("PyMem_RawFree", ctypes.pythonapi))


def aligned_bytes(nbytes: int) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """Uninitialised bytes that begin at a cache line.

    >>> aligned_bytes(100).nbytes, aligned_bytes(100).ctypes.data % 64
    (100, 0)
    """
    raw = np.empty(nbytes + ALIGNMENT, np.uint8)
    start = -raw.__array_interface__["data"][0] % ALIGNMENT
    return raw[start : start + nbytes]
