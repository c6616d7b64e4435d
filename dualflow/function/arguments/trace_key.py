"""The leaves of a trace's key: shape and dtype for a tensor, type and value for a Python value.

Two calls share a trace if their arguments have the same structure and equal leaves.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable
from numbers import Number
from types import MethodType
from typing import Any, Final

from dualflow.core.dispatch import AbstractVariable
from dualflow.core.dtypes import DType
from dualflow.core.errors import DTypeError
from dualflow.core.exact_equality import exact
from dualflow.core.records import dataclass, field
from dualflow.core.spec import TensorSpec

_PLAIN: Final = frozenset({bool, int, float, complex, str, bytes, range, type(None), DType, type(...)})
_CONTAINERS: Final = (tuple, frozenset)


@dataclass(frozen=True, slots=True)
class TensorLeaf:
    """The leaf for a tensor or array: its shape and dtype."""

    spec: TensorSpec

    def __str__(self) -> str:
        return str(self.spec)


@dataclass(frozen=True, slots=True)
class VariableLeaf:
    """The leaf for a variable; ``alias`` is its number among the distinct variables of the arguments."""

    spec: TensorSpec
    trainable: bool
    alias: int

    def __str__(self) -> str:
        return f"variable {self.spec}" + (f" (the same as variable {self.alias})" if self.alias else "")


@dataclass(frozen=True, slots=True)
class ValueLeaf:
    """The leaf for a Python value; two are equal if their types and bits are."""

    key: Hashable
    value: Any = field(compare=False)

    def __str__(self) -> str:
        return repr(self.value)


class ObjectLeaf:
    """The leaf for any other object, referenced weakly: equal objects of its type match while it is alive.

    Raises:
        DTypeError: the object has no hash.
    """

    __slots__ = ("_hash", "_kind", "_ref")

    def __init__(self, value: Any) -> None:
        try:
            self._hash = hash(value)
        except TypeError:
            raise DTypeError(
                f"Could not generate a generic TraceType for {value!r}: an argument of type "
                f"{type(value).__name__} has no hash, so a trace can't be looked up for it. Pass a tuple, a "
                "tensor, or an object with __eq__ and __hash__."
            ) from None
        self._kind = type(value)
        self._ref = _reference(value)

    @property
    def value(self) -> Any:
        """The object; None if it no longer exists."""
        return self._ref()

    def watch(self, gone: Callable[[], None]) -> object:
        """A weak reference that calls ``gone`` when the object dies; None if the type supports none."""
        value = self._ref()
        try:
            return weakref.ref(value, lambda _: gone())
        except TypeError:
            return None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ObjectLeaf) or self._hash != other._hash or self._kind is not other._kind:
            return False
        mine, theirs = self._ref(), other._ref()
        return mine is not None and (mine is theirs or (theirs is not None and bool(mine == theirs)))

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        value = self._ref()
        return "a deleted object" if value is None else repr(value)


Leaf = TensorLeaf | VariableLeaf | ValueLeaf | ObjectLeaf


def static_leaf(value: Any) -> ValueLeaf | ObjectLeaf:
    """The leaf of an argument that is neither tensor nor variable."""
    return ValueLeaf(exact(value), value) if _has_exact_key(value) else ObjectLeaf(value)


def _has_exact_key(value: Any) -> bool:
    """Whether ``value`` is determined by its type and bits, so that its key can store it."""
    kind = type(value)
    if kind in _PLAIN or isinstance(value, Number):
        return True
    return kind in _CONTAINERS and all(map(_has_exact_key, value))


def variable_leaf(variable: AbstractVariable, aliases: dict[int, int]) -> VariableLeaf:
    """The leaf of a variable; its number is added to ``aliases``, the numbers of variables by id."""
    alias = aliases.setdefault(id(variable), len(aliases))
    return VariableLeaf(TensorSpec.of(variable.shape, variable.dtype), variable.trainable, alias)


def _reference(value: Any) -> Callable[[], Any]:
    """A weak reference if the type supports them, else a strong one."""
    if isinstance(value, MethodType):
        return weakref.WeakMethod(value)
    try:
        return weakref.ref(value)
    except TypeError:
        return lambda: value
