"""The backend's branches in Keras's code, and the Keras internals that they rely on."""

from __future__ import annotations

import ast
import importlib.util
import py_compile
import sys
from functools import cache
from importlib.util import cache_from_source
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

from keras_dualflow.branches import BRANCHES, bound_names, branches_for, code_with_branch
from keras_dualflow.hook import BranchLoader
from keras_dualflow.patches import PATCHES

LAYER = "keras.src.layers.layer"


def path_of(module: str) -> Path:
    """The file of a module of Keras, which is not imported for it."""
    spec = importlib.util.find_spec("keras")
    assert spec is not None
    assert spec.origin is not None
    path = Path(spec.origin).parent.joinpath(*module.split(".")[1:])
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


@cache
def tree_of(module: str) -> ast.Module:
    return ast.parse(path_of(module).read_bytes())


def in_wheel(modules: Any) -> list[str]:
    """The modules that the wheel of the installed Keras has: some have no tests."""
    return [name for name in modules if path_of(name).exists() or not name.endswith("_test")]


def executed(source: str, backend: str) -> dict[str, Any]:
    """The namespace of a module of Keras, which is changed and then executed with ``backend`` chosen."""
    names: dict[str, Any] = {"backend": lambda: backend}
    exec(code_with_branch(source.encode(), "layer.py", LAYER), names)
    return names


SOURCE = """
if backend() == "jax":
    BackendLayer = "jax's"
elif backend() == "numpy":
    BackendLayer = "numpy's"
elif backend() == "openvino":
    BackendLayer = "openvino's"
else:
    raise RuntimeError(backend())
"""


@pytest.mark.parametrize("backend", ["jax", "numpy", "openvino"])
def test_other_backends_take_their_own_branches(backend: str) -> None:
    assert executed(SOURCE, backend)["BackendLayer"] == f"{backend}'s"


def test_this_backend_takes_the_inserted_branch(keras: Any) -> None:
    from keras_dualflow.src.layer import BackendLayer

    assert executed(SOURCE, "dualflow")["BackendLayer"] is BackendLayer


def test_a_backend_that_no_branch_is_for_still_raises() -> None:
    with pytest.raises(RuntimeError, match="abacus"):
        executed(SOURCE, "abacus")


def inner_code(code: CodeType) -> list[CodeType]:
    """The code of the functions and classes of a module."""
    return [constant for constant in code.co_consts if isinstance(constant, CodeType)]


@pytest.mark.parametrize("module", in_wheel(BRANCHES))
def test_functions_and_classes_stay_as_they_are_on_their_lines(module: str) -> None:
    path = path_of(module)
    source = path.read_bytes()
    unchanged = compile(source, str(path), "exec", dont_inherit=True)
    changed = code_with_branch(source, str(path), module)
    assert inner_code(changed) == inner_code(unchanged)
    assert changed.co_filename == unchanged.co_filename


# The bytecode cache


@pytest.fixture
def cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where Python caches the bytecode of Keras's base class of layers, below a folder of this test."""
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    return Path(cache_from_source(str(path_of(LAYER))))


def loaded_code() -> CodeType:
    return BranchLoader(LAYER, str(path_of(LAYER))).get_code(LAYER)


def test_changed_code_is_not_cached(cached: Path) -> None:
    loaded_code()
    assert not cached.exists()


def test_cached_code_of_the_file_is_not_used(cached: Path) -> None:
    before = loaded_code()
    py_compile.compile(str(path_of(LAYER)), cfile=str(cached))
    bytecode = cached.read_bytes()
    assert loaded_code() == before
    assert "keras_dualflow.src.layer" in before.co_names
    assert cached.read_bytes() == bytecode


# The structure of Keras


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("BackendLayer = LAYERS[backend()]", "but has none"),
        ("def choose():\n    if backend() == 'numpy':\n        BackendLayer = 1", "but has none"),
        ("if backend() in ('numpy', 'jax'):\n    BackendLayer = 1", "but has none"),
        ("if 'numpy' == backend():\n    BackendLayer = 1", "but has none"),
        ("if backend() == 'numpy':\n    BackendLayer = 1\n" * 2, "but has 2"),
        (
            "if backend() == 'numpy':\n    BackendLayer, Other = 1, 2",
            "but that branch has BackendLayer, Other = (1, 2)",
        ),
        ("if backend() == 'numpy':\n    from numpy import BackendLayer, x", "but that branch has x"),
        ("if backend() == 'numpy':\n    with x as BackendLayer: pass", "has with x as BackendLayer:"),
    ],
)
def test_another_structure_is_refused(source: str, reason: str) -> None:
    with pytest.raises(ImportError) as raised:
        code_with_branch(source.encode(), "layer.py", LAYER)
    message = str(raised.value)
    assert message.startswith(f"{LAYER} of Keras 3.")
    assert "expected to have one `if backend() == 'numpy':`" in message
    assert reason in message
    assert "pip install 'keras==3.15.*'" in message


@pytest.mark.parametrize("module", in_wheel(BRANCHES))
def test_a_branch_binds_what_that_of_numpy_binds(module: str) -> None:
    [branch] = branches_for(tree_of(module), "numpy")
    assert bound_names(ast.parse(BRANCHES[module]).body) == bound_names(branch.body)


def test_no_other_module_has_a_branch_for_numpy() -> None:
    """A new Keras may choose a backend in more modules."""
    source = path_of("keras.src")
    choosing = set()
    for path in source.parent.rglob("*.py"):
        if b'== "numpy"' in (content := path.read_bytes()) and branches_for(ast.parse(content), "numpy"):
            choosing.add(".".join(path.relative_to(source.parents[2]).with_suffix("").parts))
    assert {name.removesuffix(".__init__") for name in choosing} == set(in_wheel(BRANCHES))


def test_the_backend_exports_what_that_of_numpy_exports(backend: Any) -> None:
    """``from keras.src.backend.numpy import *`` binds them in ``keras.src.backend``."""
    exported = bound_names(tree_of("keras.src.backend.numpy").body)
    assert sorted(name for name in exported if not hasattr(backend, name)) == []


def defined(body: list[ast.stmt]) -> dict[str, ast.stmt]:
    """The classes, functions and assignments of a module's or class's body."""
    return {name: statement for statement in body for name in _names_of(statement)}


def _names_of(statement: ast.stmt) -> list[str]:
    match statement:
        case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
            return [name]
        case ast.Assign(targets=[ast.Name(id=name)]):
            return [name]
    return []


@pytest.mark.parametrize(
    ("module", "name"), [(module, name) for module, change in PATCHES.items() for name in change.names]
)
def test_each_patched_name_is_in_keras_as_it_is(module: str, name: str) -> None:
    """Read from the file: a Keras that runs here is patched already."""
    first, _, second = name.partition(".")
    statement = defined(tree_of(module).body)[first]
    if second:
        assert isinstance(statement, ast.ClassDef)
        assert second in defined(statement.body)
