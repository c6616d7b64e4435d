"""Internal modules of Keras 2, the package ``tf_keras``, that libraries import: of Keras 3, or empty."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace
from typing import Any, Final

import dualflow
from dualflow.core.locks import imported

_API: Final = "tf_keras.api._v1"
_PACKAGES: Final = (
    "tf_keras.api",
    _API,
    "tf_keras.__internal__",
    f"{_API}.keras.__internal__",
    f"{_API}.keras.__internal__.legacy",
)


def keras_2() -> ModuleType:
    """The namespace of ``tf_keras``, with ``__internal__``."""
    vars(dualflow.keras).setdefault("__internal__", keras_2_module("tf_keras.__internal__"))
    return dualflow.keras


def keras_2_module(name: str) -> ModuleType | None:
    """The replacement for an internal module of ``tf_keras``, by its full name; None if there is none."""
    if name == f"{_API}.keras":
        return keras_2()
    if name == f"{_API}.keras.__internal__.legacy.layers":
        layers: Any = imported("dualflow.compat.v1.layers")
        return layers  # type: ignore[no-any-return]  # a module
    if name not in _PACKAGES:
        return None
    package: Any = ModuleType(name, "A package of internal modules of Keras 2.")
    package.__path__ = []
    package.utils = SimpleNamespace(register_symbolic_tensor_type=_register_symbolic_type)
    return package  # type: ignore[no-any-return]  # a module


def _register_symbolic_type(kind: type) -> None:
    """Nothing: Keras 3 builds models from its own symbolic tensors alone."""
