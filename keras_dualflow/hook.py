"""Keras 3.15 learns of a backend that it doesn't list.

Four of its modules choose a backend at their top level, such as ``elif backend() == "numpy": from
keras.src.backend.numpy.trainer import NumpyTrainer as Trainer``. While this backend is chosen, the names of
the backend, the package and the class in the compiled code of those branches are this one's; no file changes,
and Python's bytecode cache serves as usual. The class ``DynamicBackend``, the functions ``set_random_seed``
and ``load_weights``, the callback ``TensorBoard``, which asks for TensorFlow, and what tells whether
TensorFlow is there are changed once they are loaded.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any, Final

from keras_dualflow.all_or_none import loading_all_or_none
from keras_dualflow.choice import NAME

RELEASE: Final = "3.15"
"""The release of Keras whose modules are known."""
_TAKEN: Final = "numpy"
_PREFIX: Final = "keras.src.backend.numpy"
_CHOOSING: Final[dict[str, dict[str, str]]] = {
    "keras.src.backend": {_PREFIX: "keras_dualflow.flat", f"{_PREFIX}.core": "keras_dualflow.src.ops.core"},
    "keras.src.export.saved_model": {
        f"{_PREFIX}.export": "keras_dualflow.src.export",
        "NumpyExportArchive": "SavedModelExportArchive",
    },
    "keras.src.layers.layer": {f"{_PREFIX}.layer": "keras_dualflow.src.layer", "NumpyLayer": "BackendLayer"},
    "keras.src.models.model": {f"{_PREFIX}.trainer": "keras_dualflow.src.trainer", "NumpyTrainer": "Trainer"},
    "keras.src.trainers.trainer_test": {
        f"{_PREFIX}.trainer": "keras_dualflow.src.trainer",
        "NumpyTrainer": "Trainer",
    },
}
"""The modules that choose a backend, and what the names in their branches for NumPy become."""
_CHANGED: Final = (
    "keras.src.backend.common.dtypes",
    "keras.src.callbacks.tensorboard",
    "keras.src.saving.saving_api",
    "keras.src.utils.backend_utils",
    "keras.src.utils.module_utils",
    "keras.src.utils.rng_utils",
)


class _ChoosingLoader(SourceFileLoader):
    """Loads a module of Keras whose branch for NumPy is this backend's."""

    def get_code(self, fullname: str) -> CodeType | None:
        if fullname == "keras.src.backend":
            check_release(import_module("keras.src.version").__version__)
        code = super().get_code(fullname)
        return None if code is None else retargeted(code, _CHOOSING[fullname], fullname)


class _ChangingLoader(SourceFileLoader):
    """Loads a module of Keras, of which a class or function then knows this backend beside the others."""

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        names = vars(module)
        if "DynamicBackend" in names:
            admit(names["DynamicBackend"], import_module("keras.src.backend"))
            names["in_tf_graph"] = in_graph_of_tensorflow(names["in_tf_graph"])
        elif "BIT64_TO_BIT32_DTYPE" in names:
            names["BIT64_TO_BIT32_DTYPE"]["float64"] = "float64"
        elif "load_weights" in names:
            names["load_weights"] = loading_all_or_none(names["load_weights"])
        elif "LazyModule" in names:
            names["tensorflow"] = tensorflow_itself(names["LazyModule"])
        elif "TensorBoard" in names:
            names["TensorBoard"].summary = property(lambda callback: import_module("dualflow.summary"))
            names["keras_model_summary"] = model_summary
        else:
            names["set_random_seed"] = seeding(names["set_random_seed"])


class _BackendFinder:
    """Finds the modules of Keras that are loaded in another way; Python finds all others."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in _CHOOSING and fullname not in _CHANGED:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin is None:
            return spec
        if type(spec.loader) is not SourceFileLoader:
            raise ImportError(
                f"{fullname} of Keras is not loaded from a Python file, and so can't take the backend "
                f"{NAME!r}. Install Keras as files: pip install --force-reinstall 'keras=={RELEASE}.*'."
            )
        loader = _ChangingLoader if fullname in _CHANGED else _ChoosingLoader
        spec.loader = loader(fullname, spec.origin)
        return spec


def install() -> None:
    """Let Keras, which is about to be imported, take this backend.

    Raises:
        ImportError: Keras has been imported with another backend.
    """
    if "keras.src.backend" in sys.modules:
        present = sys.modules["keras.src.backend"].backend()
        if present != NAME:
            raise ImportError(
                f"Keras runs on {present!r} already; set KERAS_BACKEND={NAME} or import dualflow before it."
            )
    if not any(type(finder) is _BackendFinder for finder in sys.meta_path):
        sys.meta_path.insert(0, _BackendFinder())


def check_release(version: str) -> None:
    """Refuse a Keras that nobody has tried.

    Raises:
        ImportError: ``version`` is of another release.
    """
    if version.split(".")[:2] != RELEASE.split("."):
        raise ImportError(
            f"The backend {NAME!r} is written for Keras {RELEASE}, and Keras {version} is installed: "
            f"pip install 'keras=={RELEASE}.*', or choose another backend with KERAS_BACKEND."
        )


def retargeted(code: CodeType, names: dict[str, str], module: str) -> CodeType:
    """The code of a module whose branch for NumPy imports, by ``names``, from this backend.

    Raises:
        ImportError: the code has no such branch.
    """
    missing = [name for name in names if name not in code.co_names]
    if missing or code.co_consts.count(_TAKEN) != 1:
        raise ImportError(
            f"{module} of this Keras chooses its backend in another way than Keras {RELEASE}.0 does, so that "
            f"the backend {NAME!r} can't be put in: pip install --force-reinstall 'keras=={RELEASE}.*'."
        )
    return code.replace(
        co_consts=tuple(NAME if type(x) is str and x == _TAKEN else x for x in code.co_consts),
        co_names=tuple(names.get(name, name) for name in code.co_names),
    )


def admit(dynamic_backend: Any, present: ModuleType) -> None:
    """Let the class ``DynamicBackend`` take this backend's name; ``present`` is Keras's backend."""
    others_attribute, others_choice = dynamic_backend.__getattr__, dynamic_backend.set_backend

    def attribute(self: Any, name: str) -> Any:
        return getattr(present, name) if self._backend == NAME else others_attribute(self, name)

    def choose(self: Any, backend: str) -> None:
        if backend == NAME:
            self._backend = backend
        else:
            others_choice(self, backend)

    dynamic_backend.__getattr__, dynamic_backend.set_backend = attribute, choose


def in_graph_of_tensorflow(in_tf_graph: Callable[[], bool]) -> Callable[[], bool]:
    """``in_tf_graph``, for which a trace of dualflow's is none, where dualflow stands in for TensorFlow."""
    return lambda: not _is_stand_in() and in_tf_graph()


def tensorflow_itself(lazy_module: Any) -> Any:
    """Keras's module ``tensorflow``, which is not ``available`` where dualflow stands in for it.

    Keras asks so before it looks for types of TensorFlow's; the names are there in either case.
    """

    class TensorFlow(lazy_module):  # type: ignore[misc]  # Keras has no types
        @property
        def available(self) -> bool:
            return bool(super().available) and not _is_stand_in()

    return TensorFlow("tensorflow")


def _is_stand_in() -> bool:
    """Whether ``import tensorflow`` has given dualflow."""
    return sys.modules.get("tensorflow") is sys.modules.get("dualflow", sys)


def seeding(set_random_seed: Callable[[int], None]) -> Callable[[int], None]:
    """``keras.utils.set_random_seed``, which seeds dualflow too."""

    @functools.wraps(set_random_seed)
    def seed_all(seed: int) -> None:
        set_random_seed(seed)
        import_module("dualflow.random").set_seed(seed)

    return seed_all


def model_summary(name: str, data: Any, step: Any = None) -> bool:
    """Write what a model is made of, as JSON, among the texts of the current writer of ``df.summary``."""
    written: bool = import_module("dualflow.summary").text(name, data.to_json(), step=step)
    return written
