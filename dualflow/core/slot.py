"""Slots: what a package needs from one above it, which it can't import."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NoReturn, TypeVar

from dualflow.core.errors import InternalError

T = TypeVar("T")


class Slot(Generic[T]):
    """A value, usually a function, that a package above provides when it is imported.

    Args:
        purpose: what the value is for, as errors call it.
        default: the value until another is provided.

    Attributes:
        value: the present value.

    >>> twice = Slot("doubling", lambda x: x)
    >>> @twice.fill
    ... def double(x):
    ...     return 2 * x
    >>> twice.value(3)
    6
    """

    __slots__ = ("_default", "_purpose", "value")

    def __init__(self, purpose: str, default: T) -> None:
        self._purpose = purpose
        self._default = default
        self.value = default

    def fill(self, value: T) -> T:
        """Provide the value; usable as a decorator.

        Raises:
            InternalError: another value has been provided.
        """
        if self.value is not self._default and self.value != value:
            raise InternalError(f"two values are provided for {self._purpose}")
        self.value = value
        return value

    def clear(self) -> None:
        """Return to the default."""
        self.value = self._default


def unfilled(purpose: str) -> Callable[..., NoReturn]:
    """The default of a slot without which a call can't go on: a function that raises."""

    def fail(*args: object, **kwargs: object) -> NoReturn:
        raise InternalError(f"no package that is imported provides {purpose}")

    return fail
