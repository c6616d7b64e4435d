"""The source of one lambda among several on a line, told apart by the columns of its code."""

from __future__ import annotations

import ast
import inspect
import linecache
from types import FunctionType

from dualflow.core.source_lines import source_lines

_NAME = "<lambda {line}:{column} of {file}>"


def is_lambda(function: FunctionType) -> bool:
    """Whether ``function`` was written as a lambda."""
    return function.__name__ == "<lambda>"


def isolated(function: FunctionType) -> FunctionType | None:
    """A copy of a lambda whose source has nothing else in it, at the same lines; None if it isn't found.

    >>> first, second = (lambda x: x + 1), (lambda x: x - 1)
    >>> copy = isolated(second)
    >>> copy is None or inspect.getsource(copy).strip()
    '(lambda x: x - 1)'
    """
    file = function.__code__.co_filename
    lines = source_lines(function.__code__, function.__globals__)
    found = _find(function, lines)
    if found is None or found.end_lineno is None or found.end_col_offset is None:
        return None
    text = [line.rstrip("\n").encode() for line in lines[found.lineno - 1 : found.end_lineno]]
    text[-1] = text[-1][: found.end_col_offset]
    text[0] = text[0][found.col_offset :]
    text[0] = b"(" + text[0]
    text[-1] += b")"
    source = [*["\n"] * (found.lineno - 1), *(line.decode() + "\n" for line in text)]
    name = _NAME.format(line=found.lineno, column=found.col_offset, file=file)
    linecache.cache[name] = (sum(map(len, source)), None, source, name)
    code = function.__code__.replace(co_filename=name)
    copy = FunctionType(
        code, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    copy.__qualname__ = function.__qualname__
    copy.__module__ = __name__  # a module that is loaded: malt asks inspect for it
    return copy


def _find(function: FunctionType, lines: list[str]) -> ast.Lambda | None:
    """The lambda whose body is the smallest to hold all that the code was compiled from."""
    try:
        tree = ast.parse("".join(lines))
    except SyntaxError:
        return None
    places = [
        (line, end_line, column, end_column)
        for line, end_line, column, end_column in function.__code__.co_positions()
        if line is not None and end_line is not None and column is not None and end_column is not None
        if column != end_column or line != end_line
    ]
    names = list(inspect.signature(function).parameters)
    fitting = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Lambda)
        and [a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)] == names
        and all(_holds(node.body, *place) for place in places)
    ]
    return max(fitting, key=lambda node: (node.lineno, node.col_offset), default=None) if places else None


def _holds(node: ast.expr, line: int, end_line: int, column: int, end_column: int) -> bool:
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    begins = (node.lineno, node.col_offset) <= (line, column)
    return begins and (end_line, end_column) <= (node.end_lineno, node.end_col_offset)
