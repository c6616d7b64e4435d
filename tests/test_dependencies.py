"""The tables of docs/dependencies.md against pyproject.toml and every import of the code."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

import dualflow
from dualflow.backends.runtime import switches

ROOT = Path(dualflow.__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PAGE, _, PARTS_PAGE = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8").partition("\n## ")
FEATURES = ("draw", "keras", "summary", "images", "onnx", "mpi", "docs", "gpu")
"""The extras with rows; the others are for tests and examples."""

MODULES = {"pillow": "PIL"}
"""The modules of packages that are imported under another name."""

PRIVATE = {
    "llvmlite": ("dualflow.backends.llvm.runtime.llvm_library", "LLVMPY_"),
    "numba": ("dualflow.backends.llvm.numba_bridge", "numba.core"),
}
"""For each upper bound, the module that uses a private interface, and what the names of that begin with."""


class Row(NamedTuple):
    """A package of a table: its versions, and the files and folders that may import it."""

    versions: str
    importers: tuple[str, ...]


def cells(page: str) -> list[list[str]]:
    """The rows of a page's tables, without their heads."""
    lines = [line for line in page.splitlines() if line.startswith("|")]
    table = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    return [row for row in table if row[0] not in ("package", "part") and not row[0].startswith(":")]


def rows() -> dict[str, Row]:
    packages = cells(PAGE)
    return {row[0]: Row(row[1].strip("`"), tuple(re.findall(r"`([^`]+)`", row[-1]))) for row in packages}


def required() -> dict[str, str]:
    """The version specifier of each dependency, and of those of the extras with rows."""
    extras = [line for name in FEATURES for line in PROJECT["optional-dependencies"][name]]
    pairs = [re.fullmatch(r"([\w-]+)(.*)", line) for line in [*PROJECT["dependencies"], *extras]]
    return {pair[1]: pair[2] for pair in pairs if pair is not None}


@cache
def importing_files() -> dict[str, set[str]]:
    """For each package of the tables but NumPy, the files of ours that import from it.

    Most files name none, and aren't parsed.
    """
    modules = [MODULES.get(name, name) for name in rows() if name != "numpy"]
    names = re.compile(rf"\b(?:{'|'.join(modules)})\b")
    files: dict[str, set[str]] = defaultdict(set)
    for package in ("dualflow", "keras_dualflow"):
        for path in (ROOT / package).glob("**/*.py"):
            text = path.read_text(encoding="utf-8")
            for node in ast.walk(ast.parse(text)) if names.search(text) else ():
                for module in imported_modules(node):
                    files[module.partition(".")[0]].add(path.relative_to(ROOT).as_posix())
    return files


def imported_modules(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [node.module or ""]
    if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if called in ("import_module", "imported"):
            return [str(node.args[0].value)]
    return []


def test_the_tables_have_each_dependency_and_its_versions() -> None:
    assert {name: row.versions for name, row in rows().items()} == required()


@pytest.mark.parametrize("package", [name for name in rows() if name != "numpy"])
def test_a_package_is_imported_where_its_row_lists_it_and_nowhere_else(package: str) -> None:
    importers = rows()[package].importers
    files = importing_files()[MODULES.get(package, package)]
    assert [file for file in files if not any(f"{file}/".startswith(f"{name}/") for name in importers)] == []
    assert [name for name in importers if not any(f"{file}/".startswith(f"{name}/") for file in files)] == []


def test_importing_dualflow_imports_numpy_alone() -> None:
    program = "import sys, dualflow; print(*sys.modules)"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(ended.stdout.split())
    assert {name for name in rows() if MODULES.get(name, name) in loaded} == {"numpy"}


def test_upper_bounds_are_those_of_private_interfaces() -> None:
    assert {name for name, versions in required().items() if "<" in versions} == set(PRIVATE)


@pytest.mark.parametrize("package", PRIVATE)
def test_a_private_interface_is_used_and_there(package: str) -> None:
    """The module looks its private names up when it is imported."""
    module, prefix = PRIVATE[package]
    path = importlib.import_module(module).__file__
    assert path is not None
    assert prefix in Path(path).read_text(encoding="utf-8")


PARTS = [row for row in cells(PARTS_PAGE) if len(row) > 2]
"""The rows of the parts that a library could provide."""
FILES = {row[0]: re.findall(r"`([^`]+)`", row[1]) for row in cells(PARTS_PAGE) if len(row) == 2}
"""The files of each part, as patterns."""


def test_each_part_has_files() -> None:
    assert [row[0] for row in PARTS] == list(FILES)


@pytest.mark.parametrize(("part", "lines"), [row[:2] for row in PARTS], ids=[row[0] for row in PARTS])
def test_a_part_has_about_the_lines_of_its_row(part: str, lines: str) -> None:
    package = ROOT / "dualflow"
    paths = [path for pattern in FILES[part] for path in package.glob(pattern)]
    assert all(list(package.glob(pattern)) for pattern in FILES[part])
    written = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)
    assert int(lines.replace(",", "")) == pytest.approx(written, rel=0.05)


def test_the_parts_name_the_switches_that_there_are() -> None:
    named = {name for row in PARTS for name in re.findall(r"^`(\w+)`:", row[2])}
    assert named == set(switches.PARTS) - {"cache"}
