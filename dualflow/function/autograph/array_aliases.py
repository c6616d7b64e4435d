"""What else may refer to the NumPy arrays that a function binds to a variable, or to views of them.

NumPy's views share the elements of their array: after ``row = out[0]``, an assignment to an item of ``out``
changes ``row``, too. Whether a value is a view is decided where it has one: see ``array_writes.py``.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias

from dualflow.core.records import dataclass
from dualflow.function.autograph.scope_analysis import SCOPES

_STORING: Final = frozenset(
    ("add", "append", "appendleft", "extend", "insert", "push", "put", "setdefault", "update", "write")
)
"""Methods that keep their argument."""
_COPYING: Final = frozenset(("array", "astype", "copy", "deepcopy", "tolist"))
"""Functions and methods that return a copy."""
_DISPLAYS: Final = (
    *(ast.Tuple, ast.List, ast.Set, ast.Dict, ast.Starred, ast.keyword),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
)
_SAME_VALUE: Final = (*_DISPLAYS, ast.Attribute, ast.Subscript, ast.BoolOp, ast.IfExp)
"""Expressions that return a part of them, a view of it, or a container that holds it."""

Parents: TypeAlias = tuple[ast.AST, ...]


@dataclass(frozen=True, slots=True)
class Aliases:
    """What may refer to the arrays of a variable, or to views of them.

    Attributes:
        variables: other variables.
        containers: expressions of objects that keep what is put into them, such as ``self.rows``.
        is_elsewhere: whether a function may have kept the array, or an object without a name has it.
    """

    variables: frozenset[str]
    containers: tuple[ast.expr, ...]
    is_elsewhere: bool


class ArrayAliases:
    """Finds the aliases of a function's arrays.

    Args:
        body: the statements of the function.
        arrays: the variables that it binds to new arrays, whose items are copies of what they are assigned.
        local: the names of all its variables.
    """

    def __init__(self, body: Sequence[ast.stmt], arrays: Iterable[str], local: set[str]) -> None:
        self._arrays = frozenset(arrays)
        self._local = local
        self._uses: dict[str, list[tuple[ast.Name, Parents]]] = {}
        for node, parents in with_parents(body):
            if isinstance(node, ast.Name):
                self._uses.setdefault(node.id, []).append((node, parents))

    def of(self, array: str) -> Aliases:
        """What may refer to the arrays of a variable, directly or by other variables."""
        is_whole, pending = {array: True}, [array]
        containers: dict[str, ast.expr] = {}
        is_elsewhere = False
        while pending:
            name = pending.pop()
            for node, parents in self._uses.get(name, ()):
                use = _Use(self._arrays, self._local, is_whole[name])
                use.follow(node, parents)
                is_elsewhere |= use.is_elsewhere
                containers.update((ast.unparse(x), x) for x in use.containers)
                for other in use.variables:
                    if other not in is_whole or use.is_whole > is_whole[other]:
                        is_whole[other] = use.is_whole
                        pending.append(other)
        return Aliases(frozenset(is_whole) - {array}, tuple(containers.values()), is_elsewhere)


class _Use:
    """Where one use of a variable puts its value.

    Attributes:
        is_whole: whether it is the array itself, rather than a view or the result of a function.
        variables, containers, is_elsewhere: as of :class:`Aliases`.
    """

    def __init__(self, arrays: frozenset[str], local: set[str], is_whole: bool) -> None:
        self._arrays = arrays
        self._local = local
        self.is_whole = is_whole
        self.variables: list[str] = []
        self.containers: list[ast.expr] = []
        self.is_elsewhere = False

    def follow(self, node: ast.Name, parents: Parents) -> None:
        """Follow the value from the innermost expression outwards, until something keeps or consumes it."""
        if isinstance(node.ctx, ast.Store):
            if parents and isinstance(parents[-1], ast.Assign) and len(parents[-1].targets) > 1:
                self._assign(*parents[-1].targets)
            return
        child: ast.AST = node
        for parent in reversed(parents) if isinstance(node.ctx, ast.Load) else ():
            if not self._passes(parent, child):
                return
            child = parent

    def _passes(self, parent: ast.AST, child: ast.AST) -> bool:
        """Whether the value of ``parent`` may be, or contain, that of ``child``; records names for it."""
        match parent:
            case ast.Call():
                return self._passes_call(parent, child)
            case ast.Subscript() if parent.slice is child:
                return False
            case ast.IfExp() if parent.test is child:
                return False
            case ast.Assign() | ast.AnnAssign() | ast.NamedExpr():
                self._assign(*(parent.targets if isinstance(parent, ast.Assign) else [parent.target]))
            case ast.For() | ast.AsyncFor() | ast.comprehension() if parent.iter is child:
                self.is_whole = False
                self._assign(parent.target)
                return False
            case ast.withitem() | ast.Yield() | ast.YieldFrom() | ast.Await():
                self.is_elsewhere = True
        self.is_whole &= isinstance(parent, (*_DISPLAYS, ast.NamedExpr, ast.BoolOp, ast.IfExp))
        return isinstance(parent, (*_SAME_VALUE, ast.NamedExpr))

    def _passes_call(self, parent: ast.Call, child: ast.AST) -> bool:
        function = parent.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        if child is not function and isinstance(function, ast.Attribute) and name in _STORING:
            self._put_into(function.value)
        elif child is not function and self.is_whole and not self._only_reads(function):
            self.is_elsewhere = True
        self.is_whole = False
        return name not in _COPYING

    def _assign(self, *targets: ast.expr) -> None:
        for target in targets:
            match target:
                case ast.Name():
                    self.variables.append(target.id)
                case ast.Tuple() | ast.List():
                    self._assign(*target.elts)
                case ast.Starred():
                    self._assign(target.value)
                case ast.Subscript(value=ast.Name(id=name)) if name in self._arrays:
                    pass
                case ast.Attribute():
                    self._put_into(ast.Attribute(target.value, target.attr, ast.Load()))
                case ast.Subscript():
                    self._put_into(target.value)

    def _put_into(self, container: ast.expr) -> None:
        if _root(container) is None:
            self.is_elsewhere = True
        else:
            self.containers.append(container)

    def _only_reads(self, function: ast.expr) -> bool:
        """Whether a function that is called is one of a module, or built in, and keeps no reference."""
        if isinstance(function, ast.Name):
            return function.id not in self._local and hasattr(builtins, function.id)
        root = _root(function)
        return root is not None and root not in self._local


def _root(expression: ast.expr) -> str | None:
    """The name ``x`` of an expression ``x`` or ``x.y.z``; None for other expressions."""
    while isinstance(expression, ast.Attribute):
        expression = expression.value
    return expression.id if isinstance(expression, ast.Name) else None


def with_parents(nodes: Iterable[ast.AST], parents: Parents = ()) -> Iterator[tuple[ast.AST, Parents]]:
    """The nodes of a function's own scope, each with those around it, the nearest last."""
    for node in nodes:
        yield node, parents
        if not isinstance(node, SCOPES):
            yield from with_parents(ast.iter_child_nodes(node), (*parents, node))
