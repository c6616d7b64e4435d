"""Lowers ``break``, ``continue`` and ``return`` to flags.

If a branch ends with a jump, the statements after the ``if`` move into the other branch. Elsewhere, as after
a loop that returns, the statements that follow are guarded by a flag. A loop that may be left tests its flag
before each iteration.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Final, NamedTuple

from dualflow.function.autograph.nodes import assigned, call, load, negated, operator, parts_of, with_location
from dualflow.function.autograph.scope_analysis import SCOPES, Namer, own_nodes

LOOPS: Final = (ast.For, ast.While)
_STAGED: Final = (ast.If, *LOOPS)


class TestedFor(ast.For):
    """A ``for`` loop that continues while an extra test is true."""

    _fields = ("target", "iter", "body", "orelse", "type_comment", "extra_test")
    _field_types: ClassVar[dict[str, Any]] = {**getattr(ast.For, "_field_types", {}), "extra_test": ast.expr}
    extra_test: ast.expr

    @classmethod
    def of(cls, loop: ast.For, extra_test: ast.expr) -> TestedFor:
        """``loop``, a loop without ``else``, which also ends when an extra test fails."""
        fields: dict[str, Any] = {**dict(ast.iter_fields(loop)), "extra_test": extra_test}
        return cls(**fields)


class _Flags(NamedTuple):
    """The names of the variables in place of a loop's ``break``, ``continue`` and ``return``.

    Attributes:
        left: set when the loop is left; None for a loop without ``break`` and ``return``.
        skips: set when the remainder of an iteration is skipped.
    """

    left: str | None
    skips: str | None


def without_jumps(body: Sequence[ast.stmt], namer: Namer) -> list[ast.stmt]:
    """A function's statements without jumps, except for a ``return`` at the end.

    Args:
        body: the function's statements.
        namer: creates the names of flags.
    """
    nodes = list(own_nodes(body))
    nested = [n for s in nodes if isinstance(s, _STAGED) for n in own_nodes([s])]
    if not any(isinstance(n, ast.Return) for n in nested):
        if not any(isinstance(n, ast.Break | ast.Continue) or _has_else(n) for n in nodes):
            return list(body)
        return _Jumps(namer, None, None).block(body)
    flag, value = namer.new("do_return"), namer.new("retval_")
    first, last = body[0], body[-1]
    start = [
        assigned(flag, ast.Constant(False)),
        assigned(value, operator("UNRETURNED")),
    ]
    end = ast.Return(call("returned", load(value), load(flag)))
    return [
        *with_location(start, first),
        *_Jumps(namer, flag, value).block(body),
        *with_location([end], last),
    ]


def _has_else(node: ast.AST) -> bool:
    """Whether a node is a loop with an ``else``, which becomes the statements after the loop."""
    return isinstance(node, LOOPS) and bool(node.orelse)


class _Jumps:
    """Lowers the jumps of one function.

    Args:
        namer: makes names.
        returned: the flag that the function has returned; None if its ``return`` stays.
        value: the name of what it returns.
    """

    def __init__(self, namer: Namer, returned: str | None, value: str | None) -> None:
        self._namer = namer
        self._returned = returned
        self._value = value
        self._loops: list[_Flags] = []

    def block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        """The statements; those after a jump run only if it was not taken."""
        result: list[ast.stmt] = []
        for i, statement in enumerate(statements):
            following = list(statements[i + 1 :])
            if following and isinstance(statement, ast.If):
                if self._ends(statement.body):
                    statement.orelse += following
                    following = []
                elif self._ends(statement.orelse):
                    statement.body += following
                    following = []
            jumps = self._jumps(statement)
            result += self._statement(statement)
            if not following:
                break
            if jumps:
                guard = ast.If(negated(load(self._skips())), self.block(following), [])
                return [*result, *with_location([guard], following[0])]
        return result

    def _skips(self) -> str:
        """The flag that is set when the statements after a jump are skipped."""
        flag = self._loops[-1].skips if self._loops else self._returned
        assert flag is not None
        return flag

    def _jumps(self, statement: ast.stmt) -> bool:
        """Whether the statements after a statement may be skipped."""
        kinds: tuple[type[ast.AST], ...] = () if self._returned is None else (ast.Return,)
        return any(isinstance(n, kinds) for n in own_nodes([statement])) or bool(_own_jumps([statement]))

    def _ends(self, block: Sequence[ast.stmt]) -> bool:
        """Whether a block always ends with a jump."""
        last = block[-1] if block else None
        if isinstance(last, ast.If):
            return self._ends(last.body) and self._ends(last.orelse)
        if isinstance(last, ast.With):
            return self._ends(last.body)
        return isinstance(last, ast.Break | ast.Continue) or (
            self._returned is not None and isinstance(last, ast.Return)
        )

    def _statement(self, node: ast.stmt) -> list[ast.stmt]:
        if isinstance(node, ast.Return) and self._returned is not None:
            assert self._value is not None
            value = ast.Constant(None) if node.value is None else node.value
            flags = [flag for loop in self._loops for flag in loop if flag is not None]
            return with_location([assigned(self._value, value), *_set(self._returned, *flags)], node)
        if isinstance(node, ast.Break):
            return with_location(_set(*self._loops[-1]), node)
        if isinstance(node, ast.Continue):
            return with_location(_set(self._loops[-1].skips), node)
        if isinstance(node, LOOPS):
            return self._loop(node)
        for name in ("body", "orelse", "finalbody"):
            if getattr(node, name, None) and not isinstance(node, SCOPES):
                setattr(node, name, self.block(getattr(node, name)))
        for handler in getattr(node, "handlers", ()):
            handler.body = self.block(handler.body)
        return [node]

    def _loop(self, node: ast.For | ast.While) -> list[ast.stmt]:
        jumps = _own_jumps(node.body)
        returns = self._returned is not None and any(isinstance(n, ast.Return) for n in own_nodes(node.body))
        left = self._namer.new("break_") if ast.Break in jumps else self._returned if returns else None
        skips = self._namer.new("continue_") if ast.Continue in jumps else left
        self._loops.append(_Flags(left, skips))
        node.body = self.block(node.body)
        self._loops.pop()
        if ast.Continue in jumps:
            assert skips is not None
            node.body = [*with_location([assigned(skips, ast.Constant(False))], node), *node.body]
        orelse, node.orelse = self.block(node.orelse), []
        if left is None:
            return [node, *orelse]
        initial = [assigned(left, ast.Constant(False))] if ast.Break in jumps else []
        else_branch: list[ast.stmt] = [ast.If(negated(load(left)), orelse, [])] if orelse else []
        continues = negated(load(left))
        if isinstance(node, ast.While):
            ast.copy_location(continues, node.test)
            node.test = ast.copy_location(ast.BoolOp(ast.And(), [continues, node.test]), node.test)
            loop: ast.stmt = node
        else:
            ast.copy_location(continues, node.iter)
            loop = TestedFor.of(node, continues)
        return [
            *with_location(initial, node),
            *with_location([loop], node),
            *(with_location(else_branch, orelse[0]) if orelse else ()),
        ]


def _set(*flags: str | None) -> list[ast.stmt]:
    return [assigned(flag, ast.Constant(True)) for flag in dict.fromkeys(flags) if flag is not None]


def _own_jumps(block: Iterable[ast.AST]) -> set[type[ast.AST]]:
    """The kinds of jumps in a block that belong to the loop around it: ``break``, ``continue``."""
    kinds: set[type[ast.AST]] = set()
    pending: list[Any] = list(block)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Break | ast.Continue):
            kinds.add(type(node))
        elif isinstance(node, LOOPS):
            pending += node.orelse
        elif not isinstance(node, SCOPES):
            pending += parts_of(node)
    return kinds
