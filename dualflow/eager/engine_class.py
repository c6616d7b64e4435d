"""The class of the eager engine, which is another one while ops are logged or profiled.

The engine object stays the same, so that all threads and all tapes that refer to it are observed. Without a
log or a profiler there is no cost. The class may change during a call of a method, so that methods of these
classes name their base class instead of ``super()``.
"""

from __future__ import annotations

from typing import Final

from dualflow.core.locks import SharedLock
from dualflow.eager.engine import EAGER, EagerEngine

_lock: Final = SharedLock()


class EngineClass:
    """The class of the eager engine: that of a profiler, or else the one that it times.

    Attributes:
        untimed: the class without a profiler: ``EagerEngine``, or that of the placement log.
    """

    __slots__ = ("_timed", "untimed")

    def __init__(self) -> None:
        self.untimed: type[EagerEngine] = EagerEngine
        self._timed: type[EagerEngine] | None = None

    def set_untimed(self, untimed: type[EagerEngine]) -> None:
        """Set the class without a profiler."""
        with _lock.lock:
            self.untimed = untimed
            self._apply()

    def set_timed(self, timed: type[EagerEngine] | None) -> None:
        """Set the class of a profiler, whose methods time those of :attr:`untimed`; None for no profiler."""
        with _lock.lock:
            self._timed = timed
            self._apply()

    def _apply(self) -> None:
        EAGER.__class__ = self._timed or self.untimed


ENGINE_CLASS: Final = EngineClass()
"""That of ``EAGER``."""
