"""What exported programs call in the place of functions that use more than NumPy and SciPy."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any, Final, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

_ATTRIBUTE: Final = "_dualflow_exported"


def exported_as(portable: Callable[..., Any]) -> Callable[[F], F]:
    """Let exported programs call ``portable``, a function of the same arguments; a decorator."""

    def mark(function: F) -> F:
        setattr(function, _ATTRIBUTE, portable)
        return function

    return mark


def exported(function: FunctionType) -> FunctionType:
    """What exported programs call: ``function`` itself where nothing else is said."""
    found: FunctionType = getattr(function, _ATTRIBUTE, function)
    return found
