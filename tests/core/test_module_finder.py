"""The finder of dualflow's modules agrees with the standard one, and leaves all unusual bytecode to it."""

from __future__ import annotations

import importlib.util
import inspect
import os
import py_compile
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Any

import pytest

import dualflow
from dualflow.core.module_finder import ModuleFinder

FINDER = ModuleFinder()
NAME = "dualflow.module_of_a_test"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A module with bytecode."""
    path = tmp_path / "module_of_a_test.py"
    path.write_text("def answer():\n    return 42\n", encoding="utf-8")
    py_compile.compile(str(path), doraise=True)
    return path


def attributes(spec: ModuleSpec | None) -> tuple[Any, ...]:
    assert spec is not None
    return (
        *(spec.name, spec.origin, spec.cached, spec.has_location, spec.parent),
        *(spec.submodule_search_locations, getattr(spec.loader, "path", "")),
    )


def test_specs_are_those_of_the_standard_finder() -> None:
    pairs = []
    for name, module in tuple(sys.modules.items()):
        if name.startswith("dualflow.") and getattr(module, "__file__", None):
            path = sys.modules[name.rpartition(".")[0]].__path__
            pairs.append((FINDER.find_spec(name, path), PathFinder.find_spec(name, path)))
    specs = [(attributes(own), attributes(standard)) for own, standard in pairs if own is not None]
    assert [own for own, _ in specs] == [standard for _, standard in specs]
    assert len(specs) > len(pairs) // 2 or sys.dont_write_bytecode


def test_a_module_runs_and_has_its_source(source: Path) -> None:
    spec = FINDER.find_spec(NAME, [str(source.parent)])
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    assert spec.loader is not None
    for _ in range(2):  # the second time is that of importlib.reload
        spec.loader.exec_module(module)
        assert module.answer() == 42
    assert inspect.getsource(module.answer) == source.read_text(encoding="utf-8")


def bytecode(source: Path) -> Path:
    return Path(importlib.util.cache_from_source(str(source)))


def changed(source: Path, index: int) -> None:
    content = bytearray(bytecode(source).read_bytes())
    content[index] ^= 1
    bytecode(source).write_bytes(content)


UNUSUAL: dict[str, Callable[[Path], object]] = {
    "no bytecode": lambda source: bytecode(source).unlink(),
    "no source": lambda source: source.unlink(),
    "a newer source": lambda source: os.utime(source, (1, 1)),
    "a longer source": lambda source: source.write_text("answer = None\n" * 9, encoding="utf-8"),
    "another version of Python": lambda source: changed(source, 0),
    "another time": lambda source: changed(source, 8),
    "another size": lambda source: changed(source, 12),
    "cut bytecode": lambda source: bytecode(source).write_bytes(bytecode(source).read_bytes()[:-20]),
    "no code": lambda source: bytecode(source).write_bytes(bytecode(source).read_bytes()[:16] + b"N"),
    "a hash": lambda source: py_compile.compile(
        str(source), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH
    ),
    "another folder": lambda source: py_compile.compile(str(source), dfile="elsewhere.py"),
}


@pytest.mark.parametrize("change", UNUSUAL)
def test_unusual_files_are_left_to_the_standard_finder(change: str, source: Path) -> None:
    UNUSUAL[change](source)
    assert FINDER.find_spec(NAME, [str(source.parent)]) is None


def test_other_packages_are_left_to_the_standard_finder(source: Path) -> None:
    assert FINDER.find_spec("another.module_of_a_test", [str(source.parent)]) is None
    assert FINDER.find_spec("dualflow", None) is None
    assert FINDER.find_spec(NAME, dualflow.__path__) is None
