"""The kinds of values that an expression may have, as far as that can be told before a function runs."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from enum import IntEnum
from types import FunctionType, MethodType, ModuleType
from typing import Any, Final

from dualflow.core.dispatch import AbstractComposite, AbstractSource, AbstractTensor, AbstractVariable
from dualflow.core.records import dataclass
from dualflow.core.spec import TensorSpec

_PACKAGE: Final = __name__.partition(".")[0]
_CONTAINERS: Final = (list, tuple, set, frozenset, Mapping)
_MOST: Final = 64
_DEEPEST: Final = 4
_MISSING: Final = object()


class Kind(IntEnum):
    """Whether Python code that tests, iterates or calls a value may meet a symbol."""

    PLAIN = 0
    """No tensor, and nothing that holds one."""
    HOLDER = 1
    """A list, tuple or dict that may hold tensors."""
    TENSOR = 2
    """A tensor, a structure of them, or an object of this package."""
    UNKNOWN = 3
    """Anything, also an object with methods of the user's."""


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """What is known of a value.

    Attributes:
        kind: the most that it may be.
        objects: all that it may be, if they exist already; empty if they don't.
        parts: the elements of a tuple or list that the code writes out.
        each: what every element of a sequence is.
    """

    kind: Kind
    objects: tuple[Any, ...] = ()
    parts: tuple[Known, ...] | None = None
    each: Known | None = None

    def elements(self) -> Known:
        """What iterating or indexing gives."""
        if self.each is not None:
            return self.each
        if self.parts is not None:
            return joined(self.parts)
        if not self.objects:
            return TENSOR if self.kind is Kind.HOLDER else Known(self.kind)
        return joined([_elements(x) for x in self.objects])

    def item(self, key: Any) -> Known:
        """What indexing with ``key`` gives."""
        try:
            if self.objects and all(isinstance(x, list | tuple | Mapping) for x in self.objects):
                return joined([known(x[key]) for x in self.objects])
            return self.parts[key] if self.parts is not None else self.elements()
        except (LookupError, TypeError):
            return self.elements()

    def split(self) -> tuple[Known, ...] | None:
        """The parts of a tuple or list, if they are known one by one."""
        if self.objects and all(isinstance(x, list | tuple) for x in self.objects):
            if len({len(x) for x in self.objects}) > 1:
                return None
            return tuple([joined(map(known, column)) for column in zip(*self.objects, strict=True)])
        return self.parts

    def attribute(self, name: str) -> list[Any]:
        """The attribute of each object; ``property`` objects as they are, UNKNOWN for what is not there."""
        return [attribute_of(x, name) for x in self.objects]


PLAIN: Final = Known(Kind.PLAIN)
HOLDER: Final = Known(Kind.HOLDER)
TENSOR: Final = Known(Kind.TENSOR)
UNKNOWN: Final = Known(Kind.UNKNOWN)


def known(x: Any) -> Known:
    """What is known of an object."""
    return x if isinstance(x, Known) else Known(kind_of(x), (x,))


def joined(several: Iterable[Known]) -> Known:
    """What is known of a value that is one of several."""
    found: Known | None = None
    for one in several:
        found = one if found is None or found is one else _join(found, one)
    return PLAIN if found is None else found


def _join(a: Known, b: Known) -> Known:
    objects: tuple[Any, ...] = ()
    if a.objects and b.objects:
        objects = tuple({id(x): x for x in (*a.objects, *b.objects)}.values())
    parts = None
    if a.parts is not None and b.parts is not None and len(a.parts) == len(b.parts):
        parts = tuple(map(joined, zip(a.parts, b.parts, strict=True)))
    each = joined([a.each, b.each]) if a.each is not None and b.each is not None else None
    return Known(max(a.kind, b.kind), objects if len(objects) <= _MOST else (), parts, each)


def kind_of(x: Any, depth: int = 0) -> Kind:
    """The kind of an object."""
    if isinstance(x, AbstractTensor | AbstractVariable | AbstractComposite | AbstractSource | TensorSpec):
        return Kind.TENSOR
    if isinstance(x, Known):
        return x.kind
    if isinstance(x, _CONTAINERS):
        if len(x) > _MOST or depth > _DEEPEST:
            return Kind.HOLDER
        members = x.values() if isinstance(x, Mapping) else x
        return Kind.HOLDER if any(kind_of(m, depth + 1) is not Kind.PLAIN for m in members) else Kind.PLAIN
    return Kind.PLAIN


def _elements(x: Any) -> Known:
    if isinstance(x, Mapping):
        return joined([known(m) for m in x.values()])
    if isinstance(x, _CONTAINERS):
        return joined([known(m) for m in list(x)[:_MOST]])
    if kind_of(x) is Kind.TENSOR:
        return TENSOR
    return PLAIN if isinstance(x, str | bytes | range) or _is_library(type(x)) else UNKNOWN


def _is_library(kind: type) -> bool:
    return (kind.__module__ or "").partition(".")[0] in ("builtins", "numpy", _PACKAGE)


def attribute_of(owner: Any, name: str) -> Any:
    """An attribute as it is before the function runs; of properties, only this package's are run."""
    if isinstance(owner, super):
        return _inherited(owner, name)
    found = inspect.getattr_static(owner, name, _MISSING)
    if found is _MISSING:
        return _value(owner, name) if _is_ours(owner) else UNKNOWN
    if name in getattr(owner, "__dict__", ()):
        return found
    return _bound(found, owner, name)


def _is_ours(module: Any) -> bool:
    """Whether it is a namespace of this package, which imports names when they are asked for."""
    return isinstance(module, ModuleType) and module.__name__.partition(".")[0] == _PACKAGE


def _inherited(owner: Any, name: str) -> Any:
    """An attribute of ``super()``."""
    instance, start = owner.__self__, owner.__thisclass__
    line = type(instance).__mro__
    for parent in line[line.index(start) + 1 :]:
        if name in vars(parent):
            return _bound(vars(parent)[name], instance, name)
    return UNKNOWN


def _bound(found: Any, owner: Any, name: str) -> Any:
    """What a class's attribute is as an attribute of ``owner``."""
    if isinstance(found, staticmethod):
        return found.__func__
    if isinstance(found, classmethod):
        return MethodType(found.__func__, owner if isinstance(owner, type) else type(owner))
    if isinstance(owner, type):
        return found
    if isinstance(found, FunctionType):
        return MethodType(found, owner)
    if isinstance(found, property):
        ours = (getattr(found.fget, "__module__", None) or "").partition(".")[0] == _PACKAGE
        return _value(owner, name) if ours else MethodOfProperty(found, owner)
    return _value(owner, name) if inspect.ismemberdescriptor(found) else found


def _value(owner: Any, name: str) -> Any:
    try:
        return getattr(owner, name)
    except Exception:
        return UNKNOWN


@dataclass(frozen=True, slots=True, eq=False)
class MethodOfProperty:
    """A property of the user's and its owner: reading it calls a function."""

    of: property
    owner: Any
