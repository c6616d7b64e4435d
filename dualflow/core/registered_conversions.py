"""Conversions of objects to tensors that users register for their classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from dualflow.core.dispatch import TENSORS, AbstractVariable
from dualflow.core.errors import DTypeError
from dualflow.core.records import NamedTuple
from dualflow.core.tracebacks import entry

_BUILT_IN: Final = (bool, int, float, complex, str, bytes, list, tuple, np.ndarray, np.generic, *TENSORS)


_LIBRARIES: Final = ("dualflow", "keras", "keras_dualflow", "tensorflow")


class Conversion(NamedTuple):
    """A function that converts instances of some classes; a lower priority is tried first."""

    priority: int
    classes: tuple[type, ...]
    function: Callable[..., Any]


CONVERSIONS: Final[list[Conversion]] = []
"""The registered conversions in the order in which they are tried."""


@entry
def register_tensor_conversion_function(
    base_type: type | tuple[type, ...], conversion_func: Callable[..., Any], priority: int = 100
) -> None:
    """Convert instances of a class to tensors by a function, wherever an op takes a tensor.

    A class of the caller's own can have a method ``__array__`` instead, if its value is an array.

    Args:
        base_type: a class or a tuple of classes, whose subclasses are converted too.
        conversion_func: called as ``conversion_func(value, dtype=None, name=None, as_ref=False)``; ``dtype``
            is the dtype that the tensor must have, None for any. It returns a tensor, or NotImplemented to
            leave the value to the next function.
        priority: functions of lower priority are tried first; those of one priority in the order of their
            registration. 100 by default.

    Raises:
        DTypeError: ``base_type`` is no class, or one that is converted already, such as float; or
            ``conversion_func`` can't be called.

    >>> import dualflow as df
    >>> class Degrees:
    ...     def __init__(self, value):
    ...         self.value = value
    >>> def in_radians(x, dtype=None, name=None, as_ref=False):
    ...     return df.constant(x.value * 3.14159 / 180, dtype)
    >>> df.register_tensor_conversion_function(Degrees, in_radians)
    >>> df.sin(Degrees(90.0)).numpy()
    np.float32(1.0)
    """
    classes = base_type if isinstance(base_type, tuple) else (base_type,)
    if not classes or not all(isinstance(kind, type) for kind in classes):
        raise DTypeError(f"base_type is a class or a tuple of classes, not {base_type!r}.")
    converted = [kind for kind in classes if issubclass(kind, _BUILT_IN) and not _is_own_variable(kind)]
    if converted:
        raise DTypeError(
            f"Instances of {converted[0].__name__} become tensors already; register a class of your own."
        )
    if not callable(conversion_func):
        raise DTypeError(f"conversion_func is a function, not {conversion_func!r}.")
    CONVERSIONS.append(Conversion(priority, classes, conversion_func))
    CONVERSIONS.sort(key=lambda conversion: conversion.priority)


def registered(x: Any, dtype: Any = None) -> Any:
    """``x`` as a tensor, if a conversion is registered for its class; other values unchanged.

    Raises:
        DTypeError: the conversion returns something else than a tensor.
    """
    if isinstance(x, _BUILT_IN) and not _is_own_variable(type(x)):
        return x
    for _, classes, function in CONVERSIONS:
        if isinstance(x, classes):
            tensor = function(x, dtype=dtype, name=None, as_ref=False)
            if tensor is NotImplemented:
                continue
            if not isinstance(tensor, TENSORS):
                raise DTypeError(
                    f"The conversion function registered for {type(x).__name__} returned {tensor!r}; it "
                    "returns a tensor, or NotImplemented."
                )
            return tensor
    return x


def _is_own_variable(kind: type) -> bool:
    """Whether a class is a program's own subclass of Variable, whose instances may have no value."""
    return issubclass(kind, AbstractVariable) and kind.__module__.partition(".")[0] not in _LIBRARIES
