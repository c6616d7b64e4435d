"""The traces that one function keeps: bounded in number, and freed with the objects they were made for."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Sequence
from typing import Any, Final

from dualflow.core.records import NamedTuple
from dualflow.function.arguments.open_sizes import open_sizes, serves
from dualflow.function.arguments.signature import CallArguments, Key
from dualflow.function.arguments.trace_key import ObjectLeaf
from dualflow.function.calls.call_cache import CallCache
from dualflow.function.concrete import ConcreteFunction

MAX_TRACES: Final = 256


class CacheInfo(NamedTuple):
    """How often a function found a trace, how often it made one, how many it may keep and how many it has."""

    hits: int
    misses: int
    maxsize: int
    currsize: int


class TraceCache:
    """Traces by the key of the calls they serve, at most 256; the one that was used longest ago goes first.

    Attributes:
        recent: how recent calls find their traces faster.
    """

    __slots__ = ("__weakref__", "_open", "_traces", "_watched", "recent")

    def __init__(self) -> None:
        self.recent: CallCache[ConcreteFunction] = CallCache()
        self._traces: dict[Key, list[ConcreteFunction]] = {}
        self._watched: dict[Key, list[object]] = {}
        self._open: list[Key] = []

    @property
    def keys(self) -> list[Key]:
        """What the traces were made for."""
        return list(self._traces)

    @property
    def traces(self) -> list[ConcreteFunction]:
        """The traces, in the order they were made for the first call of their kind."""
        return [c for several in list(self._traces.values()) for c in several]

    def find(self, call: CallArguments, inputs: Sequence[Any], now: int) -> ConcreteFunction | None:
        """The trace that serves ``call``, number ``now``: of several that with the fewest open sizes."""
        for key in (call.key, *(key for key in self._open if serves(key, call.key))):
            for concrete in self._traces.get(key, ()):
                if concrete.serves(inputs):
                    concrete.used = now
                    return concrete
        return None

    def add(self, concrete: ConcreteFunction, now: int) -> None:
        """Keep a trace made for call number ``now``."""
        key = concrete.key
        concrete.used = now
        if open_sizes(key) and key not in self._traces:
            self._open = sorted([*self._open, key], key=open_sizes)
        self._traces.setdefault(key, []).append(concrete)
        objects = [leaf for leaf in key[1] if isinstance(leaf, ObjectLeaf)]
        if objects and key not in self._watched:
            gone = functools.partial(_forget, weakref.ref(self), key)
            self._watched[key] = [leaf.watch(gone) for leaf in objects]
        if len(self.traces) > MAX_TRACES:
            for tried in self.recent.tried:
                tried.used = now
            self.forget(min(self._traces, key=lambda k: max(c.used for c in self._traces[k])))

    def forget(self, key: Key) -> None:
        """Free the traces for ``key``.

        It must be the very tuple that they were added with: a key that holds a dead object equals no other.
        """
        self._traces.pop(key, None)
        self._watched.pop(key, None)
        self._open = [other for other in self._open if other is not key]
        self.recent.clear()

    def clear(self) -> None:
        """Free all traces."""
        self._traces.clear()
        self._watched.clear()
        self._open = []
        self.recent.clear()


def _forget(cache: weakref.ref[TraceCache], key: Key) -> None:
    """Called when an object dies that the traces for ``key`` were made for."""
    alive = cache()
    if alive is not None:
        alive.forget(key)
