"""Substitution of TensorFlow by dualflow in this process: ``import tensorflow`` imports dualflow.

A finder at the head of ``sys.meta_path`` serves ``tensorflow`` and its submodules: each is dualflow's
namespace of the same name; for programs of TensorFlow 1, that of ``dualflow.compat.v1``. Keras, which may be
imported by its own name, uses dualflow as its backend instead of TensorFlow. Libraries for several frameworks
recognise tensors by the module of their class: that is ``tensorflow`` then.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Final

import dualflow
from dualflow.cli.internal_keras import keras_2, keras_2_module
from dualflow.cli.internal_modules import PREFIX, PROTOCOLS, InternalNames, internal_module, is_internal
from dualflow.core.after_import import import_after
from dualflow.core.errors import FailedPreconditionError, MissingAttributeError, MissingModuleError
from dualflow.core.locks import imported
from dualflow.eager.tensor import EagerTensor
from dualflow.eager.variable import Variable
from dualflow.function.tracing.symbolic_tensor import SymbolicTensor
from dualflow.ops.tensor import Tensor
from dualflow.version import DUALFLOW
from keras_dualflow import choice

_NAME: Final = "tensorflow"
_VERSION_1: Final = "dualflow.compat.v1"
"""The namespace for programs of TensorFlow 1, which only these import."""
_KERAS_2: Final = "tf_keras"
"""Keras 2 for TensorFlow, as whose modules those of Keras 3 are imported: it calls TensorFlow's internals."""


def stand_in_for_tensorflow(*, version: int = 2, quiet: bool = False) -> None:
    """Make ``import tensorflow`` import dualflow, also in processes that multiprocessing starts.

    Args:
        version: of TensorFlow: for 1, ``import tensorflow`` imports ``dualflow.compat.v1``, and ops are added
            to graphs until the program enables eager execution.
        quiet: whether the first import prints no message on stderr.

    Raises:
        FailedPreconditionError: this process has imported TensorFlow already.
    """
    if version_in_place():
        return
    if _NAME in sys.modules:
        raise FailedPreconditionError(
            "TensorFlow is imported in this process already: dualflow stands in from the start, or not."
        )
    if version == 1:
        imported(_VERSION_1).disable_v2_behavior()
    sys.meta_path.insert(0, _StandInFinder(version, quiet))
    for kind in (Tensor, EagerTensor, SymbolicTensor, Variable):
        kind.__module__ = _NAME
    vars(dualflow)["__internal__"] = InternalNames()
    import_after("multiprocessing.spawn", "dualflow.cli.children")


def version_in_place() -> int:
    """The major version of TensorFlow that dualflow replaces in this process, 1 or 2; 0 if none."""
    return next((finder.version for finder in sys.meta_path if isinstance(finder, _StandInFinder)), 0)


class _StandInFinder:
    """Finds dualflow's namespaces for the modules of a version of TensorFlow."""

    def __init__(self, version: int, quiet: bool) -> None:
        self.version = version
        self._loader = _NamespaceLoader(imported(_VERSION_1) if version == 1 else dualflow, quiet)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == "keras" and choice.chosen_backend() in ("", _NAME):
            os.environ["KERAS_BACKEND"] = choice.NAME
        if fullname.partition(".")[0] not in (_NAME, _KERAS_2):
            return None
        return ModuleSpec(fullname, self._loader)


class _NamespaceLoader(Loader):
    """Replaces the module that is being imported by dualflow's namespace."""

    def __init__(self, root: ModuleType, quiet: bool) -> None:
        self._root = root
        self._quiet = quiet

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        sys.modules[module.__name__] = _namespace(module.__name__, self._root)
        if not self._quiet:
            self._quiet = True
            version = "" if self._root is dualflow else " 1"
            print(f"dualflow {DUALFLOW} stands in for {_NAME}{version} in this process.", file=sys.stderr)


def _namespace(name: str, root: ModuleType) -> ModuleType:
    """The namespace of dualflow that replaces TensorFlow's module ``name``; ``root`` replaces TensorFlow."""
    parent, _, child = name.rpartition(".")
    if not parent:
        return root if name == _NAME else keras_2()
    if name.startswith(f"{_KERAS_2}.") and (internal_of_keras := keras_2_module(name)) is not None:
        return internal_of_keras
    if is_internal(name):
        internal = internal_module(name)
        if internal is None:
            raise MissingModuleError(
                f"No module named {name!r}: use the public name; what is under {PREFIX} and {PROTOCOLS} is "
                "TensorFlow's inside.",
                name=name,
            )
        return internal
    try:
        namespace = getattr(sys.modules[parent], child)
    except AttributeError as error:
        advice = f": {error}" if isinstance(error, MissingAttributeError) else "."
        raise MissingModuleError(f"No module named {name!r}{advice}", name=name) from None
    if not isinstance(namespace, ModuleType):
        raise MissingModuleError(
            f"No module named {name!r}: it is an object, from {parent} import {child}.", name=name
        )
    return namespace
