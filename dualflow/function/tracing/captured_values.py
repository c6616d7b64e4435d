"""Python values that a function reads from globals, closures and attributes, which traces compile in.

A comparison in each call would take longer than the call itself. So they are compared when the function is
traced, and by ``explain``.
"""

from __future__ import annotations

import dis
import inspect
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any, Final

from dualflow.core.errors import FailedPreconditionError
from dualflow.core.exact_equality import exact
from dualflow.core.records import NamedTuple
from dualflow.core.warning import warn_user
from dualflow.function.errors import CapturedValueWarning
from dualflow.graph.ir import Origin

_PLAIN: Final = frozenset({bool, int, float, complex, str, type(None)})
_READS: Final = frozenset({"LOAD_GLOBAL", "LOAD_DEREF"})
_WRITES: Final = frozenset({"STORE_GLOBAL", "STORE_DEREF", "DELETE_GLOBAL", "DELETE_DEREF"})
_ATTRIBUTES: Final = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
_ATTRIBUTE_WRITES: Final = frozenset({"STORE_ATTR", "DELETE_ATTR"})


class OutsideName(NamedTuple):
    """A name that a function's code reads from outside of it, and the first line that reads it.

    The name of an attribute has dots: ``self.rate``.
    """

    name: str
    line: int


class CapturedValues:
    """The numbers, strings and Nones that a function reads from outside of it, for each of its traces.

    They are globals, closures, attributes of objects there, and attributes of a method's ``self``. The
    functions that a function calls are not examined.
    """

    __slots__ = ("_bound", "_by_trace", "_function", "_name", "_outside_names", "_warned")

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        python_function = getattr(function, "__func__", function)
        self._bound = function
        if not isinstance(python_function, FunctionType):
            python_function = inspect.getattr_static(type(function), "__call__", None)
        self._name = name
        self._function = python_function if isinstance(python_function, FunctionType) else None
        self._outside_names: tuple[OutsideName, ...] | None = None
        self._by_trace: dict[OutsideName, list[tuple[int, Any]]] = {}
        self._warned: set[OutsideName] = set()

    def record_trace(self, trace: int) -> None:
        """Store the values that trace number ``trace`` compiled in.

        Warn if an earlier trace compiled in others.
        """
        for name, value in self._current():
            values = self._by_trace.setdefault(name, [])
            if not values or exact(values[-1][1]) != exact(value):
                values.append((trace, value))
                if len(values) > 1 and name not in self._warned:
                    self._warned.add(name)
                    self._warn(name, values)

    def explain(self) -> list[str]:
        """A line for each value, with the current value if it has changed since."""
        current = dict(self._current())
        return [self._line(name, values, current) for name, values in self._by_trace.items()]

    def _line(self, name: OutsideName, values: list[tuple[int, Any]], current: dict[OutsideName, Any]) -> str:
        by_trace = ", then ".join(f"{value!r} from trace {trace} on" for trace, value in values)
        compiled_in = repr(values[0][1]) if len(values) == 1 else by_trace
        stale = name in current and exact(current[name]) != exact(values[-1][1])
        changed = f"; it is {current[name]!r} now, which no trace has read: {_REMEDY}" if stale else ""
        return f"{name.name} = {compiled_in} was compiled in (read in line {name.line}){changed}"

    def _warn(self, name: OutsideName, values: list[tuple[int, Any]]) -> None:
        (_, first), (_, second) = values
        warn_user(
            f"{self._name} was traced with {name.name} = {second!r}, while earlier traces keep "
            f"{name.name} = {first!r} and are still used for their arguments: Python values are compiled "
            f"in. {_REMEDY}.",
            category=CapturedValueWarning,
        )

    @property
    def first_line(self) -> Origin | None:
        """The first line of the function; None for a callable without Python code."""
        return None if self._function is None else self.origin(self._function.__code__.co_firstlineno)

    def origin(self, line: int) -> Origin:
        """A line of the function's code."""
        assert self._function is not None, "only Python code has lines"
        return Origin(self._function.__code__.co_filename, line, self._function.__code__.co_qualname)

    def _current(self) -> Iterator[tuple[OutsideName, Any]]:
        """Each name that has a number, string or None now, with the value."""
        return ((name, value) for name, value in self.named_objects() if type(value) in _PLAIN)

    def named_objects(self) -> Iterator[tuple[OutsideName, Any]]:
        """Each name that is assigned now, with its object."""
        function = self._function
        if function is None:
            return
        self_name, owner = self._first_parameter() or (None, None)
        if self._outside_names is None:
            self._outside_names = tuple(_outside_names(function.__code__, self_name))
        names = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        for outside in self._outside_names:
            root, *path = outside.name.split(".")
            try:
                cell = names.get(root)
                if root == self_name:
                    value = owner
                else:
                    value = function.__globals__[root] if cell is None else cell.cell_contents
            except (KeyError, ValueError):  # a built-in, or an empty cell
                continue
            for name in path:
                value = _attribute(value, name)
            yield outside, value

    def _first_parameter(self) -> tuple[str, Any] | None:
        """The name of a method's first parameter, and the object; None for a plain function."""
        assert self._function is not None
        if self._bound is self._function or not self._function.__code__.co_argcount:
            return None
        try:
            owner = getattr(self._bound, "__self__", self._bound)
        except FailedPreconditionError:  # the object no longer exists
            return None
        return self._function.__code__.co_varnames[0], owner


def _attribute(owner: Any, name: str) -> Any:
    """An attribute that is stored on the object or its class, read without running code of the owner."""
    stored = inspect.getattr_static(owner, name, _ABSENT)
    return stored.__get__(owner, type(owner)) if inspect.ismemberdescriptor(stored) else stored


_ABSENT: Final = object()
_REMEDY: Final = "Pass it as an argument, or keep it in a df.Variable"


def _outside_names(code: CodeType, self_name: str | None) -> Iterator[OutsideName]:
    """The names that the code, and that of nested functions, reads from outside and doesn't assign.

    ``self_name`` is the name of a method's first parameter.
    """
    lines: dict[str, int] = {}
    written: set[str] = set()
    outside = {*code.co_freevars, *([] if self_name is None else [self_name])}
    pending = [code]
    while pending:
        current = pending.pop()
        free = outside.intersection(current.co_freevars) | outside.intersection(current.co_cellvars)
        path: str | None = None
        for step in dis.get_instructions(current):
            several = step.opname.startswith("LOAD_FAST") and isinstance(step.argval, tuple)
            name = step.argval[-1] if several else step.argval
            if step.opname in _ATTRIBUTE_WRITES and path is not None:
                written.add(f"{path}.{name}")
            path = _path(step.opname, name, path, free, self_name if current is code else None)
            if path is not None and not path.startswith("__"):
                lineno = step.positions and step.positions.lineno
                lines.setdefault(path, lineno or current.co_firstlineno)
            if step.opname in _WRITES or (
                step.opname == "STORE_FAST" and name == self_name and current is code
            ):
                written.add(name)
        pending += [c for c in current.co_consts if isinstance(c, CodeType)]
    for name, line in sorted(lines.items()):
        parts = name.split(".")
        if not any(".".join(parts[: i + 1]) in written for i in range(len(parts))):
            yield OutsideName(name, line)


def _path(operation: str, name: Any, path: str | None, free: set[str], self_name: str | None) -> str | None:
    """The dotted name of the value that an instruction pushes; None if it is no name from outside."""
    if operation in _ATTRIBUTES:
        return None if path is None else f"{path}.{name}"
    if "DEREF" in operation and name not in free:
        return None
    if operation in _READS or (
        operation.startswith("LOAD_FAST") and self_name is not None and name == self_name
    ):
        return str(name)
    return None
