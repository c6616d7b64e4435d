"""What a trace depends on in each argument: a tensor's shape and dtype, a Python value itself.

Two calls share a trace when their arguments have the same structure and equal leaves.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable
from types import MethodType
from typing import Any, Final

from dualflow.core.dispatch import AbstractVariable
from dualflow.core.dtypes import DType
from dualflow.core.errors import DTypeError
from dualflow.core.records import dataclass, field
from dualflow.core.spec import TensorSpec
from dualflow.graph.exact_equality import exact

_PLAIN: Final = frozenset({bool, int, float, complex, str, bytes, DType, type(...)})


@dataclass(frozen=True, slots=True)
class TensorLeaf:
    """A tensor or array: any of this shape and dtype."""

    spec: TensorSpec

    def __str__(self) -> str:
        return str(self.spec)


@dataclass(frozen=True, slots=True)
class VariableLeaf:
    """A variable: any of this spec, where ``alias`` numbers the distinct variables among the arguments."""

    spec: TensorSpec
    trainable: bool
    alias: int

    def __str__(self) -> str:
        return f"variable {self.spec}" + (f" (the same as variable {self.alias})" if self.alias else "")


@dataclass(frozen=True, slots=True)
class ValueLeaf:
    """A Python value, type for type and bit for bit."""

    key: Hashable
    value: Any = field(compare=False)

    def __str__(self) -> str:
        return repr(self.value)


class ObjectLeaf:
    """Any other object: an equal one of its type, for as long as this one lives.

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
                f"{type(value).__name__} has no hash, so calls with it can't be told apart. Pass a tuple, a "
                "tensor, or an object with __eq__ and __hash__."
            ) from None
        self._kind = type(value)
        self._ref = _reference(value)

    @property
    def value(self) -> Any:
        """The object, None once it is gone."""
        return self._ref()

    def watch(self, gone: Callable[[], None]) -> object:
        """A handle that calls ``gone`` when the object dies, for as long as the handle lives."""
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
    """The leaf of an argument that is no tensor."""
    return ValueLeaf(exact(value), value) if type(value) in _PLAIN else ObjectLeaf(value)


def variable_leaf(variable: AbstractVariable, seen: dict[int, int]) -> VariableLeaf:
    """The leaf of a variable; ``seen`` numbers the distinct ones met so far."""
    alias = seen.setdefault(id(variable), len(seen))
    return VariableLeaf(TensorSpec.of(variable.shape, variable.dtype), variable.trainable, alias)


def _reference(value: Any) -> Callable[[], Any]:
    """A weak reference where the type has them, else one that keeps the object."""
    if isinstance(value, MethodType):
        return weakref.WeakMethod(value)
    try:
        return weakref.ref(value)
    except TypeError:
        return lambda: value
