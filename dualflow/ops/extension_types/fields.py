"""The fields of extension types: which a class declares, and how a constructor sets them."""

from __future__ import annotations

import contextlib
import inspect
import sys
import typing
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, Final
from weakref import WeakValueDictionary

from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.own_files import OWN_FILES
from dualflow.core.records import NamedTuple
from dualflow.ops.extension_types.field_types import ExtensionField, check_annotation
from dualflow.ops.extension_types.registered_names import register

_DECLARATION: Final = "_tf_extension_type_declaration"
_ROOT: Final = "_tf_extension_type_root"
"""The attribute of ExtensionType, whose module imports this one, that its subclasses inherit."""
_SCOPE: Final = "_tf_extension_type_scope"
"""The names of the block that defines a class, until its annotations are resolved."""
_FROZEN: Final = "_tf_extension_type_frozen"
_RESERVED: Final = ("Spec", "_type_spec")
_classes: Final[WeakValueDictionary[str, type]] = WeakValueDictionary()
"""The extension types by name, for annotations that name one which is defined later or in a function."""


class Declaration(NamedTuple):
    """What an extension type declares.

    Attributes:
        fields: the fields of its instances, those of its bases first.
        spec_fields: the same fields of its specs.
        signature: the parameters of its constructor and of that of its specs: a field each.
    """

    fields: tuple[ExtensionField, ...]
    spec_fields: tuple[ExtensionField, ...]
    signature: inspect.Signature


def declare(kind: Any) -> None:
    """Check the annotations of a new extension type, and make its name known to annotations of others.

    Annotations that are strings may name what the block that defines the class has.

    Raises:
        DTypeError: a field has a type that no field can have.
        InvalidArgumentError: a field has a reserved name, or no default although one before it has; the name
            of the class in files is that of another.
    """
    _classes[kind.__name__] = kind
    register(kind)
    for name in inspect.get_annotations(kind):
        if name in _RESERVED or name.startswith("_tf_extension_type"):
            raise InvalidArgumentError(
                f"{kind.__name__}: the name {name!r} is reserved for extension types; rename the field."
            )
    frame: Any = sys._getframe(1)  # of the block that defines the class, after the frames of dualflow
    while frame.f_code.co_filename.startswith((OWN_FILES[0], "<frozen ")):
        frame = frame.f_back
    type.__setattr__(kind, _SCOPE, {**frame.f_globals, **frame.f_locals})
    with contextlib.suppress(NameError):  # an annotation names a class that is defined later
        declaration_of(kind)


def declaration_of(kind: Any) -> Declaration:
    """The declaration of an extension type, which is computed once.

    Raises:
        NameError: an annotation names something that is not defined.
    """
    declaration: Declaration | None = vars(kind).get(_DECLARATION)
    if declaration is None:
        declaration = _declaration(kind)
        type.__setattr__(kind, _DECLARATION, declaration)
        if _SCOPE in vars(kind):  # the names that its annotations needed, and the objects they refer to
            type.__delattr__(kind, _SCOPE)
    return declaration


def _declaration(kind: Any) -> Declaration:
    annotations: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        if hasattr(base, _ROOT) and _ROOT not in vars(base):  # a subclass of ExtensionType
            annotations.update(_resolved(base) if base is kind else _own_types(base))
    for name, annotation in annotations.items():
        check_annotation(annotation, name, kind.__name__)
    fields = [ExtensionField(name, annotation, kind.__name__) for name, annotation in annotations.items()]
    of_spec = [ExtensionField(name, x, f"{kind.__name__}.Spec", True) for name, x in annotations.items()]
    return Declaration(tuple(fields), tuple(of_spec), _signature(kind, list(annotations)))


def _own_types(kind: Any) -> dict[str, Any]:
    """The resolved types of the fields that a class declares itself, by name; without inherited ones."""
    own = inspect.get_annotations(kind)
    return {x.name: x.annotation for x in declaration_of(kind).fields if x.name in own}


def _resolved(kind: Any) -> dict[str, Any]:
    """The annotations of a class itself, with classes in place of their names."""
    own = SimpleNamespace(__annotations__=inspect.get_annotations(kind))
    module = sys.modules.get(kind.__module__)
    names = {**_classes, **(vars(module) if module is not None else {})}
    return typing.get_type_hints(own, names, {**vars(kind).get(_SCOPE, {}), kind.__name__: kind})


def _signature(kind: Any, names: Sequence[str]) -> inspect.Signature:
    """The parameters of the constructor: a field each.

    Raises:
        InvalidArgumentError: a field without a default follows one with a default.
    """
    parameter = inspect.Parameter
    parameters = [
        parameter(name, parameter.POSITIONAL_OR_KEYWORD, default=_default(kind, name)) for name in names
    ]
    try:
        return inspect.Signature(parameters)
    except ValueError as error:
        raise InvalidArgumentError(
            f"{kind.__name__}: {error}; put fields with defaults after those without."
        ) from None


def _default(kind: Any, name: str) -> Any:
    """The default of a field, which a class sets as an attribute; ``Parameter.empty`` if it has none."""
    for base in kind.__mro__:
        if name in inspect.get_annotations(base):
            return vars(base).get(name, inspect.Parameter.empty)
    return inspect.Parameter.empty


def construct(instance: Any, kind: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Set the fields of a new value or spec from the arguments of its constructor.

    Raises:
        DTypeError: the arguments are not the fields.
    """
    try:
        bound = declaration_of(kind).signature.bind(*args, **kwargs)
    except TypeError as error:
        raise DTypeError(f"{type(instance).__qualname__}: {error}; pass each field.") from None
    bound.apply_defaults()
    vars(instance).update(bound.arguments)


def convert_fields(instance: Any, fields: Sequence[ExtensionField]) -> None:
    """Convert the fields that a constructor has set, and put them into the order of their declaration.

    Raises:
        DTypeError: a field is not set, or its value can't be converted.
    """
    values = vars(instance)
    for field in fields:
        if field.name not in values:
            raise DTypeError(
                f"The constructor of {type(instance).__qualname__} does not set the field {field.name!r}; "
                "assign it."
            )
        values[field.name] = field.convert(values.pop(field.name))


def freeze(instance: Any) -> None:
    """Make an instance immutable."""
    object.__setattr__(instance, _FROZEN, True)


def is_frozen(instance: Any) -> bool:
    """Whether an instance is immutable: its constructor has returned."""
    return hasattr(instance, _FROZEN)
