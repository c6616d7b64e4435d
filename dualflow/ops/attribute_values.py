"""Text forms of attribute values of nodes: rules of custom gradients, window layouts, random streams.

Numbers, strings, dtypes, shapes and tuples have literals. Any other value that a saved graph may hold is
declared here, under a name that stays the same when its class is renamed. The text has the name and the
fields::

    grad=correlation_gradient(geometry=window_layout(size=(3, 3), ...))
    generator=seeded_stream(seed=7)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, Final, TypeVar

from dualflow.core.errors import InternalError
from dualflow.core.records import NamedTuple
from dualflow.ops.record import Op

C = TypeVar("C", bound=type)


class AttributeSyntax(NamedTuple):
    """How values of a type are written and read.

    Attributes:
        name: the name in the text.
        fields: returns the fields of a value, by name, which have forms themselves; None if this value has
            no text.
        make: returns the value for fields by name.
        identity: returns plain data that differs between values of which compiled programs differ; None for
            the fields. It runs no code of users.
    """

    name: str
    fields: Callable[[Any], Mapping[str, Any] | None]
    make: Callable[..., Any]
    identity: Callable[[Any], Any] | None = None


SYNTAXES: Final[dict[str, AttributeSyntax]] = {}
"""The declared forms, by name."""
_BY_TYPE: Final[dict[type, AttributeSyntax]] = {}
_BY_VALUE: Final[dict[int, tuple[Any, AttributeSyntax]]] = {}
TEXT_OPS: Final[dict[str, Op]] = {}
"""Ops of graphs that are not in the registry, by name."""


def declare(kind: type, syntax: AttributeSyntax) -> None:
    """Let graphs with values of the type ``kind`` be written and read."""
    if syntax.name in SYNTAXES:
        raise InternalError(f"two attribute values are called {syntax.name}")
    SYNTAXES[syntax.name] = syntax
    _BY_TYPE[kind] = syntax


def written_as(name: str, *fields: str) -> Callable[[C], C]:
    """Class decorator that registers how instances are written in the text of graphs: ``name(fields...)``."""

    def read(value: Any) -> dict[str, Any]:
        return {field: attrgetter(field)(value) for field in fields}

    def mark(cls: C) -> C:
        declare(cls, AttributeSyntax(name, read, cls))
        return cls

    return mark


def written_value(name: str, value: Any) -> None:
    """Let ``value``, one object such as a function of this package, be written as ``name()``."""
    syntax = AttributeSyntax(name, lambda _: {}, lambda: value)
    if name in SYNTAXES:
        raise InternalError(f"two attribute values are called {name}")
    SYNTAXES[name] = syntax
    _BY_VALUE[id(value)] = value, syntax


def syntax_of(value: Any) -> AttributeSyntax | None:
    """The syntax of ``value`` in the text of graphs; None if it can't be written."""
    by_value = _BY_VALUE.get(id(value))
    return _BY_TYPE.get(type(value)) if by_value is None else by_value[1]


def in_text(op: Op) -> Op:
    """Let texts of graphs name ``op``, which is not in the registry because no sample can test it."""
    if op.name in TEXT_OPS:
        raise InternalError(f"two ops without samples are called {op.name}")
    TEXT_OPS[op.name] = op
    return op
