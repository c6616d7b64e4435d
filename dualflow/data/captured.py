"""Copies of Python functions that capture the variables they read by value, as a trace does."""

from __future__ import annotations

import dis
import functools
from collections.abc import Iterator
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any, Final, TypeGuard

_CAPTURED: Final = "__dualflow_captured__"
"""The name that marks the globals of copies: a function with such globals needs no other copy of them."""
_STORES_GLOBAL: Final = {dis.opmap["STORE_GLOBAL"], dis.opmap["DELETE_GLOBAL"]}
_STORES_CELL: Final = {dis.opmap["STORE_DEREF"], dis.opmap["DELETE_DEREF"]}


def captured(function: Any) -> Any:
    """A copy of ``function`` whose closure and global variables keep their present values.

    The module's functions that it calls are copied likewise. A variable that one of these functions assigns
    stays shared with the program. Objects are not copied: changes of a list or an attribute are visible.
    Anything but a Python function, a method or a ``functools.partial`` of one is returned as it is.
    """
    if isinstance(function, functools.partial):
        return functools.partial(captured(function.func), *function.args, **function.keywords)
    if isinstance(function, MethodType) and isinstance(function.__func__, FunctionType):
        return MethodType(captured(function.__func__), function.__self__)
    if not isinstance(function, FunctionType):
        return function
    return _Capture(function.__globals__).function(function)


class _Capture:
    """Copies functions of one module, with captured variables.

    Args:
        module: the module's globals.
    """

    def __init__(self, module: dict[str, Any]) -> None:
        self._module = module
        self._globals = module if _CAPTURED in module else {**module, _CAPTURED: True}
        self._copies: dict[FunctionType, FunctionType] = {}

    def function(self, function: FunctionType) -> FunctionType:
        """A copy of ``function``, with the module's own globals if it, or a callee, assigns one of them."""
        if any(_STORES_GLOBAL.intersection(code.co_code[::2]) for code in self._codes(function)):
            self._globals = self._module
        return self._copy(function)

    def _codes(self, function: FunctionType) -> Iterator[CodeType]:
        """Code objects of a function and, transitively, of the module's functions that it refers to."""
        pending, visited = [function], {function}
        while pending:
            current = pending.pop()
            yield from _nested(current.__code__)
            callees = [other for other in self._functions_read(current) if other not in visited]
            visited.update(callees)
            pending += callees

    def _functions_read(self, function: FunctionType) -> list[FunctionType]:
        names = {name for code in _nested(function.__code__) for name in code.co_names}
        values = [self._module.get(name) for name in names]
        values += [_content(cell) for cell in function.__closure__ or ()]
        return [x for x in values if self._is_ours(x)]

    def _is_ours(self, value: Any) -> TypeGuard[FunctionType]:
        return isinstance(value, FunctionType) and value.__globals__ is self._module

    def _copy(self, function: FunctionType) -> FunctionType:
        if function in self._copies:
            return self._copies[function]
        code = function.__code__
        assigned = {name for nested in _nested(code) for name in _assigned_cells(nested)}
        cells = function.__closure__ or ()
        keeps_cell = [
            name in assigned or _is_empty(c) for name, c in zip(code.co_freevars, cells, strict=True)
        ]
        closure = tuple(
            [cell if share else CellType() for cell, share in zip(cells, keeps_cell, strict=True)]
        )
        copy = FunctionType(code, self._globals, function.__name__, function.__defaults__, closure)
        copy.__kwdefaults__, copy.__qualname__ = function.__kwdefaults__, function.__qualname__
        copy.__module__, copy.__doc__ = function.__module__, function.__doc__
        copy.__annotations__, copy.__dict__ = function.__annotations__, dict(function.__dict__)
        self._copies[function] = copy
        for cell, old, share in zip(closure, cells, keeps_cell, strict=True):
            if not share:
                value = old.cell_contents
                cell.cell_contents = self._copy(value) if self._is_ours(value) else value
        if self._globals is not self._module:
            for name in {name for nested in _nested(code) for name in nested.co_names}:
                if self._is_ours(self._module.get(name)):
                    self._globals[name] = self._copy(self._module[name])
        return copy


def _nested(code: CodeType) -> Iterator[CodeType]:
    """The code objects of a function and of the functions that it defines."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)


def _assigned_cells(code: CodeType) -> set[str]:
    """The cell variables that the code assigns."""
    if not _STORES_CELL.intersection(code.co_code[::2]):
        return set()
    return {x.argval for x in dis.get_instructions(code) if x.opcode in _STORES_CELL}


def _is_empty(cell: CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018  # which raises
    except ValueError:
        return True
    return False


def _content(cell: CellType) -> Any:
    return None if _is_empty(cell) else cell.cell_contents
