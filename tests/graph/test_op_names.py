"""The compiler decides by op kinds, scalar functions and records, never by an op's name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import dualflow
from dualflow.ops.record import REGISTRY

ROOT = Path(dualflow.__file__).parent
COMPILER = ("graph", "schedule", "backends")

OTHER_MEANINGS = {
    "shape": "an attribute of ops and of arrays",
    "windows": "an attribute of products and sums of windows",
    "sizes": "a kind of call",
    "positions": "a kind of call",
    "real": "a part of a complex number",
    "pad": "an argument of matplotlib",
}
"""Words that are names of ops, too."""
WORDS_OF_FILES = {
    ("graph/encoding.py", "complex"): "Python's type",
    ("graph/literals.py", "unique"): "a format of NumPy's floats",
    ("graph/passes/scatter_epilogues.py", "add"): "how a scatter joins elements",
}


def is_other_word(file: str, text: str) -> bool:
    return text in OTHER_MEANINGS or (file, text) in WORDS_OF_FILES


def trees(*packages: str) -> Iterator[tuple[str, ast.Module]]:
    for package in packages:
        for path in sorted(ROOT.glob(f"{package}/**/*.py")):
            yield str(path.relative_to(ROOT)), ast.parse(path.read_text(encoding="utf-8"))


def is_op_name(node: ast.AST) -> bool:
    """Whether ``node`` is ``op.name`` or ``....op.name``."""
    if not isinstance(node, ast.Attribute) or node.attr != "name":
        return False
    owner = node.value
    return getattr(owner, "attr" if isinstance(owner, ast.Attribute) else "id", "") == "op"


ENCODES_NAMES = "graph/encoding.py"
"""The file that writes the names of ops, and checks that each stands for that op."""


def is_registry(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "REGISTRY"


def decides_by_name(node: ast.AST) -> bool:
    """Whether ``node`` compares or looks up the name of an op; a check that one is registered is allowed."""
    if isinstance(node, ast.Compare):
        return any(map(is_op_name, (node.left, *node.comparators))) and not is_registry(node.comparators[0])
    if isinstance(node, ast.Subscript):
        return is_op_name(node.slice) or is_registry(node.value)
    if isinstance(node, ast.Match):
        return is_op_name(node.subject)
    is_get = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get"
    return is_get and any(map(is_op_name, node.args))


def test_passes_and_schedule_hold_no_names_of_ops() -> None:
    names = {
        (name, node.lineno, node.value)
        for name, tree in trees("graph", "schedule")
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in REGISTRY
    }
    assert not {place for place in names if not is_other_word(place[0], place[2])}


def test_the_compiler_never_compares_or_looks_up_op_names() -> None:
    places = [
        (name, node.lineno)
        for name, tree in trees(*COMPILER)
        if name != ENCODES_NAMES
        for node in ast.walk(tree)
        if isinstance(node, ast.expr | ast.Match) and decides_by_name(node)
    ]
    assert not places
