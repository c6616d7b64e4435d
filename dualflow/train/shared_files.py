"""A hook by which only one worker writes a file that several workers share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from dualflow.core.slot import Slot


def _write(path: str, write: Callable[[], None]) -> None:
    write()


WRITE_ONCE: Final[Slot[Callable[[str, Callable[[], None]], None]]] = Slot("files of several workers", _write)
"""``WRITE_ONCE.value(path, write)`` calls ``write`` in the first worker, and in each with another path.

It returns, or raises the error of ``write``, in all workers. Without workers it calls ``write``.
"""
