"""The reasons why a function was traced again, as text, and the warning about frequent retracing."""

from __future__ import annotations

import functools
import os
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from dualflow.core.records import NamedTuple
from dualflow.core.spans import logger
from dualflow.core.spec import TensorSpec
from dualflow.core.tree import Structure
from dualflow.core.warning import warn_user
from dualflow.function.arguments.dynamic_sizes import Axis, input_leaves
from dualflow.function.arguments.signature import Key
from dualflow.function.arguments.trace_key import Leaf, ObjectLeaf, TensorLeaf, ValueLeaf
from dualflow.function.errors import RetracingWarning
from dualflow.graph.size_guards import SizeGuard, SizeGuards
from dualflow.sizes.symbolic_sizes import SizeVariable

_TRACES: Final = 5
_CALLS: Final = 10
"""The warning is given for ``_TRACES`` traces within ``_CALLS`` calls."""
_MAX_WARNINGS: Final = 2
"""The number of warnings of one function."""
_USE_SIGNATURE: Final = "make sizes dynamic by an input_signature, or pad to one size"
_USE_SHAPE_OP: Final = "Python code needs it as a number: compute with df.shape, or pad to one size"
_USE_ONE_SIZE: Final = "the op at {0} is compiled for each size: keep to few, or pad to one"
_OTHER_KEYS: Final = "the keys of a dict are in another order or of other types (keep to one)"
_SERVES_ALL_SIZES: Final = "this trace serves all sizes"
_MAX_EVENTS: Final = 256

Remedy = Callable[[int, Iterable[int]], str]
"""What to do about different sizes, by the number of the leaf and its axes."""


class Event(NamedTuple):
    """One trace: its arguments, the number of the call, and how it differs from the nearest earlier trace."""

    arguments: str
    call: int
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        why = f"  because {'; '.join(self.reasons)}" if self.reasons else ""
        return f"at call {self.call}: {self.arguments}{why}"


class TraceHistory:
    """The latest 256 traces of one function, with the reason for each.

    Args:
        name: the function's name.
        relaxes_sizes: whether sizes in which its calls differ are dynamic, unless Python code needs them.
    """

    def __init__(self, name: str, relaxes_sizes: bool) -> None:
        self._name = name
        self._remedy = _USE_SHAPE_OP if relaxes_sizes else _USE_SIGNATURE
        self._events: deque[Event] = deque(maxlen=_MAX_EVENTS)
        self._recent: deque[int] = deque(maxlen=_TRACES)
        self._warned = 0
        self.count = 0
        self.dynamic_sizes_error = ""
        """The error of the function's first trace with dynamic sizes; empty if there was none."""
        self.fixed_axes: dict[Axis, SizeGuard] = {}
        """The axes of leaves whose sizes Python code or an op needs as numbers, with the guard."""
        self._guards: dict[str, tuple[Key, Mapping[SizeVariable, Axis], SizeGuard]] = {}

    def add(
        self,
        names: Sequence[str],
        parameters: Sequence[str],
        key: Key,
        traced: Key,
        earlier: Sequence[Key],
        call: int,
        *,
        nested: bool,
    ) -> None:
        """Add a new trace, and issue a RetracingWarning if it is the fifth in ten calls, at most twice.

        Args:
            names: the names of the leaves of ``key``.
            parameters: the names of the function's parameters.
            key: the key of the call.
            traced: the key of the trace, in which sizes may be dynamic.
            earlier: the keys of the earlier traces, none of which serves the call.
            call: the number of the call.
            nested: whether the function was being traced: such traces unroll a recursion, and don't count
                for the warning.
        """
        shown = (
            ", ".join(f"{n}: {leaf}" for n, leaf in zip(names, traced.leaves, strict=True)) or "no arguments"
        )
        guard = self._refusing_guard(key, traced) if traced in earlier else None
        reasons = (
            (guard,) if guard else tuple(_nearest(key, traced, earlier, names, parameters, self._remedy_of))
        )
        self._events.append(Event(shown, call, reasons))
        self.count += 1
        if nested:
            return
        self._recent.append(call)
        often = len(self._recent) == _TRACES and call - self._recent[0] < _CALLS
        if often and reasons and self._warned < _MAX_WARNINGS:
            self._warned += 1
            self._warn(call, reasons)

    def add_guards(self, key: Key, names: Sequence[str], guards: SizeGuards) -> None:
        """Add the guards of a trace for ``key``, whose leaves have ``names``."""
        leaves = input_leaves(key)
        self.fixed_axes.update({(leaves[i], axis): guard for (i, axis), guard in guards.fixed_axes.items()})
        axes = {v: (leaves[i], axis) for v, (i, axis) in guards.axes.items()}
        shown = {v: f"{names[leaf]}.shape[{axis}]" for v, (leaf, axis) in axes.items()}
        for guard in guards.guards:
            self._guards.setdefault(guard.described(shown), (key, axes, guard))

    def _remedy_of(self, leaf: int, axes: Iterable[int]) -> str:
        """What to do about different sizes of ``axes`` of a leaf."""
        for axis in axes:
            guard = self.fixed_axes.get((leaf, axis))
            if guard is not None and guard.of_op:
                return _USE_ONE_SIZE.format(_line(guard))
        return self._remedy

    def _refusing_guard(self, key: Key, traced: Key) -> str | None:
        """The guard of an earlier trace with the same dynamic sizes that refuses a call with ``key``."""
        for text, (guarded, axes, guard) in self._guards.items():
            if guarded == traced:
                sizes = {v: key.leaves[leaf].spec.shape[axis] for v, (leaf, axis) in axes.items()}  # type: ignore[union-attr]  # of tensors
                if not guard.holds(sizes):
                    return f"{text} does not hold{_place(guard)}"
        return None

    def log_latest(self, seconds: float) -> None:
        """Log the latest trace, with its time in seconds, if traces are logged."""
        log = logger("trace")
        if log is not None:
            log.info("traced %s in %.1f ms, %s", self._name, 1e3 * seconds, self._events[-1])

    def explain(self) -> str:
        """The text of ``explain``: one line for each trace."""
        lines = [f"{self._name} was traced {self.count} time{'s' * (self.count != 1)}."]
        first = self.count - len(self._events) + 1
        lines += [f"{number}. {event}" for number, event in enumerate(self._events, start=first)]
        if self._guards:
            lines.append("Traces with dynamic sizes serve the calls for which Python code decides alike:")
            read = {text: guard for text, (*_, guard) in self._guards.items() if guard.origin is not None}
            lines += [f"    {text}{_place(guard)}" for text, guard in read.items()]
        if self.dynamic_sizes_error:
            lines.append(f"Sizes can't be dynamic, as the function needs them: {self.dynamic_sizes_error}")
        return "\n".join(lines)

    def _warn(self, call: int, reasons: Sequence[str]) -> None:
        window = call - self._recent[0] + 1
        warn_user(
            f"{_TRACES} out of the last {window} calls to {self._name} triggered retracing, which "
            f"costs far more than a call. The last time, {'; '.join(reasons)}. {self._name}.explain() lists "
            "all traces.",
            category=RetracingWarning,
        )


def _place(guard: SizeGuard) -> str:
    """The line that made a guard necessary, as the end of a sentence."""
    return "" if guard.origin is None else f" ({_line(guard)})"


def _line(guard: SizeGuard) -> str:
    assert guard.origin is not None, "it has a line"
    return f"{os.path.basename(guard.origin.file)}:{guard.origin.line}"


def _nearest(
    key: Key,
    traced: Key,
    earlier: Sequence[Key],
    names: Sequence[str],
    parameters: Sequence[str],
    remedy_of: Remedy,
) -> list[str]:
    """The differences between ``key`` and the most similar earlier key, if possible of the same structure."""
    alike = [old for old in earlier if old.structure == key.structure]
    if alike:
        return min([_differences(old, key, traced, names, remedy_of) for old in alike], key=len)
    others = [_restructured(old.structure, key.structure, parameters) for old in earlier]
    return min(others, key=len, default=[])


def _differences(old: Key, new: Key, traced: Key, names: Sequence[str], remedy_of: Remedy) -> list[str]:
    rows = zip(names, old.leaves, new.leaves, traced.leaves, strict=True)
    dicts = [] if old.dict_keys == new.dict_keys else [_OTHER_KEYS]
    leaves = [
        _difference(name, a, b, leaf, functools.partial(remedy_of, i))
        for i, (name, a, b, leaf) in enumerate(rows)
        if a != b
    ]
    return [*leaves, *dicts]


def _restructured(old: Structure, new: Structure, parameters: Sequence[str]) -> list[str]:
    """The arguments whose structure differs from that of an earlier key."""
    pairs = zip(parameters, old.children, new.children, strict=True)
    return [
        f"{name} went from {outline(before)} to {outline(now)} (another structure: keep to one)"
        for name, before, now in pairs
        if before != now
    ]


def outline(structure: Structure) -> str:
    """The brackets of a structure, with a star for each leaf.

    >>> from dualflow.core.tree import flatten
    >>> outline(flatten({"a": [1, 2], "b": (3, None)})[1])
    'dict(a=[*, *], b=(*, None))'
    """
    kind, keys, children = structure
    if kind is None or kind is type(None):
        return "*" if kind is None else "None"
    parts = [outline(child) for child in children]
    if keys:
        parts = [f"{k}={part}" for k, part in zip(keys, parts, strict=True)]
    inner = ", ".join(parts)
    if kind is list:
        return f"[{inner}]"
    return f"({inner})" if kind is tuple else f"{getattr(kind, '__name__', type(kind).__name__)}({inner})"


def _difference(
    name: str, old: Leaf, new: Leaf, traced: Leaf, remedy_of: Callable[[Iterable[int]], str]
) -> str:
    if isinstance(old, TensorLeaf) and isinstance(new, TensorLeaf) and isinstance(traced, TensorLeaf):
        return _tensor_difference(name, old.spec, new.spec, traced.spec, remedy_of)
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


def _tensor_difference(
    name: str,
    old: TensorSpec,
    new: TensorSpec,
    traced: TensorSpec,
    remedy_of: Callable[[Iterable[int]], str],
) -> str:
    if old.dtype is not new.dtype:
        return f"{name} went from {old.dtype.name} to {new.dtype.name} (df.cast it before the call)"
    if old.rank != new.rank:
        return f"{name} went from shape {old.shape} to {new.shape}, of another rank"
    sizes = enumerate(zip(old.shape, new.shape, strict=True))
    changes = {i: f"axis {i} of {name} went from {a} to {b}" for i, (a, b) in sizes if a != b}
    note = _SERVES_ALL_SIZES if all(traced.shape[i] is None for i in changes) else remedy_of(changes)
    return f"{', '.join(changes.values())} ({note})"
