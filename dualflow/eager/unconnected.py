"""The gradients of sources on which a target does not depend."""

from __future__ import annotations

import enum
from typing import Final

from dualflow.core.errors import InvalidArgumentError


class UnconnectedGradients(enum.Enum):
    """The gradient for a source on which the target does not depend."""

    NONE = "none"
    ZERO = "zero"


NO_GRADIENT: Final = UnconnectedGradients.NONE
Unconnected = UnconnectedGradients | str


def unconnected_choice(value: Unconnected) -> UnconnectedGradients:
    """``value`` as an :class:`UnconnectedGradients`.

    Raises:
        InvalidArgumentError: another value.
    """
    if value is NO_GRADIENT:
        return value
    try:
        return UnconnectedGradients(value)
    except ValueError:
        raise InvalidArgumentError(
            f"Unknown value for unconnected_gradients: {value!r}; use 'none' or 'zero'."
        ) from None
