"""``ExtensionTypeSpec``: the base of the specs of extension types."""

from __future__ import annotations

import inspect
import itertools
from abc import ABCMeta
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final

from dualflow.core.composite_tensor import CompositeTensor
from dualflow.core.dispatch import TENSORS, AbstractComposite
from dualflow.core.errors import MissingAttributeError
from dualflow.core.shape import UNKNOWN_RANK, Shape
from dualflow.core.spec import TensorSpec
from dualflow.core.tracebacks import entry
from dualflow.core.type_spec import TypeSpec
from dualflow.ops.extension_types.fields import (
    construct,
    convert_fields,
    declaration_of,
    freeze,
    is_frozen,
)
from dualflow.ops.extension_types.immutable_mapping import ImmutableMapping

_PLACEHOLDER: Final = TensorSpec((), "bool", "placeholder")
"""The value of a skeleton in place of the spec of each component."""
_COMPONENTS: Final = (*TENSORS, AbstractComposite, TypeSpec)


class CompletingMeta(ABCMeta):
    """The metaclass of extension types and of their specs: converts, checks and freezes new instances."""

    @property
    def __signature__(cls) -> inspect.Signature:
        """The parameters of the constructor, which ``inspect.signature`` reads."""
        constructor: Any = cls.__init__  # type: ignore[misc]  # of the class itself
        if constructor.__module__ != __package__ and not constructor.__module__.startswith(f"{__package__}."):
            parameters = list(inspect.signature(constructor).parameters.values())
            return inspect.Signature(parameters[1:])
        return declaration_of(getattr(cls, "value_type", cls)).signature

    @entry
    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        instance = super().__call__(*args, **kwargs)
        instance._complete()
        return instance


class ExtensionTypeSpec(TypeSpec, metaclass=CompletingMeta):
    """The spec of an extension type: its fields, with specs in place of tensors.

    Each extension type has a subclass of it as its attribute ``Spec``, whose constructor takes the fields.

    >>> import dualflow as df
    >>> class Interval(df.experimental.ExtensionType):
    ...     low: df.Tensor
    ...     high: df.Tensor
    ...     unit: str = "m"
    >>> Interval.Spec(low=df.TensorSpec([2]), high=df.TensorSpec([2]), unit="m").low
    TensorSpec(shape=(2,), dtype=tf.float32, name=None)
    >>> df.type_spec_from_value(Interval([1.0, 2.0], 3.0)).high
    TensorSpec(shape=(), dtype=tf.float32, name=None)
    """

    __slots__ = ("_tf_extension_type_frozen",)
    value_type: ClassVar[Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        construct(self, self.value_type, args, kwargs)

    @classmethod
    def from_value(cls, value: CompositeTensor) -> Any:
        """The spec of an existing value.

        Args:
            value: an instance of the extension type.
        """
        return from_fields(cls, {name: spec_of_part(part) for name, part in vars(value).items()})

    def _complete(self) -> None:
        convert_fields(self, declaration_of(self.value_type).spec_fields)
        freeze(self)

    def _serialize(self) -> Any:
        return tuple(
            [(field.name, vars(self)[field.name]) for field in declaration_of(self.value_type).fields]
        )

    @classmethod
    def _deserialize(cls, serialization: Any) -> Any:
        return from_fields(cls, dict(serialization))

    @property
    def _component_specs(self) -> Any:
        return [part for _, part in _components(vars(self), "")]

    def _component_names(self, count: int) -> Sequence[str]:
        return [name for name, _ in _components(vars(self), "")]

    def _to_components(self, value: Any) -> Any:
        return [part for _, part in _components(vars(value), "")]

    def _from_components(self, components: Any) -> Any:
        return from_fields(self.value_type, fields_with_components(self, components))

    def _with_component_specs(self, specs: Any) -> Any:
        return from_fields(type(self), fields_with_components(self, specs))

    def _skeleton(self) -> Any:
        return from_fields(type(self), fields_with_components(self, itertools.repeat(_PLACEHOLDER)))

    def _batched(self, size: int | None) -> Any:
        """The skeleton of a batch: its shapes have one more axis."""
        return self._with_shapes(Shape([size]).concatenate)

    def _unbatched(self) -> Any:
        """The skeleton of an element of a batch."""
        return self._with_shapes(lambda shape: shape if shape is UNKNOWN_RANK else Shape(shape[1:]))

    def _with_shapes(self, function: Callable[[Shape], Shape]) -> Any:
        fields = vars(self).items()
        return from_fields(type(self), {name: _replaced(part, function, Shape) for name, part in fields})

    @property
    def _can_be_batched(self) -> bool:
        return bool(self.value_type._is_batchable)

    @entry
    def __setattr__(self, name: str, value: Any) -> None:
        if is_frozen(self) or not any(field.name == name for field in declaration_of(self.value_type).fields):
            raise MissingAttributeError(
                f"{type(self).__qualname__} is immutable, and has no attributes other than the fields; "
                f"create another one instead of assigning {name!r}.",
                name=name,
            )
        super().__setattr__(name, value)

    def __reduce__(self) -> Any:
        return from_fields, (type(self), dict(vars(self)))

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={part!r}" for name, part in vars(self).items())
        return f"{type(self).__qualname__}({fields})"


def from_fields(kind: Any, fields: Mapping[str, Any]) -> Any:
    """The instance of an extension type, or of its ``Spec``, with these fields: no constructor, no checks."""
    instance: Any = object.__new__(kind)
    vars(instance).update(fields)
    freeze(instance)
    return instance


def fields_with_components(spec: ExtensionTypeSpec, components: Iterable[Any]) -> dict[str, Any]:
    """The fields of a spec by name, with these values in place of its components."""
    following = iter(components)
    return {name: _replaced(part, lambda _: next(following)) for name, part in vars(spec).items()}


def spec_of_part(part: Any) -> Any:
    """A part of a field with specs in place of tensors."""
    return _replaced(part, lambda x: x if isinstance(x, TypeSpec) else _component_spec(x))


def _component_spec(x: Any) -> Any:
    return x._type_spec if isinstance(x, CompositeTensor) else TensorSpec.of(x.shape, x.dtype)


def _replaced(part: Any, function: Callable[[Any], Any], kinds: Any = _COMPONENTS) -> Any:
    """A part of a field with the results of ``function`` in place of the instances of ``kinds`` in it.

    These are by default its components. They are replaced from left to right.
    """
    if isinstance(part, kinds):
        return function(part)
    if type(part) is tuple:
        return tuple([_replaced(x, function, kinds) for x in part])
    if isinstance(part, ImmutableMapping):
        return ImmutableMapping([(key, _replaced(x, function, kinds)) for key, x in part.items()])
    return part


def _components(part: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The path and the component of each tensor, composite or spec in a field, or in a dict of fields."""
    if isinstance(part, _COMPONENTS):
        yield path, part
    elif type(part) is tuple:
        for i, x in enumerate(part):
            yield from _components(x, f"{path}[{i}]")
    elif isinstance(part, ImmutableMapping):
        for key, x in part.items():
            yield from _components(x, f"{path}[{key!r}]")
    elif type(part) is dict:
        for name, x in part.items():
            yield from _components(x, name)
