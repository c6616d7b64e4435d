"""Functions that exported programs call in place of ones that need more than NumPy and SciPy."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any, Final, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

_ATTRIBUTE: Final = "_dualflow_exported"


def exported_as(portable: Callable[..., Any]) -> Callable[[F], F]:
    """A decorator: exported programs call ``portable``, a function of the same arguments, instead."""

    def mark(function: F) -> F:
        setattr(function, _ATTRIBUTE, portable)
        return function

    return mark


def exported(function: FunctionType) -> FunctionType:
    """The function that exported programs call: the portable one, or ``function`` itself."""
    replacement: FunctionType = getattr(function, _ATTRIBUTE, function)
    return replacement
