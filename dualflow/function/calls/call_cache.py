"""The cache of recent calls: the trace for each kind of call, and the fast path to try first.

A *fast path* is a callable that passes the values of a call to the executable (``c_call.py``,
``checked_call.py``). It returns :data:`REFUSED` for values that it doesn't serve; then the slow path binds
the arguments, and looks the trace up or creates it. The compiled graph stores the fast paths.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final, Generic, TypeVar

import numpy as np

from dualflow.core.convert import as_array
from dualflow.core.records import NamedTuple
from dualflow.eager.device_tensor import DeviceTensor
from dualflow.eager.tensor import EagerTensor, wrap
from dualflow.function.calls.call_form import CallForm, literal_key, refuse
from dualflow.graph.user_rewrites import REWRITES

MAX_KINDS: Final = 1024
_STATIC: Final = frozenset({bool, int, float, str, type(None)})

Names = tuple[str, ...]
"""The keywords of a call, in its order: the names of the last of its values."""

T = TypeVar("T")
"""The type of the traces."""


class CachedCall(NamedTuple, Generic[T]):
    """The trace for calls of one kind, and their form: None if the values are the inputs, in order."""

    trace: T
    form: CallForm | None

    def inputs(self, values: Sequence[Any]) -> list[Any]:
        """The ``values`` that are inputs of the trace; arrays as tensors."""
        inputs = values if self.form is None else [values[i] for i in self.form.argument_indices]
        return [wrap(as_array(x)) if type(x) is np.ndarray else x for x in inputs]

    def values(self, inputs: Sequence[Any]) -> Sequence[Any]:
        """The values of a call with these inputs."""
        return inputs if self.form is None else self.form.values(inputs)


class CallCache(Generic[T]):
    """Traces by the kind of call that they serve, and the fast paths that calls try first.

    Attributes:
        fast: the fast path of the latest call without keywords.
        named: the fast paths of calls with keywords, by the number of values without one and the keywords.
    """

    __slots__ = ("__weakref__", "_calls", "_forms", "_tried", "fast", "named")

    def __init__(self) -> None:
        self._calls: dict[Hashable, CachedCall[T]] = {}
        self._forms: dict[CallForm, CallForm] = {}
        self._tried: dict[tuple[int, Names], T] = {}
        self.fast: Callable[..., Any] = refuse
        self.named: dict[tuple[int, Names], Callable[..., Any]] = {}

    def find(self, kind: Hashable) -> CachedCall[T] | None:
        """The call that :meth:`keep` added for ``kind``."""
        return self._calls.get(kind)

    def keep(self, kind: Hashable, trace: T, form: CallForm | None) -> CachedCall[T]:
        """Store ``trace`` for the next calls of ``kind``, a key that :func:`kind_of_call` returned."""
        if len(self._calls) >= MAX_KINDS:
            self.clear()
        if form is not None:
            form = self._forms.setdefault(form, form)  # equal forms share their Python values
        call = self._calls[kind] = CachedCall(trace, form)
        return call

    def try_first(
        self, fast: Callable[..., Any], trace: T, count: int, names: Names, generation: int
    ) -> None:
        """Store ``fast`` as the fast path that the next call with ``count`` values tries first.

        The last values are keyword arguments of these ``names``. The program of ``fast`` was looked up after
        the registry of rewrites had this ``generation``.
        """
        is_watched = bool(self._tried)
        if names:
            key = count - len(names), names
            self.named[key] = fast
        else:
            key = 0, names  # the cache has one fast path for calls without keywords
            self.fast = fast
        self._tried[key] = trace
        if not is_watched or generation != REWRITES.generation:
            REWRITES.watch(self, generation)

    @property
    def tried(self) -> list[T]:
        """The traces whose fast paths are tried first; calls of these don't update ``last_call``."""
        return list(self._tried.values())

    def forget_fast_paths(self) -> None:
        """Remove all fast paths; the next calls look up their programs."""
        self._tried.clear()
        self.named.clear()
        self.fast = refuse

    def clear(self) -> None:
        """Remove all entries."""
        self._calls.clear()
        self._forms.clear()
        self.forget_fast_paths()


def kind_of_call(values: Sequence[Any], names: Names) -> Hashable | None:
    """A key that is equal for calls with the same trace.

    None if an argument is not a tensor, array or scalar.
    """
    key: list[Any] = [names]
    for x in values:
        kind = type(x)
        if kind is EagerTensor:
            array = x._array
            key += (array.dtype, array.shape)
        elif kind is np.ndarray:
            key += (kind, x.dtype, x.shape)
        elif kind in _STATIC:
            key += (kind, literal_key(x))
        elif kind is DeviceTensor:
            key += (x.storage.dtype, x.storage.shape)
        else:
            return None
    return tuple(key)
