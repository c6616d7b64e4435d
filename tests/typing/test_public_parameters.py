"""Parameters of public functions have types: none is ``Any``."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

import dualflow as df
from dualflow.function.options import FunctionOptions

_PACKAGE = "dualflow"
_SPECIAL = ("__init__", "__call__")


def namespaces() -> dict[str, ModuleType]:
    """The public namespaces by name: ``dualflow`` and the modules that it and they show."""
    package = __import__(_PACKAGE)
    modules = {_PACKAGE: package}
    pending = [package]
    while pending:
        for name in dir(module := pending.pop()):
            value = getattr(module, name)
            if isinstance(value, ModuleType) and _is_ours(value.__name__) and value.__name__ not in modules:
                modules[value.__name__] = value
                pending.append(value)
    return {name: module for name, module in modules.items() if name != f"{_PACKAGE}.keras"}


def functions() -> dict[str, FunctionType]:
    """The functions of public names, and the public methods of public classes, by their own names."""
    public = {}
    for namespace in namespaces().values():
        for name in dir(namespace):
            for value in _callables(getattr(namespace, name)):
                function = inspect.unwrap(value)
                if isinstance(function, FunctionType) and _is_ours(function.__module__):
                    public[f"{function.__module__}.{function.__qualname__}"] = function
    return public


def untyped() -> dict[str, list[str]]:
    """The parameters that are ``Any``, or have no type, of each public function that has such parameters."""
    names = {name: _untyped(function) for name, function in sorted(functions().items())}
    return {name: parameters for name, parameters in names.items() if parameters}


def _is_ours(module: str | None) -> bool:
    return f"{module}.".startswith(f"{_PACKAGE}.")


def _callables(value: Any) -> Iterator[Any]:
    if not isinstance(value, type):
        yield value
        return
    for owner in value.__mro__:
        if _is_ours(owner.__module__):
            for name, member in vars(owner).items():
                if not name.startswith("_") or name in _SPECIAL:
                    yield getattr(member, "__func__", member)


def _untyped(function: FunctionType) -> list[str]:
    code = function.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    method = "." in function.__qualname__ and names[:1] in (("self",), ("cls",))
    types = function.__annotations__
    return [name for name in names[method:] if types.get(name, "Any") in ("Any", "Any | None")]


def test_type_checkers_see_each_option_of_a_function() -> None:
    options = list(inspect.signature(df.function).parameters)[1:]
    assert list(FunctionOptions.__annotations__) == options


def test_parameters_of_public_functions_have_types() -> None:
    assert untyped() == {}, "give these parameters a type of dualflow.core.argument_types, or another one"
