"""Functions in which there is nothing to lower: they run as they are written."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from types import FunctionType, ModuleType
from typing import Any, Final

from dualflow.function.autograph.callees import HIGHER_ORDER
from dualflow.function.autograph.parsing import SourceError, parsed

_PACKAGE: Final = __name__.partition(".")[0]
_LOWERED: Final = (
    *(ast.If, ast.While, ast.For, ast.Try, ast.TryStar, ast.Match, ast.Raise, ast.Assert),
    *(ast.BoolOp, ast.Not, ast.In, ast.NotIn, ast.IfExp, ast.comprehension, ast.Starred),
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef),
)
"""Syntax that the lowering changes, or that hides it."""


def is_plain(function: FunctionType) -> bool:
    """Whether the source of ``function`` has no control flow, and calls this package's functions alone."""
    try:
        tree = parsed(function)
    except SourceError:
        return False
    body = [tree.body] if isinstance(tree, ast.Lambda) else tree.body
    nodes = [node for part in body for node in ast.walk(part)]
    if any(isinstance(node, _LOWERED) or _takes_apart(node) for node in nodes):
        return False
    names = _names(function)
    return all(_is_ours(node.func, names) for node in nodes if isinstance(node, ast.Call))


def _takes_apart(node: ast.AST) -> bool:
    """Whether a node unpacks a value, or compares several."""
    if isinstance(node, ast.Tuple | ast.List):
        return isinstance(node.ctx, ast.Store)
    return isinstance(node, ast.Compare) and len(node.ops) > 1


def _names(function: FunctionType) -> Mapping[str, Any]:
    """The names of the module that the function reads, without those that are variables of functions."""
    code = function.__code__
    own = {*code.co_varnames, *code.co_cellvars, *code.co_freevars}
    return {name: function.__globals__.get(name) for name in code.co_names if name not in own}


def _is_ours(callee: ast.expr, names: Mapping[str, Any]) -> bool:
    """Whether a callee is reached from a module of this package through modules and their names."""
    path: list[str] = []
    while isinstance(callee, ast.Attribute):
        path.append(callee.attr)
        callee = callee.value
    found = names.get(callee.id) if isinstance(callee, ast.Name) else None
    while isinstance(found, ModuleType) and found.__name__.partition(".")[0] == _PACKAGE:
        if not path:
            return False
        found = getattr(found, path.pop(), None)
    owner = getattr(found, "__module__", None) or ""
    return not path and owner.partition(".")[0] == _PACKAGE and owner not in HIGHER_ORDER
