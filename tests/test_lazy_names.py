"""The tables of lazy names, compared with the imports that type checkers read."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import dualflow
from dualflow.core.namespace import LazyName, origins

ROOT = Path(dualflow.__file__).parents[1]
Table = dict[str, LazyName]


def published(tree: ast.Module) -> dict[str, ast.expr]:
    """The arguments of the module's call of ``publish``."""
    calls = [node.value for node in tree.body if isinstance(node, ast.Expr)]
    named = [
        c for c in calls if isinstance(c, ast.Call) and getattr(c.func, "id", "") in ("publish", "_publish")
    ]
    return {keyword.arg or "**": keyword.value for call in named for keyword in call.keywords}


def trees() -> Iterator[tuple[str, ast.Module]]:
    """Each namespace of the package that may have lazy names."""
    for path in sorted((ROOT / "dualflow").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if "publish(" in text and path.name != "namespace.py":
            yield path.relative_to(ROOT).as_posix(), ast.parse(text)


def for_type_checkers(tree: ast.Module) -> Table:
    """The public names that ``if TYPE_CHECKING:`` imports, or defines as aliases of imported names."""
    blocks = [node for node in tree.body if isinstance(node, ast.If)]
    names: Table = {}
    for node in [*imports(tree.body), *(node for block in blocks for node in block.body)]:
        names |= bound_names(node, names)
    eager = {name for node in imports(tree.body) for name in bound_names(node, {})}
    return {name: origin for name, origin in names.items() if not name.startswith("_") and name not in eager}


def imports(body: list[ast.stmt]) -> list[ast.stmt]:
    return [node for node in body if isinstance(node, ast.ImportFrom)]


def bound_names(node: ast.stmt, imported: Table) -> Table:
    """The names that an import, or an assignment of imported names, binds."""
    if isinstance(node, ast.ImportFrom):
        return {alias.asname or alias.name: LazyName(node.module or "", alias.name) for alias in node.names}
    assert isinstance(node, ast.Assign), f"{ast.unparse(node)} is neither an import nor an alias"
    if ast.unparse(node.targets[0]) == "__all__":
        return {}
    targets, values = (ast.unparse(side).strip("()").split(", ") for side in (node.targets[0], node.value))
    return {name: imported[value] for name, value in zip(targets, values, strict=True)}


TREES = dict(trees())
WITHOUT_FALLBACK = [file for file, tree in TREES.items() if "fallback" not in published(tree)]
"""Namespaces whose lazy names are all in tables."""


@pytest.mark.parametrize("file", WITHOUT_FALLBACK)
def test_lazy_names_are_those_that_type_checkers_see(file: str) -> None:
    arguments = published(TREES[file])
    table = ast.literal_eval(arguments["lazy"]) if "lazy" in arguments else {}
    assert origins(table) == for_type_checkers(TREES[file])


@pytest.mark.parametrize("file", TREES)
def test_each_lazy_name_is_once_in_its_tables(file: str) -> None:
    arguments = published(TREES[file])
    tables = [ast.literal_eval(arguments[key]) for key in ("lazy", "later") if key in arguments]
    names = [entry.partition("=")[0] for table in tables for text in table.values() for entry in text.split()]
    assert sorted(names) == sorted(set(names))


def test_namespaces_with_lazy_names_are_found() -> None:
    with_tables = {file for file, tree in TREES.items() if "lazy" in published(tree)}
    assert {"dualflow/__init__.py", "dualflow/linalg.py", "dualflow/numpy/__init__.py"} <= with_tables


def test_a_table_reads_names_and_aliases_of_each_module() -> None:
    table = {"json": "dumps parsed=loads", "math": "pi"}
    assert origins(table) == {
        "dumps": LazyName("json", "dumps"),
        "parsed": LazyName("json", "loads"),
        "pi": LazyName("math", "pi"),
    }
