"""Scope analysis: the names, attributes and items that the parts of a function bind and read."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from dualflow.function.autograph.nodes import parts_of
from dualflow.function.autograph.parsing import parameters

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
SCOPES = (*FUNCTIONS, ast.ClassDef)


class ScopeNames(ast.NodeVisitor):
    """The names that a part of a function's scope reads and binds, visited in the order of evaluation.

    Attributes:
        reads: names that are read before this part binds them.
        loads: all names that are read, including those of nested functions.
        binds: names that this part assigns, deletes, imports or defines.
        targets: attributes and items that it assigns, by their source text.
        shared: names that it declares ``nonlocal``.
        module: names that it declares ``global``.
    """

    def __init__(self) -> None:
        self.reads: set[str] = set()
        self.loads: set[str] = set()
        self.binds: set[str] = set()
        self.targets: dict[str, ast.Attribute | ast.Subscript] = {}
        self.shared: set[str] = set()
        self.module: set[str] = set()

    @classmethod
    def of(cls, *parts: ast.AST | Iterable[ast.AST] | None) -> ScopeNames:
        """The names that ``parts`` of a function read and bind, analysed in the order of evaluation."""
        names = cls()
        for part in parts:
            for node in [part] if isinstance(part, ast.AST) else part or ():
                names.visit(node)
        return names

    def _read(self, names: Iterable[str]) -> None:
        for name in names:
            self.loads.add(name)
            if name not in self.binds:
                self.reads.add(name)

    def _visit(self, *parts: ast.AST | Iterable[ast.AST | None] | None) -> None:
        for part in parts:
            for node in [part] if isinstance(part, ast.AST) else part or ():
                if node is not None:
                    self.visit(node)

    # names and targets

    def visit_Name(self, node: ast.Name) -> None:
        if not isinstance(node.ctx, ast.Store):
            self._read([node.id])
        if not isinstance(node.ctx, ast.Load):
            self.binds.add(node.id)

    def visit_Attribute(self, node: ast.Attribute | ast.Subscript) -> None:
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load) and _is_simple_target(node):
            self.targets[ast.unparse(node)] = node

    visit_Subscript = visit_Attribute

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self._visit(node.value, node.target)

    def visit_Assign(self, node: ast.Assign) -> None:
        self._visit(node.value, node.targets)

    visit_ItemAssignment = visit_Assign

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self._read([node.target.id])
        self._visit(node.value, node.target)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self._visit(node.value, node.target)

    def visit_For(self, node: ast.For) -> None:
        self._visit(node.iter, node.target, node.body, node.orelse)

    def visit_alias(self, node: ast.alias) -> None:
        self.binds.add((node.asname or node.name).partition(".")[0])

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        self._visit(node.type)
        if node.name is not None:
            self.binds.add(node.name)
        self._visit(node.body)

    def visit_Global(self, node: ast.Global) -> None:
        self.module.update(node.names)

    def visit_Nonlocal(self, node: ast.Nonlocal) -> None:
        self.shared.update(node.names)

    # scopes inside

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._visit(node.args.defaults, node.args.kw_defaults)
        self._read(free_names(node))

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._visit(node.decorator_list, node.args.defaults, node.args.kw_defaults)
        self._read(free_names(node))
        self.binds.add(node.name)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._visit(node.decorator_list, node.bases, node.keywords)
        self._read(free_names(node))
        self.binds.add(node.name)

    def visit_ListComp(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> None:
        inside = ScopeNames()
        inside._visit(node.generators)
        inside._visit(*([node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]))
        targets = ScopeNames.of([g.target for g in node.generators]).binds
        self._read(inside.loads - targets)
        self.binds |= inside.binds - targets

    visit_SetComp = visit_GeneratorExp = visit_DictComp = visit_ListComp

    def visit_comprehension(self, node: ast.comprehension) -> None:
        self._visit(node.iter, node.target, node.ifs)


def free_names(node: ast.AST) -> set[str]:
    """The names that a nested function or class reads from the scopes around it, or shares with them."""
    body = [node.body] if isinstance(node, ast.Lambda) else node.body  # type: ignore[attr-defined]  # a scope
    inside = ScopeNames.of(body)
    bound = inside.binds | (set(parameters(node.args)) if isinstance(node, FUNCTIONS) else set())
    return (inside.loads - (bound - inside.shared) - inside.module) | inside.shared


def _is_simple_target(node: ast.expr) -> bool:
    """Whether an expression consists of names, attributes and items only, so that it can be read again."""
    if isinstance(node, ast.Attribute):
        return _is_simple_target(node.value)
    if isinstance(node, ast.Subscript):
        return _is_simple_target(node.value) and (
            isinstance(node.slice, ast.Constant) or _is_simple_target(node.slice)
        )
    return isinstance(node, ast.Name)


def own_nodes(*blocks: Iterable[ast.AST]) -> Iterable[ast.AST]:
    """The nodes of blocks, without the bodies of nested functions and classes."""
    pending = [node for block in blocks for node in block]
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, SCOPES):
            pending += parts_of(node)


class Namer:
    """Creates names that a tree doesn't use.

    Attributes:
        functions: the names of generated functions.
    """

    def __init__(self, tree: ast.AST) -> None:
        self.functions: set[str] = set()
        names = [n for n in ast.walk(tree) if isinstance(n, ast.Name | ast.arg)]
        self._used = {n.id if isinstance(n, ast.Name) else n.arg for n in names}

    def new(self, stem: str) -> str:
        """``stem``, followed by a number if it is in use."""
        name, number = stem, 0
        while name in self._used:
            number += 1
            name = f"{stem}_{number}"
        self._used.add(name)
        return name

    def function(self, stem: str) -> str:
        """The name of a generated function."""
        name = self.new(stem)
        self.functions.add(name)
        return name
