"""Why a function was traced again, in words, and a warning when that happens too often."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

from dualflow.core.spec import TensorSpec
from dualflow.function.errors import RetracingWarning
from dualflow.function.leaf import Leaf, ObjectLeaf, TensorLeaf, ValueLeaf
from dualflow.function.signature import Key, Signature
from dualflow.graph.origin import caller

TRACES: Final = 5
CALLS: Final = 10
WARNINGS: Final = 2
_KEPT: Final = 256


class Event(NamedTuple):
    """One trace: for what arguments, at which call, and how they differ from the nearest earlier trace's."""

    arguments: str
    call: int
    reasons: tuple[str, ...]


class History:
    """The traces of one function, the latest 256."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._events: deque[Event] = deque(maxlen=_KEPT)
        self._recent: deque[int] = deque(maxlen=TRACES)
        self._warned = 0
        self.count = 0

    def add(self, signature: Signature, key: Key, earlier: Sequence[Key], call: int, *, nested: bool) -> None:
        """Note a trace for ``key``, made at call number ``call`` while those for ``earlier`` were there.

        Warns with a RetracingWarning when this is the fifth trace in ten calls, twice at most; ``nested``
        ones, made while the function itself is traced, unroll a recursion and do not count.
        """
        names = signature.leaf_names(key[0])
        shown = ", ".join(f"{n}: {leaf}" for n, leaf in zip(names, key[1], strict=True)) or "no arguments"
        reasons = tuple(_nearest(key, earlier, names))
        self._events.append(Event(shown, call, reasons))
        self.count += 1
        if nested:
            return
        self._recent.append(call)
        often = len(self._recent) == TRACES and call - self._recent[0] < CALLS
        if often and reasons and self._warned < WARNINGS:
            self._warned += 1
            self._warn(call, reasons)

    def explain(self) -> str:
        """One line for each trace."""
        lines = [f"{self._name} was traced {self.count} time{'s' * (self.count != 1)}."]
        first = self.count - len(self._events) + 1
        for number, event in enumerate(self._events, start=first):
            why = f"  because {'; '.join(event.reasons)}" if event.reasons else ""
            lines.append(f"{number}. at call {event.call}: {event.arguments}{why}")
        return "\n".join(lines)

    def _warn(self, call: int, reasons: Sequence[str]) -> None:
        window = call - self._recent[0] + 1
        here = caller()
        warnings.warn_explicit(
            f"{TRACES} out of the last {window} calls to {self._name} triggered tf.function retracing, which "
            f"costs far more than a call. The last time, {'; '.join(reasons)}. {self._name}.explain() lists "
            "all traces.",
            RetracingWarning,
            here.file if here else "<unknown>",
            here.line if here else 0,
        )


def _nearest(key: Key, earlier: Sequence[Key], names: Sequence[str]) -> list[str]:
    """The differences to the trace that has the fewest."""
    found = [_differences(old, key, names) for old in earlier]
    return min(found, key=len, default=[])


def _differences(old: Key, new: Key, names: Sequence[str]) -> list[str]:
    if old[0] != new[0]:
        return ["the arguments have another structure (lists, tuples and dicts count; keep to one)"]
    pairs = zip(names, old[1], new[1], strict=True)
    return [_difference(name, before, now) for name, before, now in pairs if before != now]


def _difference(name: str, old: Leaf, new: Leaf) -> str:
    if isinstance(old, TensorLeaf) and isinstance(new, TensorLeaf):
        return _tensor_difference(name, old.spec, new.spec)
    change = f"{name} went from {old} to {new}"
    if (
        isinstance(new, ValueLeaf)
        and isinstance(new.value, int | float | complex)
        and isinstance(old, ValueLeaf)
    ):
        return f"{change} (Python numbers are compiled in: pass df.constant({name}) to trace once)"
    if isinstance(new, ObjectLeaf) and isinstance(old, ObjectLeaf):
        return f"{change} (another object: pass the same one, or give its class __eq__ and __hash__)"
    return change


def _tensor_difference(name: str, old: TensorSpec, new: TensorSpec) -> str:
    if old.dtype is not new.dtype:
        return f"{name} went from {old.dtype.name} to {new.dtype.name} (df.cast it before the call)"
    if len(old.shape) != len(new.shape):
        return f"{name} went from shape {old.shape} to {new.shape}, of another rank"
    sizes = enumerate(zip(old.shape, new.shape, strict=True))
    changes = [f"axis {i} of {name} went from {a} to {b}" for i, (a, b) in sizes if a != b]
    return f"{', '.join(changes)} (pad to one size, or batch equal sizes together)"
