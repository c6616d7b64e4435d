"""Standalone source of NumPy kernels, for ops whose kernels use only NumPy."""

from __future__ import annotations

import ast
import dis
import functools
import textwrap
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from dualflow.backends.numba.parameters import dtype_name
from dualflow.core.exported import exported
from dualflow.core.records import dataclass
from dualflow.graph.fused import body_of
from dualflow.graph.ir import Node
from dualflow.sizes.symbolic_sizes import size_variables

_MAX_FUNCTIONS = 10
"""The largest number of functions of one kernel."""
_LITERAL_TYPES = (bool, int, float, str, type(None))


@dataclass(frozen=True, slots=True)
class NumpyKernel:
    """A node as NumPy code.

    Attributes:
        functions: the functions that it needs, as source.
        call: the expression for its results, in terms of ``arrays``.
        op: the name of the op.
        dtypes: the names of its results' dtypes in source.
        sized: whether it takes attributes with symbolic sizes, as ``sizes``.
    """

    functions: tuple[str, ...]
    call: str
    op: str
    dtypes: tuple[str, ...]
    sized: bool = False

    def function(self, name: str) -> str:
        """The source of a function ``name``, which takes arrays and returns a list of new arrays."""
        parameters = "*arrays, **sizes" if self.sized else "*arrays"
        lines = [f"def {name}({parameters}):", f'    """{self.op}"""']
        for function in self.functions:
            lines += ["", textwrap.indent(function, "    ")]
        if self.functions:
            lines.append("")
        lines += [
            f"    results = {self.call}",
            "    results = results if isinstance(results, tuple) else (results,)",
            f"    dtypes = [{', '.join(self.dtypes)}]",
            '    return [np.array(x, d, order="C") for x, d in zip(results, dtypes, strict=True)]',
            "",
        ]
        return "\n".join(lines)


def kernel_source(node: Node) -> NumpyKernel | None:
    """The NumPy kernel of a node as source; None if it uses more than NumPy."""
    op = node.op
    if node.effect is not None or body_of(node) is not None or node.bodies:
        return None
    sized = symbolic_attrs(node)
    attrs = {name: _literal(value) for name, value in node.attrs.items() if name not in sized}
    if None in attrs.values():
        return None
    source_and_call = _callable(op.kernel)
    if source_and_call is None:
        return None
    functions, called = source_and_call
    arguments = ", ".join(
        ["*arrays", *(f"{name}={value}" for name, value in attrs.items()), *["**sizes"] * bool(sized)]
    )
    dtypes = tuple([dtype_name(v.spec.dtype) for v in node.outputs])
    return NumpyKernel(functions, f"{called}({arguments})", op.name, dtypes, bool(sized))


def symbolic_attrs(node: Node) -> dict[str, Any]:
    """The attributes of a node that have symbolic sizes."""
    return {name: value for name, value in node.attrs.items() if size_variables(value)}


def _literal(value: Any) -> str | None:
    """An attribute as source."""
    if isinstance(value, tuple):
        parts = [_literal(x) for x in value]
        return None if None in parts else f"({', '.join(map(str, parts))}{',' * (len(parts) == 1)})"
    return repr(value) if isinstance(value, _LITERAL_TYPES) else None


@functools.cache
def _callable(kernel: Callable[..., Any]) -> tuple[tuple[str, ...], str] | None:
    """The functions that a kernel needs, as source, and the expression of the kernel itself."""
    name = getattr(kernel, "__name__", "")
    if isinstance(kernel, np.ufunc) or (getattr(kernel, "__module__", None) or "").startswith("numpy"):
        return ((), f"np.{name}") if getattr(np, name, None) is kernel else None
    if not isinstance(kernel, FunctionType):
        return None
    if name == "<lambda>":
        text = _lambda_text(kernel) if _dependencies(kernel) == () else None
        return None if text is None else ((), f"({text})")
    functions = _sources_of(kernel)
    return None if functions is None else (tuple(functions.values()), name)


def _sources_of(function: FunctionType) -> dict[str, str] | None:
    """The source of a function after that of its dependencies; None if it uses more than NumPy."""
    sources: dict[str, str] = {}
    aliases: dict[str, str] = {}
    pending, order = [function], list[FunctionType]()
    while pending:
        current = pending.pop()
        dependencies = _dependencies(current)
        if dependencies is None or len(order) > _MAX_FUNCTIONS:
            return None
        order.append(current)
        for dependency in dependencies:
            if isinstance(dependency, FunctionType):
                other = exported(dependency)
                pending.append(other)
                if other is not dependency:
                    aliases[dependency.__name__] = f"{dependency.__name__} = {other.__name__}"
            else:
                sources[dependency.__name__] = f"{dependency.__name__} = {_built_in(dependency).__name__}"
    for dependency in reversed(order):
        text = _function_text(dependency)
        if text is None or sources.setdefault(dependency.__name__, text) != text:
            return None
    return {**sources, **aliases}


def _dependencies(function: FunctionType) -> tuple[Any, ...] | None:
    """The functions and errors of dualflow that a function uses; None if it uses more than that and NumPy."""
    used = {
        name: function.__globals__[name]
        for name in _globals(function.__code__)
        if name in function.__globals__ and name != "np"
    }
    if function.__closure__ or not all(map(_is_function_or_error, used.values())):
        return None
    return tuple(used.values())


def _globals(code: CodeType) -> list[str]:
    """The global names that ``code`` reads, in order: equal kernels have equal sources in all processes."""
    names = [i.argval for i in dis.get_instructions(code) if i.opname == "LOAD_GLOBAL"]
    return [*names, *[name for x in code.co_consts if isinstance(x, CodeType) for name in _globals(x)]]


def _is_function_or_error(value: Any) -> bool:
    return isinstance(value, FunctionType) or (isinstance(value, type) and issubclass(value, Exception))


def _built_in(error: type[Exception]) -> type:
    """The built-in base class of an error of dualflow."""
    return next(x for x in (IndexError, TypeError, ValueError, Exception) if issubclass(error, x))


@functools.cache
def _tree(file: str) -> ast.Module:
    with open(file, encoding="utf-8") as source:
        return ast.parse(source.read())


def _function_text(function: FunctionType) -> str | None:
    """A function's source, without annotations."""
    line = function.__code__.co_firstlineno
    for node in ast.walk(_tree(function.__code__.co_filename)):
        if isinstance(node, ast.FunctionDef) and node.lineno == line and not node.decorator_list:
            return ast.unparse(_RemoveAnnotations().visit(ast.parse(ast.unparse(node))))
    return None


def _lambda_text(function: FunctionType) -> str | None:
    line = function.__code__.co_firstlineno
    nodes = [
        node
        for node in ast.walk(_tree(function.__code__.co_filename))
        if isinstance(node, ast.Lambda) and node.lineno == line
    ]
    return ast.unparse(nodes[0]) if len(nodes) == 1 else None


class _RemoveAnnotations(ast.NodeTransformer):
    """Removes annotations, whose names the file doesn't define."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node.returns = None
        self.generic_visit(node)
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is None:
            return ast.Pass()
        return ast.copy_location(ast.Assign([node.target], node.value, lineno=node.lineno), node)
