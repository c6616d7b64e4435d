"""Finds functions that are repeatable: a second run has no effects but the nodes that a trace records.

Such a function assigns no attributes, items or outer variables. It calls ops, Python's own functions without
effects, and other repeatable functions. From outside it reads tensors, variables and plain values. The
analysis is by syntax and by the objects that names refer to now; what it can't decide is not repeatable.
"""

from __future__ import annotations

import ast
import builtins
import dis
import inspect
import math
import weakref
from collections.abc import Iterable, Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any, Final

import numpy as np

from dualflow.core.dispatch import AbstractTensor, AbstractVariable
from dualflow.core.dtypes import DType
from dualflow.core.records import NamedTuple
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.eager.tape import GradientTape
from dualflow.function.autograph.do_not_convert import runs_unconverted
from dualflow.function.autograph.parsing import SourceError, body_nodes

_PACKAGE: Final = __name__.partition(".")[0]
_OPS: Final = (f"{_PACKAGE}.ops.", f"{_PACKAGE}.numpy.")
"""The packages whose functions record ops, and have no other effects."""
_REFUSED: Final = frozenset(
    {ast.Global, ast.Nonlocal, ast.Import, ast.ImportFrom, ast.ClassDef, ast.Delete, ast.Raise, ast.Assert}
    | {ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith, ast.Try}
    | {ast.TryStar, ast.Match, ast.While}
)
"""Statements with effects outside of the function, or whose course may differ between two runs."""
_BUILT_INS: Final = frozenset(
    {abs, bool, complex, dict, divmod, enumerate, float, int, isinstance, len, list, max, min, pow, range}
    | {reversed, round, slice, str, sum, tuple, zip}
)
"""Python's functions without effects, which call no function of the user."""
_PLAIN: Final = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), slice, range)
_VALUES: Final = (np.generic, AbstractTensor, AbstractVariable, DType, Shape, TensorSpec, np.dtype)
"""The types of outer values that the function can't change by itself: the trace records assignments."""
_CONTAINERS: Final = (list, tuple, dict, set, frozenset, np.ndarray)
_EXTENDED, _GLOBAL, _NAME = (dis.opmap[name] for name in ("EXTENDED_ARG", "LOAD_GLOBAL", "LOAD_NAME"))
_MAX_ITEMS: Final = 1_000
_CHANGING: Final = frozenset(
    {"add", "append", "clear", "difference_update", "discard", "extend", "insert", "intersection_update"}
    | {"pop", "popitem", "remove", "reverse", "setdefault", "sort", "symmetric_difference_update", "update"}
    | {"byteswap", "fill", "itemset", "partition", "put", "resize", "setfield", "setflags"}
)
"""The methods that change lists, dicts, sets and arrays; besides special methods, such as ``__setitem__``."""


class _Facts(NamedTuple):
    """What follows from the syntax of a function.

    Attributes:
        outer: the names that it reads from outside of it.
        paths: the dotted paths that begin with such a name, and are called or read.
        changes: whether it changes a container in place, which then has to be its own.
    """

    outer: frozenset[str]
    paths: frozenset[tuple[str, ...]]
    changes: bool


_facts: Final[weakref.WeakKeyDictionary[CodeType, dict[str, _Facts | None]]] = weakref.WeakKeyDictionary()
"""By a function's code and file: its facts; None if it is not repeatable."""


def is_repeatable(function: Any) -> bool:
    """Whether running ``function`` again has no effect but its result and what a trace records."""
    reached = _Reached()
    return _is_repeatable(function, reached) and not (reached.changes and reached.holds_containers)


class _Reached:
    """What the functions that a call reaches have in common.

    Attributes:
        functions: the functions.
        changes: whether one of them may change a container, such as an argument that another one passes.
        holds_containers: whether one of them reads a container of the user from outside of it.
    """

    __slots__ = ("changes", "functions", "holds_containers")

    def __init__(self) -> None:
        self.functions: set[FunctionType] = set()
        self.changes = False
        self.holds_containers = False


def _is_repeatable(function: Any, reached: _Reached) -> bool:
    if not isinstance(function, FunctionType) or runs_unconverted(function):
        return False
    if function in reached.functions:
        return True
    reached.functions.add(function)
    facts = _facts_of(function)
    defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    if facts is None or not all(type(x) in _PLAIN for x in defaults):
        return False
    reached.changes |= facts.changes
    roots = dict(_outer_values(function, facts.outer))
    return roots.keys() == facts.outer and all(
        _is_harmless(roots[path[0]], path[1:], reached) for path in facts.paths
    )


def _facts_of(function: FunctionType) -> _Facts | None:
    by_file = _facts.setdefault(function.__code__, {})
    file = function.__code__.co_filename
    if file not in by_file:
        try:
            nodes = body_nodes(function)
        except SourceError:
            return None
        by_file[file] = _facts_in(function.__code__, nodes)
    return by_file[file]


def _facts_in(code: CodeType, nodes: Iterable[ast.AST]) -> _Facts | None:
    """The facts of a body's nodes; None if one has effects, or if an outer name is an inner one as well."""
    codes = list(_codes(code))
    outer = frozenset(code.co_freevars).union(*map(_names_outside, codes))
    if not outer.isdisjoint(name for inner in codes for name in (*inner.co_varnames, *inner.co_cellvars)):
        return None
    paths: set[tuple[str, ...]] = set()
    parts: set[ast.AST] = set()
    changes = False
    for node in nodes:
        if type(node) in _REFUSED:
            return None
        if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            return None
        changes |= _may_change_containers(node)
        if isinstance(node, ast.Attribute | ast.Name) and node not in parts:
            path, parents = _path(node)
            parts.update(parents)
            if path and path[0] in outer:
                paths.add(path)
    return _Facts(outer, frozenset(paths), changes)


def _may_change_containers(node: ast.AST) -> bool:
    """Whether a node may change a list, dict, set or array in place: also as the result ``out`` of NumPy."""
    if isinstance(node, ast.Attribute):
        return node.attr in _CHANGING or node.attr.startswith("__")
    if isinstance(node, ast.Call):
        return any(keyword.arg in ("out", None) for keyword in node.keywords)
    return isinstance(node, ast.AugAssign)


def _codes(code: CodeType) -> Iterator[CodeType]:
    """``code``, and that of the functions inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _names_outside(code: CodeType) -> set[str]:
    """The names that ``code`` reads from the module and from Python, by its bytecode."""
    names: set[str] = set()
    upper = 0
    for opcode, lower in zip(*[iter(code.co_code)] * 2, strict=True):
        if opcode == _GLOBAL:  # the lowest bit is set for a call
            names.add(code.co_names[(upper | lower) >> 1])
        elif opcode == _NAME:
            names.add(code.co_names[upper | lower])
        upper = (upper | lower) << 8 if opcode == _EXTENDED else 0
    return names


def _path(node: ast.expr) -> tuple[tuple[str, ...], list[ast.expr]]:
    """The names of ``a.b.c``, and the nodes of ``a.b`` and ``a``; no names if it begins with no name."""
    names: list[str] = []
    parents: list[ast.expr] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
        parents.append(node)
    return ((node.id, *reversed(names)), parents) if isinstance(node, ast.Name) else ((), parents)


def _outer_values(function: FunctionType, names: Iterable[str]) -> Iterator[tuple[str, Any]]:
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    for name in names:
        if name in cells:
            try:
                yield name, cells[name].cell_contents
            except ValueError:  # it is not assigned
                continue
        elif name in function.__globals__:
            yield name, function.__globals__[name]
        elif hasattr(builtins, name):
            yield name, getattr(builtins, name)


def _is_harmless(value: Any, path: tuple[str, ...], reached: _Reached) -> bool:
    """Whether code may read and call the attribute ``path`` of an outer value."""
    while path and isinstance(value, ModuleType):
        if value.__name__.partition(".")[0] not in (_PACKAGE, "numpy", "math") or path[0] == "random":
            return False
        value, path = getattr(value, path[0], None), path[1:]
    if _is_value(value):
        return not path or hasattr(type(value), path[0])  # a user's attribute may be anything
    if type(value) in _CONTAINERS:
        reached.holds_containers = True
        return _holds_values(value)
    if path:
        return False
    if isinstance(value, FunctionType) and _package(value) not in (_PACKAGE, np.__name__):
        return _is_repeatable(value, reached)
    reached.changes |= isinstance(value, np.ufunc)  # its last argument may be the array for the result
    return _is_op(value)


def _is_value(x: Any) -> bool:
    """Whether ``x`` is a tensor, variable or plain value; operators of a user's subclass may have effects."""
    return type(x) in _PLAIN or (isinstance(x, _VALUES) and _package(type(x)) in (_PACKAGE, np.__name__))


def _holds_values(container: Any) -> bool:
    """Whether a container of the user has values without effects only, as far as it is examined."""
    if isinstance(container, np.ndarray):
        return not container.dtype.hasobject
    items = list(container.values()) if isinstance(container, dict) else list(container)
    return len(items) <= _MAX_ITEMS and all(
        _holds_values(x) if type(x) in _CONTAINERS else _is_value(x) for x in items
    )


def _package(function: Any) -> str:
    return (getattr(function, "__module__", None) or "").partition(".")[0]


def _is_op(function: Any) -> bool:
    """Whether a callable is an op, or a function of NumPy or Python that has no effects."""
    if isinstance(function, type):
        return function in _BUILT_INS or function is GradientTape or issubclass(function, np.generic)
    if isinstance(function, BuiltinFunctionType):
        return function in _BUILT_INS or function.__module__ == math.__name__
    if isinstance(function, np.ufunc):
        return True
    module = getattr(function, "__module__", None)  # a method of an object in C has none
    return inspect.isroutine(function) and (module or "").startswith(_OPS)
