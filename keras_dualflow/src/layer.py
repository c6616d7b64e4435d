"""The base class of Keras's layers that this backend provides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dualflow.core.locks import imported
from dualflow.train.trackable import attributes_of


class BackendLayer:
    """What checkpoints and saved models read of a layer, under the names of Keras's layers on TensorFlow."""

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
