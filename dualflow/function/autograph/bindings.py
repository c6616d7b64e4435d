"""Bindings of the variables that generated functions share with the function around them.

malt writes ``nonlocal name`` into the bodies of loops and branches, and a first assignment of ``name`` before
them, unless ``name`` counts as assigned already: also where an inner function has a parameter of that name.
Without a binding, Python refuses the code, or takes the variable of another function around.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_SCOPES = (*_FUNCTIONS, ast.ClassDef)


def bind_nonlocals(tree: ast.AST) -> None:
    """Add a first assignment to each function of ``tree`` that leaves a shared variable unbound."""
    _bind(tree, [])


def _bind(node: ast.AST, around: list[ast.FunctionDef]) -> None:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef):
            for name in _declared(child, ast.Nonlocal):
                _bind_in(name, around)
            _bind(child, [*around, child])
        else:
            _bind(child, around)


def _bind_in(name: str, around: list[ast.FunctionDef]) -> None:
    """Bind ``name`` in the innermost of the functions ``around`` that doesn't take it from outside."""
    for function in reversed(around):
        if name in _declared(function, ast.Nonlocal):
            continue
        if name not in _bound(function) and name not in _declared(function, ast.Global):
            call = ast.parse(f"{name} = ag__.Undefined({name!r})").body[0]
            ast.copy_location(call, function.body[0])
            function.body.insert(0, ast.fix_missing_locations(call))
        return


def _own(function: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function's body, without the insides of functions and classes in it."""
    pending: list[ast.AST] = list(function.body) if isinstance(function, ast.FunctionDef) else []
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, _SCOPES):
            pending += ast.iter_child_nodes(node)


def _declared(function: ast.FunctionDef, kind: type[ast.Nonlocal] | type[ast.Global]) -> set[str]:
    return {name for node in _own(function) if isinstance(node, kind) for name in node.names}


def _bound(function: ast.FunctionDef) -> set[str]:
    """The parameters of a function, and the names that its body assigns, imports or defines."""
    args = function.args
    found = {a.arg for a in (*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg) if a}
    for node in _own(function):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.alias):
            found.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.ExceptHandler) and node.name:
            found.add(node.name)
    return found
