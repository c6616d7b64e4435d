"""Parsing of the function and the arguments that a command line names."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import sys
import traceback
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final

import numpy as np

import dualflow
from dualflow.core.own_files import OWN_FILES
from dualflow.core.spec import TensorSpec
from dualflow.core.tree import flatten, unflatten
from dualflow.function.bound_method import BoundFunction
from dualflow.function.concrete import ConcreteFunction
from dualflow.function.decorator import function
from dualflow.function.traced_function import Function
from dualflow.graph.ir import Origin

ARGUMENTS = """\
The arguments come from --args, else from the function's attribute example_args, else from its
input_signature, else from its module's example_args: a tuple, or a function that returns one."""
SIZE_OF_DYNAMIC_AXES: Final = 32
"""The size of the dynamic axes of example tensors."""


class CommandError(Exception):
    """A command can't be performed; the message has the reason and what to do."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of a call."""

    args: tuple[Any, ...] = ()
    kwargs: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def of(cls, *args: Any, **kwargs: Any) -> Arguments:
        return cls(args, tuple(kwargs.items()))

    def with_tensors(self) -> Arguments:
        """The arguments with a tensor in place of each :class:`TensorSpec`.

        Raises:
            CommandError: a spec has an unknown rank.
        """
        flat, structure = flatten((self.args, dict(self.kwargs)))
        leaves = [_example(x) if isinstance(x, TensorSpec) else x for x in flat]
        args, kwargs = unflatten(structure, leaves)
        return Arguments(args, tuple(kwargs.items()))


def _example(spec: TensorSpec) -> Any:
    """A tensor of ``spec``: normally distributed numbers; of integers zeros, which are valid indices."""
    if spec.shape.rank is None:
        raise CommandError(f"{spec} has an unknown rank: give the arguments with --args.")
    shape = [SIZE_OF_DYNAMIC_AXES if size is None else size for size in spec.shape]
    if spec.dtype.is_inexact:
        return dualflow.cast(np.random.default_rng(0).standard_normal(shape), spec.dtype)
    return dualflow.zeros(shape, spec.dtype)


def add_call_arguments(parser: ArgumentParser) -> None:
    """Add a function and its arguments to a command's parser."""
    parser.add_argument(
        "function",
        metavar="MODULE:FUNCTION",
        help="where the function is: a module's name or a file's, and a name in it",
    )
    parser.add_argument(
        "--args",
        nargs="+",
        metavar="EXPR",
        help="Python expressions; the module's names, df and np can be used",
    )


def named_call(options: Namespace) -> tuple[Any, Arguments]:
    """The function and the arguments that a command line names.

    Raises:
        CommandError: there is no such function, or its arguments are missing.
    """
    place, _, name = options.function.rpartition(":")
    if not place or not name:
        raise CommandError(
            f"{options.function!r} is not MODULE:FUNCTION, such as train:step or train.py:step."
        )
    module = _module(place)
    function = _attribute(module, name)
    return function, _arguments(module, function, name, options.args)


def trace_of(called: Any, arguments: Arguments) -> ConcreteFunction:
    """The trace of a function for these arguments."""
    traced = as_function(called)
    concrete: ConcreteFunction = traced.get_concrete_function(*arguments.args, **dict(arguments.kwargs))
    return concrete


def as_function(called: Any) -> Any:
    """``called``, or the :func:`dualflow.function` of a plain function."""
    return called if isinstance(called, Function | BoundFunction) else function(called)


def _module(place: str) -> ModuleType:
    """The module of that name, or in that file."""
    if place.endswith(".py"):
        return _file(place)
    try:
        return importlib.import_module(place)
    except ModuleNotFoundError as error:
        missing = error.name or place
        if place != missing and not place.startswith(f"{missing}."):
            raise CommandError(
                f"{place} can't be imported: it needs the module {missing}, which is not found."
            ) from None
        hint = f"; did you mean {place}.py, as a file?" if os.path.exists(f"{place}.py") else ""
        raise CommandError(
            f"there is no module {missing!r} in {os.getcwd()} or among the installed ones{hint}."
        ) from None
    except Exception as error:
        raise CommandError(f"{place} can't be imported: {_described(error)}") from error


def _file(path: str) -> ModuleType:
    if not os.path.isfile(path):
        raise CommandError(f"there is no file {path!r} in {os.getcwd()}.")
    name = os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise CommandError(f"{path} can't be imported: {_described(error)}") from error
    return module


def _attribute(module: ModuleType, name: str) -> Any:
    """The function called ``name`` in ``module``; a dotted name is an attribute of a class or object."""
    current: Any = module
    for part in name.split("."):
        if not hasattr(current, part):
            holder = (
                module.__name__
                if current is module
                else f"{module.__name__}:{getattr(current, '__name__', part)}"
            )
            raise CommandError(f"{holder} has no {part!r}; its functions are {_callables(current)}.")
        current = getattr(current, part)
    if not callable(current):
        raise CommandError(f"{module.__name__}:{name} is {current!r}, which can't be called.")
    return current


def _callables(holder: Any) -> str:
    names = [name for name, value in vars(holder).items() if callable(value) and not name.startswith("_")]
    return ", ".join(names) or "none"


def _arguments(module: ModuleType, function: Any, name: str, expressions: Sequence[str] | None) -> Arguments:
    if expressions is not None:
        return _evaluated(", ".join(expressions), module)
    python = getattr(function, "python_function", None)
    specs = getattr(function, "input_signature", None)
    for example in (_example_args(function), _example_args(python), specs, _example_args(module)):
        if example is not None:
            return Arguments(example if isinstance(example, tuple) else (example,))
    needed = _needed(python if python is not None else function)
    if needed:
        raise CommandError(
            f"{name} takes {', '.join(needed)}: give its arguments, as in "
            f'--args "df.ones([4, 4]), 2.0", or let {module.__name__} define example_args, a function that '
            "returns a tuple of them."
        )
    return Arguments()


def _example_args(holder: Any) -> Any:
    """The attribute ``example_args``, or what it returns if it is a function; None without one."""
    example = getattr(holder, "example_args", None)
    return example() if callable(example) else example


def _evaluated(expression: str, module: ModuleType) -> Arguments:
    names = {"df": dualflow, "np": np, **vars(module), "_call": Arguments.of}
    try:
        arguments: Arguments = eval(f"_call({expression})", names)
    except Exception as error:
        raise CommandError(f"--args {expression!r} can't be evaluated: {_described(error)}") from error
    return arguments


def _needed(function: Callable[..., Any]) -> list[str]:
    """The required parameters of a function."""
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in parameters if p.default is p.empty and p.kind not in variadic]


def _described(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def user_lines(error: BaseException) -> list[str]:
    """The user's lines at which ``error`` was raised: from its notes, or the innermost of its traceback."""
    notes: list[str] = getattr(error, "__notes__", [])
    entries = traceback.extract_tb(error.__traceback__)
    outside = [entry for entry in entries if not entry.filename.startswith((*OWN_FILES, "<frozen "))]
    if notes or not outside:
        return notes
    at = outside[-1]
    return [f"  {Origin(at.filename, at.lineno or 0, at.name)}", f"    {at.line}"]
