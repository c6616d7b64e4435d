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


class AttributeForm(NamedTuple):
    """How values of a type are written and read.

    Attributes:
        name: the name in the text.
        fields: returns the fields of a value, by name, which have forms themselves; None if this value has
            no text.
        make: returns the value for fields by name.
    """

    name: str
    fields: Callable[[Any], Mapping[str, Any] | None]
    make: Callable[..., Any]


FORMS: Final[dict[str, AttributeForm]] = {}
"""The declared forms, by name."""
_BY_TYPE: Final[dict[type, AttributeForm]] = {}
_BY_VALUE: Final[dict[int, tuple[Any, AttributeForm]]] = {}
TEXT_OPS: Final[dict[str, Op]] = {}
"""Ops of graphs that are not in the registry, by name."""


def declare(kind: type, form: AttributeForm) -> None:
    """Let graphs with values of the type ``kind`` be written and read."""
    if form.name in FORMS:
        raise InternalError(f"two attribute values are called {form.name}")
    FORMS[form.name] = form
    _BY_TYPE[kind] = form


def written_as(name: str, *fields: str) -> Callable[[C], C]:
    """Class decorator that registers how instances are written in the text of graphs: ``name(fields...)``."""

    def read(value: Any) -> dict[str, Any]:
        return {field: attrgetter(field)(value) for field in fields}

    def mark(cls: C) -> C:
        declare(cls, AttributeForm(name, read, cls))
        return cls

    return mark


def written_value(name: str, value: Any) -> None:
    """Let ``value``, one object such as a function of this package, be written as ``name()``."""
    form = AttributeForm(name, lambda _: {}, lambda: value)
    if name in FORMS:
        raise InternalError(f"two attribute values are called {name}")
    FORMS[name] = form
    _BY_VALUE[id(value)] = value, form


def form_of(value: Any) -> AttributeForm | None:
    """The form of ``value``; None if no text can name it."""
    by_value = _BY_VALUE.get(id(value))
    return _BY_TYPE.get(type(value)) if by_value is None else by_value[1]


def in_text(op: Op) -> Op:
    """Let texts of graphs name ``op``, which is not in the registry because no sample can test it."""
    if op.name in TEXT_OPS:
        raise InternalError(f"two ops without samples are called {op.name}")
    TEXT_OPS[op.name] = op
    return op
