"""Differentiation: ``df.autodiff``."""

from typing import TYPE_CHECKING

from dualflow.core.namespace import publish as _publish

if TYPE_CHECKING:
    from dualflow.eager.tape import GradientTape as GradientTape

_publish(globals(), internal=("TYPE_CHECKING",), deferred=True)
