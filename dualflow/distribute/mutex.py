"""A mutex that Python and machine code share."""

from __future__ import annotations

import ctypes
import functools
from typing import Any, Final

MUTEX_BYTES: Final = 104
"""At least the size of ``pthread_mutex_t`` on all platforms."""


class Mutex:
    """A mutex of the C library. Waiting for it releases the GIL.

    Args:
        address: of :data:`MUTEX_BYTES` bytes, which are initialised here.
    """

    def __init__(self, address: int) -> None:
        self._address = ctypes.c_void_p(address)
        self._library = _library()
        self._library.pthread_mutex_init(self._address, None)

    def __enter__(self) -> None:
        self._library.pthread_mutex_lock(self._address)

    def __exit__(self, *error: object) -> None:
        self._library.pthread_mutex_unlock(self._address)


def is_available() -> bool:
    """Whether the C library of this process has mutexes of POSIX."""
    try:
        return bool(_library().pthread_mutex_lock)
    except (AttributeError, OSError, TypeError):  # TypeError on Windows
        return False


@functools.cache
def _library() -> Any:
    return ctypes.CDLL(None)
