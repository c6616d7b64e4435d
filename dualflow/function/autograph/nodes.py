"""Constructors of syntax tree nodes."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from types import CodeType
from typing import Final, TypeVar

N = TypeVar("N", bound=ast.AST)
OPERATORS_NAME: Final = "ag__"
"""The name of the operators in converted code."""


def load(name: str) -> ast.Name:
    """A read of a name."""
    return ast.Name(name, ast.Load())


def operator(name: str) -> ast.Attribute:
    """A reference to an operator."""
    return ast.Attribute(load(OPERATORS_NAME), name, ast.Load())


def call(name: str, *args: ast.expr) -> ast.Call:
    """A call of an operator."""
    return ast.Call(operator(name), list(args), [])


def thunk(body: ast.expr) -> ast.Lambda:
    """A function without parameters that returns an expression's value."""
    return function_of([], body)


def function_of(names: Sequence[str], body: ast.expr) -> ast.Lambda:
    """A ``lambda`` with positional parameters."""
    return ast.copy_location(ast.Lambda(arguments(names), body), body)


def arguments(names: Sequence[str]) -> ast.arguments:
    """Positional parameters."""
    return ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])


def assigned(name: str, value: ast.expr) -> ast.Assign:
    """An assignment to one name."""
    return ast.Assign([ast.Name(name, ast.Store())], value)


def negated(x: ast.expr) -> ast.UnaryOp:
    """``not x``."""
    return ast.UnaryOp(ast.Not(), x)


def strings(names: Sequence[str]) -> ast.Tuple:
    """A tuple of constant strings."""
    return ast.Tuple([ast.Constant(name) for name in names], ast.Load())


def with_location(nodes: Sequence[N], at: ast.AST) -> list[N]:
    """``nodes`` with the location of ``at``, where they or their parts have none."""
    for node in nodes:
        ast.copy_location(node, at)
        ast.fix_missing_locations(node)
    return list(nodes)


def defined(name: str, args: ast.arguments, body: Sequence[ast.stmt]) -> ast.FunctionDef:
    """A ``def`` statement, created by the parser, since its fields differ between versions of Python."""
    (function,) = ast.parse("def name(): pass").body
    assert isinstance(function, ast.FunctionDef)
    function.name, function.args, function.body = name, args, list(body)
    return function


def parts_of(node: ast.AST) -> list[ast.AST]:
    """The nodes in the fields of a node except ``ctx``: faster than :func:`ast.iter_child_nodes`."""
    parts: list[ast.AST] = []
    if isinstance(node, ast.Name | ast.Constant):
        return parts
    for name in node._fields:
        value = getattr(node, name, None)
        if isinstance(value, list):
            parts += [item for item in value if isinstance(item, ast.AST)]
        elif isinstance(value, ast.AST) and name != "ctx":
            parts.append(value)
    return parts


def is_converted(code: CodeType) -> bool:
    """Whether ``code`` belongs to a converted function, or to a function nested in one."""
    return OPERATORS_NAME in code.co_names
