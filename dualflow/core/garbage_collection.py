"""Pauses of Python's garbage collector, for work that creates many objects of which most stay alive.

Compiling runs no code of the user's, so the collector is off meanwhile (:class:`collection_paused`). Tracing
does, and that code may create garbage in cycles, large arrays among it. So a trace has fewer collections
(:class:`collections_delayed`), and few of them visit all objects. Those take longest: 40 to 60 ms in a
process that holds 220,000 objects, for a trace of 55 ms.
"""

from __future__ import annotations

import gc
import os
import sys
from typing import Final

MANY_MODULES: Final = 50
"""The number of modules imported in a block from which on its objects are not traversed.

The first compile imports 200, whose 24,000 objects take the collector 5 ms.
"""
YOUNG_OBJECTS: Final = 5_000
"""The number of new objects, less deleted ones, after which they are collected in a trace.

Python's own number is 700 (2,000 since 3.14). All objects are visited after 121 such collections at the
earliest: 600,000 new objects. With a number larger than 5,000 a trace isn't faster, since each object that
stays alive is visited once in any case.
"""
_pauses: Final[dict[int, int]] = {}
"""The ids of the blocks that have disabled the collector, with the number of modules at their beginning."""
_thresholds: Final[dict[int, int]] = {}
"""The ids of the blocks that have raised the threshold of the youngest generation, with the one before."""


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


class collections_delayed:
    """``with collections_delayed():`` collects the youngest objects less often during the block.

    The number of objects after which it does is at least :data:`YOUNG_OBJECTS`. A larger number, 0 (never)
    and a number that the block itself sets stay as they are. Of nested and concurrent blocks, the one that
    has raised the number restores it.

    >>> before = gc.get_threshold()
    >>> with collections_delayed():
    ...     gc.get_threshold()[0] >= YOUNG_OBJECTS or gc.get_threshold()[0] == 0
    True
    >>> gc.get_threshold() == before
    True
    """

    __slots__ = ()

    def __enter__(self) -> None:
        youngest, *older = gc.get_threshold()
        if 0 < youngest < YOUNG_OBJECTS:
            _thresholds[id(self)] = youngest
            gc.set_threshold(YOUNG_OBJECTS, *older)

    def __exit__(self, *exc: object) -> None:
        self._end()

    def _end(self) -> None:
        threshold = _thresholds.get(id(self))
        if threshold is not None:
            _restore(threshold)
            del _thresholds[id(self)]

    __del__ = _end


def _restore(threshold: int) -> None:
    """Set the threshold of the youngest generation, unless the user has set another one meanwhile."""
    youngest, *older = gc.get_threshold()
    if youngest == YOUNG_OBJECTS:
        gc.set_threshold(threshold, *older)


def _age_all_objects() -> None:
    """Move all objects to the oldest generation, in constant time; not if the caller has frozen objects."""
    if gc.get_freeze_count() == 0:
        gc.freeze()
        gc.unfreeze()


def _enable_in_child() -> None:
    """End all blocks in a forked child, which has none of the threads that would."""
    if _pauses:
        gc.enable()
        _pauses.clear()
    if _thresholds:
        _restore(min(_thresholds.values()))
        _thresholds.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_enable_in_child)
