"""Slots: functions that a package calls and a higher package, which it can't import, provides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NoReturn, TypeVar, cast

from dualflow.core.errors import InternalError
from dualflow.core.locks import imported

T = TypeVar("T")


class Slot(Generic[T]):
    """A value, usually a function, that a package above provides when it is imported.

    Args:
        purpose: the purpose of the value, for error messages.
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

    def fill_from(self, module: str) -> None:
        """Fill the slot lazily: the first call of its function imports ``module``, which fills it."""

        def load(*args: Any, **kwargs: Any) -> Any:
            imported(module)
            if self.value is value:
                raise InternalError(f"{module} does not provide {self._purpose}")
            return cast(Any, self.value)(*args, **kwargs)

        value = self._default = self.value = cast(T, load)

    def clear(self) -> None:
        """Return to the default."""
        self.value = self._default


def unfilled(purpose: str) -> Callable[..., NoReturn]:
    """The default of a slot that is required: a function that raises an error."""

    def fail(*args: object, **kwargs: object) -> NoReturn:
        raise InternalError(f"no package that is imported provides {purpose}")

    return fail
