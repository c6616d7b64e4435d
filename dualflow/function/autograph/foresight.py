"""Whether a function will ask for the truth of a tensor, seen from its source before it runs.

Tracing a function as it is written ends where Python wants the value of a tensor; converted, it is traced
again from the start, and what its Python did by then, such as printing, happens twice. So functions whose
source shows that it will come to this are converted first. The others are not, since loading the converter
takes longer than most traces.

What is followed is which names may hold tensors, through assignments and into the functions that are called
by name. A wrong answer costs time, or a second run of the same Python, and never a wrong result.
"""

from __future__ import annotations

import ast
import builtins
import dis
import inspect
import textwrap
from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping
from types import CodeType, FunctionType, MethodType
from typing import Any, Final

from dualflow.function.autograph.marks import python_function
from dualflow.function.method import WeakMethod

_DEPTH: Final = 8
_JUMPS: Final = frozenset(
    code
    for name, code in dis.opmap.items()
    if ("JUMP" in name and "_IF_" in name) or name in ("FOR_ITER", "UNARY_NOT")
)
_KNOWN: Final = frozenset(
    {"shape", "dtype", "ndim", "rank", "name", "device", "trainable", "get_shape", "is_tensor", "size"}
)
"""Attributes and functions of tensors whose values are known while tracing."""
_TELLING: Final = frozenset(
    {"isinstance", "issubclass", "hasattr", "callable", "type", "len", "id", "repr", "str"}
)
_COUNTING: Final = frozenset({"range", "enumerate", "zip", "reversed"})
_HOLDERS: Final = (ast.Tuple, ast.List, ast.Set, ast.Dict, ast.ListComp, ast.comprehension, ast.keyword)
_NO_TENSOR: Final = (ast.Constant, ast.JoinedStr, ast.Lambda, *_HOLDERS)


def foresees(function: Callable[..., Any], tensors: Iterable[str]) -> bool:
    """Whether ``function`` tests or iterates one of ``tensors``: parameters, or parts such as ``pair[0]``.

    >>> import dualflow as df
    >>> foresees(lambda x: x + 1, ["x"])
    False
    """
    if isinstance(function, WeakMethod):
        function = MethodType(function.__func__, function.__self__)
    found = python_function(function)
    if found is None:
        return False
    python, leading = found
    return _Reader(set(), 0).reads(python, leading[0] if leading else None, tensors)


class _Reader:
    """Reads functions, each once."""

    def __init__(self, seen: set[CodeType], depth: int) -> None:
        self.seen = seen
        self.depth = depth

    def reads(self, function: FunctionType, instance: Any, tensors: Iterable[str]) -> bool:
        """Whether the function, called with ``tensors``, or one that it calls, tests a tensor."""
        if function.__code__ in self.seen or self.depth > _DEPTH:
            return False
        self.seen.add(function.__code__)
        known = _known_names(function, instance)
        if not _may_branch(function, known):
            return False
        tree = _tree(function)
        if tree is None:
            return False
        whole = {name for name in tensors if "[" not in name}
        scope = _Scope(self, known, whole, {name.partition("[")[0] for name in tensors} - whole)
        for _ in range(2):  # the second time with what a loop has left
            scope.visit(tree)
        return scope.tests

    def calls(self, callee: Any, given: list[bool], named: Mapping[str, bool]) -> bool:
        """Whether calling ``callee`` with tensors where ``given`` says so tests one."""
        if not any(given) and not any(named.values()):
            return False
        found = python_function(callee)
        if found is None:
            return False
        function, leading = found
        code = function.__code__
        names = code.co_varnames[len(leading) : code.co_argcount]
        tensors = [name for name, is_tensor in zip(names, given, strict=False) if is_tensor]
        tensors += [name for name, is_tensor in named.items() if is_tensor]
        return _Reader(self.seen, self.depth + 1).reads(function, leading[0] if leading else None, tensors)


class _Scope(ast.NodeVisitor):
    """Follows one function's names; ``tests`` is set once a tensor is tested or iterated.

    ``tensors`` are the names that may be tensors, ``holders`` those that may hold some.
    """

    def __init__(
        self, reader: _Reader, known: Mapping[str, Any], tensors: set[str], holders: set[str]
    ) -> None:
        self.tests = False
        self._reader = reader
        self._known = known
        self._tensors = tensors
        self._holders = holders

    # statements

    def visit_If(self, node: ast.If | ast.While | ast.IfExp | ast.Assert) -> None:
        self._test(node.test)
        self.generic_visit(node)

    visit_While = visit_IfExp = visit_Assert = visit_If

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        for value in node.values[:-1]:
            self._test(value)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self._test(node.operand)
        self.generic_visit(node)

    def visit_For(self, node: ast.For) -> None:
        self._iterate(node.iter)
        if self._may_hold(node.iter):
            self._bind(node.target)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        self._iterate(node.iter)
        if self._may_hold(node.iter):
            self._bind(node.target)
        for test in node.ifs:
            self._test(test)
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            self._assign(target, node.value)
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign | ast.AnnAssign | ast.NamedExpr) -> None:
        if node.value is not None:
            self._assign(node.target, node.value)
        self.generic_visit(node)

    visit_AnnAssign = visit_NamedExpr = visit_AugAssign

    def visit_Call(self, node: ast.Call) -> None:
        callee = self._resolve(node.func)
        if callee is not None and not self.tests:
            given = [self._may_hold(a) for a in node.args]
            named = {k.arg: self._may_hold(k.value) for k in node.keywords if k.arg is not None}
            self.tests = self._reader.calls(callee, given, named)
        self.generic_visit(node)

    # expressions

    def _test(self, expression: ast.expr) -> None:
        self.tests = self.tests or self._may_be_tensor(expression)

    def _iterate(self, iterated: ast.expr) -> None:
        if isinstance(iterated, ast.Call):
            function = iterated.func
            counts = isinstance(function, ast.Name) and function.id in _COUNTING
            if counts or isinstance(function, ast.Attribute):
                self._test(iterated)
        elif isinstance(iterated, ast.Name):
            self._test(iterated)

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        if self._may_be_tensor(value) or (isinstance(target, ast.Tuple) and self._may_hold(value)):
            self._bind(target)
        elif self._may_hold(value) and isinstance(target, ast.Name):
            self._holders.add(target.id)

    def _bind(self, target: ast.expr) -> None:
        self._tensors |= {n.id for n in ast.walk(target) if isinstance(n, ast.Name)}

    def _may_be_tensor(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Name):
            return node.id in self._tensors
        if isinstance(node, ast.Attribute):
            return node.attr not in _KNOWN and self._may_be_tensor(node.value)
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            if all(isinstance(op, ast.Is | ast.IsNot) for op in node.ops) or any(map(_is_text, sides)):
                return False
            return any(map(self._may_be_tensor, sides))
        if isinstance(node, ast.Call):
            function = node.func
            if isinstance(function, ast.Name) and function.id in _TELLING:
                return False
            if isinstance(function, ast.Attribute) and function.attr in _KNOWN:
                return False
            return any(map(self._may_hold, (function, *node.args, *node.keywords)))
        if isinstance(node, ast.Subscript):
            return self._may_hold(node.value)
        if isinstance(node, _NO_TENSOR):
            return False
        return any(map(self._may_be_tensor, ast.iter_child_nodes(node)))

    def _may_hold(self, node: ast.AST) -> bool:
        """Whether a tensor may be in what an expression gives."""
        if isinstance(node, ast.Name):
            return node.id in self._tensors or node.id in self._holders
        if isinstance(node, _HOLDERS):
            return any(map(self._may_hold, ast.iter_child_nodes(node)))
        return self._may_be_tensor(node)

    def _resolve(self, node: ast.expr) -> Any:
        """The object that a dotted name stands for, if that is known before the function runs."""
        if isinstance(node, ast.Name):
            return None if node.id in self._tensors else self._known.get(node.id)
        if isinstance(node, ast.Attribute):
            owner = self._resolve(node.value)
            return None if owner is None else _attribute(owner, node.attr)
        return None


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _known_names(function: FunctionType, instance: Any) -> Mapping[str, Any]:
    """What the function's names stand for before it runs."""
    first = function.__code__.co_varnames[:1] if instance is not None else ()
    own = {**_closure(function), **dict.fromkeys(first, instance)}
    return ChainMap(own, function.__globals__, vars(builtins))


def _may_branch(function: FunctionType, known: Mapping[str, Any]) -> bool:
    """Whether the bytecode, or that of what it calls, has a conditional jump at all."""
    code = function.__code__
    if _jumps(code):
        return True
    names = (*code.co_varnames[:1], *code.co_names, *code.co_freevars)
    used = [known[name] for name in names if name in known]
    used += [_attribute(owner, name) for owner in used for name in code.co_names]
    return any(x is not None and not isinstance(x, type) and python_function(x) is not None for x in used)


def _jumps(code: CodeType) -> bool:
    inner = [c for c in code.co_consts if isinstance(c, CodeType)]
    return not _JUMPS.isdisjoint(code.co_code[::2]) or any(map(_jumps, inner))


def _attribute(owner: Any, name: str) -> Any:
    """An attribute as it is before the function runs; no code of the owner's is run."""
    found = inspect.getattr_static(owner, name, None)
    own = name in getattr(owner, "__dict__", ())
    return MethodType(found, owner) if isinstance(found, FunctionType) and not own else found


def _tree(function: FunctionType) -> ast.AST | None:
    """The function's source, where there is any."""
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return None


def _closure(function: FunctionType) -> dict[str, Any]:
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # assigned later
            continue
    return found
