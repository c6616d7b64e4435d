"""What makes the next call of a function fast: the traces found last, and the short way into one of them."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dualflow.function.concrete import ConcreteFunction


class Latest:
    """Traces by the shapes, dtypes and Python values of positional arguments, and one trace's short way."""

    __slots__ = ("_trace", "short", "traces")

    def __init__(self) -> None:
        self.traces: dict[tuple[Any, ...], ConcreteFunction] = {}
        self.short: Callable[..., Any] | None = None
        self._trace: ConcreteFunction | None = None

    def turn_to(self, trace: ConcreteFunction, long_way: Callable[..., Any]) -> None:
        """Let the next call try the short way into ``trace``."""
        self.short = trace.short(long_way)
        self._trace = trace

    def mark_used(self, call: int) -> None:
        """Note on the trace with the short way, which keeps no account, that it was used up to ``call``."""
        if self._trace is not None:
            self._trace.used = call

    def clear(self) -> None:
        """Forget all."""
        self.traces.clear()
        self.short = None
        self._trace = None


class LongWay:
    """A method as a callable that doesn't keep its object, which holds the short way to it, alive."""

    __slots__ = ("_method",)

    def __init__(self, method: Callable[..., Any]) -> None:
        self._method = weakref.WeakMethod(method)

    def __call__(self, *args: Any) -> Any:
        method = self._method()
        assert method is not None, "the short way is called through its object"
        return method(*args)
