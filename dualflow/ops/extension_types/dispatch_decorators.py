"""``dispatch_for_api`` and its like, which register what functions of tensors compute of extension types."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from dualflow.core.api_dispatch import (
    ACTIVE,
    ASSERTIONS,
    BINARY,
    TARGETS,
    UNARY,
    DispatchTarget,
    Handler,
    check_composite,
    check_type,
)
from dualflow.core.errors import InvalidArgumentError, NotFoundError
from dualflow.core.tracebacks import entry
from dualflow.ops.extension_types import elementwise_functions as elementwise_functions  # registers them

F = TypeVar("F", bound=Callable[..., Any])


@entry
def dispatch_for_api(api: Callable[..., Any], *signatures: Mapping[str | int, Any]) -> Callable[[F], F]:
    """A decorator that registers a function for calls of ``api`` with arguments of the types that it names.

    Among these types must be an extension type or another composite. Arguments without a type may be
    anything. The first function that was registered for the types of a call computes it.

    Args:
        api: a function of tensors, such as ``df.stack``.
        signatures: the types of arguments, by the name or the index of the parameter; by default one, of the
            annotations of the function. A type is a class, or a List or a Union of classes.

    Returns:
        A decorator that returns the function unchanged.

    Raises:
        DTypeError: a type is none that arguments can be compared with.
        InvalidArgumentError: ``api`` is no function of tensors, it lacks a parameter, or no type is a
            composite.

    >>> import dualflow as df
    >>> class Interval(df.experimental.ExtensionType):
    ...     low: df.Tensor
    ...     high: df.Tensor
    >>> @df.experimental.dispatch_for_api(df.reduce_max)
    ... def largest(input_tensor: Interval, axis=None, keepdims=False):
    ...     return df.reduce_max(input_tensor.high, axis, keepdims)
    >>> df.reduce_max(Interval([1.0, 2.0], [3.0, 5.0])).numpy()
    np.float32(5.0)
    >>> df.experimental.unregister_dispatch_for(largest)
    """
    op = getattr(api, "op", None)
    if op is None and not getattr(api, "__dispatches__", False):
        name = getattr(api, "__name__", repr(api))
        raise InvalidArgumentError(
            f"{name} is no function of tensors whose computation can be defined for a type."
        )
    parameters = inspect.signature(api)
    key = inspect.unwrap(api) if op is None else op

    @entry
    def register(function: F) -> F:
        keeps_name = "name" in inspect.signature(function).parameters
        targets = [
            DispatchTarget(function, _by_name(signature, parameters, function), parameters, keeps_name)
            for signature in signatures or (_annotations_of(function),)
        ]
        TARGETS.setdefault(key, []).extend(targets)
        ACTIVE.append(function)
        return function

    return register


@entry
def dispatch_for_unary_elementwise_apis(x_type: object) -> Callable[[F], F]:
    """A decorator that registers a handler of all elementwise functions of one argument, for a type.

    It is called as ``handler(function, x)``, where ``function`` takes a tensor.

    Args:
        x_type: an extension type or another composite, or a Union with one.

    Returns:
        A decorator that returns the handler unchanged.

    Raises:
        DTypeError: ``x_type`` is no type.
        InvalidArgumentError: it is no composite, or has a handler already.

    >>> import dualflow as df
    >>> class Labelled(df.experimental.ExtensionType):
    ...     values: df.Tensor
    ...     label: str
    >>> @df.experimental.dispatch_for_unary_elementwise_apis(Labelled)
    ... def of_values(function, x):
    ...     return Labelled(function(x.values), x.label)
    >>> df.abs(Labelled([-1.0, 2.0], "m")).values.numpy().tolist()
    [1.0, 2.0]
    """
    return _handler(UNARY, (x_type,), "dispatch_for_unary_elementwise_apis")


@entry
def dispatch_for_binary_elementwise_apis(x_type: object, y_type: object) -> Callable[[F], F]:
    """A decorator that registers a handler of all elementwise functions of two arguments, for two types.

    It is called as ``handler(function, x, y)``, where ``function`` takes two tensors.

    Args:
        x_type: the type of the first argument; it or ``y_type`` is a composite, or a Union with one.
        y_type: the type of the second argument.

    Returns:
        A decorator that returns the handler unchanged.

    Raises:
        DTypeError: one of them is no type.
        InvalidArgumentError: neither is a composite, or they have a handler already.

    >>> import dualflow as df
    >>> class Metres(df.experimental.ExtensionType):
    ...     values: df.Tensor
    >>> @df.experimental.dispatch_for_binary_elementwise_apis(Metres, Metres)
    ... def of_lengths(function, x, y):
    ...     return Metres(function(x.values, y.values))
    >>> df.maximum(Metres([1.0, 5.0]), Metres(2.0)).values.numpy().tolist()
    [2.0, 5.0]
    """
    return _handler(BINARY, (x_type, y_type), "dispatch_for_binary_elementwise_apis")


@entry
def dispatch_for_binary_elementwise_assert_apis(x_type: object, y_type: object) -> Callable[[F], F]:
    """A decorator that registers a handler of assertions, such as ``debugging.assert_equal``, for two types.

    It is called as ``handler(assertion, x, y)``, where ``assertion`` takes two tensors.

    Args:
        x_type: the type of the first argument; it or ``y_type`` is a composite, or a Union with one.
        y_type: the type of the second argument.

    Returns:
        A decorator that returns the handler unchanged.

    Raises:
        DTypeError: one of them is no type.
        InvalidArgumentError: neither is a composite, or they have a handler already.

    >>> import dualflow as df
    >>> class Weight(df.experimental.ExtensionType):
    ...     kilograms: df.Tensor
    >>> @df.experimental.dispatch_for_binary_elementwise_assert_apis(Weight, Weight)
    ... def of_weights(assertion, x, y):
    ...     return assertion(x.kilograms, y.kilograms)
    >>> df.debugging.assert_less(Weight(1.0), Weight(2.0))
    """
    return _handler(ASSERTIONS, (x_type, y_type), "dispatch_for_binary_elementwise_assert_apis")


@entry
def unregister_dispatch_for(dispatch_target: Callable[..., Any]) -> None:
    """Remove a function that one of the decorators ``dispatch_for_...`` has registered.

    Args:
        dispatch_target: the function.

    Raises:
        NotFoundError: it is not registered.

    >>> import dualflow as df
    >>> class Boxed(df.experimental.ExtensionType):
    ...     content: df.Tensor
    >>> @df.experimental.dispatch_for_unary_elementwise_apis(Boxed)
    ... def of_content(function, x):
    ...     return function(x.content)
    >>> df.negative(Boxed(1.0)).numpy()
    np.float32(-1.0)
    >>> df.experimental.unregister_dispatch_for(of_content)
    """
    if dispatch_target not in ACTIVE:
        raise NotFoundError(
            f"{dispatch_target!r} is not registered; pass a function that a decorator "
            "dispatch_for_... has registered."
        )
    for targets in TARGETS.values():
        targets[:] = [target for target in targets if target.function is not dispatch_target]
    for handlers in (UNARY, BINARY, ASSERTIONS):
        handlers[:] = [handler for handler in handlers if handler.function is not dispatch_target]
    ACTIVE[:] = [function for function in ACTIVE if function is not dispatch_target]


def _handler(handlers: list[Handler], kinds: tuple[Any, ...], name: str) -> Callable[[F], F]:
    for kind in kinds:
        check_type(kind, name)
    check_composite(kinds, name)

    @entry
    def register(function: F) -> F:
        if any(handler.types == kinds for handler in handlers):
            raise InvalidArgumentError(
                f"{name}: a handler has already been registered for {kinds}; remove it with "
                "unregister_dispatch_for first."
            )
        handlers.append(Handler(function, kinds))
        ACTIVE.append(function)
        return function

    return register


def _annotations_of(function: Callable[..., Any]) -> dict[str | int, Any]:
    hints = typing.get_type_hints(function)
    return {name: hint for name, hint in hints.items() if name != "return"}


def _by_name(
    signature: Mapping[str | int, Any], parameters: inspect.Signature, function: Callable[..., Any]
) -> dict[str, Any]:
    """The types of a signature by the name of the parameter.

    Raises:
        InvalidArgumentError: there is no such parameter, or no type is a composite.
    """
    owner = f"dispatch_for_api, for {getattr(function, '__name__', function)}"
    names = list(parameters.parameters)
    annotations = {}
    for key, annotation in signature.items():
        name = names[key] if isinstance(key, int) and -len(names) <= key < len(names) else key
        if name not in names:
            raise InvalidArgumentError(f"{owner}: the function has no parameter {key!r}, but {names}.")
        check_type(annotation, owner)
        annotations[str(name)] = annotation
    check_composite(annotations.values(), owner)
    return annotations
