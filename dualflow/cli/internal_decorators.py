"""Decorators and small functions of TensorFlow's internal modules ``tensorflow.python.util``."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterable
from typing import Any, Final

from dualflow.core.errors import InvalidArgumentError


def _decorator(*args: Any, **kwargs: Any) -> Callable[[Any], Any]:
    """A decorator that returns the function unchanged: it warns of nothing."""
    return lambda function: function


def _make_decorator(
    target: Callable[..., Any], decorator_func: Callable[..., Any], *_: Any, **__: Any
) -> Any:
    """``decorator_func`` with the name, the docstring and the signature of ``target``."""
    return functools.wraps(target)(decorator_func)


def _unwrap(function: Any) -> tuple[list[Any], Any]:
    """The decorators of a function, and the function that they decorate."""
    decorators = []
    while hasattr(function, "__wrapped__"):
        decorators.append(function)
        function = function.__wrapped__
    return decorators, function


def _argument_of_two_names(new_name: str, new_value: Any, old_name: str, old_value: Any) -> Any:
    """The value of an argument that has a new and an old name; None is an argument that isn't passed.

    Raises:
        InvalidArgumentError: both are passed.
    """
    if old_value is not None and new_value is not None:
        raise InvalidArgumentError(
            f"Cannot specify both {old_name!r} and {new_name!r}; leave out {old_name!r}."
        )
    return new_value if old_value is None else old_value


def _public_names(module_name: str, doc_string_modules: Iterable[Any] | None = None) -> list[str]:
    """The names of a module that don't begin with an underscore."""
    return [name for name in dir(sys.modules[module_name]) if not name.startswith("_")]


UTIL_OBJECTS: Final[dict[str, dict[str, Any]]] = {
    "util.all_util": {"make_all": _public_names, "remove_undocumented": lambda module_name, *args: None},
    "util.deprecation": {
        "deprecated": _decorator,
        "deprecated_alias": lambda deprecated_name, name, func_or_class, warn_once=True: func_or_class,
        "deprecated_arg_values": _decorator,
        "deprecated_args": _decorator,
        "deprecated_argument_lookup": _argument_of_two_names,
        "deprecated_endpoints": _decorator,
        "silence": contextlib.nullcontext,
    },
    "util.tf_contextlib": {"contextmanager": contextlib.contextmanager},
    "util.tf_decorator": {"make_decorator": _make_decorator, "unwrap": _unwrap},
    "util.tf_export": {"tf_export": _decorator},
}
"""The objects of the modules below ``tensorflow.python.util`` that no public namespace of dualflow has."""
