"""The import hook that adds this backend to Keras's list of backends.

While this backend is chosen, some modules of Keras are compiled with one more branch
(:mod:`keras_dualflow.branches`); others get other imports (:mod:`keras_dualflow.tensorflow_imports`), or are
patched after they are loaded (:mod:`keras_dualflow.patches`). They are located by Python's own finders; the
import of all other modules is unchanged.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import Final

from dualflow.core.after_import import import_after
from dualflow.core.warning import warn_user
from keras_dualflow.branches import BRANCHES, TESTED, code_with_branch, keras_version, structure_error
from keras_dualflow.choice import NAME
from keras_dualflow.patches import PATCHES, patch
from keras_dualflow.tensorflow_imports import TENSORFLOW_IMPORTS, code_with_replaced_imports

_BACKEND: Final = "keras.src.backend"


class BranchLoader(SourceFileLoader):
    """Loads a module of Keras with a branch for this backend.

    The code is compiled at each import, since the bytecode cache belongs to the unchanged file.
    """

    def get_code(self, fullname: str) -> CodeType:
        if fullname == _BACKEND:
            check_release(keras_version())
        path = self.get_filename(fullname)
        return code_with_branch(self.get_data(path), path, fullname)


class _PatchLoader(SourceFileLoader):
    """Loads a module of Keras with other imports, and patches it."""

    def get_code(self, fullname: str) -> CodeType | None:
        code = super().get_code(fullname)
        if code is None or fullname not in TENSORFLOW_IMPORTS:
            return code
        return code_with_replaced_imports(code, fullname)

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        if module.__name__ in PATCHES:
            patch(module)


_LOADERS: Final[dict[str, type[SourceFileLoader]]] = {
    **dict.fromkeys((*PATCHES, *TENSORFLOW_IMPORTS), _PatchLoader),
    **dict.fromkeys(BRANCHES, BranchLoader),
}
"""The loader of each module of Keras that is changed."""


class _BackendFinder:
    """A finder of the modules of Keras that are changed."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        loader = _LOADERS.get(fullname)
        if loader is None:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin is None:
            return spec
        if type(spec.loader) is not SourceFileLoader:
            raise structure_error(fullname, "a Python file", f"is loaded from {spec.origin}")
        spec.loader = loader(fullname, spec.origin)
        return spec


def install() -> None:
    """Add this backend to Keras, which is about to be imported.

    If an import of Keras without this hook failed before, the modules that it loaded refer to an
    unfinished ``keras.src.backend``; they are removed, so that they are loaded again.

    Raises:
        ImportError: Keras has been imported with another backend.
    """
    if _BACKEND in sys.modules:
        current = sys.modules[_BACKEND].backend()
        if current != NAME:
            raise ImportError(
                f"Keras runs on {current!r} already; set KERAS_BACKEND={NAME} or import dualflow before it."
            )
    if "keras" not in sys.modules:
        for name in [name for name in sys.modules if name.startswith("keras.")]:
            del sys.modules[name]
    if not any(type(finder) is _BackendFinder for finder in sys.meta_path):
        sys.meta_path.insert(0, _BackendFinder())
        import_after("multiprocessing.spawn", "keras_dualflow.children")


def check_release(version: str) -> None:
    """Warn of a minor release of Keras that is not tested with this backend.

    Raises:
        ImportError: the release is older than all that are tested.
    """
    numbers = re.match(r"(\d+)\.(\d+)", version)
    minor = (int(numbers[1]), int(numbers[2])) if numbers else ()
    if minor in TESTED:
        return
    oldest = ".".join(map(str, TESTED[0]))
    if minor and minor < TESTED[0]:
        raise ImportError(
            f"The backend {NAME!r} needs Keras {oldest} or newer, and Keras {version} is installed: "
            f"pip install 'keras>={oldest}', or choose another backend with KERAS_BACKEND."
        )
    newest = ".".join(map(str, TESTED[-1]))
    warn_user(
        f"Keras {version} is not tested with the backend {NAME!r}, which is added if Keras's modules have "
        f"the structure that it expects. The newest release that is tested: pip install 'keras=={newest}.*'."
    )
