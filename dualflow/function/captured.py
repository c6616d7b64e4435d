"""Python values that a function reads from globals and closures: its traces keep them as they were.

Looking whether they have changed would cost each call more than the call itself takes, so it is done when it
is free: when a function is traced anyway, and when ``explain`` is asked.
"""

from __future__ import annotations

import dis
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any, Final

from dualflow.core.warning import warn_user
from dualflow.function.errors import CapturedValueWarning
from dualflow.graph.key import exact

_PLAIN: Final = frozenset({bool, int, float, complex, str, type(None)})
_READS: Final = frozenset({"LOAD_GLOBAL", "LOAD_DEREF"})
_WRITES: Final = frozenset({"STORE_GLOBAL", "STORE_DEREF", "DELETE_GLOBAL", "DELETE_DEREF"})


@dataclass(frozen=True, slots=True)
class Reading:
    """A name that a function's code reads from outside of it, and the line where it does so first."""

    name: str
    line: int


class CapturedValues:
    """The numbers, strings and Nones that a function reads from globals and closures, for each of its traces.

    Nothing is known of callables other than functions and methods, nor of functions that a function calls.
    """

    __slots__ = ("_function", "_name", "_readings", "_seen", "_warned")

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        found = getattr(function, "__func__", function)
        self._name = name
        self._function = found if isinstance(found, FunctionType) else None
        self._readings: tuple[Reading, ...] | None = None
        self._seen: dict[Reading, list[tuple[int, Any]]] = {}
        self._warned: set[Reading] = set()

    def note(self, trace: int) -> None:
        """Look at what trace number ``trace`` has compiled in; warn where earlier ones have other values."""
        for reading, value in self._now():
            seen = self._seen.setdefault(reading, [])
            if not seen or exact(seen[-1][1]) != exact(value):
                seen.append((trace, value))
                if len(seen) > 1 and reading not in self._warned:
                    self._warned.add(reading)
                    self._warn(reading, seen)

    def explain(self) -> list[str]:
        """A line for each value, which says whether it has changed since."""
        now = dict(self._now())
        return [self._line(reading, seen, now) for reading, seen in self._seen.items()]

    def _line(self, reading: Reading, seen: list[tuple[int, Any]], now: dict[Reading, Any]) -> str:
        values = ", then ".join(f"{value!r} from trace {trace} on" for trace, value in seen)
        kept = repr(seen[0][1]) if len(seen) == 1 else values
        stale = reading in now and exact(now[reading]) != exact(seen[-1][1])
        changed = f"; it is {now[reading]!r} now, which no trace has seen: {_REMEDY}" if stale else ""
        return f"{reading.name} = {kept} was compiled in (read in line {reading.line}){changed}"

    def _warn(self, reading: Reading, seen: list[tuple[int, Any]]) -> None:
        (_, first), (_, second) = seen
        warn_user(
            f"{self._name} was traced with {reading.name} = {second!r}, while earlier traces keep "
            f"{reading.name} = {first!r} and are still used for their arguments: Python values are compiled "
            f"in. {_REMEDY}.",
            category=CapturedValueWarning,
        )

    def _now(self) -> Iterator[tuple[Reading, Any]]:
        """The names that hold plain values now, and these."""
        function = self._function
        if function is None:
            return
        if self._readings is None:
            self._readings = tuple(_readings(function.__code__))
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        for reading in self._readings:
            try:
                cell = cells.get(reading.name)
                value = function.__globals__[reading.name] if cell is None else cell.cell_contents
            except (KeyError, ValueError):  # a built-in, or a cell that is empty yet
                continue
            if type(value) in _PLAIN:
                yield reading, value


_REMEDY: Final = "Pass it as an argument, or keep it in a df.Variable"


def _readings(code: CodeType) -> Iterator[Reading]:
    """What the code, with that of functions inside of it, reads from outside and doesn't assign."""
    lines: dict[str, int] = {}
    written: set[str] = set()
    outside = set(code.co_freevars)
    pending = [code]
    while pending:
        current = pending.pop()
        free = outside.intersection(current.co_freevars)
        for step in dis.get_instructions(current):
            if "DEREF" in step.opname and step.argval not in free:
                continue
            if step.opname in _READS and not step.argval.startswith("__"):
                place = step.positions and step.positions.lineno
                lines.setdefault(step.argval, place or current.co_firstlineno)
            elif step.opname in _WRITES:
                written.add(step.argval)
        pending += [c for c in current.co_consts if isinstance(c, CodeType)]
    return (Reading(name, line) for name, line in sorted(lines.items()) if name not in written)
