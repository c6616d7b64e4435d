"""Inlines traced functions that are called in a ``StatelessScope`` of Keras.

There variables have temporary values; a trace made there would keep them for later calls, so functions run
inline.
"""

from __future__ import annotations

from typing import Any

from keras.src.backend.common.stateless_scope import StatelessScope as StatelessScope

from dualflow.function.run_eagerly import CALL_MODE

_enter, _leave = StatelessScope.__enter__, StatelessScope.__exit__


def _enter_inlined(self: Any) -> Any:
    self._inlined = CALL_MODE.inlined()
    self._inlined.__enter__()
    return _enter(self)


def _leave_inlined(self: Any, *error: Any) -> Any:
    self._inlined.__exit__(None, None, None)
    return _leave(self, *error)


StatelessScope.__enter__, StatelessScope.__exit__ = _enter_inlined, _leave_inlined
