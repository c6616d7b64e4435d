"""Finds functions that need no conversion, as they contain nothing to lower."""

from __future__ import annotations

import ast
import contextlib
import weakref
from collections.abc import Iterator, Mapping, Sequence
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

from dualflow.function.autograph.callees import HIGHER_ORDER
from dualflow.function.autograph.parsing import SourceError, body_nodes

_PACKAGE: Final = __name__.partition(".")[0]
_LOWERED: Final = (
    *(ast.If, ast.While, ast.For, ast.Try, ast.TryStar, ast.Match, ast.Raise, ast.Assert),
    *(ast.BoolOp, ast.Not, ast.In, ast.NotIn, ast.IfExp, ast.comprehension, ast.Starred),
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef),
)
"""Syntax that the lowering changes, or that may contain such syntax."""
_callees: Final[weakref.WeakKeyDictionary[CodeType, dict[str, tuple[ast.expr, ...] | None]]] = (
    weakref.WeakKeyDictionary()
)
"""By a function's code and file (two files may have equal code): what it calls; None if it needs lowering."""


def is_plain(function: FunctionType) -> bool:
    """Whether ``function`` has no control flow and calls only functions of this package."""
    by_file = _callees.setdefault(function.__code__, {})
    file = function.__code__.co_filename
    if file not in by_file:
        try:
            by_file[file] = _callees_in(body_nodes(function))
        except SourceError:
            return False
    callees = by_file[file]
    if callees is None:
        return False
    names = _names(function)
    return all(_is_ours(callee, names) for callee in callees)


def _callees_in(nodes: Sequence[ast.AST]) -> tuple[ast.expr, ...] | None:
    """The expressions that a body with these nodes calls; None if the lowering changes the body."""
    if any(isinstance(node, _LOWERED) or _unpacks_or_chains(node) for node in nodes):
        return None
    return tuple([node.func for node in nodes if isinstance(node, ast.Call)])


def _unpacks_or_chains(node: ast.AST) -> bool:
    """Whether a node unpacks a value, or is a chained comparison."""
    if isinstance(node, ast.Tuple | ast.List):
        return isinstance(node.ctx, ast.Store)
    return isinstance(node, ast.Compare) and len(node.ops) > 1


def _names(function: FunctionType) -> Mapping[str, Any]:
    """The globals that the function reads, and the modules among its free variables, by name."""
    code = function.__code__
    locals_and_cells = {*code.co_varnames, *code.co_cellvars, *code.co_freevars}
    names = {name: function.__globals__.get(name) for name in code.co_names if name not in locals_and_cells}
    return names | dict(_free_modules(function))


def _free_modules(function: FunctionType) -> Iterator[tuple[str, ModuleType]]:
    """The free variables of the function that are modules; others may be assigned again."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):  # the variable has no value yet
            if isinstance(cell.cell_contents, ModuleType):
                yield name, cell.cell_contents


def _is_ours(callee: ast.expr, names: Mapping[str, Any]) -> bool:
    """Whether a callee is a function of this package, named by modules and their attributes."""
    path: list[str] = []
    while isinstance(callee, ast.Attribute):
        path.append(callee.attr)
        callee = callee.value
    value = names.get(callee.id) if isinstance(callee, ast.Name) else None
    while isinstance(value, ModuleType) and value.__name__.partition(".")[0] == _PACKAGE:
        if not path:
            return False
        value = getattr(value, path.pop(), None)
    owner = getattr(value, "__module__", None) or ""
    return not path and owner.partition(".")[0] == _PACKAGE and owner not in HIGHER_ORDER
