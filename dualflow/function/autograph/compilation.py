"""Compiles converted functions with the user's line numbers, once for each code object."""

from __future__ import annotations
import __future__

import ast
import weakref
from collections.abc import Container
from types import CellType, CodeType, FunctionType
from typing import Final

from dualflow.function.autograph.callees import Callees, NotConverted
from dualflow.function.autograph.lowering import lowered
from dualflow.function.autograph.match_statements import UnsupportedSyntax
from dualflow.function.autograph.nodes import OPERATORS_NAME, arguments, defined, is_converted
from dualflow.function.autograph.operators import OPERATORS
from dualflow.function.autograph.parsing import FunctionNode, SourceError, parsed
from dualflow.function.autograph.scope_analysis import Namer

_FUTURES: Final = sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
_conversions: Final[weakref.WeakKeyDictionary[CodeType, dict[str, CodeType | str]]] = (
    weakref.WeakKeyDictionary()
)
"""By a function's code and file (two files may have equal code): the converted code, or why there is none."""


def convert(function: FunctionType) -> FunctionType:
    """``function`` with control flow that also takes tensors; its closure is that of ``function``.

    Raises:
        NotConverted: its source is not available, or uses what can't be converted.
    """
    code = function.__code__
    if is_converted(code):
        return function
    by_file = _conversions.setdefault(code, {})
    conversion = by_file.get(code.co_filename)
    if conversion is None:
        conversion = by_file[code.co_filename] = _conversion(function)
    if isinstance(conversion, str):
        raise NotConverted(conversion)
    cells = {OPERATORS_NAME: _CELL, **dict(zip(code.co_freevars, function.__closure__ or (), strict=True))}
    closure = tuple([cells[name] for name in conversion.co_freevars])
    result = FunctionType(conversion, function.__globals__, function.__name__, function.__defaults__, closure)
    result.__kwdefaults__ = function.__kwdefaults__
    return result


def lowered_tree(function: FunctionType) -> FunctionNode:
    """The syntax tree that a function is converted to.

    Raises:
        NotConverted: its source is not available, or uses what can't be converted.
    """
    return _lowered(function)[0]


def _conversion(function: FunctionType) -> CodeType | str:
    """The converted code of a function, or the reason that there is none."""
    code = function.__code__
    try:
        tree, namer = _lowered(function)
    except NotConverted as reason:
        return str(reason)
    return _renamed(_compiled(tree, code), code.co_name, code.co_qualname, namer.functions)


def _lowered(function: FunctionType) -> tuple[FunctionNode, Namer]:
    code = function.__code__
    try:
        tree = parsed(function)
        namer = Namer(tree)
        if isinstance(tree, ast.FunctionDef):
            tree.decorator_list = []
        return lowered(tree, namer, class_of(code.co_qualname)), namer
    except (SourceError, UnsupportedSyntax, RecursionError) as error:
        reason = f'{error} (File "{code.co_filename}", line {code.co_firstlineno})'
        raise NotConverted(f"{function.__qualname__} can't be converted: {reason}") from None


def _compiled(tree: FunctionNode, code: CodeType) -> CodeType:
    """The code of a function, compiled inside a function and a class that provide the names of its scope."""
    _without_defaults(tree.args)
    class_name = class_of(code.co_qualname)
    statement: ast.stmt = ast.Expr(tree) if isinstance(tree, ast.Lambda) else _plain(tree)
    if class_name:
        (scope,) = ast.parse("class name: pass").body
        assert isinstance(scope, ast.ClassDef)
        scope.name, scope.body = class_name, [statement]
        statement = scope
    name = class_name or code.co_name
    is_global = name.isidentifier() and name not in code.co_freevars
    declarations: list[ast.stmt] = [ast.Global([name])] if is_global else []
    factory = defined("factory", arguments([OPERATORS_NAME, *code.co_freevars]), [*declarations, statement])
    module = ast.fix_missing_locations(ast.Module([factory], []))
    flags = code.co_flags & _FUTURES
    compiled: CodeType = compile(module, code.co_filename, "exec", flags, dont_inherit=True)
    for name in ["factory", class_name, code.co_name] if class_name else ["factory", code.co_name]:
        compiled = next(c for c in compiled.co_consts if isinstance(c, CodeType) and c.co_name == name)
    return compiled


def _plain(tree: ast.FunctionDef) -> ast.FunctionDef:
    """A function without return annotation and type parameters."""
    return ast.copy_location(defined(tree.name, tree.args, tree.body), tree)


def _without_defaults(args: ast.arguments) -> None:
    """Remove defaults and annotations, which are evaluated outside of the function."""
    args.defaults = [ast.Constant(None) for _ in args.defaults]
    args.kw_defaults = [None if x is None else ast.Constant(None) for x in args.kw_defaults]
    packed = [a for a in (args.vararg, args.kwarg) if a is not None]
    for argument in (*args.posonlyargs, *args.args, *args.kwonlyargs, *packed):
        argument.annotation = None


def _renamed(code: CodeType, name: str, qualname: str, generated: Container[str]) -> CodeType:
    """``code``, marked as converted; generated functions get the name of the user's function around them."""
    consts = []
    for constant in code.co_consts:
        if isinstance(constant, CodeType) and constant.co_name in generated:
            constant = _renamed(constant, name, qualname, generated)
        elif isinstance(constant, CodeType):
            inner = f"{qualname}.<locals>.{constant.co_name}"
            constant = _renamed(constant, constant.co_name, inner, generated)
        consts.append(constant)
    names = (*code.co_names, OPERATORS_NAME)
    return code.replace(co_name=name, co_qualname=qualname, co_consts=tuple(consts), co_names=names)


def class_of(name: str) -> str:
    """The name of the class in whose body a function of this qualified name is defined; empty for none.

    >>> class_of("Model.step"), class_of("Model.step.<locals>.inner"), class_of("f.<locals>.g")
    ('Model', 'Model', '')
    """
    outer, _, _ = name.rpartition(".")
    if outer.endswith("<locals>"):
        return class_of(outer.removesuffix(".<locals>"))
    return outer.rpartition(".")[2]


_CALLEES: Final = Callees(convert)
callee: Final = _CALLEES.callee
scoped_callee: Final = _CALLEES.scoped_callee
_CELL: Final = CellType(OPERATORS)
