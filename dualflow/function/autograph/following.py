"""Walks one function's source and tracks which values may be tensors, until Python would look into one."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from types import BuiltinFunctionType, FunctionType
from typing import Any, Final, Protocol

from dualflow.function.autograph.do_not_convert import python_function
from dualflow.function.autograph.kinds import (
    HOLDER,
    PLAIN,
    TENSOR,
    UNKNOWN,
    Kind,
    Known,
    MethodOfProperty,
    joined,
    known,
)
from dualflow.function.autograph.results import (
    Tested,
    computed,
    is_ours,
    of_built_in,
    of_container,
    of_library,
)

_STATIC: Final = frozenset(
    {"shape", "dtype", "ndim", "name", "device", "trainable", "get_shape", "op", "graph", "set_shape"}
)
"""Attributes of tensors that are no tensors."""
_ADDING: Final = frozenset({"append", "extend", "insert", "add", "update", "setdefault", "appendleft"})


class Reader(Protocol):
    """What follows the functions that are called."""

    def returned(
        self, function: FunctionType, given: Sequence[Known], named: Mapping[str, Known], *, loose: bool
    ) -> Known: ...


class Following(ast.NodeVisitor):
    """One function's names, followed through its statements.

    Args:
        reader: follows what is called.
        names: what the names stand for before the function runs.
        arguments: the parameters.
    """

    def __init__(self, reader: Reader, names: Mapping[str, Any], arguments: Mapping[str, Known]) -> None:
        self._reader = reader
        self._names = names
        self._arguments = arguments
        self._local = dict(arguments)
        self._stored: dict[str, Known] = {}
        self._returned: list[Known] = []

    def run(self, tree: ast.AST) -> Known:
        """What the function returns.

        Raises:
            Tested: it may look into a tensor.
        """
        function = next(n for n in ast.walk(tree) if isinstance(n, _FUNCTIONS))
        body = [function.body] if isinstance(function, ast.Lambda) else function.body
        loops = any(isinstance(n, ast.For | ast.While) for n in ast.walk(function))
        for _ in range(1 + loops):  # the second time with what a loop has left
            for statement in body:
                self.visit(statement)
        if isinstance(function, ast.Lambda):
            return self._value(function.body)
        return joined(self._returned)

    # statements

    def generic_visit(self, node: ast.AST) -> None:
        """A part of a statement: an expression is evaluated, anything else is gone through."""
        for child in ast.iter_child_nodes(node):
            self.visit(child)

    def visit(self, node: ast.AST) -> None:
        if isinstance(node, ast.expr):
            self._value(node)
        else:
            super().visit(node)

    def visit_If(self, node: ast.If | ast.While) -> None:
        self._test(node.test)
        for statement in (*node.body, *node.orelse):
            self.visit(statement)

    visit_While = visit_If

    def visit_Assert(self, node: ast.Assert) -> None:
        self._test(node.test)
        if node.msg is not None:
            self._value(node.msg)

    def visit_For(self, node: ast.For) -> None:
        self._bind(node.target, self._iterated(node.iter))
        for statement in (*node.body, *node.orelse):
            self.visit(statement)

    def visit_Assign(self, node: ast.Assign) -> None:
        value = self._value(node.value)
        for target in node.targets:
            self._bind(target, value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._bind(node.target, self._value(node.value))

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        value = computed([self._value(node.value), self._value(_loaded(node.target))])
        self._bind(node.target, value)

    def visit_With(self, node: ast.With) -> None:
        for item in node.items:
            value = self._value(item.context_expr)
            if item.optional_vars is not None:
                self._bind(item.optional_vars, value)
        for statement in node.body:
            self.visit(statement)

    def visit_Return(self, node: ast.Return) -> None:
        self._returned.append(PLAIN if node.value is None else self._value(node.value))

    def visit_Match(self, node: ast.Match) -> None:
        if self._value(node.subject).kind is not Kind.PLAIN:
            raise Tested
        for case in node.cases:
            for part in ast.walk(case.pattern):
                name = getattr(part, "name", None) or getattr(part, "rest", None)
                if name is not None:
                    self._local[name] = PLAIN
            self.generic_visit(case)

    def visit_MatchValue(self, node: ast.AST) -> None:
        """Patterns hold no tensors."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._inner(node, node.body)
        self._join(node.name, TENSOR)  # a call of it is one of what has been followed here

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        raise Tested  # its methods are called by who knows whom

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name is not None:
            self._local[node.name] = PLAIN
        for statement in node.body:
            self.visit(statement)

    # names

    def _bind(self, target: ast.expr, value: Known) -> None:
        if isinstance(target, ast.Name):
            self._join(target.id, value)
        elif isinstance(target, ast.Tuple | ast.List):
            self._take_apart(target.elts, value)
        elif isinstance(target, ast.Starred):
            self._bind(target.value, HOLDER)
        elif isinstance(target, ast.Attribute):
            self._value(target.value)
            self._stored[target.attr] = joined([value, self._stored.get(target.attr, value)])
        elif isinstance(target, ast.Subscript):
            self._value(target.slice)
            self._put_into(target.value, value)

    def _take_apart(self, targets: Sequence[ast.expr], value: Known) -> None:
        if value.kind >= Kind.TENSOR:
            raise Tested
        starred = any(isinstance(t, ast.Starred) for t in targets)
        parts = None if starred else value.split()
        if parts is not None and len(parts) != len(targets):
            parts = None
        for i, target in enumerate(targets):
            self._bind(target, value.elements() if parts is None else parts[i])

    def _join(self, name: str, value: Known) -> None:
        self._local[name] = joined([value, self._local.get(name, value)])

    def _put_into(self, container: ast.expr, value: Known) -> None:
        """What ``container[i] = value`` and ``container.append(value)`` leave."""
        held = self._value(container)
        if isinstance(container, ast.Name) and held.kind < Kind.TENSOR and value.kind is not Kind.PLAIN:
            self._local[container.id] = HOLDER

    # what wants a value

    def _test(self, node: ast.expr) -> None:
        if self._value(node).kind >= Kind.TENSOR:
            raise Tested

    def _iterated(self, node: ast.expr) -> Known:
        return self._through(self._value(node))

    def _through(self, value: Known) -> Known:
        """The elements of what is iterated."""
        if value.kind >= Kind.TENSOR:
            raise Tested
        return value.elements()

    # expressions

    def _value(self, node: ast.expr) -> Known:
        way: Callable[[Any], Known] | None = getattr(self, f"_of_{type(node).__name__}", None)
        if way is not None:
            return way(node)
        return computed([self._value(n) for n in ast.iter_child_nodes(node) if isinstance(n, ast.expr)])

    def _of_Constant(self, node: ast.Constant) -> Known:
        return PLAIN

    def _of_JoinedStr(self, node: ast.JoinedStr) -> Known:
        for child in ast.iter_child_nodes(node):
            self.generic_visit(child)
        return PLAIN

    def _of_Name(self, node: ast.Name) -> Known:
        if node.id in self._local:
            return self._local[node.id]
        return known(self._names[node.id]) if node.id in self._names else UNKNOWN

    def _of_Attribute(self, node: ast.Attribute) -> Known:
        owner = self._value(node.value)
        found = self._attribute(owner, node.attr)
        return joined([found, self._stored[node.attr]]) if node.attr in self._stored else found

    def _attribute(self, owner: Known, name: str) -> Known:
        if owner.kind is Kind.TENSOR and name in _STATIC:
            return PLAIN
        if owner.kind is Kind.TENSOR or not owner.objects:
            return TENSOR if owner.kind is Kind.HOLDER else Known(owner.kind)
        return joined([self._read(x) for x in owner.attribute(name)])

    def _read(self, attribute: Any) -> Known:
        if not isinstance(attribute, MethodOfProperty):
            return known(attribute)
        found = python_function(attribute.of.fget)
        if found is None:
            return UNKNOWN
        return self._reader.returned(found[0], [known(attribute.owner)], {}, loose=False)

    def _of_Subscript(self, node: ast.Subscript) -> Known:
        value, index = self._value(node.value), self._value(node.slice)
        if value.kind < Kind.TENSOR and index.kind >= Kind.TENSOR:
            raise Tested
        if isinstance(node.slice, ast.Slice):
            return Known(value.kind)
        if isinstance(node.slice, ast.Constant):
            return value.item(node.slice.value)
        return value.elements()

    def _of_Slice(self, node: ast.Slice) -> Known:
        return joined([self._value(x) for x in (node.lower, node.upper, node.step) if x is not None])

    def _of_Compare(self, node: ast.Compare) -> Known:
        sides = [self._value(x) for x in (node.left, *node.comparators)]
        if all(isinstance(op, ast.Is | ast.IsNot) for op in node.ops):
            return PLAIN
        if any(isinstance(op, ast.In | ast.NotIn) for op in node.ops):
            if any(x.kind is not Kind.PLAIN for x in sides):
                raise Tested
            return PLAIN
        if any(
            isinstance(x, ast.Constant) and isinstance(x.value, str) for x in (node.left, *node.comparators)
        ):
            return PLAIN
        if len(node.ops) > 1 and any(x.kind >= Kind.TENSOR for x in sides):
            raise Tested  # a chain is an `and`
        return computed(sides)

    def _of_BoolOp(self, node: ast.BoolOp) -> Known:
        for value in node.values[:-1]:
            self._test(value)
        return joined([self._value(x) for x in node.values])

    def _of_UnaryOp(self, node: ast.UnaryOp) -> Known:
        if isinstance(node.op, ast.Not):
            self._test(node.operand)
            return PLAIN
        return computed([self._value(node.operand)])

    def _of_IfExp(self, node: ast.IfExp) -> Known:
        self._test(node.test)
        return joined([self._value(node.body), self._value(node.orelse)])

    def _of_NamedExpr(self, node: ast.NamedExpr) -> Known:
        value = self._value(node.value)
        self._bind(node.target, value)
        return value

    def _of_Tuple(self, node: ast.Tuple | ast.List | ast.Set) -> Known:
        parts = [self._value(element) for element in node.elts]
        if any(isinstance(element, ast.Starred) for element in node.elts):
            return HOLDER
        plain = bool(parts) and all(x.kind is Kind.PLAIN for x in parts)
        return Known(Kind.PLAIN if plain else Kind.HOLDER, parts=tuple(parts) or None)

    _of_List = _of_Set = _of_Tuple

    def _of_Dict(self, node: ast.Dict) -> Known:
        values = [self._value(x) for x in (*node.keys, *node.values) if x is not None]
        return HOLDER if not values or any(x.kind is not Kind.PLAIN for x in values) else PLAIN

    def _of_Starred(self, node: ast.Starred) -> Known:
        return self._iterated(node.value)

    def _of_ListComp(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Known:
        for clause in node.generators:
            self._bind(clause.target, self._iterated(clause.iter))
            for test in clause.ifs:
                self._test(test)
        made = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        return HOLDER if any(self._value(x).kind is not Kind.PLAIN for x in made) else PLAIN

    _of_SetComp = _of_GeneratorExp = _of_DictComp = _of_ListComp

    def _of_Lambda(self, node: ast.Lambda) -> Known:
        self._inner(node, [node.body])
        return TENSOR

    def _of_Yield(self, node: ast.Yield) -> Known:
        return UNKNOWN if node.value is None else joined([UNKNOWN, self._value(node.value)])

    def _inner(self, node: ast.FunctionDef | ast.Lambda, body: Sequence[ast.AST]) -> None:
        """Follow a function inside of this one, which may be called with tensors."""
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        packed = [a for a in (node.args.vararg, node.args.kwarg) if a is not None]
        inside = Following(self._reader, self._names, self._arguments)
        inside._local = {
            **self._local,
            **{a.arg: TENSOR for a in arguments},
            **{a.arg: HOLDER for a in packed},
        }
        inside._stored = self._stored
        for part in body:
            inside.visit(part)

    # calls

    def _of_Call(self, node: ast.Call) -> Known:
        given, named, loose = self._given(node)
        if isinstance(node.func, ast.Attribute):
            owner = self._value(node.func.value)
            if owner.kind in (Kind.PLAIN, Kind.HOLDER) and (not owner.objects or _is_container(owner)):
                if node.func.attr in _ADDING:
                    self._put_into(node.func.value, joined([*given, *named.values()]))
                    return PLAIN
                return of_container(node.func.attr, owner, [*given, *named.values()])
            if owner.kind is Kind.TENSOR and node.func.attr == "gradient" and len(given) > 1:
                return given[1]  # gradients come in the structure of their sources
        if isinstance(node.func, ast.Name) and node.func.id == "super" and not given:
            return self._super()
        callee = self._value(node.func)
        if callee.objects:
            return joined([self._called(x, given, named, loose) for x in callee.objects])
        if callee.kind is not Kind.TENSOR:
            raise Tested  # nobody knows what it is
        return PLAIN if isinstance(node.func, ast.Attribute) and node.func.attr in _STATIC else TENSOR

    def _given(self, node: ast.Call) -> tuple[list[Known], dict[str, Known], bool]:
        """The arguments, and whether there are others that can't be told one by one."""
        given: list[Known] = []
        named: dict[str, Known] = {}
        loose = False
        for argument in node.args:
            if not isinstance(argument, ast.Starred):
                given.append(self._value(argument))
                continue
            packed = self._value(argument.value)
            self._through(packed)
            parts = packed.split()
            loose = loose or parts is None
            given += parts or ()
        for keyword in node.keywords:
            value = self._value(keyword.value)
            if keyword.arg is not None:
                named[keyword.arg] = value
            elif len(value.objects) == 1 and isinstance(value.objects[0], dict):
                named.update({name: known(x) for name, x in value.objects[0].items()})
            else:
                loose = True
        return given, named, loose

    def _super(self) -> Known:
        kind, instance = self._names.get("__class__"), next(iter(self._arguments.values()), UNKNOWN)
        if not isinstance(kind, type) or len(instance.objects) != 1:
            return UNKNOWN
        try:
            return Known(Kind.PLAIN, (super(kind, instance.objects[0]),))
        except TypeError:
            return UNKNOWN

    def _called(self, callee: Any, given: list[Known], named: dict[str, Known], loose: bool) -> Known:
        """The result of calling an object that is known."""
        if isinstance(callee, Known):
            raise Tested  # an attribute that is not there yet
        inner = getattr(callee, "func", None) if hasattr(callee, "keywords") else None
        if inner is not None and isinstance(callee.keywords, dict):  # functools.partial
            named = {**{k: known(x) for k, x in callee.keywords.items()}, **named}
            return self._called(inner, [*map(known, callee.args), *given], named, loose)
        every = [*given, *named.values()]
        if isinstance(callee, type):
            return self._made(callee, given, named, loose)
        found = python_function(callee)
        if found is not None:
            function, leading = found
            return self._reader.returned(function, [*map(known, leading), *given], named, loose=loose)
        for argument in every:
            self._called_back(argument)
        if isinstance(callee, BuiltinFunctionType):
            return of_built_in(callee, every, loose=loose)
        if is_ours(type(callee)) and hasattr(callee, "python_function"):
            return self._of_traced(callee.python_function, every)
        return of_library(callee, every)

    def _called_back(self, argument: Known) -> None:
        """Follow a function that is handed to another, which may call it with tensors."""
        for x in argument.objects:
            found = python_function(x) if callable(x) and not isinstance(x, type) else None
            if found is not None:
                function, leading = found
                count = function.__code__.co_argcount - len(leading) - len(function.__defaults__ or ())
                given = [*map(known, leading), *[TENSOR] * max(count, 0)]
                self._reader.returned(function, given, {}, loose=False)
        for part in argument.parts or ():
            self._called_back(part)

    def _made(self, kind: type, given: list[Known], named: dict[str, Known], loose: bool) -> Known:
        """An object of a class."""
        every = [*given, *named.values()]
        if issubclass(kind, BaseException):
            return PLAIN
        if is_ours(kind) or kind.__module__ == "builtins":
            for argument in every:
                self._called_back(argument)
            return TENSOR if is_ours(kind) else of_built_in(kind, every, loose=loose)
        if issubclass(kind, tuple):
            return HOLDER
        start = kind.__dict__.get("__init__")
        if isinstance(start, FunctionType):
            self._reader.returned(start, [UNKNOWN, *given], named, loose=loose)
        return UNKNOWN

    def _of_traced(self, python: Any, every: Sequence[Known]) -> Known:
        """The result of a traced function, which is converted by itself."""
        found = python_function(python)
        if found is None:
            return TENSOR
        try:
            return self._reader.returned(found[0], [*map(known, found[1]), *every], {}, loose=False)
        except Tested:
            return TENSOR


_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _is_container(value: Known) -> bool:
    return all(isinstance(x, list | tuple | dict | set | str | bytes) for x in value.objects)


def _loaded(target: ast.expr) -> ast.expr:
    """What an augmented assignment reads."""
    found: ast.expr = ast.parse(ast.unparse(target), mode="eval").body
    return found
