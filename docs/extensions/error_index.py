"""The error index: each error class, and the messages with which dualflow raises it, as a page of Markdown.

The classes are those of ``df.errors``, and the messages those of the ``raise`` statements in the code. Values
that a message contains are shown as ``…``.
"""

from __future__ import annotations

import ast
import builtins
import inspect
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import dualflow

ROOT = Path(dualflow.__file__).parents[1]
INTRODUCTION = """\
# Error index

Every class of `df.errors`, and the messages that dualflow raises it with; `…` stands for a value. A message
states what went wrong, the shapes and dtypes involved, and a remedy. Each class is a subclass of the built-in
error that Python raises in such a case: `except ValueError` catches an `InvalidArgumentError`. The messages
are grouped by the file that raises them.
"""


class Message(NamedTuple):
    """A message in the code: the file that raises it, and its text with ``…`` for values."""

    file: str
    text: str


def error_page() -> str:
    """The page: a section for each class."""
    messages = raised_messages()
    sections = [
        section(name, cls, messages.get(cls.__name__, set())) for name, cls in error_classes().items()
    ]
    return "\n".join([INTRODUCTION, *sections])


def error_classes() -> dict[str, type[BaseException]]:
    """The errors and warnings of ``df.errors`` by name, without second names of a class."""
    values = {name: getattr(dualflow.errors, name) for name in dir(dualflow.errors)}
    classes = {name: value for name, value in values.items() if isinstance(value, type)}
    return {
        name: cls for name, cls in classes.items() if cls.__name__ == name and issubclass(cls, BaseException)
    }


def section(name: str, cls: type[BaseException], messages: set[Message]) -> str:
    """The section of a class: its description, its built-in classes, and its messages by file."""
    built_in = [f"`{base.__name__}`" for base in cls.__mro__[1:] if is_builtin_error(base)]
    text = (inspect.getdoc(cls) or "").partition("\n\n")[0].replace("``", "`")
    lines = [f"## {name}", "", text, ""]
    if built_in:
        lines += [f"Also a subclass of {', '.join(built_in)}.", ""]
    files: dict[str, list[str]] = defaultdict(list)
    for message in sorted(messages):
        files[message.file].append(message.text)
    for file, texts in files.items():
        lines += [f"`{file}`", "", *(f"* {inline_code(text)}" for text in texts), ""]
    return "\n".join(lines)


def is_builtin_error(cls: type) -> bool:
    """Whether a base class is a built-in one that programs catch."""
    return getattr(builtins, cls.__name__, None) is cls and cls not in (object, BaseException, Exception)


def inline_code(text: str) -> str:
    """``text`` as inline code of Markdown."""
    fence = "``" if "`" in text else "`"
    return f"{fence} {text} {fence}" if fence == "``" else f"{fence}{text}{fence}"


@cache
def raised_messages() -> Mapping[str, set[Message]]:
    """The messages of all ``raise`` statements, by the name of the class."""
    messages: dict[str, set[Message]] = defaultdict(set)
    for path in sorted(ROOT.glob("dualflow/**/*.py")):
        file = path.relative_to(ROOT).as_posix()
        for call in raised_calls(ast.parse(path.read_text(encoding="utf-8"))):
            text = "".join(parts(call.args[0])) if call.args else ""
            if text.strip("… "):
                messages[ast.unparse(call.func).rpartition(".")[2]].add(Message(file, " ".join(text.split())))
    return messages


def raised_calls(tree: ast.Module) -> Iterator[ast.Call]:
    """The calls that ``raise`` statements have as their exception."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            yield node.exc


def parts(node: ast.expr) -> Iterator[str]:
    """The parts of a message: constant text, and ``…`` for each value."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        for value in node.values:
            yield from parts(value)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        yield from parts(node.left)
        yield from parts(node.right)
    else:
        yield "…"
