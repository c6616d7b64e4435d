"""Lowers expressions to calls of operators that also take tensors."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any, Final

from dualflow.function.autograph.match_statements import UnsupportedSyntax
from dualflow.function.autograph.nodes import OPERATORS_NAME, call, function_of, load, thunk

_SCOPED: Final = frozenset({"eval", "exec", "locals", "vars", "dir"})
"""Built-in functions that read the variables of the function that calls them."""


class Expressions(ast.NodeTransformer):
    """Lowers the expressions of a function.

    Attributes:
        first: the name of the function's first parameter; None if it has none.
        variables: the names of its variables; None in a ``lambda``.
    """

    def __init__(self) -> None:
        self.first: str | None = None
        self.variables: Sequence[str] | None = None

    def visit(self, node: ast.AST) -> Any:
        """The lowered node, with the location of ``node``."""
        lowered = super().visit(node)
        if isinstance(node, ast.expr) and lowered is not node:
            ast.copy_location(lowered, node)
        return lowered

    # calls

    def visit_Call(self, node: ast.Call) -> Any:
        function = node.func
        self.generic_visit(node)
        name = function.id if isinstance(function, ast.Name) else None
        if name == "super" or name == "breakpoint":
            if name == "super" and self.first is not None and not (node.args or node.keywords):
                node.args = [load("__class__"), load(self.first)]
            return node
        if isinstance(function, ast.Attribute) and _is_operator(function):
            return node
        lowered = call("callee", node.func)
        if name in _SCOPED and self.variables is not None:
            scope = ast.Tuple([load(variable) for variable in self.variables], ast.Load())
            lowered = call("scoped_callee", node.func, thunk(scope))
        node.func = ast.copy_location(lowered, function)
        return node

    def visit_withitem(self, node: ast.withitem) -> Any:
        """Leave the call that creates a context manager as it is: its function is a class or a generator."""
        if isinstance(node.context_expr, ast.Call):
            self.generic_visit(node.context_expr)
            return node
        return self.generic_visit(node)

    # truth

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        _check_no_assignment(node, "and` or `or")
        self.generic_visit(node)
        name = "and_" if isinstance(node.op, ast.And) else "or_"
        *others, lowered = node.values
        for value in reversed(others):
            lowered = ast.copy_location(call(name, value, thunk(lowered)), value)
        return lowered

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        self.generic_visit(node)
        return call("not_", node.operand) if isinstance(node.op, ast.Not) else node

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        _check_no_assignment(node, "if` expression")
        text = ast.Constant(ast.unparse(node.test))
        self.generic_visit(node)
        return call("if_exp", node.test, thunk(node.body), thunk(node.orelse), text)

    def visit_Compare(self, node: ast.Compare) -> Any:
        """Lower a chained comparison to an ``and`` that evaluates each operand once."""
        if len(node.ops) == 1:
            self.generic_visit(node)
            return _compared(node.left, node.ops[0], node.comparators[0])
        _check_no_assignment(node, "a < b < c")
        self.generic_visit(node)
        operands = [node.left, *node.comparators]
        names = [f"operand_{i}" for i in range(len(operands))]
        simple = [isinstance(x, ast.Name | ast.Constant) for x in operands]
        parts = [x if is_simple else load(n) for x, n, is_simple in zip(operands, names, simple, strict=True)]
        lowered: ast.expr | None = None
        for left, op, right in reversed(list(zip(parts, node.ops, parts[1:], strict=False))):
            pair = ast.copy_location(_compared(left, op, right), node)
            lowered = pair if lowered is None else ast.copy_location(call("and_", pair, thunk(lowered)), node)
        assert lowered is not None
        others = {n: x for x, n, is_simple in zip(operands, names, simple, strict=True) if not is_simple}
        if not others:
            return lowered
        return ast.Call(function_of(list(others), lowered), list(others.values()), [])

    def visit_comprehension(self, node: ast.comprehension) -> Any:
        self.generic_visit(node)
        if not node.is_async:
            node.iter = ast.copy_location(call("items", node.iter), node.iter)
        return node

    def visit_Starred(self, node: ast.Starred) -> Any:
        """``*x`` in a list, a tuple, a set or the arguments of a call unpacks ``x``."""
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load):
            node.value = ast.copy_location(call("parts", node.value), node.value)
        return node

    # functions inside

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        outer = self.first, self.variables
        self.first, self.variables = first_parameter(node.args), None
        body = self.visit(node.body)
        self.first, self.variables = outer
        node.args = self.visit(node.args)
        node.body = body
        return node


def first_parameter(args: ast.arguments) -> str | None:
    """The name of the first positional parameter."""
    positional = [*args.posonlyargs, *args.args]
    return positional[0].arg if positional else None


def _is_operator(function: ast.Attribute) -> bool:
    return isinstance(function.value, ast.Name) and function.value.id == OPERATORS_NAME


def _compared(left: ast.expr, op: ast.cmpop, right: ast.expr) -> ast.expr:
    if isinstance(op, ast.In | ast.NotIn):
        contained = ast.copy_location(call("contains", right, left), right)
        return contained if isinstance(op, ast.In) else call("not_", contained)
    return ast.Compare(left, [op], [right])


def _check_no_assignment(node: ast.expr, what: str) -> None:
    """Raise an error for ``:=`` in an expression whose parts become functions.

    Raises:
        UnsupportedSyntax: the expression contains ``:=``.
    """
    if any(isinstance(n, ast.NamedExpr) for n in ast.walk(node)):
        raise UnsupportedSyntax(
            f"line {node.lineno} of it assigns with `:=` inside of `{what}`; assign in a statement before"
        )
