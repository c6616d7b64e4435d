"""Liveness analysis: the names that are read after the statements of a function without jumps."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from dualflow.function.autograph.item_assignments import ItemAssignment
from dualflow.function.autograph.jumps import TestedFor
from dualflow.function.autograph.scope_analysis import ScopeNames, free_names, own_nodes

Live = frozenset[str]


class Liveness:
    """Finds the names that are read after statements, by a backward walk over them.

    Args:
        body: the function's statements, without jumps.
        at_end: the names that are read after it has returned: nonlocal and global ones.

    Attributes:
        after: for each ``if``, and each assignment to an item of an array, the names that are read after it;
            for each loop, those that are read after an iteration.
    """

    def __init__(self, body: Sequence[ast.stmt], at_end: Live) -> None:
        self.after: dict[ast.stmt, Live] = {}
        self._captured = _captured(body)
        self._caught: Live = frozenset()
        self._block(body, at_end)

    def _block(self, statements: Sequence[ast.stmt], live: Live) -> Live:
        """The names that are live at the start of a block."""
        for statement in reversed(statements):
            live = self._statement(statement, live | self._caught)
        return live

    def _statement(self, node: Any, live: Live) -> Live:
        match node:
            case ast.If():
                self._add(node, live)
                return self._before(self._block(node.body, live) | self._block(node.orelse, live), node.test)
            case ast.While():
                return self._loop(node, live, [], node.test)
            case ast.For():
                extra_test = node.extra_test if isinstance(node, TestedFor) else None
                return self._before(self._loop(node, live, [node.target], extra_test), node.iter)
            case ast.Try() | ast.TryStar():
                return self._try(node, live)
            case ast.With():
                return self._before(self._block(node.body, live), *node.items)
            case ast.Return() | ast.Raise():
                return self._before(self._caught, node)
            case ItemAssignment():
                self._add(node, live)
                return self._before(live, node)
            case _:
                return self._before(live, node)

    def _add(self, node: ast.stmt, live: Live) -> None:
        """Add names that are read after ``node``; handlers and ``finally`` are walked more than once."""
        self.after[node] = self.after.get(node, frozenset()) | live

    def _loop(self, node: Any, live: Live, targets: list[ast.expr], test: ast.expr | None) -> Live:
        parts = [] if test is None else [test]
        bound = frozenset(ScopeNames.of(targets).binds)
        head = self._before(live, *parts)
        while True:
            self._add(node, head | live)
            live_in_body = self._block(node.body, head | live) - bound
            new_head = self._before(live | live_in_body, *parts)
            self._add(node, new_head | live_in_body)
            if new_head <= head:
                return head
            head |= new_head

    def _try(self, node: Any, live: Live) -> Live:
        """The names that are live before a ``try``, whose clauses may run after any statement of its body."""
        outer = self._caught
        final = self._block(node.finalbody, live)
        on_error = self._block(node.finalbody, outer) if node.finalbody else outer
        self._caught = on_error
        handlers = [self._block(h.body, final) - {h.name} for h in node.handlers]
        errors = [self._block(h.body, on_error) - {h.name} for h in node.handlers]
        caught = on_error.union(*errors)
        self._caught = caught
        start = self._block(node.body, self._block(node.orelse, final))
        self._caught = outer
        types = [h.type for h in node.handlers if h.type is not None]
        return self._before(start.union(*handlers), *types)

    def _before(self, live: Live, *parts: ast.AST) -> Live:
        """The names that are live before ``parts``, if ``live`` are live after them."""
        names = ScopeNames.of(parts)
        reads = set(names.reads)
        for name in names.loads & self._captured.keys():
            reads |= self._captured[name]
        return (live - names.binds) | reads


def _captured(body: Sequence[ast.stmt]) -> dict[str, set[str]]:
    """The variables that a call may read, by the name of each nested function."""
    captured: dict[str, set[str]] = {}
    for node in own_nodes(body):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            captured.setdefault(node.name, set()).update(free_names(node))
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    captured.setdefault(target.id, set()).update(free_names(node.value))
    changed = True
    while changed:  # functions that call each other
        changed = False
        for names in captured.values():
            added = set().union(*(captured[n] for n in names & captured.keys())) - names
            names |= added
            changed |= bool(added)
    return captured
