"""The protocol by which objects of a program describe themselves as arguments of traced functions.

A class with the method ``__tf_tracing_type__`` returns a :class:`TraceType`. Two calls share a trace if the
trace types of their arguments are equal, or if that of the later call is a subtype of the earlier one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Final, Protocol, runtime_checkable

from dualflow.core.records import dataclass


class TracingContext:
    """The argument of ``__tf_tracing_type__``; it is reserved, as in TensorFlow."""


class PlaceholderContext:
    """The argument of ``TraceType.placeholder_value``; it is reserved, as in TensorFlow."""


class TraceType:
    """The type of an object as an argument of a traced function.

    A subclass defines ``__eq__``, ``__hash__`` and the three methods that raise an error here. If its objects
    hold tensors, it defines ``to_tensors`` and ``from_tensors`` too.

    >>> import dualflow as df
    >>> class UnitType(df.types.experimental.TraceType):
    ...     def __init__(self, unit):
    ...         self.unit = unit
    ...     def is_subtype_of(self, other):
    ...         return self == other
    ...     def most_specific_common_supertype(self, others):
    ...         return self if all(self == other for other in others) else None
    ...     def placeholder_value(self, placeholder_context):
    ...         return Unit(self.unit)
    ...     def __eq__(self, other):
    ...         return isinstance(other, UnitType) and self.unit == other.unit
    ...     def __hash__(self):
    ...         return hash(self.unit)
    >>> class Unit:
    ...     def __init__(self, name):
    ...         self.name = name
    ...     def __tf_tracing_type__(self, context):
    ...         return UnitType(self.name)
    >>> @df.function
    ... def in_metres(x, unit):
    ...     return x * {"km": 1000.0, "m": 1.0}[unit.name]
    >>> [in_metres(2.0, Unit("km")).numpy().item() for _ in range(2)]
    [2000.0, 2000.0]
    >>> in_metres.experimental_get_tracing_count()
    1
    """

    __slots__ = ()

    def is_subtype_of(self, other: object) -> bool:
        """Whether a trace for ``other`` serves arguments of this type.

        Args:
            other: the type of another argument.

        Raises:
            NotImplementedError: the subclass does not define it.
        """
        raise NotImplementedError

    def most_specific_common_supertype(self, others: Sequence[TraceType]) -> Any:
        """The most specific type of which this one and all others are subtypes; None if there is none.

        Args:
            others: types of other arguments.

        Raises:
            NotImplementedError: the subclass does not define it.
        """
        raise NotImplementedError

    def placeholder_value(self, placeholder_context: object) -> Any:
        """The object that the Python function gets while it is traced.

        Args:
            placeholder_context: reserved.

        Raises:
            NotImplementedError: the subclass does not define it.
        """
        raise NotImplementedError

    def to_tensors(self, value: object) -> list[Any]:
        """The tensors of an object of this type, which are inputs of the trace: none.

        Args:
            value: an object of this type.
        """
        return []

    def from_tensors(self, tensors: Iterator[Any]) -> Any:
        """The object of this type with other tensors: the placeholder.

        Args:
            tensors: as many as ``to_tensors`` returns.
        """
        return self.placeholder_value(PlaceholderContext())

    def flatten(self) -> list[Any]:
        """The specs of the tensors: none."""
        return []


@runtime_checkable
class SupportsTracingProtocol(Protocol):
    """An object that describes itself as an argument of traced functions; see :class:`TraceType`."""

    def __tf_tracing_type__(self, context: Any) -> Any:
        """The :class:`TraceType` of this object."""
        ...


@dataclass(frozen=True, slots=True)
class TracedStructure:
    """The structure of an object with a trace type: its tensors are the children."""

    trace_type: TraceType
    __name__ = "TraceType"
    can_be_stacked: ClassVar = False
    is_immutable: ClassVar = True

    def __call__(self, **tensors: Any) -> Any:
        """The object of this type with these tensors."""
        return self.trace_type.from_tensors(iter(tensors.values()))

    def serves(self, other: object) -> bool:
        """Whether a trace for this structure serves arguments of the structure ``other``."""
        return isinstance(other, TracedStructure) and bool(other.trace_type.is_subtype_of(self.trace_type))


_CONTEXT: Final = TracingContext()


def traced_tree(value: Any) -> tuple[TracedStructure, tuple[str, ...], list[Any]]:
    """An object with a method ``__tf_tracing_type__`` as a tree of its tensors."""
    trace_type = value.__tf_tracing_type__(_CONTEXT)
    tensors = list(trace_type.to_tensors(value))
    return TracedStructure(trace_type), tuple([f"tensor{i}" for i in range(len(tensors))]), tensors
