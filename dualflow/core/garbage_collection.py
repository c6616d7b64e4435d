"""Pauses of Python's garbage collector, for work that creates many objects of which most stay alive."""

from __future__ import annotations

import gc
import os
from typing import Final

_pauses: Final[dict[int, None]] = {}
"""The ids of the blocks that have disabled the collector."""


class collection_paused:
    """``with collection_paused():`` disables the garbage collector during the block, if it is enabled.

    Of nested and concurrent blocks, the one that has disabled it enables it again. After an exception of a
    signal handler, and in a child that is forked meanwhile, it is enabled.

    >>> with collection_paused():
    ...     gc.isenabled()
    False
    >>> gc.isenabled()
    True
    """

    __slots__ = ()

    def __enter__(self) -> None:
        if gc.isenabled():
            _pauses[id(self)] = None
            gc.disable()

    def __exit__(self, *exc: object) -> None:
        self._end()

    def _end(self) -> None:
        if id(self) in _pauses:
            gc.enable()
            del _pauses[id(self)]

    __del__ = _end


def _enable_in_child() -> None:
    """Enable the collector in a forked child, which has none of the threads that would."""
    if _pauses:
        gc.enable()
        _pauses.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_enable_in_child)
