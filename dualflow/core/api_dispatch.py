"""Dispatch of functions of tensors to functions of the program, by the types of their arguments.

``dispatch_for_api`` and its like register targets. A function of ops looks for one only while at least one
is registered; a target is called if all its types match, and one of these arguments is a composite.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Any, Final, TypeVar

from dualflow.core import dispatch
from dualflow.core.composite_rules import RULES, CompositeError
from dualflow.core.dispatch import AbstractComposite
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.records import dataclass

F = TypeVar("F", bound=Callable[..., Any])


class TypeMatch(IntEnum):
    """How a value matches a type."""

    NONE = 0
    VALUE = 1
    COMPOSITE = 2


@dataclass(frozen=True, slots=True)
class DispatchTarget:
    """A function of the program to which calls of another one are dispatched.

    Attributes:
        function: the function.
        annotations: the types of parameters of the other function, by name.
        parameters: the signature of the other function.
        keeps_name: whether it takes the parameter ``name``.
    """

    function: Callable[..., Any]
    annotations: Mapping[str, Any]
    parameters: inspect.Signature
    keeps_name: bool

    def bound(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> inspect.BoundArguments | None:
        """The arguments of a call, if this target computes it."""
        try:
            call = self.parameters.bind(*args, **kwargs)
        except TypeError:
            return None
        values = [(call.arguments.get(name), kind) for name, kind in self.annotations.items()]
        if not matches_all(values):
            return None
        if not self.keeps_name:
            call.arguments.pop("name", None)
        return call


@dataclass(frozen=True, slots=True)
class Handler:
    """A function of the program that computes all elementwise functions of arguments of some types."""

    function: Callable[..., Any]
    types: tuple[Any, ...]


TARGETS: Final[dict[Any, list[DispatchTarget]]] = {}
"""The targets of each function, or of its op."""
UNARY: Final[list[Handler]] = []
"""The handlers of elementwise functions of one argument."""
BINARY: Final[list[Handler]] = []
"""The handlers of elementwise functions of two arguments."""
ASSERTIONS: Final[list[Handler]] = []
"""The handlers of assertions about the elements of two arguments."""
ACTIVE: Final[list[Callable[..., Any]]] = []
"""All functions that are registered. Functions of ops look for a target only if there is one."""

FUNCTIONS: Final[dict[str, Any]] = {}
"""The function of each elementwise op, by the name of the op."""
ELEMENTWISE_FUNCTIONS: Final[set[Callable[..., Any]]] = set()
"""Elementwise functions of the first argument that are no op's public function, such as ``cast``."""
COMPARING_ASSERTIONS: Final[set[Callable[..., Any]]] = set()
"""The assertions about the elements of two arguments."""


def dispatches(function: F) -> F:
    """Mark a function that looks for targets."""
    function.__dispatches__ = True  # type: ignore[attr-defined]  # which registrations read
    return function


def dispatched(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Callable[[], Any] | None:
    """A function that computes a call of a function of ops instead of it; None if no target takes it."""
    call = _call_of_target(function, args, kwargs)
    if call is not None:
        return call
    if function in ELEMENTWISE_FUNCTIONS:
        return _handled(function, UNARY, 1, args, kwargs)
    if function in COMPARING_ASSERTIONS:
        return _handled(function, ASSERTIONS, 2, args, kwargs)
    return None


def _call_of_target(key: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Callable[[], Any] | None:
    """The call of the first target of a function, or of an op, that takes these arguments; else None."""
    for target in TARGETS.get(key, ()):
        call = target.bound(args, kwargs)
        if call is not None:
            return lambda: target.function(*call.args, **call.kwargs)
    return None


def _handled(
    function: Callable[..., Any],
    handlers: Sequence[Handler],
    count: int,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> Callable[[], Any] | None:
    """What computes a call by the handler for the first ``count`` arguments; None if there is none."""
    try:
        call = inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        return None
    arguments = call.args[:count]
    handler = handler_of(handlers, arguments) if len(arguments) == count else None
    if handler is None:
        return None
    return lambda: handler(lambda *tensors: function(*tensors, *call.args[count:], **call.kwargs), *arguments)


def by_rule(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], error: Exception
) -> Any:
    """The result of a call that raised ``error``: of a registered target, else of the composite's rule.

    Raises:
        CompositeError: no target and no rule computes it; also where code of dualflow has read an attribute
            of tensors, such as ``shape``, of a composite that lacks it.
        AttributeError: an attribute of something else is missing.
    """
    target = dispatched(function, args, kwargs) if ACTIVE else None
    if target is not None:
        return target()
    if not isinstance(error, CompositeError):
        if _is_lacked_by_a_composite(error):
            return error.obj.__as_tensor__()  # type: ignore[attr-defined]  # an AttributeError
        raise error
    rules = RULES.get(function, {})
    for composite in type(error.composite).__mro__:
        if composite in rules:
            return rules[composite](*args, **kwargs)
    raise error


def _is_lacked_by_a_composite(error: Exception) -> bool:
    """Whether an error is about an attribute that the class of a composite, and its bases, don't define.

    Python sets ``obj`` too in an error that a property of the class itself has raised.
    """
    value = getattr(error, "obj", None)
    return isinstance(value, AbstractComposite) and not any(
        error.name in vars(kind)  # type: ignore[attr-defined]  # an AttributeError
        for kind in type(value).__mro__
    )


def elementwise_rule(op: Any, inputs: Sequence[Any], attrs: dict[str, Any]) -> Callable[[], Any] | None:
    """What computes an elementwise op of composites; None if nothing is registered for their types."""
    call = _call_of_target(op, inputs, {})
    if call is not None:
        return call
    handler = handler_of({1: UNARY, 2: BINARY}.get(len(inputs), ()), inputs)
    if handler is None:
        return None
    function = FUNCTIONS.get(op.name, lambda *tensors: dispatch.current().apply(op, tensors, attrs))
    return lambda: handler(function, *inputs)


def handler_of(handlers: Iterable[Handler], arguments: Sequence[Any]) -> Callable[..., Any] | None:
    """The handler for arguments of these types; None if there is none."""
    for handler in handlers:
        if matches_all(list(zip(arguments, handler.types, strict=True))):
            return handler.function
    return None


def matches_all(values: Sequence[tuple[Any, Any]]) -> bool:
    """Whether each value is of the type paired with it, and one is a composite."""
    degrees = [match(value, kind) for value, kind in values]
    return min(degrees, default=TypeMatch.NONE) > TypeMatch.NONE and max(degrees) is TypeMatch.COMPOSITE


def match(value: Any, annotation: Any) -> TypeMatch:
    """How a value matches a type."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        return max(match(value, choice) for choice in arguments)
    if origin is not None and issubclass(origin, Sequence):
        if not isinstance(value, list | tuple) or not value:
            return TypeMatch.NONE
        degrees = [match(x, arguments[0]) for x in value]
        return TypeMatch.NONE if TypeMatch.NONE in degrees else max(degrees)
    if annotation is Any:
        return TypeMatch.VALUE
    kind = type(None) if annotation is None else annotation
    if not isinstance(value, kind):
        return TypeMatch.NONE
    return TypeMatch.COMPOSITE if isinstance(value, AbstractComposite) else TypeMatch.VALUE


def check_type(annotation: Any, owner: str) -> None:
    """Raise an error for a type that no argument can be compared with.

    Raises:
        DTypeError: it is such a type.
    """
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        for choice in arguments:
            check_type(choice, owner)
    elif isinstance(origin, type) and issubclass(origin, Sequence) and arguments:
        check_type(arguments[0], owner)
    elif not (isinstance(annotation, type) or annotation in (None, Any)):
        raise DTypeError(
            f"{owner}: {annotation!r} is no type of an argument; give a class, or a List or Union of classes."
        )


def has_composite(annotation: Any) -> bool:
    """Whether a type has composites among its values."""
    parts = typing.get_args(annotation)
    if parts:
        return any(map(has_composite, parts))
    return isinstance(annotation, type) and issubclass(annotation, AbstractComposite)


def check_composite(annotations: Iterable[Any], owner: str) -> None:
    """Raise an error unless one of several types is a composite.

    Raises:
        InvalidArgumentError: none is.
    """
    if not any(map(has_composite, annotations)):
        raise InvalidArgumentError(
            f"{owner}: no type is an ExtensionType or another composite, so it would never be called; "
            "annotate a parameter with one."
        )
