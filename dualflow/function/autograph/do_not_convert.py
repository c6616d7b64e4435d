"""Decides which functions are converted."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any, Final

_SUSPENDED: Final = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_MARK: Final = "_dualflow_do_not_convert"
_UNCONVERTED: Final = frozenset(
    {"dualflow", "numpy", "scipy", "numba", "pandas", "matplotlib", "sklearn", "pytest", "_pytest"}
    | {"keras", "keras_dualflow"}
)
"""Packages whose functions need no conversion: they take no tensors, or are written for traces."""


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


def is_marked(function: Any) -> bool:
    """Whether a function has the mark of :func:`do_not_convert`."""
    return getattr(function, _MARK, False) is True


def runs_unconverted(function: FunctionType) -> bool:
    """Whether a function is marked, or is a generator or coroutine, which can't be converted."""
    return is_marked(function) or bool(function.__code__.co_flags & _SUSPENDED)


def python_function(function: Any) -> tuple[FunctionType, tuple[Any, ...]] | None:
    """The Python function that a callable calls, and its first arguments; None if it is not converted."""
    leading: tuple[Any, ...] = ()
    if isinstance(function, MethodType):
        leading = (function.__self__,)
        function = function.__func__
    elif not isinstance(function, FunctionType):
        leading = (function,)
        function = inspect.getattr_static(type(function), "__call__", None)
    if not isinstance(function, FunctionType):
        return None
    if runs_unconverted(function):
        return None
    package = (function.__module__ or "").partition(".")[0]
    if package in _UNCONVERTED or (package in sys.stdlib_module_names and package != "__main__"):
        return None
    return function, leading
