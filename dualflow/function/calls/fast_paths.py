"""The fast paths of a compiled graph: checked calls at first, and C fast calls once they pay.

When a process first uses the C fast call, LLVM compiles it, or it is loaded from the disk. A process that
makes few calls never does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from dualflow.function.calls.call_form import REFUSED, CallForm

MIN_CALLS: Final = 50
"""The number of checked calls that a process makes before it uses the C fast call.

The C fast call saves 4 to 20 us in a call. To load its code and its modules takes 2.5 ms, and to compile the
code ten times as long.
"""
_FastPath = Callable[..., Any]


class CallCount:
    """The number of checked calls of the process in place of C fast calls; threads may lose some."""

    value = 0


class FastPaths:
    """The fast paths of a compiled graph, by the form of call that they serve."""

    __slots__ = ("_early", "_lasting")

    def __init__(self) -> None:
        self._early: dict[CallForm | None, _FastPath] = {}
        self._lasting: dict[CallForm | None, _FastPath] = {}

    def find(self, form: CallForm | None, make: Callable[[CallForm | None, bool], _FastPath]) -> _FastPath:
        """The fast path for ``form``: ``make(form, early)`` returns a new one.

        An early one is not the C fast call, and returns REFUSED as soon as that pays.
        """
        if (fast := self._lasting.get(form)) is not None:
            return fast
        if CallCount.value >= MIN_CALLS:
            return self._lasting.setdefault(form, make(form, False))
        return self._early.get(form) or self._early.setdefault(form, _counted(make(form, True)))


def _counted(call: _FastPath) -> _FastPath:
    """``call``, which counts its calls, and returns REFUSED after :data:`MIN_CALLS` of the process."""

    def counted(*values: Any) -> Any:
        if CallCount.value >= MIN_CALLS:
            return REFUSED
        CallCount.value += 1
        return call(*values)

    return counted
