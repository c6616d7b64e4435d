"""The base class of Keras's layers that this backend provides."""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping
from typing import Any, Final

from dualflow.core.locks import imported
from dualflow.train.trackable import attributes_of

_LAYERS_OF_VERSION_1: Final = "dualflow.compat.v1.layers.base"
"""The module of TensorFlow 1's layers, which only programs of TensorFlow 1 load."""


class BackendLayer:
    """What checkpoints and saved models read of a layer, under the names of Keras's layers on TensorFlow.

    A layer has the variables of TensorFlow 1's layers in its attributes, as in Keras 2.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in ("variables", "weights"):
            if name in vars(cls):
                setattr(cls, name, _with_layers_of_version_1(vars(cls)[name], name))

    def _trackable_children(self) -> Mapping[str, Any]:
        """The children that a checkpoint saves: the attributes.

        The layers of a ``Sequential`` are below the functional model that it builds. Its own list of layers
        gets an input layer then, which shifts their places.
        """
        children = attributes_of(self)
        if "_functional" in vars(self) and (self._functional is not None or not self.built):  # type: ignore[attr-defined]
            children.pop("_layers", None)
        return children

    @property
    def _default_save_signature(self) -> Any:
        """The signature with which ``df.saved_model.save`` saves a model; None for what has no inputs yet."""
        return imported("keras_dualflow.src.export").default_signature(self)


def _with_layers_of_version_1(variables: property, name: str) -> property:
    """A property of a layer that returns the variables of TensorFlow 1's layers in its attributes as well."""

    @functools.wraps(variables.fget)  # type: ignore[arg-type]  # Keras's properties have a function
    def extended(layer: Any) -> list[Any]:
        own: list[Any] = variables.__get__(layer)
        loaded = sys.modules.get(_LAYERS_OF_VERSION_1)
        if loaded is None:
            return own
        layers = [x for x in vars(layer).values() if isinstance(x, loaded.Layer)]
        every = [*own, *(v for x in layers for v in getattr(x, name))]
        return list({id(v): v for v in every}.values())

    return property(extended)
