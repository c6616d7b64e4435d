"""The functions that converted code calls instead of those that the user's code names."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from contextlib import suppress
from types import FunctionType, MethodType
from typing import Any, Final

from dualflow.core.errors import OperatorNotAllowedInGraphError
from dualflow.function.autograph.do_not_convert import python_function
from dualflow.function.autograph.python_values import OVERLOADED, overloaded

HIGHER_ORDER: Final = frozenset(
    {
        "dualflow.function.control.control_flow",
        "dualflow.function.control.maps",
        "dualflow.core.tree",
        "dualflow.compat.v1.differing",
        "dualflow.distribute.strategy",
    }
)
"""Modules whose functions call functions of the user inside the trace."""
_CALLING: Final = frozenset(
    {map, filter, sorted, min, max, functools.reduce, itertools.accumulate, itertools.starmap}
)
"""Python's functions that call functions of the user."""
_SCOPED: Final = (eval, exec, locals, vars, dir)
"""Python's functions that read the variables of the caller."""


class NotConverted(Exception):
    """A function can't be converted; the message is the reason."""


class Callees:
    """Maps functions to those that converted code calls instead.

    Args:
        convert: converts a function of the user, or raises ``NotConverted``.
    """

    def __init__(self, convert: Callable[[FunctionType], Callable[..., Any]]) -> None:
        self._convert = convert

    def callee(self, function: Any) -> Any:
        """``function``, converted if it is Python code of the user."""
        kind = type(function)
        if kind is _BUILT_IN or isinstance(function, type):
            return self._built_in(function)
        if isinstance(function, functools.partial):
            return functools.partial(self.callee(function.func), *function.args, **function.keywords)
        python = python_function(function)
        if python is None:
            if getattr(function, "__module__", None) in HIGHER_ORDER:
                return self._with_converted_arguments(function)
            return function
        target, instance = python
        try:
            converted = self._convert(target)
        except NotConverted as reason:
            return _UnconvertedCallee(function, str(reason))
        return MethodType(converted, *instance) if instance else converted

    def scoped_callee(self, function: Any, variables: FunctionType) -> Any:
        """As :meth:`callee`, for a function that may read the variables that are free in ``variables``."""
        if not any(function is scoped for scoped in _SCOPED):
            return self.callee(function)
        names = {}
        for name, cell in zip(variables.__code__.co_freevars, variables.__closure__ or (), strict=True):
            with suppress(ValueError):  # an unassigned variable
                names[name] = cell.cell_contents
        return functools.partial(_in_scope, function, variables.__globals__, names)

    def _built_in(self, function: Any) -> Any:
        overload = functools.partial(overloaded, function) if function in OVERLOADED else function
        return self._with_converted_arguments(overload) if function in _CALLING else overload

    def _with_converted_arguments(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            keywords = {name: self._argument(x) for name, x in kwargs.items()}
            return function(*map(self._argument, args), **keywords)

        return call

    def _argument(self, x: Any) -> Any:
        """``x``; a Python function, alone or in a list, is wrapped so that a call converts it."""
        if type(x) in (list, tuple):
            return type(x)(map(self._argument, x))
        if python_function(x) is None:
            return x
        return lambda *args, **kwargs: self.callee(x)(*args, **kwargs)


_BUILT_IN: Final = type(len)


def _in_scope(
    function: Callable[..., Any], module: dict[str, Any], names: dict[str, Any], *args: Any, **kwargs: Any
) -> Any:
    """Call a built-in that reads variables of its caller, such as ``eval``; they are in ``names``."""
    evaluates = function in (eval, exec)
    if len(args) + len(kwargs) > (1 if evaluates else 0):  # the caller passes namespaces of its own
        return function(*args, **kwargs)
    if evaluates:
        return function(*args, module, names)
    return sorted(names) if function is dir else names


class _UnconvertedCallee:
    """An unconverted function, with the reason as a note of the error if it tests a tensor."""

    __slots__ = ("_function", "_reason")

    def __init__(self, function: Callable[..., Any], reason: str) -> None:
        self._function = function
        self._reason = reason

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self._function(*args, **kwargs)
        except OperatorNotAllowedInGraphError as error:
            error.add_note(self._reason)
            raise
