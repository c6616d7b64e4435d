"""The branches that modules of Keras take for this backend, inserted into their syntax trees.

Five modules of Keras choose a backend at their top level: ``if backend() == "tensorflow": ... elif ...``.
Each is parsed, ``elif backend() == "dualflow"`` is inserted after the branch for NumPy, and the tree is
compiled. The file does not change, and neither does its bytecode cache.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from importlib import import_module
from types import CodeType
from typing import Final

from keras_dualflow.choice import NAME

TESTED: Final = ((3, 15),)
"""The minor releases of Keras whose own tests have been run on this backend."""
BRANCHES: Final = {
    "keras.src.backend": """
from keras_dualflow.flat import *
from keras_dualflow.flat import Variable as BackendVariable
distribution_lib = None
""",
    "keras.src.export.saved_model": """
from keras_dualflow.src.export import SavedModelExportArchive as BackendSavedModelExportArchive
""",
    "keras.src.layers.layer": "from keras_dualflow.src.layer import BackendLayer",
    "keras.src.models.model": "from keras_dualflow.src.trainer import Trainer",
    "keras.src.trainers.trainer_test": "from keras_dualflow.src.trainer import Trainer",
}
"""The modules that choose a backend, and the statements of each for this one."""
_REFERENCE: Final = "numpy"
"""The backend whose branch shows which names a branch binds."""


def code_with_branch(source: bytes, path: str, module: str) -> CodeType:
    """The compiled code of a module of Keras, with a branch for this backend.

    Raises:
        ImportError: the module does not choose a backend in the expected way.
    """
    tree = ast.parse(source, path)
    _insert(_reference_branch(tree, module), ast.parse(BRANCHES[module]).body)
    return compile(tree, path, "exec", dont_inherit=True)


def keras_version() -> str:
    """The version of the Keras that is being imported."""
    return str(import_module("keras.src.version").__version__)


def structure_error(module: str, expected: str, reason: str) -> ImportError:
    """The error for a module of Keras that differs from what this backend relies on."""
    release = ".".join(map(str, TESTED[-1]))
    return ImportError(
        f"{module} of Keras {keras_version()} is expected to have {expected}, but {reason}: the backend "
        f"{NAME!r} can't be added. Install a release of Keras that is tested with it: "
        f"pip install 'keras=={release}.*', or choose another backend with KERAS_BACKEND."
    )


def branches_for(tree: ast.Module, backend: str) -> list[ast.If]:
    """The ``if`` and ``elif`` statements at a module's top level that select ``backend``."""
    return [branch for branch in _top_level_branches(tree) if _compared_backend(branch.test) == backend]


def bound_names(body: list[ast.stmt]) -> set[str]:
    """The names that imports, assignments and definitions bind; the text of any other statement."""
    names: set[str] = set()
    for statement in body:
        match statement:
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                names.update(alias.asname or alias.name for alias in aliases)
            case ast.Assign(targets=[ast.Name(id=name)]):
                names.add(name)
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                names.add(name)
            case _:
                names.add(ast.unparse(statement))
    return names


def _reference_branch(tree: ast.Module, module: str) -> ast.If:
    """The module's branch for NumPy, which binds no name that the branch for this backend does not bind."""
    names = bound_names(ast.parse(BRANCHES[module]).body)
    expected = (
        f"one `if backend() == {_REFERENCE!r}:` or `elif` at its top level, that binds "
        f"{', '.join(sorted(names))}"
    )
    branches = branches_for(tree, _REFERENCE)
    if len(branches) != 1:
        raise structure_error(module, expected, f"has {len(branches) or 'none'}")
    unknown = sorted(bound_names(branches[0].body) - names)
    if unknown:
        raise structure_error(module, expected, f"that branch has {', '.join(unknown)}")
    return branches[0]


def _top_level_branches(tree: ast.Module) -> Iterator[ast.If]:
    for statement in tree.body:
        following: ast.stmt | None = statement
        while isinstance(following, ast.If):
            yield following
            following = following.orelse[0] if len(following.orelse) == 1 else None


def _compared_backend(test: ast.expr) -> object:
    """``x`` of a condition ``backend() == x`` or ``backend.backend() == x``; None of any other one."""
    match test:
        case ast.Compare(
            left=ast.Call(func=ast.Name(id="backend") | ast.Attribute(attr="backend"), args=[], keywords=[]),
            ops=[ast.Eq()],
            comparators=[ast.Constant(value=name)],
        ):
            return name
    return None


def _insert(reference: ast.If, body: list[ast.stmt]) -> None:
    """Insert a branch for this backend after ``reference``, at the same line: tracebacks show that line."""
    test = copy.deepcopy(reference.test)
    assert isinstance(test, ast.Compare)
    test.comparators = [ast.Constant(NAME)]
    branch = ast.If(test=test, body=body, orelse=[])
    for node in ast.walk(branch):
        ast.copy_location(node, reference)
    branch.orelse, reference.orelse = reference.orelse, [branch]
