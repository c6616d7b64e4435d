"""The calls that a function served last: the trace that each kind of call needs, and the short way into it.

A *short way* is a callable that goes from the arguments straight to machine code (``builtin_call.py``). Calls
that it doesn't serve go to its *long way*, which binds the arguments and finds or makes a trace.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final, Generic, Protocol, TypeVar

import numpy as np

from dualflow.core.convert import as_array
from dualflow.core.records import NamedTuple
from dualflow.eager.tensor import EagerTensor, wrap

MAX_KINDS: Final = 1024
_STATIC: Final = frozenset({bool, int, str, type(None)})

Names = tuple[str, ...]
"""Of the keywords of a call, in its order: they name the last ones of its values."""


class LongWay:
    """A bound method as a callable that holds the method's object weakly.

    The object holds the short way, which holds this.
    """

    __slots__ = ("_method", "_names")

    def __init__(self, method: Callable[..., Any], names: Names = ()) -> None:
        self._method = method if isinstance(method, weakref.WeakMethod) else weakref.WeakMethod(method)
        self._names = names

    def named(self, names: Names) -> LongWay:
        """The same for calls whose last values have these names."""
        return LongWay(self._method, names) if names else self

    def __call__(self, *values: Any) -> Any:
        method = self._method()
        assert method is not None, "the short way is called through its object"
        return method(*values, names=self._names) if self._names else method(*values)


class Shortened(Protocol):
    """What can be called in a short way.

    Attributes:
        used: the number of the call that used it last.
    """

    used: int

    def short(
        self, places: Sequence[int], values: Sequence[Any], names: Names, long_way: LongWay
    ) -> Callable[..., Any]:
        """A short way for calls that look like ``values``, of which those at ``places`` are the inputs."""
        ...


T = TypeVar("T", bound=Shortened)
"""What the table keeps: traces."""


class KnownCall(NamedTuple, Generic[T]):
    """The trace for calls of one kind, and which of a call's values are its inputs, in their order."""

    trace: T
    places: tuple[int, ...]

    def inputs(self, values: Sequence[Any]) -> list[Any]:
        """Those of ``values`` that are inputs of the trace."""
        return [values[i] for i in self.places]


class RecentCalls(Generic[T]):
    """Traces by the kind of call that they serve, and the short ways that calls try first.

    Attributes:
        short: the short way of the latest call without keywords; None if there is none.
        named: those of calls with keywords, by the number of values without a keyword and the keywords.
    """

    __slots__ = ("_known", "_shortened", "named", "short")

    def __init__(self) -> None:
        self._known: dict[Hashable, KnownCall[T]] = {}
        self._shortened: dict[tuple[int, Names], T] = {}
        self.short: Callable[..., Any] | None = None
        self.named: dict[tuple[int, Names], Callable[..., Any]] = {}

    def find(self, kind: Hashable) -> KnownCall[T] | None:
        """What :meth:`keep` was given for ``kind``."""
        return self._known.get(kind)

    def keep(self, kind: Hashable, known: KnownCall[T]) -> None:
        """Serve the next calls of this kind, as :func:`kind_of_call` returns it, by ``known``."""
        if len(self._known) >= MAX_KINDS:
            self.clear()
        self._known[kind] = known

    def shorten(
        self, known: KnownCall[T], values: Sequence[Any], names: Names, long_way: LongWay
    ) -> Callable[..., Any]:
        """Let the next call that looks like ``values`` try the short way first, which is also returned."""
        short = known.trace.short(known.places, values, names, long_way)
        way = len(values) - len(names), names
        if names:
            self.named[way] = short
        else:
            way = 0, names  # there is one short way without keywords
            self.short = short
        self._shortened[way] = known.trace
        return short

    def mark_used(self, call: int) -> None:
        """Set ``used`` of the traces that have a short way, which doesn't count its calls, to ``call``."""
        for trace in self._shortened.values():
            trace.used = call

    def clear(self) -> None:
        """Forget all."""
        self._known.clear()
        self._shortened.clear()
        self.named.clear()
        self.short = None


def kind_of_call(values: Sequence[Any], names: Names) -> Hashable | None:
    """A key that calls of different traces don't share; None where only the whole signature tells."""
    key: list[Any] = [names]
    for x in values:
        kind = type(x)
        if kind is EagerTensor:
            array = x._array
            key += (array.dtype, array.shape)
        elif kind in _STATIC:
            key += (kind, x)
        elif kind is float:
            key += (kind, x.hex())
        elif kind is np.ndarray:
            key += (kind, x.dtype, x.shape)
        else:
            return None
    return tuple(key)


def as_tensors(values: Sequence[Any]) -> list[Any]:
    """``values`` with arrays made tensors."""
    return [wrap(as_array(x)) if type(x) is np.ndarray else x for x in values]
