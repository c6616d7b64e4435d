"""The first step of the lowering: rewrites statements to a core language with fewer kinds of statements.

``match`` becomes a chain of ``if``, and ``assert`` an ``if`` with a ``raise``. Exceptions that are raised and
values that are unpacked are passed to operators.
"""

from __future__ import annotations

import ast
import builtins
import copy
from collections.abc import Mapping, Sequence
from typing import Any

from dualflow.function.autograph.item_assignments import (
    CreatedArray,
    ItemAssignment,
    as_expression,
    augmented_item,
)
from dualflow.function.autograph.match_statements import lowered_match
from dualflow.function.autograph.nodes import (
    assigned,
    call,
    function_of,
    load,
    negated,
    operator,
    thunk,
    with_location,
)
from dualflow.function.autograph.scope_analysis import Namer


class CoreSyntax(ast.NodeTransformer):
    """Rewrites the statements of one function.

    Args:
        namer: creates names that the function doesn't use.
        arrays: the variables that it binds to new NumPy arrays, by name.
    """

    def __init__(self, namer: Namer, arrays: Mapping[str, CreatedArray]) -> None:
        self._namer = namer
        self._arrays = arrays

    def block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        """The rewritten statements."""
        result: list[ast.stmt] = []
        for statement in statements:
            lowered = self.visit(statement)
            result += lowered if isinstance(lowered, list) else [lowered]
        return result

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> Any:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        return node

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        return node

    # raise and assert

    def visit_Assert(self, node: ast.Assert) -> Any:
        if not __debug__:
            return with_location([ast.Pass()], node)
        message = [] if node.msg is None else [node.msg]
        error = ast.Call(operator("AssertionError"), message, [])
        raised: list[ast.stmt] = with_location([_raised(error, operator("AssertionError"))], node)
        return with_location([ast.If(negated(node.test), raised, [])], node)

    def visit_Raise(self, node: ast.Raise) -> Any:
        if node.exc is None:
            return node
        error = node.exc if node.cause is None else call("caused", node.exc, node.cause)
        kind = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        kind = copy.deepcopy(kind) if isinstance(kind, ast.Name | ast.Attribute) else ast.Constant(None)
        return with_location([_raised(error, kind)], node)

    def visit_If(self, node: ast.If) -> Any:
        if _raises(node.orelse) and not _raises(node.body):
            test = ast.copy_location(negated(node.test), node.test)
            node.test, node.body, node.orelse = test, node.orelse, node.body
        return self.generic_visit(node)

    def visit_Try(self, node: ast.Try) -> Any:
        self.generic_visit(node)
        if node.handlers:
            kinds = [h.type if h.type is not None else operator("BaseException") for h in node.handlers]
            types = thunk(call("kinds", *map(copy.deepcopy, kinds)))
            body = ast.With([ast.withitem(call("catching", types), None)], node.body)
            node.body = with_location([body], node.body[0])
        return node

    # unpacking

    def visit_For(self, node: ast.For) -> Any:
        if isinstance(node.target, ast.Tuple | ast.List):
            item = self._namer.new("ag__item")
            parts = with_location([ast.Assign([node.target], load(item))], node.target)
            node.target = with_location([ast.Name(item, ast.Store())], node.target)[0]
            node.body = [*parts, *node.body]
        return self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> Any:
        if len(node.targets) == 1 and (target := self._array_item(node.targets[0])) is not None:
            name, key, array = target
            return with_location([ItemAssignment.of(name, as_expression(key), node.value, array)], node)
        if not any(isinstance(t, ast.Tuple | ast.List) for t in node.targets) or isinstance(
            node.value, ast.Tuple | ast.List
        ):
            return node
        if len(node.targets) == 1:
            return with_location(self._unpacked(node.targets[0], node.value), node)
        value = self._namer.new("ag__value")
        parts = [s for target in node.targets for s in self._unpacked(target, load(value))]
        return with_location([assigned(value, node.value), *parts], node)

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        target = self._array_item(node.target)
        if target is None:
            return node
        name, target_key, array = target
        key, item = self._namer.new("ag__key"), self._namer.new("ag__item")
        statements = [
            assigned(key, as_expression(target_key)),
            assigned(item, augmented_item(name, load(key), array)),
            ast.AugAssign(ast.Name(item, ast.Store()), node.op, node.value),
            ItemAssignment.of(name, load(key), load(item), array),
        ]
        return with_location(statements, node)

    def _array_item(self, target: ast.expr) -> tuple[str, ast.expr, CreatedArray] | None:
        """For an item of a variable that is bound to new arrays: its name, the key, and the arrays."""
        if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            name = target.value.id
            return (name, target.slice, self._arrays[name]) if name in self._arrays else None
        return None

    def _unpacked(self, target: ast.expr, value: ast.expr) -> list[ast.stmt]:
        """The assignments to one target; nested tuples are unpacked by statements of their own."""
        if not isinstance(target, ast.Tuple | ast.List):
            return [ast.Assign([target], value)]
        inner: list[ast.stmt] = []
        elements: list[ast.expr] = []
        for element in target.elts:
            if isinstance(element, ast.Tuple | ast.List):
                part = self._namer.new("ag__part")
                elements.append(ast.Name(part, ast.Store()))
                inner += self._unpacked(element, load(part))
            else:
                elements.append(element)
        return [ast.Assign([ast.Tuple(elements, ast.Store())], call("parts", value)), *inner]

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        """Remove the annotation, which Python doesn't evaluate in a function."""
        if node.value is None:
            return with_location([ast.Pass()], node)
        return with_location([ast.Assign([node.target], node.value)], node)

    def visit_Match(self, node: ast.Match) -> Any:
        return self.block(lowered_match(node, self._namer))


def _raised(error: ast.expr, kind: ast.expr) -> ast.stmt:
    """The statement that raises ``error`` of class ``kind``."""
    names = _reads(error)
    reads = ast.Tuple([load(name) for name in names], ast.Load())
    return ast.Raise(call("raised", kind, function_of(names, error), reads), None)


def _is_exception(name: str) -> bool:
    value = getattr(builtins, name, None)
    return isinstance(value, type) and issubclass(value, BaseException)


def _reads(expression: ast.expr) -> tuple[str, ...]:
    """The names that an expression reads and does not bind itself, except built-in exceptions."""
    inside = list(ast.walk(expression))
    names = [n for n in inside if isinstance(n, ast.Name)]
    bound = {n.id for n in names if not isinstance(n.ctx, ast.Load)} | {"ag__", "super", "__class__"}
    bound |= {n.arg for n in inside if isinstance(n, ast.arg)}
    return tuple(dict.fromkeys(n.id for n in names if n.id not in bound and not _is_exception(n.id)))


def _raises(block: Sequence[ast.stmt]) -> bool:
    """Whether a block always raises."""
    last = block[-1] if block else None
    if isinstance(last, ast.If):
        return _raises(last.body) and _raises(last.orelse)
    return isinstance(last, ast.Raise)
