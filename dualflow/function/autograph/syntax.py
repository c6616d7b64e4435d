"""Python's statements that malt does not convert, written as others that it does.

The tree is changed before malt sees it: ``assert`` and ``raise`` become calls, ``else`` of a loop a flag,
``match`` a chain of ``if``, and what takes a tensor apart goes through an operator.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Sequence
from typing import Any, Final

from malt.pyct import anno
from malt.pyct.errors import UnsupportedLanguageElementError

_LOOPS: Final = (ast.For, ast.While)
_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def lowered(tree: ast.AST, class_name: str, new_name: Any) -> ast.AST:
    """The tree of a function, rewritten in statements that malt converts.

    Args:
        tree: a function or lambda; it is changed.
        class_name: of the class that the function is written in, for names with two underscores.
        new_name: returns a name that begins with a stem and that the function does not use.

    Raises:
        UnsupportedLanguageElementError: a pattern of ``match`` or an assignment expression that has no
            other form.
    """
    found: ast.AST = _Lowering(class_name, new_name).visit(tree)
    return found


class _Lowering(ast.NodeTransformer):
    def __init__(self, class_name: str, new_name: Any) -> None:
        self._class_name = class_name.lstrip("_")
        self._new_name = new_name

    def visit(self, node: ast.AST) -> Any:
        """The node's replacement, whose new parts stand at the node's line."""
        found = super().visit(node)
        if anno.hasanno(node, anno.Basic.ORIGIN):
            place = anno.getanno(node, anno.Basic.ORIGIN)
            for part in found if isinstance(found, list) else [found]:
                _place(part, place)
                for child in ast.iter_child_nodes(part):
                    _place(child, place)
        return found

    # raise and assert

    def visit_Assert(self, node: ast.Assert) -> Any:
        if not __debug__:
            return ast.Pass()
        message = [] if node.msg is None else [node.msg]
        error = ast.Call(_operator("AssertionError"), message, [])
        raised = self._raised(error, _operator("AssertionError"))
        self.generic_visit(raised)
        return ast.If(ast.UnaryOp(ast.Not(), self.visit(node.test)), [raised], [])

    def visit_Raise(self, node: ast.Raise) -> Any:
        if node.exc is None:
            return node
        made = node.exc if node.cause is None else _call("caused", node.exc, node.cause)
        kind = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        known = kind if isinstance(kind, ast.Name | ast.Attribute) else ast.Constant(None)
        return self.generic_visit(self._raised(made, _loaded(known)))

    def _raised(self, made: ast.expr, kind: ast.expr) -> ast.Expr:
        """The call that raises ``made``, whose class is ``kind`` if that is known."""
        names = {name: self._new_name(f"read_{name}", ()) for name in _reads(made)}
        reads = ast.Tuple([ast.Name(name, ast.Load()) for name in names], ast.Load())
        make = _lambda(tuple(names.values()), _Renaming(names).visit(made))
        return ast.Expr(_call("raise_stmt", kind, make, reads))

    def visit_If(self, node: ast.If) -> Any:
        swap = _ends(node.orelse) and not _ends(node.body)
        self.generic_visit(node)
        if swap:
            return ast.If(ast.UnaryOp(ast.Not(), node.test), node.orelse, node.body)
        return node

    def visit_Try(self, node: ast.Try) -> Any:
        self.generic_visit(node)
        if node.handlers:
            kinds = [h.type if h.type is not None else _operator("BaseException") for h in node.handlers]
            types = _lambda((), _call("kinds", *map(_loaded, kinds)))
            node.body = [ast.With([ast.withitem(_call("catching", types), None)], node.body)]
        for handler in node.handlers:
            if handler.name is not None:
                handler.body = [_assigned(handler.name, _call("caught")), *handler.body]
                handler.name = None
        return node

    # loops

    def visit_While(self, node: ast.While) -> Any:
        before, after = self._else(node)
        if any(isinstance(n, ast.NamedExpr) for n in ast.walk(node.test)):
            stop = ast.If(ast.UnaryOp(ast.Not(), node.test), [ast.Break()], [])
            node.test, node.body = ast.Constant(True), [stop, *node.body]
        self.generic_visit(node)
        return [*before, node, *after]

    def visit_For(self, node: ast.For) -> Any:
        before, after = self._else(node)
        if isinstance(node.target, ast.Tuple | ast.List):
            item = self._new_name("item", ())
            parts = ast.Assign([node.target], ast.Name(item, ast.Load()))
            node.target, node.body = ast.Name(item, ast.Store()), [parts, *node.body]
        self.generic_visit(node)
        return [*before, node, *after]

    def _else(self, node: ast.For | ast.While) -> tuple[list[ast.stmt], list[ast.stmt]]:
        """What goes before and after a loop in place of its ``else``."""
        if not node.orelse:
            return [], []
        flag = self._new_name("left", ())
        orelse, node.orelse = node.orelse, []
        node.body = _Leaving(flag).block(node.body)
        test = ast.UnaryOp(ast.Not(), ast.Name(flag, ast.Load()))
        after = [self.visit(statement) for statement in orelse]
        flat = [s for x in after for s in (x if isinstance(x, list) else [x])]
        return [_assigned(flag, ast.Constant(False))], [ast.If(test, flat, [])]

    # taking tensors apart

    def visit_Assign(self, node: ast.Assign) -> Any:
        self.generic_visit(node)
        if not any(isinstance(t, ast.Tuple | ast.List) for t in node.targets) or isinstance(
            node.value, ast.Tuple | ast.List
        ):
            return node
        if len(node.targets) > 1:
            held = self._new_name("held", ())
            each = [ast.Assign([t], ast.Name(held, ast.Load())) for t in node.targets]
            flat = [s for a in each for s in self._apart(a)]
            return [_assigned(held, node.value), *flat]
        return self._apart(node)

    def _apart(self, node: ast.Assign) -> list[ast.stmt]:
        """The assignment of one target; a tuple's parts may be tensors to take apart in their iteration."""
        (target,) = node.targets
        if not isinstance(target, ast.Tuple | ast.List):
            return [node]
        inner: list[ast.stmt] = []
        elements: list[ast.expr] = []
        for element in target.elts:
            if isinstance(element, ast.Tuple | ast.List):
                part = self._new_name("part", ())
                elements.append(ast.Name(part, ast.Store()))
                inner += self._apart(ast.Assign([element], ast.Name(part, ast.Load())))
            else:
                elements.append(element)
        outer = ast.Assign([ast.Tuple(elements, ast.Store())], _call("parts", node.value))
        return [outer, *inner]

    def visit_comprehension(self, node: ast.comprehension) -> Any:
        self.generic_visit(node)
        node.iter = _call("items", node.iter)
        return node

    def visit_Compare(self, node: ast.Compare) -> Any:
        self.generic_visit(node)
        if len(node.ops) == 1 and isinstance(node.ops[0], ast.In | ast.NotIn):
            found = _call("contains", node.comparators[0], node.left)
            return found if isinstance(node.ops[0], ast.In) else ast.UnaryOp(ast.Not(), found)
        return node

    # names

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        self.generic_visit(node)
        if self._class_name and node.attr.startswith("__") and not node.attr.endswith("__"):
            node.attr = f"_{self._class_name}{node.attr}"
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        return self._without_assignments(node, "and` or `or")

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        return self._without_assignments(node, "if` expression")

    def _without_assignments(self, node: ast.expr, what: str) -> Any:
        if any(isinstance(n, ast.NamedExpr) for n in ast.walk(node)):
            raise UnsupportedLanguageElementError(
                f"line {node.lineno} of it assigns with `:=` inside of `{what}`; assign in a statement before"
            )
        return self.generic_visit(node)

    # match

    def visit_Match(self, node: ast.Match) -> Any:
        subject = self._new_name("subject", ())
        chain: list[ast.stmt] = []
        for case in reversed(node.cases):
            chain = self._case(case, ast.Name(subject, ast.Load()), chain)
        lowered = [_assigned(subject, node.subject), *chain]
        for statement in lowered:
            _place(statement, anno.getanno(node, anno.Basic.ORIGIN))
        flat = [self.visit(statement) for statement in lowered]
        return [s for x in flat for s in (x if isinstance(x, list) else [x])]

    def _case(self, case: ast.match_case, subject: ast.expr, rest: list[ast.stmt]) -> list[ast.stmt]:
        """``case`` as an ``if`` with the other cases in its ``else``."""
        tests, bound = _pattern(case.pattern, subject)
        if case.guard is not None and bound and tests:
            raise _unsupported(case.pattern, "captures a part and has a guard")
        if case.guard is not None:
            tests.append(case.guard)
        if not tests:
            return [*bound, *case.body]
        test = tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)
        if case.guard is not None:
            return [*bound, ast.If(test, case.body, rest)]
        return [ast.If(test, [*bound, *case.body], rest)]


class _Leaving(ast.NodeTransformer):
    """Sets a flag before each ``break`` of one loop."""

    def __init__(self, flag: str) -> None:
        self._flag = flag

    def block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        """The statements of the loop's body."""
        found = [self.visit(statement) for statement in statements]
        return [s for x in found for s in (x if isinstance(x, list) else [x])]

    def visit(self, node: ast.AST) -> Any:
        """A loop inside has breaks of its own, but for those in its ``else``."""
        if isinstance(node, ast.Break):
            return [_assigned(self._flag, ast.Constant(True)), node]
        if isinstance(node, _LOOPS):
            node.orelse = self.block(node.orelse)
            return node
        return node if isinstance(node, _FUNCTIONS) else self.generic_visit(node)


def _pattern(pattern: ast.pattern, subject: ast.expr) -> tuple[list[ast.expr], list[ast.stmt]]:
    """What must hold for ``pattern`` to match, and what it then assigns."""
    if isinstance(pattern, ast.MatchValue):
        return [ast.Compare(subject, [ast.Eq()], [pattern.value])], []
    if isinstance(pattern, ast.MatchSingleton):
        return [ast.Compare(subject, [ast.Is()], [ast.Constant(pattern.value)])], []
    if isinstance(pattern, ast.MatchAs):
        tests, bound = ([], []) if pattern.pattern is None else _pattern(pattern.pattern, subject)
        return tests, bound + ([] if pattern.name is None else [_assigned(pattern.name, subject)])
    if isinstance(pattern, ast.MatchOr):
        several = [_pattern(p, subject) for p in pattern.patterns]
        if any(bound for _, bound in several):
            raise _unsupported(pattern, "captures in alternatives")
        if not all(tests for tests, _ in several):
            return [], []
        each = [t[0] if len(t) == 1 else ast.BoolOp(ast.And(), t) for t, _ in several]
        return [ast.BoolOp(ast.Or(), each)], []
    if isinstance(pattern, ast.MatchSequence):
        if any(isinstance(p, ast.MatchStar) for p in pattern.patterns):
            raise _unsupported(pattern, "has a star")
        parts: list[ast.expr] = [_call("is_sequence", subject, ast.Constant(len(pattern.patterns)))]
        names: list[ast.stmt] = []
        for i, part in enumerate(pattern.patterns):
            tests, bound = _pattern(part, ast.Subscript(subject, ast.Constant(i), ast.Load()))
            parts += tests
            names += bound
        return parts, names
    raise _unsupported(pattern, "names a class or a mapping")


def _unsupported(pattern: ast.pattern, what: str) -> UnsupportedLanguageElementError:
    return UnsupportedLanguageElementError(
        f"the pattern in line {pattern.lineno} of it {what}; write the `match` as `if` and `elif`"
    )


def _is_exception(name: str) -> bool:
    found = getattr(builtins, name, None)
    return isinstance(found, type) and issubclass(found, BaseException)


def _reads(expression: ast.expr) -> tuple[str, ...]:
    """The names that an expression reads and does not bind itself, but for built-in exceptions."""
    inside = list(ast.walk(expression))
    names = [n for n in inside if isinstance(n, ast.Name)]
    bound = {n.id for n in names if not isinstance(n.ctx, ast.Load)} | {"ag__", "super", "__class__"}
    bound |= {n.arg for n in inside if isinstance(n, ast.arg)}
    return tuple(dict.fromkeys(n.id for n in names if n.id not in bound and not _is_exception(n.id)))


class _Renaming(ast.NodeTransformer):
    """Reads other names: malt takes what a lambda binds for variables of the function around it."""

    def __init__(self, names: dict[str, str]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        node.id = self._names.get(node.id, node.id)
        return node


def _ends(block: Sequence[ast.stmt]) -> bool:
    """Whether a block always raises."""
    last = block[-1] if block else None
    if isinstance(last, ast.If):
        return _ends(last.body) and _ends(last.orelse)
    return isinstance(last, ast.Raise)


def _operator(name: str) -> ast.expr:
    return ast.Attribute(ast.Name("ag__", ast.Load()), name, ast.Load())


def _call(name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(_operator(name), list(args), [])


def _lambda(names: Sequence[str], body: ast.expr) -> ast.Lambda:
    arguments = ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])
    return ast.Lambda(arguments, body)


def _assigned(name: str, value: ast.expr) -> ast.Assign:
    return ast.Assign([ast.Name(name, ast.Store())], value)


def _loaded(expression: ast.expr) -> ast.expr:
    """A copy of an expression to read: no node may stand in a tree twice."""
    copied: ast.expr = ast.parse(ast.unparse(expression), mode="eval").body
    return copied


def _place(tree: Any, place: Any) -> None:
    """Give the new parts of ``tree`` their place in the user's code."""
    if not isinstance(tree, ast.AST) or anno.hasanno(tree, anno.Basic.ORIGIN):
        return
    anno.setanno(tree, anno.Basic.ORIGIN, place)
    for child in ast.iter_child_nodes(tree):
        _place(child, place)
