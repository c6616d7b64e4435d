"""``TypeSpec``: the description of a composite, such as a ragged tensor or a class of a program's own.

A composite is a tree (:mod:`dualflow.core.tree`) whose kind is a structure: what is not a tensor. Classes
outside dualflow define that by a subclass of TypeSpec, whose methods take a value apart and rebuild it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from dualflow.core.dispatch import TENSORS, AbstractComposite
from dualflow.core.dtypes import DType
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.records import dataclass
from dualflow.core.shape import UNKNOWN_RANK, Shape
from dualflow.core.trace_type import TraceType
from dualflow.core.tree import Structure, flatten, unflatten

Tree = tuple[Any, tuple[str, ...], list[Any]]


class TypeSpec(TraceType):
    """The description of a value: its class and everything that does not depend on the values of its tensors.

    Specs of dualflow are subclasses: TensorSpec, RaggedTensorSpec, SparseTensorSpec and others. A class of a
    program's own, which is no :class:`~dualflow.experimental.ExtensionType`, is a composite if its property
    ``_type_spec`` returns a subclass of TypeSpec that defines

    * ``value_type``: the class of the values;
    * ``_serialize()``: a tuple of what the spec consists of: shapes, dtypes, specs, Python values;
    * ``_component_specs``: a structure of the specs of the tensors;
    * ``_to_components(value)``: the tensors of a value in the same structure;
    * ``_from_components(components)``: the value with these tensors.

    Two specs are equal if their classes and what they serialize to are.

    >>> import dualflow as df
    >>> df.TensorSpec([None, 3]).is_compatible_with(df.TensorSpec([2, 3]))
    True
    >>> df.TensorSpec([2, 3]).most_specific_common_supertype([df.TensorSpec([4, 3])])
    TensorSpec(shape=(None, 3), dtype=tf.float32, name=None)
    """

    __slots__ = ()
    value_type: ClassVar[Any] = AbstractComposite
    """The class of the values."""

    def _serialize(self) -> Any:
        raise self._undefined("_serialize")

    @property
    def _component_specs(self) -> Any:
        raise self._undefined("_component_specs")

    def _to_components(self, value: Any) -> Any:
        raise self._undefined("_to_components")

    def _from_components(self, components: Any) -> Any:
        raise self._undefined("_from_components")

    def _undefined(self, name: str) -> NotImplementedError:
        return NotImplementedError(f"{type(self).__name__} defines no {name}; every TypeSpec needs it.")

    # Specs of TensorFlow Probability call these two by their mangled names.

    @staticmethod
    def __is_compatible(a: Any, b: Any) -> bool:
        return _is_compatible(a, b)

    @staticmethod
    def __make_cmp_key(value: Any) -> Any:
        return _key(value)

    @classmethod
    def _deserialize(cls, serialization: Any) -> Any:
        """The spec that ``_serialize`` turned into this tuple."""
        return cls(*serialization)

    def is_compatible_with(self, spec_or_value: object) -> bool:
        """Whether a value, or a value of another spec, can be one of this spec.

        Args:
            spec_or_value: a value or a spec.
        """
        spec = _spec_of(spec_or_value)
        return type(spec) is type(self) and _is_compatible(self._serialize(), spec._serialize())

    def is_subtype_of(self, other: object) -> bool:
        """Whether all values of this spec are values of ``other``.

        Args:
            other: another spec.
        """
        return type(other) is type(self) and _is_subtype(self._serialize(), other._serialize())

    def most_specific_common_supertype(self, others: Sequence[TraceType]) -> Any:
        """The most specific spec of which this one and all others are subtypes; None if there is none.

        Args:
            others: other specs.
        """
        serialized = self._serialize()
        for other in others:
            if type(other) is not type(self):
                return None
            serialized = _supertype(serialized, other._serialize())
            if serialized is _NONE:
                return None
        return self._deserialize(serialized)

    def most_specific_compatible_type(self, other: TraceType) -> Any:
        """As :meth:`most_specific_common_supertype` of one other spec.

        Args:
            other: another spec.

        Raises:
            InvalidArgumentError: there is none.
        """
        common = self.most_specific_common_supertype([other])
        if common is None:
            raise InvalidArgumentError(f"No TypeSpec is compatible with both {self!r} and {other!r}.")
        return common

    def placeholder_value(self, placeholder_context: object) -> Any:
        """A spec is its own placeholder: a trace replaces the specs of tensors by symbolic tensors.

        Args:
            placeholder_context: reserved.
        """
        return self

    def __tree__(self) -> Tree:
        """The specs of the tensors, in the structure of a value."""
        return self._tree(self._component_specs)

    def _tree(self, components: Any) -> Tree:
        """The tree of these components: tensors of a value, or their specs."""
        leaves, structure = flatten(components, _is_component)
        return SpecStructure(self._skeleton(), structure), tuple(self._component_names(len(leaves))), leaves

    def _component_names(self, count: int) -> Sequence[str]:
        """The names of the components in printed graphs."""
        return [f"component{i}" for i in range(count)]

    def _skeleton(self) -> Any:
        """The part of the spec on which the structure of a value depends."""
        return self

    @property
    def _can_be_batched(self) -> bool:
        return False

    def _with_component_specs(self, specs: Any) -> Any:
        """The spec with other specs of its tensors."""
        if specs == self._component_specs:
            return self
        raise DTypeError(
            f"{self!r} describes tensors of {self._component_specs!r}, not of {specs!r}; give values of one "
            "shape."
        )

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and _key(self._serialize()) == _key(other._serialize())

    def __hash__(self) -> int:
        return hash((type(self), _key(self._serialize())))

    def __repr__(self) -> str:
        parts = self._serialize()
        if isinstance(parts, tuple):
            return f"{type(self).__name__}{parts!r}"
        return f"{type(self).__name__}({parts!r})"


class BatchableTypeSpec(TypeSpec):
    """The base of specs whose values can be batched: of programs that define ``_batch`` and ``_unbatch``."""

    __slots__ = ()

    def _batch(self, batch_size: int | None) -> Any:
        raise self._undefined("_batch")

    def _unbatch(self) -> Any:
        raise self._undefined("_unbatch")

    def _batched(self, size: int | None) -> Any:
        return self._batch(size)

    def _unbatched(self) -> Any:
        return self._unbatch()

    @property
    def _can_be_batched(self) -> bool:
        return True


class TreeSpec(TypeSpec):
    """The base of specs of dualflow's own composites, which have a method ``__tree__`` as their specs do."""

    __slots__ = ()

    @property
    def _component_specs(self) -> Any:
        return self.__tree__()[2]

    def _to_components(self, value: Any) -> Any:
        return value.__tree__()[2]

    def _from_components(self, components: Any) -> Any:
        kind, names, _ = self.__tree__()
        return kind(**dict(zip(names, components, strict=True)))

    def __tree__(self) -> Tree:
        """The specs of the tensors, in the structure of the composite."""
        raise self._undefined("__tree__")


@dataclass(frozen=True, slots=True)
class SpecStructure:
    """The structure of a composite with a TypeSpec: the spec, and the structure of its components."""

    spec: Any
    components: Structure
    is_immutable: ClassVar = True

    @property
    def can_be_stacked(self) -> bool:
        """Whether stacks of the components of several values, and their rows, are values too."""
        return bool(self.spec._can_be_batched)

    def batched(self, size: int | None) -> SpecStructure:
        """The structure of a batch of such values."""
        return SpecStructure(self.spec._batched(size), self.components)

    def unbatched(self) -> SpecStructure:
        """The structure of an element of such a batch."""
        return SpecStructure(self.spec._unbatched(), self.components)

    @property
    def __name__(self) -> str:
        return str(getattr(self.spec.value_type, "__name__", type(self.spec).__name__))

    def __call__(self, **components: Any) -> Any:
        """The value of these components; if these are specs, its spec."""
        parts = list(components.values())
        tree = unflatten(self.components, parts)
        if parts and all(isinstance(x, TypeSpec) for x in parts):
            return self.spec._with_component_specs(tree)
        return self.spec._from_components(tree)

    def serves(self, other: object) -> bool:
        """Whether a trace for this structure serves arguments of the structure ``other``."""
        return isinstance(other, SpecStructure) and bool(other.spec.is_subtype_of(self.spec))


def _is_component(value: Any) -> bool:
    return isinstance(value, (*TENSORS, AbstractComposite, TypeSpec))


def _spec_of(value: object) -> Any:
    return getattr(value, "_type_spec", None) if isinstance(value, AbstractComposite) else value


_NONE: Final = object()
"""The result of :func:`_supertype` where there is none."""


def _key(part: Any) -> Any:
    """A part of a serialized spec as a value that can be hashed; equal parts have equal keys."""
    if isinstance(part, Shape | DType | TypeSpec):
        return part
    if isinstance(part, list | tuple):
        return type(part), tuple([_key(x) for x in part])
    if isinstance(part, Mapping):
        return tuple([(name, _key(part[name])) for name in sorted(part)])
    return type(part), repr(part) if isinstance(part, float) else part


def _children(a: Any, b: Any) -> list[tuple[Any, Any]] | None:
    """The pairs of parts of two containers of the same kind and length; None for other values."""
    if isinstance(a, list | tuple) and type(a) is type(b) and len(a) == len(b):
        return list(zip(a, b, strict=True))
    if isinstance(a, Mapping) and isinstance(b, Mapping) and a.keys() == b.keys():
        return [(a[name], b[name]) for name in a]
    return None


def _is_compatible(a: Any, b: Any) -> bool:
    if isinstance(a, Shape):
        return isinstance(b, Shape) and a.is_compatible_with(b)
    if isinstance(a, TypeSpec):
        return isinstance(b, TypeSpec) and a.is_compatible_with(b)
    pairs = _children(a, b)
    return _key(a) == _key(b) if pairs is None else all(_is_compatible(x, y) for x, y in pairs)


def _is_subtype(a: Any, b: Any) -> bool:
    if isinstance(a, Shape) and isinstance(b, Shape):
        if UNKNOWN_RANK in (a, b):
            return b is UNKNOWN_RANK
        return len(a) == len(b) and all(y is None or x == y for x, y in zip(a, b, strict=True))
    if isinstance(a, TypeSpec):
        return a.is_subtype_of(b)
    pairs = _children(a, b)
    return _key(a) == _key(b) if pairs is None else all(_is_subtype(x, y) for x, y in pairs)


def _supertype(a: Any, b: Any) -> Any:
    """The most specific part of which both are subtypes; ``_NONE`` if there is none."""
    if isinstance(a, Shape) and isinstance(b, Shape):
        return a.most_specific_compatible_shape(b)
    if isinstance(a, TypeSpec):
        common = a.most_specific_common_supertype([b])
        return _NONE if common is None else common
    pairs = _children(a, b)
    if pairs is None:
        return a if _key(a) == _key(b) else _NONE
    parts = [_supertype(x, y) for x, y in pairs]
    if any(part is _NONE for part in parts):
        return _NONE
    kind: Any = type(a)
    if isinstance(a, Mapping):
        return kind(list(zip(a, parts, strict=True)))
    return kind(*parts) if hasattr(a, "_fields") else kind(parts)
