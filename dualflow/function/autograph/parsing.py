"""Parses one function, with its lines and columns in the user's file."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator, Sequence
from types import CodeType, FunctionType
from typing import Final

from dualflow.core.code_lines import source_lines

FunctionNode = ast.FunctionDef | ast.Lambda
_KEYWORD = re.compile(r"\blambda\b")
_CLOSING = re.compile(r"[)\]}]")
_LAMBDA = "<lambda>"
Span = tuple[int, int, int, int]
"""The first line, last line, first column and end column of code."""
_MAX_BODIES: Final = 8
_bodies: Final[dict[tuple[CodeType, str], list[ast.AST]]] = {}
"""By code and file: the nodes of the bodies of the latest functions."""


class SourceError(Exception):
    """The source of a function is not available, or does not belong to the function."""


def parsed(function: FunctionType) -> FunctionNode:
    """The syntax tree of a function: a ``def`` statement or a ``lambda``.

    Raises:
        SourceError: there is no source, or several functions match.
    """
    lines = source_lines(function.__code__, function.__globals__)
    if not lines:
        raise SourceError("its source is not available, as for code from exec, python -c or the prompt")
    code = function.__code__
    tree = _lambda(code, lines) if code.co_name == _LAMBDA else _definition(code, lines)
    if tree is None:
        raise SourceError("its source is not available: the file has changed since it was imported")
    return tree


def body_nodes(function: FunctionType) -> list[ast.AST]:
    """The nodes of the body of a function, for reading: several analyses read those of one function.

    Raises:
        SourceError: there is no source, or several functions match.
    """
    key = function.__code__, function.__code__.co_filename
    nodes = _bodies.get(key)
    if nodes is None:
        tree = parsed(function)
        body = [tree.body] if isinstance(tree, ast.Lambda) else tree.body
        nodes = _bodies[key] = [node for part in body for node in ast.walk(part)]
        for oldest in list(_bodies)[:-_MAX_BODIES]:
            _bodies.pop(oldest, None)
    return nodes


def _definition(code: CodeType, lines: Sequence[str]) -> ast.FunctionDef | None:
    """The ``def`` statement of ``code``; only its lines are parsed."""
    first = code.co_firstlineno
    if first > len(lines):
        return None
    block = lines[first - 1 : _end(code, lines)]
    indented = block[0][:1].isspace()
    try:
        tree: ast.AST = ast.parse("".join(["if 1:\n", *block] if indented else block))
    except SyntaxError:  # a string in the function has lines with less indentation
        tree, first, indented = _file(lines), 1, False
    ast.increment_lineno(tree, first - 1 - indented)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
            begin = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            if begin == code.co_firstlineno:
                return node
    return None


def _end(code: CodeType, lines: Sequence[str]) -> int:
    """The last line of a ``def`` statement, including indented lines after its code."""
    indent = _indent(lines[code.co_firstlineno - 1])
    last = max([code.co_firstlineno, *(end for _, end, _, _ in code.co_positions() if end is not None)])
    while last < len(lines) and (not lines[last].strip() or _indent(lines[last]) > indent):
        last += 1
    return last


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _file(lines: Sequence[str]) -> ast.Module:
    try:
        return ast.parse("".join(lines))
    except SyntaxError:
        return ast.Module([], [])


def _lambda(code: CodeType, lines: Sequence[str]) -> ast.Lambda | None:
    """The ``lambda`` of ``code``: the last one in its line that contains all instructions of the code.

    Raises:
        SourceError: several match.
    """
    spans = list(_spans(code))
    if spans and code.co_firstlineno <= len(lines):
        line = lines[code.co_firstlineno - 1]
        for keyword in reversed(list(_KEYWORD.finditer(line))):
            node = _alone(lines, code.co_firstlineno, keyword.start(), max((s[1], s[3]) for s in spans))
            if node is not None and _fits(node, code, spans):
                return node
    matching = [n for n in ast.walk(_file(lines)) if isinstance(n, ast.Lambda) and _fits(n, code, spans)]
    if len(matching) > 1 and not spans:
        raise SourceError(f"it is one of several lambdas with its parameters in line {code.co_firstlineno}")
    return max(matching, key=lambda node: node.col_offset, default=None)


def _alone(lines: Sequence[str], first: int, column: int, end: tuple[int, int]) -> ast.Lambda | None:
    """The parsed ``lambda`` that begins at ``column`` of line ``first`` and ends at ``end`` or later."""
    block = [line.encode() for line in lines[first - 1 :]]
    start = len(lines[first - 1][:column].encode())
    block[0] = b" " * start + block[0][start:]
    last, stop = end[0] - first, end[1]
    while last < min(len(block), end[0] - first + 3):
        text = b"(\n" + b"".join(block[:last]) + block[last][:stop] + b"\n)"
        try:
            node = ast.parse(text, mode="eval").body
        except SyntaxError:  # closing brackets at the end of its body belong to no instruction
            closing = _CLOSING.search(block[last].decode(errors="replace"), stop)
            last, stop = (last, closing.end()) if closing else (last + 1, 0)
            continue
        ast.increment_lineno(node, first - 2)
        return node if isinstance(node, ast.Lambda) else None
    return None


def _spans(code: CodeType) -> Iterator[Span]:
    """The source positions of the bytecode instructions, without those whose columns are unknown."""
    for line, end_line, column, end_column in code.co_positions():
        if line is None or end_line is None or column is None or end_column is None:
            continue
        if column != end_column or line != end_line:
            yield line, end_line, column, end_column


def _fits(node: ast.Lambda, code: CodeType, spans: Sequence[Span]) -> bool:
    """Whether ``node`` has the first line, the parameters and the instructions of ``code``."""
    if node.lineno != code.co_firstlineno or parameters(node.args) != _parameters_of(code):
        return False
    assert node.body.end_lineno is not None
    assert node.body.end_col_offset is not None
    begin = node.body.lineno, node.body.col_offset
    end = node.body.end_lineno, node.body.end_col_offset
    return all(begin <= (s[0], s[2]) and (s[1], s[3]) <= end for s in spans)


def parameters(args: ast.arguments) -> list[str]:
    """The names of parameters, in the order of code objects."""
    packed = [a for a in (args.vararg, args.kwarg) if a is not None]
    return [a.arg for a in (*args.posonlyargs, *args.args, *args.kwonlyargs, *packed)]


def _parameters_of(code: CodeType) -> list[str]:
    flags = bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    return list(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + flags])
