"""The version of TensorFlow that a program was written for, by the names that it uses."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from typing import Final

import dualflow
from dualflow.core.locks import imported

_TENSORFLOW: Final = "tensorflow"
_CONTRIB: Final = "contrib"
"""The namespace that TensorFlow 2 dropped, and dualflow has in both versions."""


def name_of_version_1(path: str) -> str | None:
    """The first name of TensorFlow in a program that only version 1 has, such as ``tf.placeholder``.

    Names inside of ``try`` don't count: programs for both versions find out by them which one is installed.

    Args:
        path: of a file, or a folder with a ``__main__.py``.

    Returns:
        The name as it is written; None if there is none, or no source text.
    """
    if os.path.isdir(path):
        path = os.path.join(path, "__main__.py")
    try:
        with open(path, "rb") as file:
            tree = ast.parse(file.read())
    except (OSError, SyntaxError, ValueError):  # running it shows the error
        return None
    return next(_names_of_version_1(tree), None)


def _names_of_version_1(tree: ast.Module) -> Iterator[str]:
    nodes, aliases = list(_outside_of_try(tree)), set()
    in_version_2 = {*dir(dualflow)}
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name == _TENSORFLOW or (
                    alias.asname is None and alias.name.startswith(f"{_TENSORFLOW}.")
                ):
                    aliases.add(alias.asname or _TENSORFLOW)
    for node in nodes:
        for name in _names(node, aliases):
            word = name.split(".")[1]
            if word == _CONTRIB or (word not in in_version_2 and word in dir(imported("dualflow.compat.v1"))):
                yield name


def _names(node: ast.AST, aliases: set[str]) -> Iterator[str]:
    """The names of TensorFlow in a node, each of at least two parts."""
    if isinstance(node, ast.Import):
        yield from (x.name for x in node.names if x.name.startswith(f"{_TENSORFLOW}."))
    elif isinstance(node, ast.ImportFrom) and node.module is not None and not node.level:
        if node.module == _TENSORFLOW:
            yield from (f"{_TENSORFLOW}.{x.name}" for x in node.names)
        elif node.module.startswith(f"{_TENSORFLOW}."):
            yield node.module
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in aliases:
        yield f"{node.value.id}.{node.attr}"


def _outside_of_try(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a tree, in the order of the text, without those of ``try`` statements."""
    pending = [tree]
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, ast.Try):
            pending += reversed(list(ast.iter_child_nodes(node)))
