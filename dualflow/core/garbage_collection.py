"""Pauses of Python's garbage collector, for work that creates many objects of which most stay alive."""

from __future__ import annotations

import gc
import os
import sys
from typing import Final

MANY_MODULES: Final = 50
"""The number of modules imported in a block from which on its objects are not traversed.

The first compile imports 200, whose 24,000 objects take the collector 5 ms.
"""
_pauses: Final[dict[int, int]] = {}
"""The ids of the blocks that have disabled the collector, with the number of modules at their beginning."""


class collection_paused:
    """``with collection_paused():`` disables the garbage collector during the block, if it is enabled.

    Of nested and concurrent blocks, the one that has disabled it enables it again. After an exception of a
    signal handler, and in a child that is forked meanwhile, it is enabled. A block that imports many modules
    moves all objects to the oldest generation, since those of modules are never garbage.

    >>> with collection_paused():
    ...     gc.isenabled()
    False
    >>> gc.isenabled()
    True
    """

    __slots__ = ()

    def __enter__(self) -> None:
        if gc.isenabled():
            _pauses[id(self)] = len(sys.modules)
            gc.disable()

    def __exit__(self, *exc: object) -> None:
        self._end()

    def _end(self) -> None:
        modules = _pauses.get(id(self))
        if modules is not None:
            if len(sys.modules) - modules >= MANY_MODULES:
                _age_all_objects()
            gc.enable()
            del _pauses[id(self)]

    __del__ = _end


def _age_all_objects() -> None:
    """Move all objects to the oldest generation, in constant time; not if the caller has frozen objects."""
    if gc.get_freeze_count() == 0:
        gc.freeze()
        gc.unfreeze()


def _enable_in_child() -> None:
    """Enable the collector in a forked child, which has none of the threads that would."""
    if _pauses:
        gc.enable()
        _pauses.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_enable_in_child)
