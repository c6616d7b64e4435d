"""Types for annotations: of tensors, functions, and values that ops convert: ``df.types.experimental``."""

from typing import TYPE_CHECKING

from dualflow.core.namespace import publish as _publish

if TYPE_CHECKING:
    from dualflow.core.argument_types import AxisLike as AxisLike
    from dualflow.core.argument_types import DTypeLike as DTypeLike
    from dualflow.core.argument_types import IntLike as IntLike
    from dualflow.core.argument_types import IntsLike as IntsLike
    from dualflow.core.argument_types import ShapeLike as ShapeLike
    from dualflow.core.argument_types import TensorLike as TensorLike
    from dualflow.core.trace_type import SupportsTracingProtocol as SupportsTracingProtocol
    from dualflow.core.trace_type import TraceType as TraceType
    from dualflow.function.concrete import ConcreteFunction as ConcreteFunction
    from dualflow.function.traced_function import Function as GenericFunction
    from dualflow.function.traced_function import Function as PolymorphicFunction

    __all__ = [
        "AxisLike",
        "ConcreteFunction",
        "DTypeLike",
        "GenericFunction",
        "IntLike",
        "IntsLike",
        "PolymorphicFunction",
        "ShapeLike",
        "SupportsTracingProtocol",
        "TensorLike",
        "TraceType",
    ]

_publish(
    globals(),
    lazy={
        "dualflow.core.argument_types": "AxisLike DTypeLike IntLike IntsLike ShapeLike TensorLike",
        "dualflow.core.trace_type": "SupportsTracingProtocol TraceType",
        "dualflow.function.concrete": "ConcreteFunction",
        "dualflow.function.traced_function": "GenericFunction=Function PolymorphicFunction=Function",
    },
)
