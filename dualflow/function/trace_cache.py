"""The cache of one function's traces: bounded, and entries are removed with the objects in their keys."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Sequence
from typing import Any, Final

from dualflow.core.records import NamedTuple
from dualflow.function.arguments.dynamic_sizes import count_dynamic_sizes, serves, serves_others
from dualflow.function.arguments.signature import CallArguments, Key
from dualflow.function.arguments.trace_key import ObjectLeaf
from dualflow.function.calls.call_cache import CallCache
from dualflow.function.concrete import ConcreteFunction

MAX_TRACES: Final = 256
MAX_GUARDED_TRACES: Final = 8
"""The number of traces with the same dynamic sizes and different guards; later ones have static sizes."""


class CacheInfo(NamedTuple):
    """The numbers of calls with and without a cached trace, the largest and the current number of traces."""

    hits: int
    misses: int
    maxsize: int
    currsize: int


class TraceCache:
    """Traces by key, at most 256; the least recently used is removed first.

    Attributes:
        recent: the cache of recent calls, which is faster to look up.
        added: the number of traces added so far.
    """

    __slots__ = ("__weakref__", "_dynamic_keys", "_traces", "_watched", "added", "recent")

    def __init__(self) -> None:
        self.added = 0
        self.recent: CallCache[ConcreteFunction] = CallCache()
        self._traces: dict[Key, list[ConcreteFunction]] = {}
        self._watched: dict[Key, list[object]] = {}
        self._dynamic_keys: list[Key] = []

    @property
    def keys(self) -> list[Key]:
        """The keys of the traces."""
        return list(self._traces)

    @property
    def traces(self) -> list[ConcreteFunction]:
        """The traces that run calls; keys are in the order in which they were added."""
        return [c for c in self._all if c.for_all_batches is None or c.compiled.called]

    @property
    def without_guards(self) -> list[ConcreteFunction]:
        """The traces as a saved model has them.

        A static trace is in place of that for all batches if Python code decides by the size of a batch.
        """
        traces = self._all
        pairs = [(c, runs) for c in traces if (runs := c.for_all_batches) is not None]
        left_out = {id(runs if runs.is_guarded else static) for static, runs in pairs}
        return [c for c in traces if id(c) not in left_out]

    @property
    def _all(self) -> list[ConcreteFunction]:
        return [c for several in list(self._traces.values()) for c in several]

    def count(self, key: Key) -> int:
        """The number of traces for ``key``."""
        return len(self._traces.get(key, ()))

    def find(
        self, call: CallArguments, inputs: Sequence[Any], call_number: int, *, exact: bool = False
    ) -> ConcreteFunction | None:
        """The trace that serves ``call`` and has the fewest dynamic sizes; None if there is none.

        ``call_number`` is stored as the trace's latest call. ``exact`` excludes traces whose Python code
        has read dynamic sizes as the numbers of another call.
        """
        for key in (call.key, *(key for key in self._dynamic_keys if serves(key, call.key))):
            for concrete in self._traces.get(key, ()):
                if not (exact and concrete.guards.axes) and concrete.serves(inputs):
                    concrete.last_call = call_number
                    replacing = concrete.for_all_batches
                    if replacing is not None:
                        replacing.last_call = call_number
                    return concrete
        return None

    def add(self, concrete: ConcreteFunction, call_number: int) -> None:
        """Add a trace that was created for call number ``call_number``."""
        key = concrete.key
        concrete.last_call = call_number
        if serves_others(key) and key not in self._traces:
            self._dynamic_keys = sorted([*self._dynamic_keys, key], key=count_dynamic_sizes)
        self._traces.setdefault(key, []).append(concrete)
        self.added += 1  # last: threads that read a new number must find the trace
        objects = [leaf for leaf in key.leaves if isinstance(leaf, ObjectLeaf)]
        if objects and key not in self._watched:
            gone = functools.partial(_forget, weakref.ref(self), key)
            self._watched[key] = [leaf.watch(gone) for leaf in objects]
        while len(self.traces) > MAX_TRACES:
            for tried in self.recent.tried:  # fast paths serve calls without updating ``last_call``
                tried.last_call = call_number
            self.forget(min(self._traces, key=lambda k: max(map(_last_call, self._traces[k]))))

    def forget(self, key: Key) -> None:
        """Remove the traces for ``key``; a static trace in whose place one of them ran runs itself again.

        The key must be the same tuple object as in :meth:`add`: a key with a dead object equals no other key.
        """
        removed = {id(c) for c in self._traces.pop(key, ())}
        for concrete in self._all:
            if id(concrete.for_all_batches) in removed:
                concrete.for_all_batches = None
        self._watched.pop(key, None)
        self._dynamic_keys = [other for other in self._dynamic_keys if other is not key]
        self.recent.clear()

    def clear(self) -> None:
        """Remove all traces."""
        self._traces.clear()
        self._watched.clear()
        self._dynamic_keys = []
        self.recent.clear()


def _last_call(concrete: ConcreteFunction) -> int:
    """The latest call of a trace, or of the one in its place."""
    replacing = concrete.for_all_batches
    return concrete.last_call if replacing is None else max(concrete.last_call, replacing.last_call)


def _forget(cache: weakref.ref[TraceCache], key: Key) -> None:
    """Remove the traces for ``key``; called when an object in the key dies."""
    alive = cache()
    if alive is not None:
        alive.forget(key)
