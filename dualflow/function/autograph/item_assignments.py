"""Finds assignments to items of the NumPy arrays that a function creates, and rewrites them.

``xs[i] = x`` becomes ``xs = ag__.with_item(x, xs, i, (np,), (), False)``: see ``array_writes.py``.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from dualflow.core.locks import imported
from dualflow.core.records import dataclass
from dualflow.function.autograph.nodes import call, load, thunk
from dualflow.function.autograph.scope_analysis import ScopeNames, own_nodes

if TYPE_CHECKING:
    from dualflow.function.autograph.array_aliases import Aliases

_CREATORS: Final = frozenset(
    (
        *("zeros", "ones", "empty", "full", "zeros_like", "ones_like", "empty_like", "full_like"),
        *("eye", "identity", "arange", "linspace", "copy"),
    )
)
"""NumPy's functions that return an array of the caller's own."""


@dataclass(frozen=True, slots=True)
class CreatedArray:
    """A variable that a function binds to new arrays.

    Attributes:
        modules: the names of the modules whose functions create these.
        aliases: what else may refer to them.
    """

    modules: tuple[str, ...]
    aliases: Aliases


class ItemAssignment(ast.Assign):
    """The statement ``x = with_item(value, x, key, ...)``, which replaces ``x[key] = value``.

    Attributes:
        array: the arrays that the variable is bound to.
    """

    array: CreatedArray

    @classmethod
    def of(cls, name: str, key: ast.expr, value: ast.expr, array: CreatedArray) -> ItemAssignment:
        """The assignment of ``value`` to the item ``key`` of the variable ``name``."""
        statement = cls(
            [ast.Name(name, ast.Store())], call("with_item", value, load(name), key, _modules(array))
        )
        statement.array = array
        return statement

    def with_aliases(self, live: Iterable[str]) -> ast.Assign:
        """This assignment with what may refer to the array afterwards, when the names ``live`` are read."""
        aliases = self.array.aliases
        names = [load(name) for name in sorted(aliases.variables.intersection(live))]
        others: list[ast.expr] = [thunk(x) for x in (*names, *map(copy.deepcopy, aliases.containers))]
        assert isinstance(self.value, ast.Call)
        self.value.args += [ast.Tuple(others, ast.Load()), ast.Constant(aliases.is_elsewhere)]
        return ast.Assign(self.targets, self.value)


def created_arrays(body: Sequence[ast.stmt], excluded: set[str]) -> dict[str, CreatedArray]:
    """The variables that a function binds to new arrays, by name.

    Args:
        body: the statements of the function.
        excluded: names of parameters, and of variables of other scopes.
    """
    modules: dict[str, set[str]] = {}
    for node in own_nodes(body):
        for target, value in _pairs(node) if isinstance(node, ast.Assign) else ():
            module = _creating_module(value)
            if isinstance(target, ast.Name) and module is not None and target.id not in excluded:
                modules.setdefault(target.id, set()).add(module)
    if not modules:
        return {}
    analysis = imported("dualflow.function.autograph.array_aliases").ArrayAliases  # few functions need it
    aliases = analysis(body, modules, ScopeNames.of(body).binds | excluded)
    return {name: CreatedArray(tuple(sorted(names)), aliases.of(name)) for name, names in modules.items()}


def _pairs(node: ast.Assign) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Each target of an assignment with its value; of tuples with as many items, each item."""
    for target in node.targets:
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            if len(target.elts) == len(node.value.elts):
                yield from zip(target.elts, node.value.elts, strict=True)
        else:
            yield target, node.value


def _creating_module(value: ast.expr) -> str | None:
    function = value.func if isinstance(value, ast.Call) else None
    if isinstance(function, ast.Attribute) and function.attr in _CREATORS:
        return function.value.id if isinstance(function.value, ast.Name) else None
    return None


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
