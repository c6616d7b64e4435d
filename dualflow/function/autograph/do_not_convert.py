"""Which functions are converted, and which stay as they are written."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any, Final

_SUSPENDED: Final = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_MARK: Final = "_dualflow_as_written"
_AS_WRITTEN: Final = frozenset(
    {"dualflow", "numpy", "scipy", "numba", "pandas", "matplotlib", "sklearn", "pytest", "_pytest"}
    | {"keras", "keras_dualflow"}
)
"""Packages whose functions, and what these call, are written for traces, or see no tensors of ours."""


def do_not_convert(func: Callable[..., Any] | None = None) -> Any:
    """Decorator: ``func``, and what it calls, are not converted when a traced function calls it.

    Args:
        func: a Python function; without it, a decorator is returned.

    >>> import dualflow as df
    >>> @df.autograph.do_not_convert
    ... def double(x):
    ...     return x + x
    >>> double(2)
    4
    """
    if func is None:
        return do_not_convert
    setattr(func, _MARK, True)
    return func


def is_as_written(function: Any) -> bool:
    """Whether :func:`do_not_convert` marked it."""
    return getattr(function, _MARK, False) is True


def runs_as_written(function: FunctionType) -> bool:
    """Whether a function is marked so, or is a generator or coroutine, whose Python runs piece by piece."""
    return is_as_written(function) or bool(function.__code__.co_flags & _SUSPENDED)


def python_function(function: Any) -> tuple[FunctionType, tuple[Any, ...]] | None:
    """The user's Python function behind a callable, and its first arguments; None for what runs as it is."""
    leading: tuple[Any, ...] = ()
    if isinstance(function, MethodType):
        leading = (function.__self__,)
        function = function.__func__
    elif not isinstance(function, FunctionType):
        leading = (function,)
        function = inspect.getattr_static(type(function), "__call__", None)
    if not isinstance(function, FunctionType):
        return None
    if runs_as_written(function):
        return None
    package = (function.__module__ or "").partition(".")[0]
    if package in _AS_WRITTEN or (package in sys.stdlib_module_names and package != "__main__"):
        return None
    return function, leading
