"""The calls that a function served last: the trace for each kind of call, and the fast path to try first.

A *fast path* is a callable that goes from the values of a call straight to the executable
(``c_call.py``, ``checked_call.py``). It returns :data:`REFUSED` for values that it doesn't serve; then
the slow path binds the arguments and finds or makes a trace. The compiled graph keeps the fast paths.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final, Generic, TypeVar

import numpy as np

from dualflow.core.convert import as_array
from dualflow.core.records import NamedTuple
from dualflow.eager.tensor import EagerTensor, wrap
from dualflow.function.calls.call_form import CallForm, exact, refuse

MAX_KINDS: Final = 1024
_STATIC: Final = frozenset({bool, int, float, str, type(None)})

Names = tuple[str, ...]
"""Of the keywords of a call, in its order: they name the last ones of its values."""

T = TypeVar("T")
"""What the table keeps: traces."""


class CachedCall(NamedTuple, Generic[T]):
    """The trace for calls of one kind, and their form; None for the inputs alone, in order."""

    trace: T
    form: CallForm | None

    def inputs(self, values: Sequence[Any]) -> list[Any]:
        """Those of ``values`` that are inputs of the trace; arrays as tensors."""
        inputs = values if self.form is None else [values[i] for i in self.form.places]
        return [wrap(as_array(x)) if type(x) is np.ndarray else x for x in inputs]

    def values(self, inputs: Sequence[Any]) -> Sequence[Any]:
        """The values of a call with these inputs."""
        return inputs if self.form is None else self.form.values(inputs)


class CallCache(Generic[T]):
    """Traces by the kind of call that they serve, and the fast paths that calls try first.

    Attributes:
        fast: the fast path of the latest call without keywords.
        named: those of calls with keywords, by the number of values without a keyword and the keywords.
    """

    __slots__ = ("_forms", "_known", "_tried", "fast", "named")

    def __init__(self) -> None:
        self._known: dict[Hashable, CachedCall[T]] = {}
        self._forms: dict[CallForm, CallForm] = {}
        self._tried: dict[tuple[int, Names], T] = {}
        self.fast: Callable[..., Any] = refuse
        self.named: dict[tuple[int, Names], Callable[..., Any]] = {}

    def find(self, kind: Hashable) -> CachedCall[T] | None:
        """The call that :meth:`keep` added for ``kind``."""
        return self._known.get(kind)

    def keep(self, kind: Hashable, trace: T, form: CallForm | None) -> CachedCall[T]:
        """Serve the next calls of this kind, as :func:`kind_of_call` returns it, by ``trace``."""
        if len(self._known) >= MAX_KINDS:
            self.clear()
        if form is not None:
            form = self._forms.setdefault(form, form)  # equal forms share their Python values
        known = self._known[kind] = CachedCall(trace, form)
        return known

    def try_first(self, fast: Callable[..., Any], trace: T, count: int, names: Names) -> None:
        """Let the next call with ``count`` values, the last of them by these names, try ``fast`` first."""
        if names:
            way = count - len(names), names
            self.named[way] = fast
        else:
            way = 0, names  # there is one without keywords
            self.fast = fast
        self._tried[way] = trace

    @property
    def tried(self) -> list[T]:
        """The traces whose fast paths are tried first: calls by these are not counted."""
        return list(self._tried.values())

    def clear(self) -> None:
        """Forget all."""
        self._known.clear()
        self._forms.clear()
        self._tried.clear()
        self.named.clear()
        self.fast = refuse


def kind_of_call(values: Sequence[Any], names: Names) -> Hashable | None:
    """A key that calls of different traces don't share; None if that takes the whole signature."""
    key: list[Any] = [names]
    for x in values:
        kind = type(x)
        if kind is EagerTensor:
            array = x._array
            key += (array.dtype, array.shape)
        elif kind in _STATIC:
            key += (kind, exact(x))
        elif kind is np.ndarray:
            key += (kind, x.dtype, x.shape)
        else:
            return None
    return tuple(key)
