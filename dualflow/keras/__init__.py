"""What Keras has of functions of tensors: ``df.keras``. Its models and layers are not in this version."""

from typing import TYPE_CHECKING

from dualflow.core.namespace import publish as _publish

if TYPE_CHECKING:
    from dualflow.keras import activations as activations

_publish(globals(), internal=("TYPE_CHECKING",), deferred=True)
