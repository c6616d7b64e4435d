"""Finds assignments to items of the NumPy arrays that a function creates, and rewrites them.

``xs[i] = x`` becomes ``xs = ag__.with_item(x, xs, i, (np,), False)``: see ``array_writes.py``.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from dualflow.core.records import dataclass
from dualflow.function.autograph.nodes import assigned, call, load
from dualflow.function.autograph.scope_analysis import SCOPES, ScopeNames

_CREATORS: Final = frozenset(
    (
        *("zeros", "ones", "empty", "full", "zeros_like", "ones_like", "empty_like", "full_like"),
        *("eye", "identity", "arange", "linspace", "copy"),
    )
)
"""NumPy's functions that return an array of the caller's own."""
_STORING: Final = frozenset(
    ("add", "append", "appendleft", "extend", "insert", "push", "put", "setdefault", "update", "write")
)
"""Methods that keep their argument."""
_READING: Final = (
    *(ast.Attribute, ast.Subscript, ast.BinOp, ast.UnaryOp, ast.Compare, ast.AugAssign, ast.Slice),
    *(ast.Return, ast.Expr, ast.If, ast.While, ast.For, ast.Assert, ast.FormattedValue),
)
"""Syntax that reads an array, and keeps no reference to it."""


@dataclass(frozen=True, slots=True)
class CreatedArray:
    """A variable that a function binds to new arrays.

    Attributes:
        modules: the names of the modules whose functions create these.
        is_aliased: whether something else may refer to the array: a variable, a container, another function.
    """

    modules: tuple[str, ...]
    is_aliased: bool


def created_arrays(body: Sequence[ast.stmt], excluded: set[str]) -> dict[str, CreatedArray]:
    """The variables that a function binds to new arrays, by name.

    Args:
        body: the statements of the function.
        excluded: names of parameters, and of variables of other scopes.
    """
    modules: dict[str, set[str]] = {}
    for node, _ in _with_parents(body):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            name, module = node.targets[0].id, _creating_module(node.value)
            if module is not None and name not in excluded:
                modules.setdefault(name, set()).add(module)
    if not modules:
        return {}
    local = ScopeNames.of(body).binds | excluded
    aliased = {
        node.id
        for node, parents in _with_parents(body)
        if isinstance(node, ast.Name) and _may_alias(node, parents, local)
    }
    return {name: CreatedArray(tuple(sorted(names)), name in aliased) for name, names in modules.items()}


def _creating_module(value: ast.expr) -> str | None:
    function = value.func if isinstance(value, ast.Call) else None
    if isinstance(function, ast.Attribute) and function.attr in _CREATORS:
        return function.value.id if isinstance(function.value, ast.Name) else None
    return None


def _with_parents(
    nodes: Iterable[ast.AST], parents: tuple[ast.AST, ...] = ()
) -> Iterator[tuple[ast.AST, tuple[ast.AST, ...]]]:
    """The nodes of a function's own scope, each with those around it, the nearest last."""
    for node in nodes:
        yield node, parents
        if not isinstance(node, SCOPES):
            yield from _with_parents(ast.iter_child_nodes(node), (*parents, node))


def _may_alias(node: ast.Name, parents: tuple[ast.AST, ...], local: set[str]) -> bool:
    """Whether something else may refer to the value of a variable that is read or assigned here."""
    if not parents:
        return False
    *outer, parent = parents
    if isinstance(node.ctx, ast.Store):
        return isinstance(parent, ast.Assign) and len(parent.targets) > 1
    if isinstance(parent, ast.keyword) and outer:
        parent = outer[-1]
    if isinstance(parent, ast.Tuple) and outer and isinstance(outer[-1], ast.Return):
        return False
    if isinstance(parent, ast.Call):
        return parent.func is not node and not _only_reads(parent.func, local)
    return not isinstance(parent, _READING)


def _only_reads(function: ast.expr, local: set[str]) -> bool:
    """Whether a function that is called is one of a module, or built in, and keeps no reference."""
    if isinstance(function, ast.Name):
        return function.id not in local and hasattr(builtins, function.id)
    if not isinstance(function, ast.Attribute) or function.attr in _STORING:
        return False
    root: ast.expr = function
    while isinstance(root, ast.Attribute):
        root = root.value
    return isinstance(root, ast.Name) and root.id not in local


def item_assignment(name: str, key: ast.expr, value: ast.expr, array: CreatedArray) -> ast.Assign:
    """The assignment to the variable ``name`` in place of one to its item."""
    is_aliased = ast.Constant(array.is_aliased)
    return assigned(name, call("with_item", value, load(name), key, _modules(array), is_aliased))


def augmented_item(name: str, key: ast.expr, array: CreatedArray) -> ast.Call:
    """The item of the variable ``name`` that an augmented assignment changes."""
    return call("augmented_item", load(name), key, _modules(array))


def _modules(array: CreatedArray) -> ast.Tuple:
    return ast.Tuple([load(module) for module in array.modules], ast.Load())


def as_expression(key: ast.expr) -> ast.expr:
    """A subscript as an expression: slices as calls of ``slice``."""
    if isinstance(key, ast.Slice):
        bounds = [ast.Constant(None) if x is None else x for x in (key.lower, key.upper, key.step)]
        return call("slice", *bounds)
    if isinstance(key, ast.Tuple):
        return ast.Tuple([as_expression(item) for item in key.elts], ast.Load())
    return key
