"""Which of the functions that converted code calls are converted in their iteration."""

from __future__ import annotations

import functools
import itertools
import weakref
from collections.abc import Callable
from types import FunctionType
from typing import Any, Final

from malt.operators import py_builtins

from dualflow.core.errors import InvalidArgumentError, OperatorNotAllowedInGraphError
from dualflow.function.autograph.builtins import OVERLOADS
from dualflow.function.autograph.do_not_convert import python_function

_HIGHER_ORDER: Final = frozenset(
    {
        "dualflow.function.control.control_flow",
        "dualflow.function.control.maps",
        "dualflow.core.tree",
        "dualflow.compat.v1.differing",
    }
)
"""Modules whose functions call the user's functions inside the trace."""
_CALLING: Final = frozenset(
    {map, filter, sorted, min, max, functools.reduce, itertools.accumulate, itertools.starmap}
)
"""Python's functions that call the user's."""
_IN_CONTEXT: Final[dict[Any, Callable[..., Any]]] = {
    eval: lambda args, scope: py_builtins.eval_in_original_context(eval, args, scope),
    super: lambda args, scope: py_builtins.super_in_original_context(super, args, scope),
    globals: lambda args, scope: py_builtins.globals_in_original_context(scope),
    locals: lambda args, scope: py_builtins.locals_in_original_context(scope),
}


class Converter:
    """Calls functions on behalf of converted code.

    Args:
        convert: makes a converted function of a Python function.
    """

    def __init__(self, convert: Callable[[Any], Callable[..., Any]]) -> None:
        self._convert = convert
        self._refused: weakref.WeakKeyDictionary[FunctionType, str] = weakref.WeakKeyDictionary()

    def call(
        self,
        function: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any] | None,
        scope: Any = None,
        options: Any = None,
    ) -> Any:
        """``function(*args, **kwargs)``, converted if it is the user's Python."""
        named = kwargs or {}
        if isinstance(function, functools.partial):
            return self.call(function.func, (*function.args, *args), {**function.keywords, **named}, scope)
        if isinstance(function, type) or type(function) is type(len):
            return self._built_in(function, args, named, scope)
        found = python_function(function)
        if found is None:
            if getattr(function, "__module__", None) in _HIGHER_ORDER:
                args, named = self._arguments(args, named)
            return function(*args, **named)
        target, leading = found
        if target in self._refused:
            return self._as_written(function, args, named, self._refused[target])
        try:
            converted = self._convert(target)
        except InvalidArgumentError as error:
            self._refused[target] = str(error)
            return self._as_written(function, args, named, str(error))
        return converted(*leading, *args, **named)

    def _arguments(
        self, args: tuple[Any, ...], named: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return tuple(map(self._argument, args)), {name: self._argument(x) for name, x in named.items()}

    def _argument(self, x: Any) -> Any:
        """``x``, converted when it is called if it is a Python function."""
        if type(x) in (list, tuple):
            return type(x)(map(self._argument, x))
        if python_function(x) is None:
            return x
        return lambda *args, **kwargs: self.call(x, args, kwargs)

    def _built_in(self, function: Any, args: tuple[Any, ...], named: dict[str, Any], scope: Any) -> Any:
        in_context = _IN_CONTEXT.get(function)
        if in_context is not None:
            return in_context(args, scope)
        if function in _CALLING:
            args, named = self._arguments(args, named)
        return OVERLOADS.get(function, function)(*args, **named)

    @staticmethod
    def _as_written(function: Any, args: tuple[Any, ...], named: dict[str, Any], reason: str) -> Any:
        try:
            return function(*args, **named)
        except OperatorNotAllowedInGraphError as error:
            error.add_note(reason)
            raise
