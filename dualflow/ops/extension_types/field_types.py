"""The types of the fields of extension types: checks and conversions by the annotation of a field.

A field of a value holds tensors, composites and Python values; the same field of the spec holds the specs of
these tensors and composites, and the same Python values.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any, Final

from dualflow.core.dispatch import TENSORS, AbstractComposite, AbstractTensor, AbstractVariable
from dualflow.core.dtypes import DType, as_dtype
from dualflow.core.errors import DTypeError, DualflowError
from dualflow.core.records import dataclass
from dualflow.core.shape import Shape, as_shape
from dualflow.core.spec import TensorSpec
from dualflow.core.type_spec import TypeSpec
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.extension_types.immutable_mapping import ImmutableMapping

_PLAIN: Final = (bool, int, float, str, bytes, type(None))
_UNIONS: Final = (typing.Union, types.UnionType)
_MAPPINGS: Final = (Mapping, dict)
_KEYS: Final = (Shape, DType)
"""Classes of keys of mappings, next to the plain ones."""
_CLASSES: Final = (*TENSORS, AbstractComposite, TypeSpec, *_KEYS)
"""Classes of fields, next to the plain ones."""


@dataclass(frozen=True, slots=True)
class ExtensionField:
    """A field of an extension type.

    Attributes:
        name: its name.
        annotation: its type.
        owner: the name of the extension type, for errors.
        of_spec: whether it is converted for a spec rather than for a value.
    """

    name: str
    annotation: Any
    owner: str
    of_spec: bool = False

    def convert(self, value: Any) -> Any:
        """``value`` converted to the type of the annotation.

        Raises:
            DTypeError: it can't be converted.
        """
        return _converted(value, self.annotation, self)

    def error(self, value: Any, expected: Any, reason: str = "") -> DTypeError:
        """The error for a value that is not of the expected type."""
        return DTypeError(
            f"{self.owner}: the field {self.name!r} of type {_shown(expected)} can't hold {value!r}"
            f"{': ' + reason.removesuffix('.') if reason else ''}. Pass a value of this type, or annotate "
            "the field with another."
        )


def check_annotation(annotation: Any, field: str, owner: str, *, is_key: bool = False) -> None:
    """Raise an error for a type that no field can have, or with ``is_key`` no key of a mapping.

    Raises:
        DTypeError: it is such a type.
    """
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    is_tuple = origin is tuple and annotation is not typing.Tuple  # noqa: UP006  # which has no types
    if origin in _UNIONS or is_tuple:
        for argument in arguments:
            if argument is not Ellipsis:
                check_annotation(argument, field, owner, is_key=is_key)
        return
    if origin in _MAPPINGS and arguments and not is_key:
        check_annotation(arguments[0], field, owner, is_key=True)
        check_annotation(arguments[1], field, owner)
        return
    if origin is typing.Literal or annotation in (None, *_PLAIN):
        return
    if isinstance(annotation, type) and issubclass(annotation, _KEYS if is_key else _CLASSES):
        return
    if isinstance(annotation, TypeSpec) and not is_key:
        return
    if is_key:
        raise DTypeError(
            f"{owner}: the field {field!r} is a mapping with keys of the type {_shown(annotation)}, which no "
            "key can have: keys are of type int, float, bool, str, bytes, None, TensorShape or DType, or a "
            "Tuple, Union or Literal of these."
        )
    raise DTypeError(
        f"{owner}: the field {field!r} has the type {_shown(annotation)}, which no field can have: a field "
        "is a tensor, an extension type, a ragged or sparse tensor, an int, float, bool, str or bytes, None, "
        "a TensorShape, a DType, or a Tuple, Mapping, Union, Optional or Literal of these."
    )


def _shown(annotation: Any) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation).replace("typing.", "")


def _converted(value: Any, annotation: Any, field: ExtensionField) -> Any:
    """``value`` converted to a type."""
    origin = typing.get_origin(annotation)
    if origin in _UNIONS:
        return _converted_by_one(value, typing.get_args(annotation), annotation, field)
    if origin is tuple:
        return _converted_tuple(value, typing.get_args(annotation), annotation, field)
    if origin in _MAPPINGS:
        return _converted_mapping(value, typing.get_args(annotation), annotation, field)
    if origin is typing.Literal:
        if any(value == choice and type(value) is type(choice) for choice in typing.get_args(annotation)):
            return value
        raise field.error(value, annotation)
    if isinstance(annotation, TypeSpec):
        return _converted_to_spec(value, annotation, field)
    return _converted_to_class(value, type(None) if annotation is None else annotation, field)


def _converted_to_class(value: Any, kind: type, field: ExtensionField) -> Any:
    if issubclass(kind, AbstractTensor | AbstractVariable):
        return _tensor(value, kind, field)
    if issubclass(kind, Shape):
        return _called(as_shape, value, kind, field)
    if issubclass(kind, DType):
        return _called(as_dtype, value, kind, field)
    if issubclass(kind, AbstractComposite) and field.of_spec:
        if _is_spec_of(value, kind):
            return value
        raise field.error(value, kind, "a spec holds the spec of a field that holds tensors")
    if not isinstance(value, kind):
        raise field.error(value, kind)
    return value


def _called(function: Any, value: Any, kind: Any, field: ExtensionField) -> Any:
    """``function(value)``; its error names the field."""
    try:
        return function(value)
    except DualflowError as error:
        raise field.error(value, kind, error.message) from None


def _tensor(value: Any, kind: TensorSpec | type, field: ExtensionField) -> Any:
    """A tensor of a spec or of a class, or the spec of a tensor."""
    spec = kind if isinstance(kind, TensorSpec) else None
    if field.of_spec and not isinstance(value, TensorSpec):
        raise field.error(value, TensorSpec if spec is None else spec)
    if isinstance(value, TensorSpec):  # also of a value, if it describes an argument or a result by specs
        converted: Any = value
    else:
        dtype = None if spec is None else spec.dtype
        converted = _called(lambda x: convert_to_tensor(x, dtype), value, kind, field)
    if spec is not None and not (
        converted.dtype is spec.dtype and spec.shape.is_compatible_with(converted.shape)
    ):
        raise field.error(value, spec)
    return converted


def _converted_to_spec(value: Any, spec: TypeSpec, field: ExtensionField) -> Any:
    """A value of a spec, or a spec that is compatible with it."""
    if isinstance(spec, TensorSpec):
        return _tensor(value, spec, field)
    if field.of_spec is isinstance(value, TypeSpec) and spec.is_compatible_with(value):
        return value
    raise field.error(value, spec)


def _converted_by_one(value: Any, choices: Sequence[Any], annotation: Any, field: ExtensionField) -> Any:
    """``value`` as the first type of a union that it is of already, else as the first that converts it."""
    for choice in choices:
        if _is_of(value, choice, field.of_spec):
            return _converted(value, choice, field)
    for choice in choices:
        try:
            return _converted(value, choice, field)
        except DTypeError:
            continue
    raise field.error(value, annotation)


def _is_of(value: Any, choice: Any, of_spec: bool) -> bool:
    """Whether a value is of a class already, without a conversion."""
    if not isinstance(choice, type | None):
        return False
    kind = type(None) if choice is None else choice
    if of_spec and issubclass(kind, TENSORS):
        return isinstance(value, TensorSpec)
    if of_spec and issubclass(kind, AbstractComposite):
        return _is_spec_of(value, kind)
    return isinstance(value, kind) and not (kind is int and isinstance(value, bool))


def _is_spec_of(value: Any, kind: type) -> bool:
    """Whether a value is the spec of composites of a class."""
    return isinstance(value, TypeSpec) and issubclass(value.value_type, kind)


def _converted_tuple(
    value: Any, kinds: Sequence[Any], annotation: Any, field: ExtensionField
) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple) or isinstance(value, Shape):
        raise field.error(value, annotation)
    if len(kinds) == 2 and kinds[1] is Ellipsis:
        kinds = [kinds[0]] * len(value)
    if len(kinds) != len(value):
        raise field.error(value, annotation, f"it has {len(value)} items")
    return tuple([_converted(x, kind, field) for x, kind in zip(value, kinds, strict=True)])


def _converted_mapping(
    value: Any, kinds: Sequence[Any], annotation: Any, field: ExtensionField
) -> ImmutableMapping:
    if not isinstance(value, Mapping):
        raise field.error(value, annotation)
    try:
        keys = [_converted(key, kinds[0], field) for key in value]
    except DTypeError:
        raise field.error(value, annotation, "it has other keys") from None
    parts = [_converted(x, kinds[1], field) for x in value.values()]
    return ImmutableMapping(zip(keys, parts, strict=True))
