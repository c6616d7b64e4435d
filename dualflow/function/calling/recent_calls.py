"""What makes the next call of a function fast: the traces found last, and short ways into some of them."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from dualflow.core.convert import as_array
from dualflow.eager.tensor import EagerTensor, wrap

if TYPE_CHECKING:
    from dualflow.function.concrete import ConcreteFunction

MAX_FORMS: Final = 1024
_STATIC: Final = frozenset({bool, int, str, type(None)})

Names = tuple[str, ...]
"""Of the keywords of a call, in its order: they name the last ones of its values."""


class Found(NamedTuple):
    """A trace, and which of a call's values are its inputs, in their order."""

    trace: ConcreteFunction
    places: tuple[int, ...]

    def inputs(self, values: Sequence[Any]) -> list[Any]:
        """Those of ``values`` that are inputs of the trace."""
        return [values[i] for i in self.places]


class Latest:
    """Traces by the shapes, dtypes and Python values of arguments, and one short way for each form of call.

    Attributes:
        short: serves calls without keywords,
        named: those with keywords, by the number of values without and the names of the others.
    """

    __slots__ = ("_found", "_turned", "named", "short")

    def __init__(self) -> None:
        self._found: dict[Hashable, Found] = {}
        self._turned: dict[tuple[int, Names], ConcreteFunction] = {}
        self.short: Callable[..., Any] | None = None
        self.named: dict[tuple[int, Names], Callable[..., Any]] = {}

    def find(self, key: Hashable) -> Found | None:
        """What :meth:`keep` was given for ``key``."""
        return self._found.get(key)

    def keep(self, key: Hashable, found: Found) -> None:
        """Find a trace by :func:`form` next time."""
        if len(self._found) >= MAX_FORMS:
            self.clear()
        self._found[key] = found

    def turn_to(
        self, found: Found, values: Sequence[Any], names: Names, long_way: LongWay
    ) -> Callable[..., Any]:
        """Let the next call that looks like this one try the short way into its trace, and answer it."""
        short = found.trace.short(found.places, values, names, long_way)
        way = len(values) - len(names), names
        if names:
            self.named[way] = short
        else:
            way = 0, names  # there is one short way without keywords
            self.short = short
        self._turned[way] = found.trace
        return short

    def mark_used(self, call: int) -> None:
        """Note on the traces with a short way, which keeps no account, that they were used up to ``call``."""
        for trace in self._turned.values():
            trace.used = call

    def clear(self) -> None:
        """Forget all."""
        self._found.clear()
        self._turned.clear()
        self.named.clear()
        self.short = None


def form(values: Sequence[Any], names: Names) -> Hashable | None:
    """What tells calls of different traces apart; None where only the whole signature does."""
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


class LongWay:
    """A method as a callable that doesn't keep its object, which holds the short way to it, alive."""

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
