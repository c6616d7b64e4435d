"""Python functions as functions whose control flow goes through this package's operators."""

from __future__ import annotations

import ast
import importlib.util  # malt uses it without importing it
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any, Final

from malt.core.converter import ConversionOptions, ProgramContext
from malt.impl import api
from malt.operators.function_wrappers import FunctionScope
from malt.pyct.errors import InaccessibleSourceCodeError, PyCTError, UnsupportedLanguageElementError

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.locks import unforkable
from dualflow.core.source_lines import source_lines
from dualflow.function.autograph import branches, loops, raising, unpacking
from dualflow.function.autograph.bindings import bind_nonlocals
from dualflow.function.autograph.converted_calls import Converter
from dualflow.function.autograph.lambdas import is_lambda, isolated
from dualflow.function.autograph.merge_values import symbolic
from dualflow.function.autograph.syntax import lowered
from dualflow.function.bound_method import WeakMethod
from dualflow.function.control.raising import settled
from dualflow.function.errors import here
from dualflow.graph.ir import Origin
from dualflow.graph.origin import PACKAGE, register_generated

assert importlib.util

_OPTIONS: Final = ConversionOptions(recursive=True, user_requested=True, optional_features=None)
_OPERATORS: Final = (
    branches.if_stmt,
    branches.if_exp,
    branches.and_,
    branches.or_,
    branches.not_,
    loops.while_stmt,
    loops.for_stmt,
    raising.raise_stmt,
    raising.catching,
    raising.caught,
    raising.kinds,
    raising.caused,
    unpacking.parts,
    unpacking.items,
    unpacking.contains,
    unpacking.is_sequence,
    AssertionError,
    BaseException,
)


class _ConvertedBody(FunctionScope):  # type: ignore[misc]  # malt is untyped
    """The body of a converted function: knows what is returned where no return statement was reached."""

    def ret(self, value: Any, did_return: Any) -> Any:
        symbol = symbolic(did_return)
        if symbol is not None and value is not None and settled(symbol) is not True:
            node = symbol._value.node
            place = f"\n  {node.origin}" if node is not None and node.origin else here()
            raise InvalidArgumentError(
                f"A value is returned under a condition that is a tensor: the else branch must also have a "
                f"return statement. Return a value of the same shape and dtype on all ways.{place}"
            )
        return super().ret(value, did_return)


class _Context(ProgramContext):  # type: ignore[misc]  # malt is untyped
    """What the conversion of one function is told."""

    def __init__(self, function: FunctionType) -> None:
        super().__init__(options=_OPTIONS)
        self.class_name = _class_of(function.__qualname__)
        self.file = function.__code__.co_filename


class _Transpiler(api.PyToPy):  # type: ignore[misc]  # malt is untyped
    """malt's transformation of source code, whose result calls our operators."""

    def get_extra_locals(self) -> dict[str, Any]:
        if self._extra_locals is None:
            names = super().get_extra_locals()["ag__"].__dict__
            names.update({operator.__name__: operator for operator in _OPERATORS})
            names["converted_call"] = CALLS.call
            names["FunctionScope"] = _ConvertedBody
        found: dict[str, Any] = self._extra_locals
        return found

    def get_caching_key(self, ctx: Any) -> Any:
        return ctx.file, ctx.class_name  # equal code of another file has other lines to name

    def transform_ast(self, node: Any, ctx: Any) -> Any:
        made = super().transform_ast(lowered(node, ctx.user.class_name, ctx.namer.new_symbol), ctx)
        for part in made if isinstance(made, list) else [made]:
            bind_nonlocals(ast.Module([part], []) if isinstance(part, ast.stmt) else part)
        return made


_TRANSPILER: Final = _Transpiler()


def convert(function: Any) -> Callable[..., Any]:
    """``function`` with Python's control flow as calls of operators that also take symbols.

    Args:
        function: a Python function, a method, or an object with ``__call__``.

    Raises:
        InvalidArgumentError: its source is not available, or uses what can't be converted.
    """
    if isinstance(function, WeakMethod):
        return function.with_function(convert)
    if isinstance(function, MethodType):
        return MethodType(convert(function.__func__), function.__self__)
    if not isinstance(function, FunctionType):
        return lambda *args, **kwargs: CALLS.call(function, args, kwargs)
    if hasattr(function, "autograph_info__"):
        return function
    try:
        with unforkable():  # malt has a lock of its own, which a child would inherit taken
            converted, _, lines = _transformed(function)
    except Exception as error:  # malt raises errors of any type for syntax that it doesn't know
        code = function.__code__
        reason = error if isinstance(error, PyCTError) else f"{type(error).__name__}: {error}"
        if isinstance(error, InaccessibleSourceCodeError):
            reason = "its source is not to be found, as that of code from exec, python -c or the prompt"
        raise InvalidArgumentError(
            f"{function.__qualname__} can't be converted: {reason} "
            f'(File "{code.co_filename}", line {code.co_firstlineno})'
        ) from error
    generated = converted.__code__.co_filename
    register_generated(generated, _origins(generated, lines, function))
    result: Callable[..., Any] = converted
    return result


def _transformed(function: FunctionType) -> Any:
    """What malt makes of the function; a lambda that it can't tell from its neighbours is tried by itself."""
    if not source_lines(function.__code__, function.__globals__):
        raise InaccessibleSourceCodeError
    try:
        return _TRANSPILER.transform(function, _Context(function))
    except (UnsupportedLanguageElementError, AttributeError):  # the latter where a module is not registered
        alone = isolated(function) if is_lambda(function) else None
        if alone is None:
            raise
        return _TRANSPILER.transform(alone, _Context(alone))


def _class_of(name: str) -> str:
    """The class in whose body a function of this qualified name is written; empty for none.

    >>> _class_of("Model.step"), _class_of("Model.step.<locals>.inner"), _class_of("f.<locals>.g")
    ('Model', 'Model', '')
    """
    outer, _, _ = name.rpartition(".")
    if outer.endswith("<locals>"):
        return _class_of(outer.removesuffix(".<locals>"))
    return outer.rpartition(".")[2]


def _origins(generated: str, lines: Any, function: FunctionType) -> dict[int, Origin]:
    """The user's line for each line of generated code that stands for one; none in code of this package."""
    file = function.__code__.co_filename
    if file.startswith(PACKAGE):
        return {}
    return {
        at.lineno: Origin(file, origin.loc.lineno, origin.function_name or function.__name__)
        for at, origin in lines.items()
        if at.filename == generated  # the map has places in the user's file, too
    }


CALLS: Final = Converter(convert)
