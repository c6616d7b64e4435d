"""What annotations call tensors and functions: ``df.types.experimental``."""

from typing import TYPE_CHECKING

from dualflow.core.dispatch import TensorLike as TensorLike
from dualflow.core.namespace import publish as _publish

if TYPE_CHECKING:
    from dualflow.function.concrete import ConcreteFunction as ConcreteFunction
    from dualflow.function.decorator import Function as GenericFunction
    from dualflow.function.decorator import Function as PolymorphicFunction

    __all__ = ["ConcreteFunction", "GenericFunction", "PolymorphicFunction", "TensorLike"]

_publish(
    globals(),
    lazy={
        "dualflow.function.concrete": "ConcreteFunction",
        "dualflow.function.decorator": "GenericFunction=Function PolymorphicFunction=Function",
    },
)
