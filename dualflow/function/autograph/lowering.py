"""Lowers ``if``, ``while`` and ``for`` to local functions and calls of operators."""

from __future__ import annotations

import ast
import builtins
import copy
from collections.abc import Iterable, Sequence
from typing import Any, Final

from dualflow.core.records import dataclass
from dualflow.function.autograph.expressions import Expressions, first_parameter
from dualflow.function.autograph.item_assignments import ItemAssignment, created_arrays
from dualflow.function.autograph.jumps import TestedFor, without_jumps
from dualflow.function.autograph.liveness import Liveness
from dualflow.function.autograph.nodes import arguments, call, defined, load, strings, thunk, with_location
from dualflow.function.autograph.parsing import FunctionNode, parameters
from dualflow.function.autograph.scope_analysis import Namer, ScopeNames, own_nodes
from dualflow.function.autograph.syntax import CoreSyntax


def lowered(tree: FunctionNode, namer: Namer, class_name: str) -> FunctionNode:
    """The tree of a function, whose control flow and calls go through operators.

    Args:
        tree: a ``def`` statement or a ``lambda``; it is modified.
        namer: creates names that the tree doesn't use.
        class_name: the class in whose body the function is defined, for private names; may be empty.

    Raises:
        UnsupportedSyntax: a statement or expression can't be converted.
    """
    lowering = _Lowering(namer, class_name)
    result: FunctionNode = lowering.visit(tree)
    return ast.fix_missing_locations(result)


_BUILT_IN: Final = frozenset(dir(builtins))
_FLAGS: Final = ("ag__", "do_return", "retval_", "break_", "continue_")
"""Prefixes of the variables that the lowering adds."""


@dataclass(slots=True)
class _Function:
    """The function whose statements are lowered.

    Attributes:
        liveness: the liveness of its statements.
        module: the names that it declares ``global``.
        shared: the variables that generated functions assign.
    """

    liveness: Liveness
    module: set[str]
    shared: set[str]


class _Lowering(Expressions):
    def __init__(self, namer: Namer, class_name: str) -> None:
        super().__init__()
        self._namer = namer
        self._class_name = class_name.lstrip("_")
        self._function: _Function | None = None

    # functions

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        if any(isinstance(n, ast.Yield | ast.YieldFrom) for n in own_nodes(node.body)):
            return node
        node.decorator_list = [self.visit(d) for d in node.decorator_list]
        node.args = self.visit(node.args)
        outer = self.first, self.variables, self._function
        self.first = first_parameter(node.args)
        node.body = self._body(node)
        self.first, self.variables, self._function = outer
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> Any:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        return node

    def _body(self, node: ast.FunctionDef) -> list[ast.stmt]:
        start = 1 if ast.get_docstring(node, clean=False) is not None else 0
        scope = ScopeNames.of(node.body)
        arrays = created_arrays(node.body, {*parameters(node.args), *scope.module, *scope.shared})
        body = without_jumps(CoreSyntax(self._namer, arrays).block(node.body[start:]), self._namer)
        names = ScopeNames.of(body)
        liveness = Liveness(body, frozenset(names.module | names.shared))
        self._function = function = _Function(liveness, names.module, set())
        variables = set(parameters(node.args)) | names.binds | names.shared | (names.loads - _BUILT_IN)
        self.variables = sorted(name for name in variables if not name.startswith(_FLAGS))
        body = self._block(body)
        bound = ScopeNames.of(body).binds | names.shared | set(parameters(node.args))
        return [*node.body[:start], *with_location(_local(function.shared - bound), node.body[0]), *body]

    def _block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        result: list[ast.stmt] = []
        for statement in statements:
            new = self.visit(statement)
            result += new if isinstance(new, list) else [new]
        return result

    # items of arrays

    def visit_ItemAssignment(self, node: ItemAssignment) -> Any:
        function = self._function
        assert function is not None
        statement = node.with_aliases(function.liveness.after[node])
        return self.generic_visit(with_location([statement], node)[0])

    # control flow

    def visit_If(self, node: ast.If) -> Any:
        names = ScopeNames.of(node.body, node.orelse)
        state = self._state(node, names)
        body = self._generated("if_body", node, node.body, ScopeNames.of(node.body))
        functions, orelse = [body], _none()
        if node.orelse:
            functions.append(self._generated("else_body", node, node.orelse, ScopeNames.of(node.orelse)))
            orelse = load(functions[1].name)
        statement = call("if_stmt", self.visit(node.test), load(body.name), orelse, *state)
        return [*functions, *with_location([ast.Expr(statement)], node.test)]

    def visit_While(self, node: ast.While) -> Any:
        state = self._state(node, ScopeNames.of(node.test, node.body))
        test = self._returning("loop_test", node.test)
        body = self._generated("loop_body", node, node.body, ScopeNames.of(node.body))
        statement = call("while_stmt", load(test.name), load(body.name), *state)
        return [test, body, *with_location([ast.Expr(statement)], node.test)]

    def visit_For(self, node: ast.For) -> Any:
        item = self._namer.new("ag__item")
        target = ast.copy_location(ast.Assign([node.target], load(item)), node.target)
        names = ScopeNames.of([target], node.body)
        state = self._state(node, names)
        body = self._generated("loop_body", node, [target, *node.body], names, [item])
        functions, extra_test = [body], _none()
        if isinstance(node, TestedFor):
            functions.append(self._returning("extra_test", node.extra_test))
            extra_test = load(functions[1].name)
        iterated = self.visit(node.iter)
        statement = call("for_stmt", iterated, extra_test, load(body.name), *state)
        return [*functions, *with_location([ast.Expr(statement)], node.iter)]

    visit_TestedFor = visit_For

    def _generated(
        self, stem: str, node: ast.stmt, body: list[ast.stmt], names: ScopeNames, args: Sequence[str] = ()
    ) -> ast.FunctionDef:
        """A local function with the statements ``body``, which assigns the variables around it."""
        function = self._function
        assert function is not None
        name = self._namer.function(stem)
        shared = sorted(names.binds - function.module)
        module = sorted(names.binds & function.module)
        function.shared.update(shared)
        declared: list[ast.stmt] = [ast.Global(module)] if module else []
        declared += [ast.Nonlocal(shared)] if shared else []
        new = self._block(body)
        with_location(declared, body[0])
        return with_location([defined(name, arguments(args), [*declared, *new])], node)[0]

    def _returning(self, stem: str, expression: ast.expr) -> ast.FunctionDef:
        """A local function that returns the value of an expression."""
        names = ScopeNames.of(expression)
        result = ast.copy_location(ast.Return(expression), expression)
        return self._generated(stem, result, [result], names)

    def _state(self, node: ast.stmt, names: ScopeNames) -> tuple[ast.expr, ast.expr]:
        """The variables that a statement assigns: those that are read afterwards, and the others."""
        function = self._function
        assert function is not None
        live = function.liveness.after[node]
        state: list[tuple[str, ast.expr]] = [(n, ast.Constant(self._mangled(n))) for n in names.binds & live]
        for text, target in names.targets.items():
            if not any(isinstance(n, ast.Name) and n.id in names.binds for n in ast.walk(target)):
                state.append((text, self._target_reference(text, target)))
        ordered = [x for _, x in sorted(state, key=lambda item: item[0])]
        temporaries = [self._mangled(n) for n in sorted(names.binds - live)]
        return ast.Tuple(ordered, ast.Load()), strings(temporaries)

    def _target_reference(self, text: str, target: ast.Attribute | ast.Subscript) -> ast.expr:
        """A reference to an attribute or item."""
        owner = copy.deepcopy(target.value)
        if isinstance(target, ast.Attribute):
            attribute = ast.Constant(self._mangled(target.attr))
            return call("ObjectAttribute", ast.Constant(text), thunk(owner), attribute)
        pair = ast.Tuple([owner, copy.deepcopy(target.slice)], ast.Load())
        return call("ContainerItem", ast.Constant(text), thunk(pair))

    def _mangled(self, name: str) -> str:
        """A name as Python mangles it in the class of the function."""
        if self._class_name and name.startswith("__") and not name.endswith("__"):
            return f"_{self._class_name}{name}"
        return name


def _none() -> ast.expr:
    return ast.Constant(None)


def _local(names: Iterable[str]) -> list[ast.stmt]:
    """Annotations that declare names as local variables without assigning them."""
    kind = ast.Constant("local")
    return [ast.AnnAssign(ast.Name(name, ast.Store()), kind, None, 1) for name in sorted(names)]
